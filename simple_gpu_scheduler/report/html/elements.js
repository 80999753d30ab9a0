// Elements, filled with text only: nothing that a user wrote is ever read as markup.

// From good to bad: what comes later is drawn on top.
const OUTCOMES = [
  "succeeded",
  "running",
  "waiting",
  "cancelled",
  "not started",
  "interrupted",
  "timed out",
  "stalled",
  "killed",
  "failed",
];

function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

function shape(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null)); // append takes text as text
  return made;
}

function byId(id) {
  return document.getElementById(id);
}

// What a user wrote, with its direction kept to itself.
function user(text, most) {
  return element("bdi", { class: "user", dir: "ltr" }, short(text, most));
}

// A command on one line. Where there is too little room, what it shares with others gives way first.
function command(text, parts) {
  if (!parts || parts.length < 2) return user(text);
  const spans = parts.map((part, index) =>
    part ? element("span", { class: index % 2 ? null : "shared" }, visible(part)) : null,
  );
  return element("bdi", { class: "user parts", dir: "ltr" }, ...spans);
}

function paint(outcome) {
  return "url(#is-" + (OUTCOMES.includes(outcome) ? outcome.replace(" ", "-") : "other") + ")";
}

function swatch(outcome) {
  return shape(
    "svg",
    { class: "swatch", width: 14, height: 14, "aria-hidden": "true" },
    shape("rect", { width: 14, height: 14, rx: 3, fill: paint(outcome) }),
  );
}

function chip(outcome, more = "") {
  return element("span", { class: "chip" }, swatch(outcome), element("span", {}, short(outcome, 40) + more));
}

function button(text, act, attributes = {}) {
  const made = element("button", { type: "button", ...attributes }, text);
  made.addEventListener("click", act);
  return made;
}

function facts(pairs) {
  const list = element("dl", { class: "facts" });
  for (const [word, value] of pairs) {
    if (value !== null) list.append(element("div", {}, element("dt", {}, word), element("dd", {}, value)));
  }
  return list;
}

// A box that scrolls by itself, by keyboard too, so that the page never gets wider than the screen.
function scrolling(label, ...children) {
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, ...children);
}

function shown(section) {
  byId(section).hidden = false;
  byId("to-" + section).hidden = false;
  return byId(section).querySelector(".here");
}

// Colours: five steps from low to high. The place on an axis tells more.
const STEPS = 5;

function step(position) {
  return Math.min(STEPS - 1, Math.max(0, Math.floor(position * STEPS)));
}
