// The failures with the last lines of their output, so that the user need not look for them; why others were not started;
// and the longest jobs.

const FAILURES_SHOWN = 10;

function showFailures(report) {
  const byNumber = new Map(report.jobs.map((job) => [job.job, job]));
  const failed = report.failures.map((number) => byNumber.get(number)).filter(Boolean);
  const reasons = reasonsOf(report.jobs);
  const longest = report.longest.map((number) => byNumber.get(number)).filter(Boolean);
  if (!failed.length && !longest.length && !reasons.length) return;
  const box = shown("failures");
  if (failed.length) box.append(element("ul", { class: "cards" }, ...failed.slice(0, FAILURES_SHOWN).map(card)));
  if (failed.length > FAILURES_SHOWN) {
    const rest = counted(failed.length - FAILURES_SHOWN, "more failure");
    box.append(element("p", { class: "quiet" }, rest + ": see the table of jobs, filtered by outcome."));
  }
  if (!failed.length) box.append(element("p", { class: "quiet" }, "No job failed."));
  if (reasons.length) box.append(element("h3", {}, "Not started"), element("ul", {}, ...reasons));
  if (longest.length)
    box.append(
      element("h3", {}, "Longest jobs"),
      element(
        "ol",
        { class: "longest" },
        ...longest.map((job) =>
          element("li", {}, jobButton(job), element("span", {}, duration(job.runtime)), command(job.command, job.parts)),
        ),
      ),
    );
}

// Each reason once, with how many jobs it kept from being started; the most first.
function reasonsOf(jobs) {
  const counts = new Map();
  for (const job of jobs) {
    if (job.state === "not started" && job.reason) counts.set(job.reason, (counts.get(job.reason) ?? 0) + 1);
  }
  const sorted = [...counts].sort((one, other) => other[1] - one[1]);
  const rest = sorted.length - FAILURES_SHOWN;
  return [
    ...sorted
      .slice(0, FAILURES_SHOWN)
      .map(([reason, jobs]) => element("li", {}, counted(jobs, "job") + ": ", user(reason, 300))),
    ...(rest > 0 ? [element("li", { class: "quiet" }, "and " + counted(rest, "other reason"))] : []),
  ];
}

function card(job) {
  const head = element(
    "div",
    { class: "card-head" },
    jobButton(job),
    chip(job.state, codeOf({ outcome: job.state, code: job.code })),
  );
  const reason = job.reason ? element("p", { class: "quiet" }, short(job.reason, 300)) : null;
  const lines = job.tail
    .trimEnd()
    .split("\n")
    .slice(-4)
    .map((line, index, all) => short(line, index === all.length - 1 ? 240 : 100)) // the last one says what went wrong
    .join("\n");
  const tail = lines ? element("pre", { class: "user", dir: "ltr" }, lines) : null;
  return element("li", { class: "card" }, head, command(job.command, job.parts), reason, tail);
}
