// Everything about one job, in a dialog: the browser keeps the focus in it, closes it on Escape and gives it back.

function openDetails(job) {
  const dialog = byId("details");
  byId("details-title").replaceChildren("Job " + job.job, job.name ? " · " : "", job.name ? user(job.name, 80) : "");
  byId("details-body").replaceChildren(...detailsOf(job));
  if (!dialog.open) dialog.showModal();
  byId("details-body").scrollTop = 0;
}

function detailsOf(job) {
  return [
    chip(job.state, job.reason ? ": " + short(job.reason, 500) : ""),
    element("h3", {}, "Command"),
    whole(job.command, "the command"),
    jobFacts(job),
    ...measuredOf(job),
    ...(job.attempts.length ? [element("h3", {}, "Attempts"), attemptsOf(job)] : []),
    element("h3", {}, "End of its output"),
    job.tail ? whole(job.tail, "the end of the output") : element("p", { class: "quiet" }, "No output was kept."),
  ];
}

// The page of one job: nothing is to be clicked to see it.
function showOnly(job) {
  byId("jobs-title").textContent = "Details";
  byId("to-jobs").textContent = "Details";
  const box = shown("jobs");
  box.classList.add("dialog-body");
  box.append(...detailsOf(job));
}

function whole(text, label) {
  return element("pre", { class: "user", dir: "ltr", tabindex: 0, "aria-label": label }, visible(text, "\n\t"));
}

function jobFacts(job) {
  const parameters = Object.entries(job.parameters ?? {});
  return facts([
    ["Line", job.line + (job.source ? " of " + short(job.source) : "")],
    ["Read", moment(job.read)],
    ["Waited", duration(job.wait)],
    ["Started", moment(job.started)],
    ["Ended", moment(job.ended)],
    ["Runtime", duration(job.runtime)],
    ["GPUs", placeOf(job.gpus)],
    exitOf(job),
    ["Result", job.result === null ? null : figure(job.result)],
    ["Parameters", parameters.length ? listed(parameters) : null],
    ["Log", job.log ? element("bdi", { class: "user", dir: "ltr" }, visible(job.log)) : null],
  ]);
}

function exitOf(job) {
  return [job.state === "killed" ? "Signal" : "Exit code", job.code === null ? null : String(job.code)];
}

function listed(parameters) {
  return user(parameters.map(([name, value]) => name + " = " + value).join(", "), 2000);
}

function placeOf(gpus) {
  return gpus.length ? short(gpus.join(", "), 60) : "cpu";
}

function attemptsOf(job) {
  const body = element("tbody");
  for (const attempt of job.attempts) {
    const outcome = attempt.outcome ?? job.state;
    const seconds = attempt.ended === null ? null : attempt.ended - attempt.started;
    const cells = [attempt.attempt, chip(outcome, codeOf(attempt)), placeOf(attempt.gpus)];
    const times = [moment(attempt.started), duration(seconds)];
    body.append(element("tr", {}, ...[...cells, ...times].map((cell) => element("td", {}, cell))));
  }
  const names = ["Attempt", "Outcome", "GPUs", "Started", "Runtime"];
  const head = element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)));
  return scrolling("attempts of this job", element("table", {}, element("thead", {}, head), body));
}

function codeOf(attempt) {
  if (!attempt.code) return "";
  return attempt.outcome === "killed" ? ", signal " + attempt.code : ", exit code " + attempt.code;
}

function closeOnBackdrop() {
  const dialog = byId("details");
  byId("details-close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
