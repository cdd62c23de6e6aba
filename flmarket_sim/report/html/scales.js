"use strict";
// Numbers as text, and numbers as places on a chart.

function digits(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return size < 1e4 ? String(value) : value.toLocaleString("en-US");
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(4)));
}

function onAxis(value, percent) {
  if (percent) return Number((value * 100).toPrecision(4)) + " %";
  const size = Math.abs(value);
  if (size >= 1e9 || (size > 0 && size < 1e-3)) return value.toExponential(0).replace("e+", "e");
  if (size >= 1e6) return Number((value / 1e6).toPrecision(4)) + "M";
  if (size >= 1e4) return Number((value / 1e3).toPrecision(4)) + "k";
  return String(Number(value.toPrecision(6)));
}

// Round numbers between two ends, about as many as asked for.
function ticks(low, high, about) {
  const rough = (high - low) / Math.max(1, about);
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

function logTicks(low, high, about) {
  if (high / low < 12) return ticks(low, high, about + 2);
  const from = Math.floor(Math.log10(low)), to = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((to - from) / Math.max(2, about)));
  const times = to - from <= 1 ? [1, 2, 3, 5, 7] : to - from <= 3 ? [1, 2, 5] : [1];
  const found = [];
  for (let power = from; power <= to; power += every)
    for (const one of times) found.push(Number((one * Math.pow(10, power)).toPrecision(12)));
  const inside = found.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  return inside.length >= 2 ? inside : ticks(low, high, about);
}

// A scale from values to pixels, with its ticks. Logarithmic ones leave out what is not above zero.
function scale(values, from, to, options) {
  const log = options.log;
  const kept = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!kept.length) return null;
  let low = Infinity, high = -Infinity;
  for (const value of kept) { if (value < low) low = value; if (value > high) high = value; }
  if (options.zero && !log) { low = Math.min(low, 0); high = Math.max(high, 0); }
  if (low === high) {
    const half = log ? 0 : Math.abs(low) / 2 || 1;
    if (log) { low /= 2; high *= 2; } else { low -= half; high += half; }
  } else if (options.pad) {
    if (log) { const by = Math.pow(high / low, 0.04); low /= by; high *= by; }
    else {
      const by = (high - low) * 0.04;
      if (!(options.zero && low === 0) && !(low >= 0 && low < by)) low -= by; else low = Math.min(low, 0);
      if (!(options.zero && high === 0)) high += by;
    }
  }
  const f = log ? Math.log : (value) => value;
  const place = (value) => from + ((f(value) - f(low)) / (f(high) - f(low))) * (to - from);
  return { place, low, high, ticks: log ? logTicks(low, high, options.about) : ticks(low, high, options.about),
    shows: (value) => Number.isFinite(value) && (!log || value > 0) };
}
