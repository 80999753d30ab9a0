// The pictures of a sweep: a scatter for one parameter, parallel coordinates for several. A point: job, values, result.

const TALL = 320,
  ABOVE = 44,
  BELOW = 30,
  RADIUS = 4.5;

class Picture {
  constructor(points, axes, sentence) {
    this.axes = axes;
    this.points = points
      .map((point) => ({ ...point, places: axes.map((axis, index) => axis.place(point.values[index])) }))
      .filter((point) => point.places.every((place) => place !== null))
      .sort((one, other) => one.result - other.result);
    this.points.forEach((point, index, all) => {
      // By its rank, or one loss that diverged would paint all others alike; equal ones alike.
      point.step = index && all[index - 1].result === point.result ? all[index - 1].step : step(index / all.length);
    });
    this.svg = shape("svg", {
      id: "picture",
      class: "chart",
      tabindex: 0,
      role: "application",
      height: TALL,
      "aria-label": sentence,
      "data-kind": axes.length > 2 ? "parallel" : "scatter",
      "data-points": this.points.length,
    });
    this.box = element("div", { class: "scroll" }, this.svg);
    explorable(this.svg, this);
  }

  draw() {
    this.width = Math.max(this.box.clientWidth, this.leastWidth());
    filled(this.svg, { width: this.width, viewBox: "0 0 " + this.width + " " + TALL }, []);
    const classes = Array.from({ length: STEPS }, () => ({ d: "", count: 0 }));
    for (const point of this.points) {
      const drawn = classes[point.step];
      drawn.d += this.path(point);
      drawn.count += 1;
    }
    this.ring = shape("path", { class: this.kind + " current", visibility: "hidden" });
    this.svg.replaceChildren(
      ...this.frame(),
      ...classes.map((drawn, index) =>
        shape("path", {
          class: this.kind + " step-" + index,
          d: drawn.d,
          "data-count": drawn.count,
        }),
      ),
      ...this.ticks(),
      this.ring,
    );
  }

  y(place) {
    return TALL - BELOW - place * (TALL - ABOVE - BELOW);
  }

  next(point, key) {
    const last = this.points.length - 1;
    if (key === "End") return this.points[last];
    if (!point || key === "Home") return this.points[0] ?? null;
    const index = this.points.indexOf(point) + (key === "ArrowLeft" || key === "ArrowDown" ? -1 : 1);
    return this.points[index] ?? null;
  }

  mark(point) {
    const place = point
      ? { d: this.path(point), visibility: "visible", "data-job": point.job.job }
      : { visibility: "hidden" };
    filled(this.ring, place, []);
  }

  see(point) {
    const { x } = this.spot(point);
    this.box.scrollLeft = Math.max(0, x - this.box.clientWidth / 2);
  }

  words(point) {
    const values = this.axes.map((axis, index) =>
      axis.told ? axis.told(point) : axis.label + " = " + figureOf(point.values[index]),
    );
    return ["Job " + point.job.job + (point.job.name ? " " + short(point.job.name, 60) : ""), ...values];
  }

  open(point) {
    openDetails(point.job);
  }
}

function figureOf(value) {
  return typeof value === "number" ? figure(value) : short(value, 80);
}

class Scatter extends Picture {
  kind = "points";

  leastWidth() {
    return Math.max(320, 30 * (this.axes[0].words ?? 0));
  }

  x(place) {
    return 64 + place * (this.width - 64 - 24);
  }

  path(point) {
    const [x, y] = [this.x(point.places[0]), this.y(point.places[1])];
    return (
      "M" +
      (x - RADIUS) +
      " " +
      y +
      "a" +
      RADIUS +
      " " +
      RADIUS +
      " 0 1 0 " +
      2 * RADIUS +
      " 0a" +
      RADIUS +
      " " +
      RADIUS +
      " 0 1 0 " +
      -2 * RADIUS +
      " 0z"
    );
  }

  frame() {
    const [across, up] = this.axes;
    return [
      ...up.ticks.flatMap((tick) => [
        shape("path", { class: "grid", d: "M64 " + this.y(tick.at) + "H" + (this.width - 24) }),
        shape("text", { class: "tick", x: 56, y: this.y(tick.at) + 4, "text-anchor": "end" }, tick.text),
      ]),
      shape("text", { class: "axis-name", x: 0, y: 16 }, "↑ " + titled(up)),
      shape("text", { class: "axis-name", x: this.width - 4, y: 16, "text-anchor": "end" }, titled(across) + " →"),
    ];
  }

  ticks() {
    return this.axes[0].ticks.map((tick) =>
      shape("text", { class: "tick", x: this.x(tick.at), y: TALL - 10, "text-anchor": "middle" }, tick.text),
    );
  }

  at(x, y) {
    return closest(this.points, 14, (point) => Math.hypot(this.x(point.places[0]) - x, this.y(point.places[1]) - y));
  }

  spot(point) {
    return { x: this.x(point.places[0]), y: this.y(point.places[1]) - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS };
  }
}

class Parallel extends Picture {
  kind = "lines";

  leastWidth() {
    return 110 * this.axes.length;
  }

  x(index) {
    return 40 + (index * (this.width - 40 - 90)) / (this.axes.length - 1);
  }

  path(point) {
    return point.places
      .map((place, index) => (index ? "L" : "M") + this.x(index) + " " + this.y(place).toFixed(1))
      .join("");
  }

  frame() {
    const most = Math.floor((this.x(1) - this.x(0)) / 7.5); // characters from one axis to the next
    return this.axes.flatMap((axis, index) => {
      const name = titled(axis, most);
      const x = Math.min(this.x(index) - 8, this.width - 7.5 * name.length);
      return [
        shape("path", { class: "axis", d: "M" + this.x(index) + " " + this.y(0) + "V" + this.y(1) }),
        shape("text", { class: "axis-name", x, y: 18 }, name),
      ];
    });
  }

  // Above the lines, which would run through them.
  ticks() {
    return this.axes.flatMap((axis, index) =>
      axis.ticks.map((tick) =>
        shape("text", { class: "tick haloed", x: this.x(index) + 6, y: this.y(tick.at) + 4 }, tick.text),
      ),
    );
  }

  at(x, y) {
    const apart = this.x(1) - this.x(0);
    const index = Math.min(this.axes.length - 2, Math.max(0, Math.floor((x - this.x(0)) / apart)));
    const share = Math.min(1, Math.max(0, (x - this.x(index)) / apart));
    const height = (point) => this.y(point.places[index] * (1 - share) + point.places[index + 1] * share);
    return closest(this.points, 10, (point) => Math.abs(height(point) - y));
  }

  spot(point) {
    const last = this.axes.length - 1;
    return { x: this.x(last), y: this.y(point.places[last]) - 4, width: 8, height: 8 };
  }
}

function titled(axis, most = 22) {
  const kind = axis.log ? " (log)" : "";
  return short(axis.label, Math.min(16, most - kind.length - 1)) + kind;
}

function closest(points, most, distance) {
  let best = null;
  let least = most;
  for (const point of points) {
    const here = distance(point);
    if (here < least) [best, least] = [point, here];
  }
  return best;
}
