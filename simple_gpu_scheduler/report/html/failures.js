// The failures with the last lines of their output, so that nobody has to look for them; and the longest jobs.

const FAILURES_SHOWN = 10;

function showFailures(report) {
  const byNumber = new Map(report.jobs.map((job) => [job.job, job]));
  const failed = report.failures.map((number) => byNumber.get(number)).filter(Boolean);
  const longest = report.longest.map((number) => byNumber.get(number)).filter(Boolean);
  if (!failed.length && !longest.length) return;
  const box = shown("failures");
  if (failed.length) box.append(element("ul", { class: "cards" }, ...failed.slice(0, FAILURES_SHOWN).map(card)));
  if (failed.length > FAILURES_SHOWN) {
    const rest = counted(failed.length - FAILURES_SHOWN, "more failure");
    box.append(element("p", { class: "quiet" }, rest + ": see the table of jobs, filtered by outcome."));
  }
  if (!failed.length) box.append(element("p", { class: "quiet" }, "No job failed."));
  if (longest.length)
    box.append(
      element("h3", {}, "Longest jobs"),
      element(
        "ol",
        { class: "longest" },
        ...longest.map((job) =>
          element("li", {}, jobButton(job), element("span", {}, duration(job.runtime)), user(job.command)),
        ),
      ),
    );
}

function card(job) {
  const head = element(
    "div",
    { class: "card-head" },
    jobButton(job),
    chip(job.state, job.code ? ", code " + job.code : ""),
  );
  const reason = job.reason ? element("p", { class: "quiet" }, short(job.reason, 300)) : null;
  const lines = job.tail
    .trimEnd()
    .split("\n")
    .slice(-4)
    .map((line) => short(line))
    .join("\n");
  const tail = lines ? element("pre", { class: "user", dir: "ltr" }, lines) : null;
  return element("li", { class: "card" }, head, user(job.command), reason, tail);
}
