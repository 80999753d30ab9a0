// The table of all jobs, with filters by text and by outcome.

function showJobs(report) {
  const box = shown("jobs");
  const table = new Table("All jobs", jobColumns(report), report.jobs);
  const wanted = new Set();
  const input = element("input", { type: "search", id: "filter", autocomplete: "off", spellcheck: "false" });
  const filter = () => table.show(matching(report.jobs, input.value, wanted));
  const status = element("p", { id: "count", role: "status", "aria-live": "polite" });
  table.changed = (here, of) => {
    status.textContent =
      "Showing " +
      count(here) +
      " of " +
      counted(of, "job") +
      (of < report.jobs.length ? " that match (" + count(report.jobs.length) + " in total)" : "");
  };
  input.addEventListener("input", filter);
  const label = element("label", { for: "filter" }, "Filter by text");
  const search = element("div", { class: "search" }, label, input);
  box.append(element("div", { class: "filters" }, search, toggles(report, wanted, filter)), status, table.box);
  table.changed(table.count, table.order.length);
}

function toggles(report, wanted, filter) {
  const group = element("div", { class: "toggles", role: "group", "aria-label": "Filter by outcome" });
  for (const [word, jobs] of Object.entries(report.outcomes)) {
    const toggle = button(
      "",
      () => {
        const now = !wanted.has(word);
        wanted[now ? "add" : "delete"](word);
        toggle.setAttribute("aria-pressed", String(now));
        filter();
      },
      { class: "toggle", "aria-pressed": "false", "data-outcome": word },
    );
    toggle.append(chip(word, " " + count(jobs)));
    group.append(toggle);
  }
  return group;
}

function matching(jobs, text, wanted) {
  const phrase = text.trim().toLowerCase();
  return jobs.filter((job) => {
    if (wanted.size && !wanted.has(job.state)) return false;
    job.haystack ??= searched(job);
    return job.haystack.includes(phrase);
  });
}

function searched(job) {
  const gpus = job.gpus.map((gpu) => "gpu" + gpu).join(" ");
  return [job.job, job.name, job.command, job.state, job.reason, gpus].filter(Boolean).join(" ").toLowerCase();
}

function jobColumns(report) {
  const seconds = (label, name) => ({
    label,
    value: (job) => job[name],
    cell: (job) => duration(job[name]),
    number: true,
  });
  return [
    { label: "Job", value: (job) => job.job, cell: jobButton },
    { label: "Command", value: (job) => job.command, cell: commandOf, wide: true },
    { label: "Outcome", value: (job) => job.state, cell: (job) => chip(job.state) },
    ...(report.metric ? [resultColumn(report)] : []),
    { label: "GPU", value: (job) => sortKey(job.gpus[0] ?? "cpu"), cell: (job) => placeOf(job.gpus), minor: true },
    { label: "Started", value: (job) => job.started, cell: (job) => moment(job.started), minor: true },
    seconds("Runtime", "runtime"),
    { ...seconds("Wait", "wait"), minor: true },
    ...(report.use ? useColumns() : []),
    {
      label: "Attempts",
      value: (job) => job.attempts.length,
      cell: (job) => count(job.attempts.length),
      number: true,
      minor: true,
    },
  ];
}

function useColumns() {
  return [
    { ...measuredColumn("Used", "utilization", (value) => amount(value, "%")), minor: true },
    { ...measuredColumn("Wasted", "wasted", duration), minor: true },
  ];
}

// A line that was refused has no command.
function commandOf(job) {
  return job.command ? command(job.command, job.parts) : element("span", { class: "quiet" }, user(job.reason ?? ""));
}

function resultColumn(report) {
  return {
    label: short(report.metric, 40),
    value: (job) => job.result,
    cell: (job) => figure(job.result),
    number: true,
  };
}

function jobButton(job) {
  const open = button(String(job.job), () => openDetails(job), {
    class: "open",
    "aria-label": "Details of job " + job.job,
  });
  return element("span", { class: "job" }, open, job.name ? user(job.name, 40) : null);
}
