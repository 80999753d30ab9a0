// The time axis: where its ticks are and what they say, in the time zone of the browser.

const MINUTE = 60,
  HOUR = 3600,
  DAY = 86400;
// prettier-ignore
const TICK_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 364 * DAY,
];

function timeTicks(from, until, most) {
  const least = (until - from) / Math.max(1, most);
  const apart = TICK_STEPS.find((size) => size >= least) ?? TICK_STEPS[TICK_STEPS.length - 1];
  // Whole hours and days are whole on the clock that people look at, not in Greenwich.
  const offset = -60 * new Date(from * 1000).getTimezoneOffset();
  const first = Math.ceil((from + offset) / apart);
  const last = Math.floor((until + offset) / apart);
  const ticks = [];
  let today = apart >= DAY || day(from) === day(until) ? null : "";
  for (let number = first; number <= last; number += 1) {
    const at = number * apart - offset;
    const isNew = today !== null && day(at) !== today;
    if (isNew) today = day(at);
    ticks.push({ at, text: (isNew ? today.slice(5) + " " : "") + tickText(at, apart) });
  }
  return ticks;
}

// Only where there is room for the whole of it: half a time is a wrong time.
function tickLabel(tick, x, y, left, right) {
  const half = 3.4 * tick.text.length;
  if (x - half < left || x + half > right) return "";
  return shape("text", { class: "tick", x, y, "text-anchor": "middle" }, tick.text);
}

function tickText(at, apart) {
  if (apart >= DAY) return day(at);
  return clock(at, apart < 1 ? "ms" : apart < MINUTE ? "s" : "min");
}

// The whole span that a report is about, never empty.
function spanOf(report) {
  const isOfAttempts = isOfOneJob(report) && report.jobs[0]?.attempts.length > 0;
  let from = isOfAttempts ? Infinity : report.run.begun;
  let until = isOfAttempts ? -Infinity : (report.run.ended ?? heardUntil(report));
  for (const job of report.jobs) {
    for (const attempt of job.attempts) {
      from = Math.min(from, attempt.started);
      until = Math.max(until, attempt.ended ?? heardUntil(report)); // its scheduler may have died before it
    }
  }
  return { from, until: Math.max(until, from + 0.001) };
}

// How far what has not ended is known to have come.
function heardUntil(report) {
  return report.run.heard ?? report.made;
}

// Between two schedulers of a resumed run nothing ran.
function pausesOf(run) {
  return run.sessions
    .slice(1)
    .map((session, index) => [run.sessions[index][1], session[0]])
    .filter(([from, to]) => from && to > from);
}

function zoneName(epoch) {
  const parts = new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(new Date(epoch * 1000));
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "local time";
}
