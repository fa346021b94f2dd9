// A result as a chart: lines over numbers and times, bars over names.

import { h, svg } from "./dom.js";
import { short } from "./format.js";

const WIDTH = 920, HEIGHT = 340, LEFT = 64, RIGHT = 16, TOP = 14, BOTTOM = 44;
const BARS_MAX = 60, POINTS_MAX = 2000, SERIES_MAX = 6;

const isTime = (column) => /^(DATE|TIMESTAMP)/.test(column.type);

export function chartOf(columns, rows) {
  const numbers = columns.map((column, place) => place).filter((place) => columns[place].number);
  if (!numbers.length || !rows.length) return h("p", { class: "empty" }, "A chart needs rows and a column of numbers.");
  const first = columns.findIndex((column, place) => !column.number || (place === 0 && numbers.length > 1));
  const across = first < 0 ? null : first;
  const series = numbers.filter((place) => place !== across).slice(0, SERIES_MAX);
  const ordered = across !== null && (columns[across].number || isTime(columns[across]));
  const kept = rows.slice(0, ordered || across === null ? POINTS_MAX : BARS_MAX);
  const labels = kept.map((row, place) => (across === null ? `${place + 1}` : (row[across] ?? "NULL")));
  const values = series.map((place) => kept.map((row) => (row[place] === null ? NaN : Number(row[place]))));
  const all = values.flat().filter(Number.isFinite);
  const { low, high, ticks } = scale(Math.min(0, ...all), Math.max(0, ...all));
  const y = (value) => TOP + (1 - (value - low) / (high - low)) * (HEIGHT - TOP - BOTTOM);
  const inner = WIDTH - LEFT - RIGHT;
  const places = ordered ? positions(labels, columns[across]) : null;
  const lines = ordered || across === null;
  const x = (place) => LEFT + (places ? places[place] * inner : ((place + 0.5) * inner) / kept.length);
  const marks = lines ? line(values, x, y, labels, columns, series) : bars(values, y, inner, labels, columns, series);
  const step = Math.max(1, Math.ceil(labels.length / (lines ? 8 : 16)));
  const texts = labels.map((label, place) => (place % step ? null : svg("text", { x: x(place), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" },
    label.length > 14 ? `${label.slice(0, 13)}…` : label)));
  const title = `${series.map((place) => columns[place].name).join(", ")}${across === null ? "" : ` by ${columns[across].name}`}`;
  return h("div", {},
    h("div", { class: "legend" }, series.map((place, index) => {
      const dot = h("i");
      dot.style.background = `var(--m${index})`;
      return h("span", {}, dot, columns[place].name);
    }), kept.length < rows.length ? h("span", {}, `the first ${kept.length} of ${rows.length} rows`) : null),
    svg("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `Chart of ${title}` },
      ticks.map((tick) => [svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(tick), y2: y(tick) }),
        svg("text", { x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end" }, short(tick) === "0" && tick ? tick.toPrecision(2) : short(tick))]),
      marks, texts));
}

function positions(labels, column) {
  const found = labels.map((label) => (column.number ? Number(label) : Date.parse(label.replace(" ", "T").replace(/([+-]\d\d)$/, "$1:00"))));
  const low = Math.min(...found), high = Math.max(...found);
  return found.map((value) => (high > low && Number.isFinite(value) ? (value - low) / (high - low) : 0.5));
}

function scale(low, high) {
  const span = high - low || 1;
  const rough = span / 5, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const bottom = Math.floor(low / step) * step, top = Math.ceil(high / step) * step || step;
  const ticks = [];
  for (let tick = bottom; tick <= top + step / 2; tick += step) ticks.push(Math.abs(tick) < step / 1e6 ? 0 : tick);
  return { low: bottom, high: Math.max(top, bottom + step), ticks };
}

function line(values, x, y, labels, columns, series) {
  return values.map((found, index) => {
    const order = found.map((_, place) => place).filter((place) => Number.isFinite(found[place])).sort((a, b) => x(a) - x(b));
    const points = order.map((place) => `${x(place).toFixed(1)},${y(found[place]).toFixed(1)}`);
    const path = svg("polyline", { points: points.join(" "), fill: "none", "stroke-width": 1.8, "stroke-linejoin": "round" });
    path.style.stroke = `var(--m${index})`;
    const dots = order.length > 400 ? [] : order.map((place) => {
      const dot = svg("circle", { class: "dot", cx: x(place), cy: y(found[place]), r: 4 },
        svg("title", {}, `${labels[place]}: ${columns[series[index]].name} ${found[place]}`));
      dot.style.fill = `var(--m${index})`;
      return dot;
    });
    return [path, dots];
  });
}

function bars(values, y, inner, labels, columns, series) {
  const slot = inner / labels.length, wide = (slot * 0.72) / values.length;
  return values.map((found, index) => found.map((value, place) => {
    if (!Number.isFinite(value)) return null;
    const bar = svg("rect", { x: LEFT + place * slot + slot * 0.14 + index * wide, y: Math.min(y(value), y(0)), width: Math.max(1, wide - 1),
      height: Math.abs(y(value) - y(0)), rx: Math.min(2, wide / 4) }, svg("title", {}, `${labels[place]}: ${columns[series[index]].name} ${value}`));
    bar.style.fill = `var(--m${index})`;
    return bar;
  }));
}
