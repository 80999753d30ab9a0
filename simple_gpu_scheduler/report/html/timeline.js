// The Gantt chart with what surrounds it: zoom, legend, and its figures in words.

function placeName(gpus) {
  return gpus && gpus !== "cpu" ? "GPU " + short(gpus, 60) : "cpu";
}

function ganttSentence(chart) {
  return (
    "Gantt chart of " +
    counted(chart.attempts, "attempt") +
    " on " +
    chart.rows.map((row) => placeName(row.gpu)).join(", ") +
    ". Arrow keys move between attempts; Enter shows details."
  );
}

function showGantt(report) {
  const box = shown("timeline");
  const chart = new Gantt(report);
  if (!chart.rows.length) return box.append(element("p", { class: "quiet" }, "Nothing has been started."));
  const present = OUTCOMES.filter((word) => chart.rows.some((row) => row.bars.some((bar) => bar.outcome === word)));
  const legend = element("ul", { class: "legend" }, ...present.map((word) => element("li", {}, chip(word))));
  if (report.lanes?.some((lane) => lane.idle.some((each) => each > 0))) legend.append(meterLegend());
  const caption = element("figcaption", { id: "gantt-figures" }, ganttFigures(report, chart), legend);
  chart.svg.setAttribute("aria-describedby", "gantt-figures");
  box.append(zoomControls(chart), chart.meters.length ? meterControls(chart) : "", element("figure", {}, chart.box, caption));
  chart.resize();
  new ResizeObserver(() => chart.box.clientWidth !== chart.width && chart.resize()).observe(chart.box);
}

function ganttFigures(report, chart) {
  const busy = report.gpus.map((gpu) => placeName(gpu.gpu) + " " + percent(gpu.share));
  const text = moment(chart.from) + " to " + moment(chart.until) + "." + (isOfOneJob(report) ? "" : " Busy: " + busy.join(", ") + ".");
  return element("p", {}, text, chart.pauses.length ? " Grey: between two sessions of the run." : "");
}
