// The Gantt chart. Only what is in view is drawn, one path for each outcome, so that 100,000 attempts are quick too.

const AXIS = 24;

class Gantt {
  constructor(report) {
    const span = spanOf(report);
    this.from = span.from;
    this.until = span.until;
    this.rows = barsByGpu(report, heardUntil(report));
    this.attempts = new Set(this.rows.flatMap((row) => row.bars.map((bar) => bar.attempt))).size;
    this.pauses = pausesOf(report.run);
    const lanes = new Map((report.lanes ?? []).map((lane) => [lane.gpu, lane]));
    for (const row of this.rows) row.lane = lanes.get(row.gpu);
    this.meters = metersOf(report);
    this.shown = shownAtFirst(this.meters, this.rows.length);
    this.stack();
    this.zoom = 1;
    this.marked = null;
    this.svg = shape("svg", {
      id: "gantt",
      class: "chart",
      tabindex: 0,
      role: "application",
      "aria-label": ganttSentence(this),
      height: this.height,
      "data-attempts": this.attempts,
    });
    this.spacer = element("div", { class: "spacer" }, this.svg);
    this.box = element("div", { class: "scroll still" }, this.spacer);
    this.box.addEventListener("scroll", () => {
      if (!this.seeing) hideTip();
      this.seeing = false;
      requestAnimationFrame(() => this.draw());
    });
    explorable(this.svg, this);
  }

  stack() {
    const shown = this.meters.filter((meter) => this.shown.has(meter));
    this.height = stackedRows(this.rows, AXIS + 4, shown);
  }

  restack() {
    this.stack();
    this.marked = null;
    hideTip();
    this.resize();
  }

  resize() {
    this.width = this.box.clientWidth;
    this.gutter = this.width < 500 ? 48 : 72;
    this.across = (this.width - this.gutter) * this.zoom;
    this.spacer.style.width = this.gutter + this.across + "px";
    filled(this.svg, { width: this.width, height: this.height, viewBox: "0 0 " + this.width + " " + this.height }, []);
    this.draw();
  }

  zoomTo(zoom) {
    const inView = this.width - this.gutter;
    const middle = (this.box.scrollLeft + inView / 2) / this.across;
    this.zoom = zoom;
    this.resize();
    this.box.scrollLeft = middle * this.across - inView / 2;
    this.draw();
  }

  x(time) {
    return this.gutter + ((time - this.from) / (this.until - this.from)) * this.across - this.box.scrollLeft;
  }

  time(x) {
    return this.from + ((x - this.gutter + this.box.scrollLeft) / this.across) * (this.until - this.from);
  }

  draw() {
    this.begin = this.time(this.gutter);
    this.end = this.time(this.width);
    this.ring = shape("rect", { class: "ring", rx: 2, visibility: "hidden" });
    const meters = this.meters.length ? drawMeters(this) : [];
    this.svg.replaceChildren(...this.grid(), ...this.bars(), ...meters, ...this.names(), this.ring);
    this.mark(this.marked);
  }

  grid() {
    const bottom = this.height - 6;
    const ticks = timeTicks(this.begin, this.end, (this.width - this.gutter) / 90);
    const pauses = this.pauses.map(([from, to]) =>
      shape("rect", {
        class: "pause",
        x: this.x(from),
        width: this.x(to) - this.x(from),
        y: AXIS,
        height: bottom - AXIS,
      }),
    );
    const lines = ticks.flatMap((tick) => [
      shape("path", { class: "grid", d: "M" + this.x(tick.at) + " " + AXIS + "V" + bottom }),
      tickLabel(tick, this.x(tick.at), AXIS - 9, this.gutter - 10, this.width),
    ]);
    return [...pauses, ...lines];
  }

  bars() {
    const paths = new Map(OUTCOMES.map((word) => [word, { word, d: "", count: 0 }]));
    const labels = [];
    for (const row of this.rows) {
      for (const lane of row.lanes) this.drawLane(lane, row.height, paths, labels);
    }
    const drawn = [...paths.values()].filter((path) => path.count);
    return [
      ...drawn.map((path) =>
        shape("path", {
          class: "bars",
          d: path.d,
          fill: paint(path.word),
          "data-outcome": path.word,
          "data-count": path.count,
        }),
      ),
      ...labels,
    ];
  }

  drawLane(lane, height, paths, labels) {
    const filledTo = {}; // by outcome: the pixel up to which there is a bar; what is narrower than one is drawn once
    for (let index = firstEnding(lane, this.begin); index < lane.length && lane[index].from <= this.end; index += 1) {
      const bar = lane[index];
      if (!paths.has(bar.outcome)) paths.set(bar.outcome, { word: bar.outcome, d: "", count: 0 });
      const path = paths.get(bar.outcome);
      path.count += 1;
      const [left, width] = this.reach(bar);
      if (left + width <= (filledTo[bar.outcome] ?? -1)) continue;
      filledTo[bar.outcome] = left + width;
      path.d +=
        "M" +
        left.toFixed(1) +
        " " +
        bar.y +
        "h" +
        width.toFixed(1) +
        "v" +
        (height - 2) +
        "h-" +
        width.toFixed(1) +
        "z";
      if (height >= 20 && width > 26) labels.push(this.label(bar, left, width));
    }
  }

  // From where and how far, within what is in view; a hair is left between two bars where there is room for it.
  reach(bar) {
    const left = Math.max(this.gutter, this.x(bar.from));
    const right = Math.min(this.width + 2, this.x(bar.to));
    return [left, Math.max(right - left > 4 ? right - left - 1 : right - left, 1.2)];
  }

  label(bar, left, width) {
    const most = Math.floor((width - 10) / 6.5);
    const text = short(bar.job.name ?? bar.job.job);
    const cut = text.length > most ? [...text].slice(0, Math.max(1, most - 1)).join("") + "…" : text;
    if (text.length > most && most < 3) return "";
    const made = shape("text", { class: "bar-label", x: left + 5, y: bar.y + 13.5 }, cut);
    made.style.stroke = "var(--" + bar.outcome.replace(" ", "-") + ")"; // an edge, or stripes would run through it
    return made;
  }

  names() {
    const cover = shape("rect", { class: "cover", x: 0, y: 0, width: this.gutter - 2, height: this.height });
    const most = this.gutter < 60 ? 6 : 9;
    return [
      cover,
      ...meterNames(this),
      ...this.rows.map((row) =>
        shape(
          "text",
          {
            class: "row-name",
            x: 0,
            y: row.y + Math.max(11, Math.min(row.lanes.length * row.height, 40) / 2 + 3),
            "data-gpu": row.gpu,
          },
          row.gpu === "cpu" ? "cpu" : short((this.gutter < 60 ? "" : "GPU ") + row.gpu, most),
        ),
      ),
    ];
  }

  at(x, y) {
    const row = this.rows.find((one) => y >= one.y && y < one.y + one.lanes.length * one.height);
    if (!row || x < this.gutter) return readingAt(this, x, y);
    const lane = row.lanes[Math.floor((y - row.y) / row.height)];
    const slack = this.time(x + 2) - this.time(x);
    const bar = lane[firstEnding(lane, this.time(x) - slack)];
    return bar && bar.from <= this.time(x) + slack ? bar : null;
  }

  next(item, key) {
    const bar = item?.isReading ? nearest(item.row.bars, item.from) : item;
    const bars = (bar?.row ?? this.rows[0]).bars;
    if (key === "End") return bars[bars.length - 1];
    if (!bar || key === "Home") return bars[0];
    if (key === "ArrowLeft") return bars[bars.indexOf(bar) - 1] ?? null;
    if (key === "ArrowRight") return bars[bars.indexOf(bar) + 1] ?? null;
    const row = this.rows[this.rows.indexOf(bar.row) + (key === "ArrowUp" ? -1 : 1)];
    return row ? nearest(row.bars, bar.from) : null;
  }

  spot(bar) {
    if (bar.isReading) return this.spotOf(bar);
    const [x, width] = this.reach(bar);
    return { x, width, y: bar.y, height: bar.row.height - 2 };
  }

  spotOf({ row, from }) {
    const left = Math.max(this.gutter, this.x(from));
    const right = Math.min(this.width, this.x(from + row.lane.step));
    return { x: left, width: Math.max(1, right - left), y: row.meters[0].y - 1, height: row.bottom - row.meters[0].y };
  }

  mark(bar) {
    this.marked = bar;
    const until = bar?.isReading ? bar.from + bar.row.lane.step : bar?.to;
    const inView = bar && until >= this.begin && bar.from <= this.end;
    const place = inView
      ? { ...this.spot(bar), visibility: "visible", "data-job": bar.job?.job ?? "" }
      : { visibility: "hidden" };
    filled(this.ring, place, []);
  }

  see(bar) {
    const left = this.x(bar.from);
    if (left >= this.gutter && left <= this.width - 20) return;
    const before = this.box.scrollLeft;
    this.box.scrollLeft += left - this.width / 2;
    this.seeing = this.box.scrollLeft !== before; // what scrolls now is not the user
    this.draw();
  }

  words(bar) {
    if (bar.isReading) return readingWords(this, bar);
    const at = day(bar.from) === day(bar.to) ? clock(bar.to) : moment(bar.to);
    const end = bar.attempt.ended === null ? "not ended" : at;
    const again = bar.job.attempts.length > 1 ? ", attempt " + bar.attempt.attempt : "";
    return [
      "Job " +
        bar.job.job +
        (bar.job.name ? " " + short(bar.job.name, 60) : "") +
        again +
        ": " +
        short(bar.outcome, 40),
      short(bar.job.parts?.join("") ?? bar.job.command),
      moment(bar.from) +
        " to " +
        end +
        ", " +
        duration(bar.to - bar.from) +
        ", " +
        placeName(bar.attempt.gpus.join(", ")),
      ...attemptFigures(bar.attempt.measured, bar.gpu),
    ];
  }

  open(bar) {
    const job = bar.isReading ? barsAt(bar)[0]?.job : bar.job;
    if (job) openDetails(job);
  }
}
