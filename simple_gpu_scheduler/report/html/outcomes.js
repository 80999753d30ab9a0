// What became of the jobs: one stacked bar; and the same by GPU and by kind of command.

function showOutcomes(report) {
  const box = shown("outcomes");
  const present = OUTCOMES.filter((word) => report.outcomes[word]);
  const others = Object.keys(report.outcomes).filter((word) => !OUTCOMES.includes(word));
  const parts = [...present, ...others].map((word) => ({ word, jobs: report.outcomes[word] }));
  const all = parts.reduce((sum, part) => sum + part.jobs, 0);
  const sentence = parts.map((part) => short(part.word, 40) + " " + count(part.jobs)).join(", ");
  box.append(
    element(
      "figure",
      {},
      stacked(parts, all, sentence),
      element(
        "figcaption",
        {},
        element(
          "ul",
          { class: "legend" },
          ...parts.map((part) =>
            element(
              "li",
              {},
              chip(part.word, " " + count(part.jobs)),
              element("span", { class: "quiet" }, percent(part.jobs / all)),
            ),
          ),
        ),
      ),
    ),
  );
  if (report.gpus.length) box.append(element("h3", {}, "By GPU"), gpuTable(report));
  if (report.templates.length) box.append(element("h3", {}, "By command"), templateTable(report));
}

function stacked(parts, all, sentence) {
  const label = all ? "Jobs by outcome: " + sentence : "No job yet";
  const svg = shape("svg", { id: "outcome-bar", class: "stack", role: "img", "aria-label": label, height: 26 });
  let before = 0;
  for (const part of parts) {
    svg.append(
      shape(
        "rect",
        {
          x: (100 * before) / all + "%",
          width: (100 * part.jobs) / all + "%",
          height: 26,
          fill: paint(part.word),
          class: "part",
          "data-outcome": part.word,
          "data-jobs": part.jobs,
        },
        shape("title", {}, short(part.word, 40) + ": " + count(part.jobs)),
      ),
    );
    before += part.jobs;
  }
  return svg;
}

function meter(share) {
  const fill = element("span", { class: "meter-fill" });
  fill.style.width = 100 * Math.min(1, share) + "%";
  return element(
    "span",
    { class: "metered" },
    element("span", { class: "meter", "aria-hidden": "true" }, fill),
    percent(share),
  );
}

function gpuTable(report) {
  return new Table(
    "GPUs and how busy they were",
    [
      { label: "GPU", value: (row) => row.place, cell: (row) => user(row.gpu, 60) },
      { label: "Attempts", value: (row) => row.attempts, cell: (row) => count(row.attempts), number: true, minor: true },
      { label: "Busy", value: (row) => row.busy, cell: (row) => duration(row.busy), number: true },
      { label: "Share", value: (row) => row.share, cell: (row) => meter(row.share) },
      ...(report.use ? gpuUseColumns() : []),
    ],
    report.gpus.map((gpu, place) => ({ ...gpu, place })),
  ).box;
}

function gpuUseColumns() {
  const of = (row, name) => row.measured?.[name] ?? null;
  return [
    {
      label: "Used",
      value: (row) => of(row, "utilization"),
      cell: (row) => (of(row, "utilization") === null ? NOTHING : meter(of(row, "utilization") / 100)),
    },
    { label: "Energy", value: (row) => of(row, "energy"), cell: (row) => energyOf(of(row, "energy")), number: true },
  ];
}

function templateTable(report) {
  const seconds = (label, name) => ({
    label,
    value: (row) => row[name],
    cell: (row) => duration(row[name]),
    number: true,
    minor: name === "longest",
  });
  const jobs = (label, name) => ({
    label,
    value: (row) => row[name],
    cell: (row) => count(row[name]),
    number: true,
    minor: name === "succeeded",
  });
  return new Table(
    "Commands, the most time-consuming first",
    [
      { label: "Command", value: (row) => row.template, cell: (row) => command(row.template, row.parts), wide: true },
      jobs("Jobs", "jobs"),
      jobs("Succeeded", "succeeded"),
      jobs("Failed", "failed"),
      seconds("Mean", "mean"),
      seconds("Longest", "longest"),
      seconds("Total", "total"),
    ],
    report.templates,
    10,
  ).box;
}
