// Reads the embedded report and lets each part show itself.

const afterLayout = []; // what can only be drawn once its box has a width

function start() {
  const report = JSON.parse(byId("report").textContent);
  for (const job of report.jobs) Object.setPrototypeOf(job.parameters, null); // `--constructor 3` is a parameter too
  closeOnBackdrop();
  window.addEventListener("wheel", hideTip, { passive: true }); // what it tells of has moved away from under it
  showHead(report);
  showAdvice(report);
  showTiles(report);
  showOutcomes(report);
  showUse(report);
  showGantt(report);
  showSweep(report);
  showWaits(report);
  showFailures(report);
  showJobs(report);
  afterLayout.forEach((draw) => draw());
  performance.mark("drawn");
  if ((report.job ?? null) !== null && report.jobs.length) openDetails(report.jobs[0]);
  document.body.dataset.ready = "1";
}

start();
