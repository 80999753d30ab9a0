// How many jobs waited and ran over time, how long they waited, and who used the GPUs that they waited for.

function showWaits(report) {
  const box = shown("waits");
  const span = spanOf(report);
  const panels = [
    { word: "waiting", label: "Waiting jobs", changes: waitingChanges(report, span.until) },
    { word: "running", label: "Running jobs", changes: runningChanges(report, heardUntil(report)) },
  ].map((panel) => new Area(panel, span));
  const figures = waitFigures(report);
  for (const panel of panels) box.append(element("figure", { class: "area" }, panel.caption, panel.box));
  box.append(element("h3", {}, "How long jobs waited"), element("p", {}, figures), waitBuckets(report));
  if (report.waits.length) box.append(element("h3", {}, "GPUs that others used"), waitTable(report));
  panels.forEach((panel) => panel.draw());
  new ResizeObserver(() => panels.forEach((panel) => panel.box.clientWidth !== panel.width && panel.draw())).observe(
    box,
  );
}

function runningChanges(report, now) {
  return report.jobs.flatMap((job) =>
    job.attempts.flatMap((attempt) => [
      [attempt.started, 1],
      [Math.max(attempt.started, attempt.ended ?? now), -1],
    ]),
  );
}

// From when it was read, or its last attempt ended, until the next one started.
function waitingChanges(report, until) {
  return report.jobs.flatMap((job) => {
    const starts = job.attempts.map((attempt) => attempt.started);
    if (job.state === "waiting") starts.push(until);
    else if (!starts.length) starts.push(job.ended ?? job.read);
    return starts.flatMap((start, index) => {
      const since = index ? (job.attempts[index - 1].ended ?? start) : job.read;
      return start > since
        ? [
            [since, 1],
            [start, -1],
          ]
        : [];
    });
  });
}

class Area {
  constructor({ word, label, changes }, span) {
    this.word = word;
    this.span = span;
    // At one moment what ends comes before what begins, or a hand-over would count twice.
    this.changes = changes.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
    const [most, at] = this.peak();
    const sentence = label + ": at most " + count(most) + (most ? ", first at " + moment(at) : "") + ".";
    this.most = most;
    this.svg = shape("svg", { id: "area-" + word, class: "chart", role: "img", "aria-label": sentence, height: 110 });
    this.caption = element("figcaption", {}, sentence);
    this.box = element("div", { class: "whole" }, this.svg);
  }

  peak() {
    let now = 0,
      most = 0,
      at = null;
    for (const [time, change] of this.changes) {
      now += change;
      if (now > most) [most, at] = [now, time];
    }
    return [most, at];
  }

  draw() {
    this.width = this.box.clientWidth;
    this.left = 44;
    filled(this.svg, { width: this.width, viewBox: "0 0 " + this.width + " 110" }, []);
    const line = this.line();
    const ticks = timeTicks(this.span.from, this.span.until, (this.width - this.left) / 90).map((tick) =>
      tickLabel(tick, this.x(tick.at), 106, 0, this.width),
    );
    const heights = this.most ? [0, this.most] : [0];
    const marks = heights.flatMap((value) => [
      shape("path", { class: "grid", d: "M" + this.left + " " + this.y(value) + "H" + this.width }),
      shape("text", { class: "tick", x: this.left - 6, y: this.y(value) + 4, "text-anchor": "end" }, count(value)),
    ]);
    this.svg.replaceChildren(
      ...marks,
      shape("path", { class: "area-fill", d: line + "V" + this.y(0) + "H" + this.left + "z", fill: paint(this.word) }),
      shape("path", { class: "area-line", d: line, "data-most": this.most }),
      ...ticks,
    );
  }

  // Of all that happens within one pixel only the most and the last are drawn.
  line() {
    let now = 0,
      pixel = 0,
      most = 0;
    let d = "M" + this.left + " " + this.y(0);
    const put = () => {
      if (most > now) d += "H" + (this.left + pixel) + "V" + this.y(most);
      d += "H" + (this.left + pixel) + "V" + this.y(now);
      most = now;
    };
    for (const [time, change] of this.changes) {
      const here = Math.max(0, Math.round(this.x(time) - this.left));
      if (here !== pixel) {
        put();
        pixel = here;
      }
      now += change;
      most = Math.max(most, now);
    }
    put();
    return d;
  }

  x(time) {
    return this.left + ((time - this.span.from) / (this.span.until - this.span.from)) * (this.width - this.left - 2);
  }

  y(value) {
    return 88 - (this.most ? (78 * value) / this.most : 0);
  }
}

function waitsOf(report) {
  return report.jobs
    .map((job) => job.wait)
    .filter((wait) => wait !== null)
    .sort((one, other) => one - other);
}

function waitFigures(report) {
  const waits = waitsOf(report);
  if (!waits.length) return "No job has been started yet.";
  return (
    "Half of the jobs waited at most " +
    duration(middle(waits)) +
    ", nine in ten at most " +
    duration(middle(waits, 0.9)) +
    "; the longest wait was " +
    duration(waits[waits.length - 1]) +
    "."
  );
}

const WAIT_BUCKETS = [
  ["under 1 s", 1],
  ["1 to 10 s", 10],
  ["10 s to 1 min", 60],
  ["1 to 10 min", 600],
  ["10 min to 1 h", 3600],
  ["1 to 10 h", 36000],
  ["over 10 h", Infinity],
];

function waitBuckets(report) {
  const waits = waitsOf(report);
  const list = element("ul", { class: "buckets", "aria-label": "Jobs by how long they waited" });
  let before = 0;
  for (const [label, limit] of WAIT_BUCKETS) {
    const here = waits.filter((wait) => wait >= before && wait < limit).length;
    before = limit;
    const jobs = element("span", { class: "number" }, counted(here, "job"));
    if (here) list.append(element("li", {}, element("span", {}, label), jobs, meter(here / waits.length)));
  }
  return list;
}

function waitTable(report) {
  const rows = report.waits.map((wait) => ({ ...wait, seconds: wait.to - wait.from }));
  return new Table(
    "Waits for GPUs",
    [
      { label: "GPU", value: (row) => sortKey(row.gpu), cell: (row) => user(row.gpu, 40) },
      { label: "Used by", value: (row) => row.for, cell: (row) => user(row.for), wide: true },
      { label: "From", value: (row) => row.from, cell: (row) => moment(row.from), minor: true },
      { label: "To", value: (row) => row.to, cell: (row) => moment(row.to), minor: true },
      { label: "For", value: (row) => row.seconds, cell: (row) => duration(row.seconds), number: true },
    ],
    rows,
    20,
  ).box;
}
