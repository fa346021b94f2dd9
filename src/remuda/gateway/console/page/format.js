// Numbers and times as people read them.

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function count(value) {
  if (value === null || value === undefined) return "–";
  return Number(value).toLocaleString("en-US", { maximumFractionDigits: 0 });
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  for (const [size, unit] of [[1e9, "bn"], [1e6, "m"], [1e4, "k"]]) {
    if (Math.abs(number) >= size) return `${(number / (unit === "k" ? 1e3 : size)).toFixed(1).replace(/\.0$/, "")} ${unit}`;
  }
  return count(number);
}

export function bytes(value) {
  if (value === null || value === undefined) return "–";
  let number = Number(value), place = 0;
  while (Math.abs(number) >= 1000 && place < UNITS.length - 1) {
    number /= 1000;
    place += 1;
  }
  return `${place && number < 100 ? number.toFixed(1) : Math.round(number)} ${UNITS[place]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  const number = Number(value);
  if (number <= 0) return "0";
  if (number < 0.001) return `${Math.round(number * 1e6)} µs`;
  if (number < 1) return `${(number * 1000).toFixed(number < 0.1 ? 1 : 0)} ms`;
  if (number < 60) return `${number.toFixed(number < 10 ? 2 : 1)} s`;
  const whole = Math.round(number);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

export function clock(millis) {
  if (millis === null || millis === undefined) return "–";
  return new Date(millis).toLocaleTimeString("en-GB");
}

export function moment(millis) {
  if (millis === null || millis === undefined) return "–";
  const at = new Date(millis);
  return `${at.toLocaleDateString("sv-SE")} ${at.toLocaleTimeString("en-GB")}`;
}

export function ago(millis) {
  if (millis === null || millis === undefined) return "–";
  return `${seconds(Math.max(0, (Date.now() - millis) / 1000)).replace(/^0$/, "0 s")} ago`;
}

export function plural(number, word, many) {
  return `${count(number)} ${number === 1 ? word : (many ?? `${word}s`)}`;
}
