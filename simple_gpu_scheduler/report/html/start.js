// Reads the embedded report and lets each part show itself.

const afterLayout = []; // what can only be drawn once its box has a width

function isOfOneJob(report) {
  return (report.job ?? null) !== null;
}

function showRun(report) {
  showTiles(report);
  showOutcomes(report);
  showUse(report);
  showGantt(report);
  showSweep(report);
  showWaits(report);
  showFailures(report);
  showJobs(report);
}

function start() {
  const report = JSON.parse(byId("report").textContent);
  for (const job of report.jobs) Object.setPrototypeOf(job.parameters, null); // `--constructor 3` is a parameter too
  closeOnBackdrop();
  window.addEventListener("wheel", hideTip, { passive: true }); // what it tells of has moved away from under it
  showHead(report);
  showAdvice(report);
  if (isOfOneJob(report)) {
    showGantt(report);
    showOnly(report.jobs[0]);
  } else showRun(report);
  afterLayout.forEach((draw) => draw());
  performance.mark("drawn");
  document.body.dataset.ready = "1";
}

start();
