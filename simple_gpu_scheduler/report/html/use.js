// How well jobs used their GPUs: figures as text, the jobs that wasted the most, and what was measured of one job.

function amount(value, unit) {
  return value === null || value === undefined ? NOTHING : Math.round(value) + GAP + unit;
}

function gibibytes(bytes) {
  if (bytes === null || bytes === undefined) return NOTHING;
  return bytes >= 1000 * 2 ** 20 ? scaled(bytes / 2 ** 30) + GAP + "GiB" : Math.round(bytes / 2 ** 20) + GAP + "MiB";
}

function scaled(number) {
  return number === Math.round(number) || number >= 1000 ? String(Math.round(number)) : number.toFixed(1);
}

// In the form of the terminal (base/units.py).
function energyOf(joules) {
  if (joules === null || joules === undefined) return NOTHING;
  const hours = joules / 3600;
  if (hours < 1) return Math.round(joules) + GAP + "J";
  const [number, unit] = hours >= 1000 ? [hours / 1000, "kWh"] : [hours, "Wh"];
  return number.toFixed(number < 10 ? 2 : number < 100 ? 1 : 0) + GAP + unit;
}

function gpuHours(seconds) {
  if (seconds === null || seconds === undefined) return NOTHING;
  return seconds >= 360 ? (seconds / 3600).toFixed(1) + GAP + "GPU-hours" : duration(seconds);
}

function peakOf(gpu) {
  if (!gpu?.memory) return NOTHING;
  return gibibytes(gpu.memory.max) + (gpu.total_memory ? " of " + gibibytes(gpu.total_memory) : "");
}

function mostUsed(gpus) {
  return gpus.filter((gpu) => gpu.memory).sort((one, other) => other.memory.max - one.memory.max)[0];
}

// One line about an attempt on a GPU.
function attemptFigures(measured, name) {
  const gpu = measured?.gpus.find((one) => one.gpu === name);
  if (!gpu) return [];
  const figures = [
    gpu.utilization ? amount(gpu.utilization.mean, "%") + " used" : null,
    gpu.idle >= 1 ? duration(gpu.idle) + " at 0" + GAP + "%" : null,
    gpu.memory ? peakOf(gpu) : null,
    gpu.power ? amount(gpu.power.mean, "W") : null,
    gpu.energy !== undefined ? energyOf(gpu.energy) : null,
  ].filter(Boolean);
  return figures.length ? [figures.join(", ")] : [];
}

function useTiles(report) {
  const use = report.use;
  if (!use) return [];
  return [
    ...(use.utilization === null ? [] : [[amount(use.utilization, "%"), "mean utilisation of " + gpuHours(use.held)]]),
    ...(use.energy === null ? [] : [[energyOf(use.energy), "used by the GPUs while jobs held them"]]),
  ];
}

function showAdvice(report) {
  if (!report.advice?.length) return;
  const jobs = new Map((report.job ?? null) === null ? report.jobs.map((job) => [job.job, job]) : []);
  byId("advice").hidden = false;
  byId("advice").querySelector(".here").append(...report.advice.map((said) => adviceOf(short(said, 2000), jobs)));
}

// A sentence about a job begins with it, and that opens its details.
function adviceOf(said, jobs) {
  const number = said.match(/^job (\d+) /)?.[1];
  const job = number === undefined ? undefined : jobs.get(Number(number));
  if (!job) return element("li", {}, user(said, 4000));
  const open = button("job " + number, () => openDetails(job), { class: "open" });
  return element("li", {}, open, user(said.slice(4 + number.length), 4000));
}

function showUse(report) {
  const byNumber = new Map(report.jobs.map((job) => [job.job, job]));
  const worst = (report.worst ?? []).map((number) => byNumber.get(number)).filter((job) => job?.measured?.wasted > 0);
  if (!report.use || !worst.length) return;
  const box = shown("use");
  box.append(element("p", {}, useSentence(report)), wasteTable(worst).box);
  const note = "Wasted: how much GPU time the job held and did not use. An hour at 25" + GAP + "% wastes 45 minutes.";
  const shared = " While several jobs share a GPU, what it does not use is divided equally among them.";
  box.append(element("p", { class: "quiet" }, note + shared));
}

// In the words of the terminal (use_text.py).
function useSentence(report) {
  const { use, failures } = report;
  const idle = use.idle === null ? "" : " (" + partOf(use.idle, use.held) + " at 0" + GAP + "%)";
  const told = [
    gpuHours(use.held) + " held",
    use.wasted === null ? null : partOf(use.wasted, use.held) + " of them wasted" + idle,
    use.energy === null ? null : energyOf(use.energy),
  ].filter(Boolean);
  const isMuch = failures.length && use.held_by_failed >= Math.max(3600, 0.05 * use.held);
  const failed = isMuch ? "; " + counted(failures.length, "failed job") + " held " + gpuHours(use.held_by_failed) : "";
  return told.join(", ") + failed;
}

// Without the unit if it is that of all.
function partOf(seconds, held) {
  const isPlain = held >= 360 && (seconds === 0 || seconds >= 180);
  return isPlain ? (seconds / 3600).toFixed(1) : duration(seconds);
}

function measuredColumn(label, name, cell) {
  return { label, value: (job) => job.measured?.[name] ?? null, cell: (job) => cell(job.measured?.[name]), number: true };
}

function wasteTable(jobs) {
  const percentOf = (value) => amount(value, "%");
  return new Table(
    "Jobs that wasted the most time of GPUs",
    [
      measuredColumn("Wasted", "wasted", duration),
      { label: "Job", value: (job) => job.job, cell: jobButton },
      { label: "Command", value: (job) => job.command, cell: commandOf, wide: true },
      { label: "GPU", value: (job) => sortKey(job.gpus[0]), cell: (job) => placeOf(job.gpus), minor: true },
      { ...measuredColumn("Held", "held", duration), minor: true },
      measuredColumn("Used", "utilization", percentOf),
      { ...measuredColumn("At 0" + GAP + "%", "idle", duration), minor: true },
      { ...peakColumn(), minor: true },
      { ...measuredColumn("Energy", "energy", energyOf), minor: true },
    ],
    jobs,
    5,
  );
}

function peakColumn() {
  const most = (job) => (job.measured ? mostUsed(job.measured.gpus) : undefined);
  return { label: "Peak memory", value: (job) => most(job)?.memory.max ?? null, cell: (job) => peakOf(most(job)), number: true };
}

// What was measured of one job, for its details.
function measuredOf(job) {
  if (!job.measured) return [];
  const { cpu } = job.measured;
  return [
    element("h3", {}, "GPU use"),
    facts([
      ["Wasted", duration(job.measured.wasted)],
      ["Held", duration(job.measured.held)],
      ["Energy", energyOf(job.measured.energy) + (job.measured.energy_of_gpu ? " (of shared GPUs, by all)" : "")],
      ["CPU time", cpu.seconds === undefined ? null : duration(cpu.seconds) + (cpu.cores ? " on " + cpu.cores + " cores" : "")],
      ["Peak RAM", cpu.peak_memory === undefined ? null : gibibytes(cpu.peak_memory)],
      ["Read, written", cpu.read === undefined ? null : gibibytes(cpu.read) + ", " + gibibytes(cpu.written)],
    ]),
    ...job.measured.gpus.flatMap((gpu) => gpuFacts(gpu, curveOf(job, gpu.gpu))),
  ];
}

function curveOf(job, name) {
  const attempt = [...job.attempts].reverse().find((one) => one.measured);
  return attempt?.curves?.find((curve) => curve.gpu === name && curve.utilization);
}

function gpuFacts(gpu, curve) {
  const range = (figures, unit) =>
    figures ? amount(figures.mean, unit) + " (max " + amount(figures.max, unit) + ")" : null;
  const reasons = Object.entries(gpu.throttled ?? {}).filter(([, seconds]) => seconds > 0);
  const xids = Object.entries(gpu.xids ?? {}).map(([xid, times]) => xid + " (" + counted(times, "time") + ")");
  return [
    element("h4", {}, placeName(gpu.gpu)),
    ...(curve ? [smallCurve(curve)] : []),
    facts([
      ["Utilisation", range(gpu.utilization, "%")],
      ["At 0" + GAP + "%", gpu.idle === undefined ? null : duration(gpu.idle) + " of " + duration(gpu.seconds)],
      ["Peak memory", gpu.memory ? peakOf(gpu) : null],
      ["Temperature", range(gpu.temperature, "°C")],
      ["Power", range(gpu.power, "W")],
      ["Clock", range(gpu.clock, "MHz")],
      ["Throttled", reasons.length ? reasons.map(([why, seconds]) => duration(seconds) + " by " + short(why, 20)).join(", ") : null],
      ["XID errors", xids.length ? short(xids.join(", ")) : null],
      ["Shared", gpu.shared ? "for " + duration(gpu.shared) + " with other jobs" : null],
    ]),
  ];
}

function smallCurve(curve) {
  const size = curve.utilization.length;
  const bars = curve.utilization.map((value, index) => (value === null ? "" : "M" + index + " 40v" + -Math.max(0.6, 0.4 * value) + "h1V40z"));
  const label = "Utilisation over " + duration(size * curve.step) + ", from 0 to 100" + GAP + "%";
  return shape(
    "svg",
    { class: "small-curve", viewBox: "0 0 " + size + " 40", preserveAspectRatio: "none", role: "img", "aria-label": label },
    shape("path", { class: "tone-1", d: bars.join("") }),
  );
}
