// Which run this is, and its figures at a glance.

function showHead(report) {
  const run = report.run;
  const job = isOfOneJob(report) ? report.jobs[0] : null;
  const what = job ? "Job " + report.job + " of run " : "Run ";
  document.title = what + short(run.id, 80);
  byId("title").replaceChildren(what, user(run.id, 80));
  byId("state").textContent = short(job ? job.state : run.state, 40);
  byId("head").append(
    facts([
      ...(job ? timesOfJob(job, report) : timesOfRun(report)),
      ["Host", user(run.host)],
      ["Directory", user(run.directory, 500)],
      job ? exitOf(job) : ["Exit code", run.code === null ? null : String(run.code)],
    ]),
    commandLine(run),
  );
  byId("foot").textContent =
    "Made " +
    moment(report.made) +
    " by simple_gpu_scheduler " +
    short(report.program, 40) +
    ". Times are in your time zone (" +
    zoneName(run.begun) +
    ").";
}

function timesOfRun(report) {
  const run = report.run;
  return [
    ["Started", moment(run.begun)],
    ["Ended", endOf(run.ended, report)],
    ["Took", duration(run.seconds) + (run.sessions.length > 1 ? " in " + run.sessions.length + " sessions" : "")],
  ];
}

function timesOfJob(job, report) {
  if (job.started === null) return [];
  const tries = job.attempts.length;
  return [
    ["Started", moment(job.started)],
    ["Ended", job.state === "interrupted" ? "unknown" : endOf(job.ended, report)],
    ["Took", duration(job.runtime) + (tries > 1 ? " in the last of " + tries + " attempts" : "")],
  ];
}

function endOf(ended, report) {
  return ended === null ? "not yet (as of " + moment(report.made) + ")" : moment(ended);
}

function commandLine(run) {
  const text = run.argv.map(quoted).join(" ");
  return element(
    "details",
    { class: "argv" },
    element("summary", {}, element("span", { class: "quiet" }, "Command line "), user(text, 160)),
    whole(text, "the command line"),
  );
}

const FAILED = "failed, timed out, stalled or killed";

function toFailures() {
  return element("a", { href: "#failures" }, FAILED);
}

function showTiles(report) {
  const good = report.outcomes.succeeded ?? 0;
  const gpus = report.gpus.filter((gpu) => gpu.gpu !== "cpu");
  const share = gpus.reduce((sum, gpu) => sum + gpu.share, 0) / gpus.length;
  const tiles = [
    [count(report.jobs.length), report.jobs.length === 1 ? "job" : "jobs"],
    [count(good), "succeeded"],
    [count(report.failures.length), report.failures.length ? toFailures() : FAILED],
    [duration(report.run.seconds), "total"],
    ...(gpus.length ? [[percent(share), "busy, mean of " + counted(gpus.length, "GPU")]] : []),
    ...useTiles(report),
  ];
  byId("tiles").append(
    ...tiles.map(([value, word]) =>
      element("li", {}, element("strong", {}, value), element("span", { class: "quiet" }, word)),
    ),
  );
}
