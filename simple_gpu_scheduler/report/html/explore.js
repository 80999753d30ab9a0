// Pointing at the things in a drawing, by mouse and by keyboard. What they are, and where, the drawing says:
//   at(x, y) what is there; next(item, key) where a key leads; spot(item) its place in pixels; mark(item) shows which;
//   words(item) lines about it; open(item) its details; see(item) brings it into view.

function explorable(svg, drawing) {
  let current = null;
  const choose = (item, byKey) => {
    current = item;
    drawing.mark(item);
    if (item === null) return hideTip();
    if (byKey) drawing.see(item);
    const words = drawing.words(item);
    showTip(svg, drawing.spot(item), words);
    if (byKey) byId("said").textContent = words.join(". ");
  };
  const pointed = (event) => {
    const place = svg.getBoundingClientRect();
    return drawing.at(event.clientX - place.left, event.clientY - place.top);
  };
  svg.addEventListener("pointermove", (event) => {
    const item = pointed(event);
    if (item !== current) choose(item, false);
  });
  svg.addEventListener("pointerleave", () => choose(null, false));
  svg.addEventListener("click", (event) => {
    const item = pointed(event);
    if (item) drawing.open(item);
  });
  svg.addEventListener("blur", () => choose(null, false));
  svg.addEventListener("focus", () => svg.matches(":focus-visible") && choose(drawing.next(null, "Home"), true));
  svg.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const act = keyed(event.key, current, drawing, choose);
    if (act) event.preventDefault();
  });
}

function keyed(key, current, drawing, choose) {
  if ((key === "Enter" || key === " ") && current) {
    drawing.open(current);
    return true;
  }
  if (key === "Escape") choose(null, false);
  if (!["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"].includes(key)) return false;
  const item = drawing.next(current, key);
  if (item) choose(item, true);
  return true;
}

function showTip(svg, spot, words) {
  const tip = byId("tip");
  const place = svg.getBoundingClientRect();
  tip.replaceChildren(...words.map((line) => element("div", { class: "user", dir: "ltr" }, line)));
  tip.hidden = false;
  const left = Math.max(0, place.left + spot.x) + 8;
  const below = place.top + spot.y + spot.height + 8;
  const above = place.top + spot.y - tip.offsetHeight - 8;
  tip.style.left = Math.max(8, Math.min(left, document.documentElement.clientWidth - tip.offsetWidth - 8)) + "px";
  tip.style.top = (below + tip.offsetHeight < window.innerHeight ? below : Math.max(8, above)) + "px";
}

function hideTip() {
  byId("tip").hidden = true;
}
