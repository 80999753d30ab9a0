// Values as text for people. Knows nothing of elements.

const GAP = "\u00a0"; // between a number and its unit, which no line break may part
const NOTHING = "–";

// Control characters, marks that reverse the direction of text, invisible characters, and lone surrogates.
const UNSEEN = new RegExp(
  "[\\u0000-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
    "\\ud800-\\udfff\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}]",
  "gu",
);

function visible(text, kept = "") {
  return String(text).replace(UNSEEN, (mark) => (kept.includes(mark) ? mark : escaped(mark)));
}

function escaped(mark) {
  const known = { "\n": "\\n", "\t": "\\t", "\r": "\\r" }[mark];
  if (known) return known;
  const code = mark.codePointAt(0).toString(16);
  if (code.length <= 2) return "\\x" + code.padStart(2, "0");
  return code.length <= 4 ? "\\u" + code.padStart(4, "0") : "\\u{" + code + "}";
}

// One line, and no more of it than anybody reads: ten thousand characters in each of 200 rows would take seconds.
function short(text, most = 240) {
  const whole = String(text);
  if (whole.length <= most) return visible(whole);
  const end = /[\ud800-\udbff]/.test(whole[most - 1]) ? most - 1 : most;
  return visible(whole.slice(0, end)) + "…";
}

function count(number) {
  return number.toLocaleString("en-US");
}

function counted(number, word) {
  return count(number) + GAP + word + (number === 1 ? "" : "s");
}

function figure(value) {
  if (value === null || value === undefined) return NOTHING;
  return typeof value === "number" ? String(Number(value.toPrecision(6))) : visible(value);
}

// Never all where something is missing, nor nothing where there is some.
function percent(share) {
  if (share > 0 && share < 0.005) return "<1" + GAP + "%";
  if (share < 1 && share >= 0.995) return ">99" + GAP + "%";
  return Math.round(100 * share) + GAP + "%";
}

// In the form of the terminal (base/units.py).
function duration(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  if (seconds < 9.95) return seconds.toFixed(1) + GAP + "s";
  const whole = Math.round(seconds);
  if (whole < 60) return whole + GAP + "s";
  if (whole < 3600) return twoUnits(whole, 60, "min", 1, "s");
  if (whole < 86400) return twoUnits(whole, 3600, "h", 60, "min");
  return twoUnits(whole, 86400, "d", 3600, "h");
}

// The size of a unit for an axis of so many seconds, and its name.
function axisUnit(seconds) {
  if (seconds >= 3 * 86400) return [86400, "d"];
  if (seconds >= 3 * 3600) return [3600, "h"];
  return seconds >= 300 ? [60, "min"] : [1, "s"];
}

function twoUnits(whole, large, largeName, small, smallName) {
  const rest = Math.floor((whole % large) / small);
  const first = Math.floor(whole / large) + GAP + largeName;
  return rest ? first + " " + rest + GAP + smallName : first;
}

function two(number) {
  return String(number).padStart(2, "0");
}

function day(epoch) {
  const date = new Date(epoch * 1000);
  return date.getFullYear() + "-" + two(date.getMonth() + 1) + "-" + two(date.getDate());
}

function clock(epoch, fine = "s") {
  const date = new Date(epoch * 1000);
  const minutes = two(date.getHours()) + ":" + two(date.getMinutes());
  if (fine === "min") return minutes;
  const seconds = minutes + ":" + two(date.getSeconds());
  return fine === "ms" ? seconds + "." + String(date.getMilliseconds()).padStart(3, "0") : seconds;
}

function moment(epoch) {
  return epoch === null || epoch === undefined ? NOTHING : day(epoch) + " " + clock(epoch);
}

// An argument as a shell would take it.
function quoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";
}

function middle(sorted, share = 0.5) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : null;
}
