// An axis: from values to places between 0 and 1, for numbers (logarithmic where they span decades) and for words.

function axisOf(label, values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  const numeric = known.length > 0 && known.every((value) => typeof sortKey(value) === "number");
  return numeric ? numberAxis(label, known.map(Number)) : wordAxis(label, known);
}

function numberAxis(label, numbers) {
  const least = numbers.reduce((one, other) => Math.min(one, other));
  const most = numbers.reduce((one, other) => Math.max(one, other));
  const log = least > 0 && most / least >= 100;
  const scale = log ? Math.log10 : (value) => value;
  const from = scale(least),
    span = scale(most) - from;
  const place = (value) => {
    const number = typeof value === "string" ? sortKey(value) : value;
    if (typeof number !== "number") return null;
    return span ? (scale(number) - from) / span : 0.5;
  };
  const distinct = [...new Set(numbers)];
  const ticks = distinct.length <= 7 ? distinct : log ? powers(least, most) : evenly(least, most);
  return { label, log, place, ticks: spaced(ticks.map((at) => ({ at: place(at), text: figure(at) }))) };
}

// Without those that would be written over one another.
function spaced(ticks) {
  let last = -1;
  const rising = ticks.sort((one, other) => one.at - other.at);
  return rising.filter((tick) => tick.at - last >= 0.05 && ((last = tick.at), true));
}

function powers(least, most) {
  const all = [];
  for (let power = Math.ceil(Math.log10(least) - 1e-9); power <= Math.log10(most) + 1e-9; power += 1)
    all.push(10 ** power);
  const every = Math.ceil(all.length / 7);
  return all.filter((_, index) => index % every === 0).map((value) => Number(value.toPrecision(3)));
}

function evenly(least, most) {
  const rough = (most - least) / 5;
  const size = 10 ** Math.floor(Math.log10(rough));
  const apart = size * [1, 2, 5, 10].find((times) => size * times >= rough);
  const all = [];
  for (let number = Math.ceil(least / apart); number * apart <= most * (1 + 1e-12); number += 1) {
    all.push(Number((number * apart).toPrecision(12)));
  }
  return all;
}

function wordAxis(label, values) {
  const words = [...new Set(values.map(String))].sort((one, other) => compared(sortKey(one), sortKey(other)));
  const places = new Map(words.map((word, index) => [word, (index + 0.5) / words.length]));
  const apart = Math.ceil(words.length / 24);
  const ticks = words.filter((_, index) => index % apart === 0);
  return {
    label,
    log: false,
    words: words.length,
    place: (value) => (value === null || value === undefined ? null : (places.get(String(value)) ?? null)),
    ticks: ticks.map((word) => ({ at: places.get(word), text: short(word, 14) })),
  };
}
