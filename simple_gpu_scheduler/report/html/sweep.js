// A sweep: its parameters against the result; without a metric, against the runtime. What names the jobs is no axis.

// Where a job has no such parameter: its own place on the axis, so that no job is left out for it.
const NONE = "(none)";

function showSweep(report) {
  if (!report.axes.length) return;
  const box = shown("sweep");
  const jobs = report.jobs.filter((job) => report.axes.some((name) => name in job.parameters));
  const result = report.metric ? short(report.metric, 40) : "runtime";
  const told = report.metric ? figure : duration;
  const valueOf = (job) => (report.metric ? job.result : job.runtime);
  const drawn = jobs.filter((job) => typeof valueOf(job) === "number");
  const [size, unit] = report.metric ? [1, ""] : axisUnit(drawn.map(valueOf).reduce((one, other) => Math.max(one, other), 0));
  const points = drawn.map((job) => ({
    job,
    result: valueOf(job),
    values: [...report.axes.map((name) => job.parameters[name] ?? NONE), valueOf(job) / size],
  }));
  if (!report.metric)
    box.append(
      element(
        "p",
        { class: "note" },
        "This shows how long the jobs took. With ",
        element("code", {}, "--metric loss"),
        " the report shows the last number that each job printed after that name.",
      ),
    );
  if (points.length) box.append(pictureOf(report, points, jobs.length, result, told, unit));
  box.append(sweepTable(report, jobs, result, (job) => told(valueOf(job)), valueOf));
}

function pictureOf(report, points, jobs, result, told, unit) {
  const names = [...report.axes, unit ? result + " in " + unit : result];
  const axes = names.map((name, index) =>
    axisOf(
      name,
      points.map((point) => point.values[index]),
    ),
  );
  axes[axes.length - 1].told = (point) => result + " = " + told(point.result);
  const sentence =
    (axes.length > 2 ? "Parallel coordinates of " : "Scatter of ") +
    names.map((name) => short(name, 40)).join(", ") +
    ". Arrow keys move between jobs in order of the result; Enter shows details.";
  const picture = new (axes.length > 2 ? Parallel : Scatter)(points, axes, sentence);
  const drawSoon = () => picture.box.clientWidth && picture.draw();
  new ResizeObserver(drawSoon).observe(picture.box);
  const caption = element(
    "figcaption",
    { id: "picture-figures" },
    element("p", {}, sweepFigures(picture, jobs, result, told)),
    stepLegend(result),
  );
  picture.svg.setAttribute("aria-describedby", "picture-figures");
  afterLayout.push(drawSoon);
  return element("figure", {}, picture.box, caption);
}

function sweepFigures(picture, jobs, result, told) {
  const drawn = picture.points;
  if (!drawn.length) return "No job has a value for every parameter.";
  const [first, last] = [drawn[0], drawn[drawn.length - 1]];
  const without = jobs - drawn.length;
  return (
    "Lowest " +
    result +
    " " +
    told(first.result) +
    " (job " +
    first.job.job +
    "), highest " +
    told(last.result) +
    " (job " +
    last.job.job +
    "), " +
    counted(drawn.length, "job") +
    "." +
    (without ? " " + counted(without, "job") + " without a value " + (without === 1 ? "is" : "are") + " not shown." : "")
  );
}

function stepLegend(result) {
  const lines = Array.from({ length: STEPS }, (_, index) =>
    shape(
      "svg",
      { class: "swatch", width: 22, height: 14, "aria-hidden": "true" },
      shape("path", { class: "lines thick step-" + index, d: "M0 7H22" }),
    ),
  );
  return element("p", { class: "legend" }, element("span", {}, "low " + result), ...lines, element("span", {}, "high; a fifth of the jobs each"));
}

function sweepTable(report, jobs, result, cell, valueOf) {
  const table = new Table(
    "Parameters and results",
    [
      { label: "Job", value: (job) => job.job, cell: jobButton },
      { label: result, value: valueOf, cell, number: true }, // where a phone shows it too
      ...report.axes.map((name) => ({
        label: short(name, 40),
        value: (job) => sortKey(job.parameters[name]),
        cell: (job) => user(job.parameters[name] ?? NOTHING, 60),
      })),
      { label: "Outcome", value: (job) => job.state, cell: (job) => chip(job.state) },
    ],
    jobs,
    20,
  );
  if (report.metric) table.sort(1);
  table.box.id = "sweep-table";
  return table.box;
}
