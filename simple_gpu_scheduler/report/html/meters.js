// Curves of each GPU below its jobs in the Gantt chart: areas of utilisation, memory, temperature and power.

const METER_HEIGHT = 24;
const METERS = [
  { name: "utilization", label: "Utilisation", short: "util.", least: 0, tone: 1, show: (value) => amount(value, "%") },
  { name: "memory", label: "Memory", short: "mem.", least: 0, tone: 2, show: (value) => gibibytes(value) },
  { name: "temperature", label: "Temperature", short: "temp.", least: 20, tone: 4, show: (value) => amount(value, "°C") },
  { name: "power", label: "Power", short: "power", least: 0, tone: 0, show: (value) => amount(value, "W") },
];
const MOST_WITH_ALL = 8; // GPUs; of more, only the utilisation is shown at first

// The quantities that some GPU has, with the top of their scale, which all GPUs share.
function metersOf(report) {
  const lanes = report.lanes ?? [];
  const found = METERS.filter((meter) => lanes.some((lane) => lane[meter.name]));
  return found.map((meter) => ({ ...meter, most: topOf(meter, lanes) }));
}

function topOf(meter, lanes) {
  if (meter.name === "utilization") return 100;
  let most = 0;
  for (const lane of lanes) {
    if (meter.name === "memory") most = Math.max(most, lane.total_memory ?? 0);
    for (const value of lane[meter.name] ?? []) most = Math.max(most, value ?? 0);
  }
  if (meter.name === "temperature") return Math.max(60, 10 * Math.ceil(most / 10));
  return meter.name === "power" ? Math.max(50, 50 * Math.ceil(most / 50)) : Math.max(1, most);
}

function shownAtFirst(meters, rows) {
  return new Set(meters.filter((meter) => rows <= MOST_WITH_ALL || meter.name === "utilization"));
}

// The areas in view, as one path for each quantity, and the time at 0 % as another.
function drawMeters(chart) {
  const paths = chart.meters.map((meter) => ({ meter, d: "", line: "" }));
  const idle = { d: "", seconds: 0 };
  const floors = [];
  for (const row of chart.rows) {
    for (const { meter, y } of row.meters) {
      floors.push("M" + chart.gutter + " " + (y + METER_HEIGHT - 3.5) + "H" + chart.width);
      if (row.lane[meter.name]) addArea(chart, row.lane, meter, y, paths[chart.meters.indexOf(meter)]);
      if (meter.name === "utilization") addIdle(chart, row.lane, y, idle);
    }
  }
  return [
    shape("path", { class: "grid", d: floors.join("") }),
    ...paths.filter((path) => path.d).flatMap((path) => [
      shape("path", { class: "meter-area tone-" + path.meter.tone, d: path.d, "data-meter": path.meter.name }),
      shape("path", { class: "meter-line tone-" + path.meter.tone, d: path.line }),
    ]),
    idle.d ? shape("path", { class: "at-zero", d: idle.d, fill: "url(#is-at-zero)", id: "at-zero" }) : "",
  ];
}

function stepsInView(chart, lane) {
  const size = lane.seconds.length;
  const first = Math.max(0, Math.floor((chart.begin - lane.from) / lane.step));
  return [first, Math.min(size, Math.ceil((chart.end - lane.from) / lane.step))];
}

function addArea(chart, lane, meter, y, path) {
  const [first, last] = stepsInView(chart, lane);
  const values = lane[meter.name];
  const floor = y + METER_HEIGHT - 4;
  const scale = (METER_HEIGHT - 4) / (meter.most - meter.least);
  let open = false;
  for (let index = first; index < last; index += 1) {
    const value = values[index];
    if (value === null) {
      if (open) path.d += "V" + floor + "z";
      open = false;
      continue;
    }
    const left = Math.max(chart.gutter, chart.x(lane.from + index * lane.step)).toFixed(1);
    const right = Math.min(chart.width, chart.x(lane.from + (index + 1) * lane.step)).toFixed(1);
    const top = (floor - Math.max(0, value - meter.least) * scale).toFixed(1);
    path.line += (open ? "V" : "M" + left + " ") + top + "H" + right;
    path.d += (open ? "" : "M" + left + " " + floor) + "V" + top + "H" + right;
    open = true;
  }
  if (open) path.d += "V" + floor + "z";
}

// Steps in most of which a job had the GPU and did not use it.
function addIdle(chart, lane, y, idle) {
  const [first, last] = stepsInView(chart, lane);
  for (let index = first; index < last; index += 1) {
    if (!isAtZero(lane, index)) continue;
    let end = index + 1;
    while (end < last && isAtZero(lane, end)) end += 1;
    const left = Math.max(chart.gutter, chart.x(lane.from + index * lane.step));
    const right = Math.min(chart.width, chart.x(lane.from + end * lane.step));
    const [x, width] = [left.toFixed(1), Math.max(1, right - left).toFixed(1)];
    idle.d += "M" + x + " " + y + "h" + width + "v" + (METER_HEIGHT - 4) + "h-" + width + "z";
    index = end;
  }
}

function isAtZero(lane, index) {
  return lane.idle[index] > 0 && lane.idle[index] >= lane.seconds[index] / 2;
}

function meterNames(chart) {
  const wide = chart.gutter > 60;
  return chart.rows.flatMap((row) =>
    row.meters.map(({ meter, y }) =>
      shape(
        "text",
        { class: "meter-name", x: 0, y: y + METER_HEIGHT - 9 },
        wide ? meter.short + " " + meter.show(meter.most) : meter.short,
      ),
    ),
  );
}

// What is read at a place among the curves: one object for each step, so that it is known again.
function readingAt(chart, x, y) {
  if (x < chart.gutter) return null;
  const row = chart.rows.find((one) => one.meters.length && y >= one.meters[0].y && y < one.bottom);
  if (!row) return null;
  const index = Math.floor((chart.time(x) - row.lane.from) / row.lane.step);
  if (!(row.lane.seconds[index] > 0)) return null;
  row.readings ??= [];
  row.readings[index] ??= { row, index, isReading: true, from: row.lane.from + index * row.lane.step };
  return row.readings[index];
}

function barsAt(reading) {
  const until = reading.from + reading.row.lane.step;
  return reading.row.bars.filter((bar) => bar.from < until && bar.to > reading.from);
}

function readingWords(chart, reading) {
  const { row, index } = reading;
  const jobs = barsAt(reading).map((bar) => bar.job.job);
  const figures = chart.meters
    .filter((meter) => (row.lane[meter.name]?.[index] ?? null) !== null)
    .map((meter) => meter.label.toLowerCase() + " " + meter.show(row.lane[meter.name][index]));
  const idle = row.lane.idle[index];
  return [
    placeName(row.gpu) + ", " + moment(reading.from) + (row.lane.step > 1 ? ", mean of " + duration(row.lane.step) : ""),
    figures.join(", "),
    ...(idle >= 0.05 ? ["At 0" + GAP + "% for " + duration(idle) + " while a job had it"] : []),
    ...(jobs.length ? [(jobs.length > 1 ? "Jobs " : "Job ") + jobs.slice(0, 8).join(", ")] : []),
  ];
}

function meterControls(chart) {
  const toggles = chart.meters.map((meter) => {
    const toggle = button(
      meter.label,
      () => {
        const now = !chart.shown.has(meter);
        chart.shown[now ? "add" : "delete"](meter);
        toggle.setAttribute("aria-pressed", String(now));
        chart.restack();
      },
      { class: "toggle", "aria-pressed": String(chart.shown.has(meter)), "data-meter": meter.name },
    );
    return toggle;
  });
  const group = { class: "toggles", role: "group", "aria-label": "Curves of each GPU" };
  return element("div", group, element("span", { class: "quiet" }, "Curves of each GPU"), ...toggles);
}

function meterLegend() {
  const box = { width: 14, height: 14, rx: 3, fill: "url(#is-at-zero)", class: "at-zero" };
  const mark = shape("svg", { class: "swatch", width: 14, height: 14, "aria-hidden": "true" }, shape("rect", box));
  return element("li", {}, element("span", { class: "chip" }, mark, element("span", {}, "a job had the GPU at 0" + GAP + "%")));
}
