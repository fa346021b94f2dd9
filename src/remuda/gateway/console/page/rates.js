// Rates per second out of counters, with a line of the last minute.

import { svg } from "./dom.js";

const KEPT = 30;
// The gateway tells of counters when they change. After this time without a word they have not.
const QUIET = 5000;

export class Rates {
  constructor(names) {
    this.names = names;
    this.known = new Map();
    this.heard = null;
    this.looked = 0;
  }

  look(rows, told) {
    const quiet = told === this.heard && performance.now() - this.looked > QUIET;
    if (told === undefined || (told === this.heard && !quiet)) return;
    this.heard = told;
    const heard = this.looked = quiet ? performance.now() : told;
    for (const row of rows) {
      const before = this.known.get(row.id);
      const now = { at: heard, line: before?.line ?? [], rate: {} };
      let sum = 0;
      for (const name of this.names) {
        now[name] = Number(row[name] ?? 0);
        const time = before ? (heard - before.at) / 1000 : 0;
        const grown = before ? now[name] - before[name] : 0;
        now.rate[name] = time > 0 && grown > 0 ? grown / time : 0;
        sum += now.rate[name];
      }
      now.line = [...now.line, sum].slice(-KEPT);
      this.known.set(row.id, now);
    }
  }

  of(key, name) {
    return this.known.get(key)?.rate[name] ?? 0;
  }

  sum(key) {
    return this.line(key).at(-1) ?? 0;
  }

  line(key) {
    return this.known.get(key)?.line ?? [];
  }

  at(key) {
    return this.known.get(key)?.at;
  }
}

export function spark(values, width = 90, height = 18) {
  const most = Math.max(...values, 1e-9);
  const points = values.map((value, place) =>
    `${((place + KEPT - values.length) * width) / (KEPT - 1)},${height - 1 - (value / most) * (height - 3)}`);
  const line = svg("polyline", { points: points.join(" "), fill: "none", stroke: "var(--accent)", "stroke-width": 1.5,
    "stroke-linejoin": "round" });
  return svg("svg", { width, height, "aria-hidden": "true" }, line);
}
