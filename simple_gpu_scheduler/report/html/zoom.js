// The buttons and the slider above the Gantt chart: from the whole run to one second across.

function zoomControls(chart) {
  const most = Math.max(2, chart.until - chart.from);
  const slider = element("input", {
    type: "range",
    min: 0,
    max: 100,
    step: 1,
    value: 0,
    id: "zoom",
    "aria-label": "Zoom the time axis",
  });
  const scale = (place) => most ** (place / 100);
  const zoomTo = (place) => {
    slider.value = Math.min(100, Math.max(0, place));
    slider.setAttribute(
      "aria-valuetext",
      duration((chart.until - chart.from) / scale(Number(slider.value))) + " across",
    );
    chart.zoomTo(scale(Number(slider.value)));
  };
  const by = (places) => () => zoomTo(Number(slider.value) + places);
  const near = (100 * Math.log(2)) / Math.log(most); // one click: twice as near
  slider.addEventListener("input", () => zoomTo(Number(slider.value)));
  const buttons = [
    button("−", by(-near), { "aria-label": "Zoom out", id: "zoom-out" }),
    slider,
    button("+", by(near), { "aria-label": "Zoom in", id: "zoom-in" }),
    button("Whole run", () => zoomTo(0), { id: "zoom-all" }),
  ];
  window.addEventListener("beforeprint", () => zoomTo(0));
  return element("div", { class: "zoom", role: "group", "aria-label": "Zoom" }, ...buttons);
}
