// Which bar is in which lane: attempts that share a GPU lie one under the other. Knows nothing of pixels across.

function barsByGpu(report, until) {
  const rows = new Map(report.gpus.map((gpu) => [gpu.gpu, []]));
  for (const job of report.jobs) {
    for (const attempt of job.attempts) {
      const outcome = attempt.outcome ?? job.state;
      const bar = {
        job,
        attempt,
        outcome,
        from: attempt.started,
        to: Math.max(attempt.started, attempt.ended ?? until),
      };
      for (const gpu of attempt.gpus.length ? attempt.gpus : ["cpu"]) {
        if (!rows.has(gpu)) rows.set(gpu, []);
        rows.get(gpu).push({ ...bar, gpu });
      }
    }
  }
  return [...rows].filter(([, bars]) => bars.length).map(([gpu, bars]) => laned(gpu, bars));
}

function laned(gpu, bars) {
  bars.sort((one, other) => one.from - other.from || one.to - other.to);
  const lanes = [];
  for (const bar of bars) {
    let lane = lanes.find((candidate) => candidate[candidate.length - 1].to <= bar.from);
    if (!lane) lanes.push((lane = []));
    lane.push(bar);
  }
  return { gpu, bars, lanes };
}

// The heights: fewer pixels for a lane where there are very many.
function stackedRows(rows, top, meters = []) {
  const lanes = rows.reduce((sum, row) => sum + row.lanes.length, 0);
  const height = lanes <= 24 ? 20 : lanes <= 60 ? 12 : lanes <= 200 ? 6 : 3;
  let y = top;
  for (const row of rows) {
    row.y = y;
    row.height = height;
    row.lanes.forEach((lane, index) =>
      lane.forEach((bar) => {
        bar.y = row.y + index * height;
        bar.row = row;
      }),
    );
    y += row.lanes.length * height;
    row.meters = row.lane ? meters.map((meter, index) => ({ meter, y: y + 3 + index * METER_HEIGHT })) : [];
    y += row.meters.length ? 3 + row.meters.length * METER_HEIGHT : 0;
    row.bottom = y;
    y += 8;
  }
  return y;
}

// The first bar of a lane that ends at a time or later: bars of a lane do not overlap, so both their ends rise.
function firstEnding(bars, time) {
  let low = 0;
  let high = bars.length;
  while (low < high) {
    const half = (low + high) >> 1;
    if (bars[half].to < time) low = half + 1;
    else high = half;
  }
  return low;
}

function nearest(bars, time) {
  let best = bars[0];
  for (const bar of bars) {
    if (Math.abs(bar.from - time) < Math.abs(best.from - time)) best = bar;
    if (bar.from > time) break;
  }
  return best;
}
