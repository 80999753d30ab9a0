// Which run this is, and its figures at a glance.

function showHead(report) {
  const run = report.run;
  const what = isOfOneJob(report) ? "Job " + report.job + " of run " : "Run ";
  document.title = what + short(run.id, 80);
  byId("title").replaceChildren(what, user(run.id, 80));
  byId("state").textContent = short(run.state, 40);
  byId("head").append(
    facts([
      ["Started", moment(run.begun)],
      ["Ended", run.ended === null ? "not yet (as of " + moment(report.made) + ")" : moment(run.ended)],
      ["Took", duration(run.seconds) + (run.sessions.length > 1 ? " in " + run.sessions.length + " sessions" : "")],
      ["Host", user(run.host)],
      ["Directory", user(run.directory, 500)],
      ["Exit code", run.code === null ? null : String(run.code)],
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
