// The members over time: those of the view, those that it has dropped, and what happened.

import { clock } from "./format.js";

const HUES = 12;

export class Herd {
  constructor(store) {
    this.store = store;
    this.forget();
    store.always.push((topic) => topic === "members" && this.look());
  }

  forget() {
    this.known = new Map();
    this.view = null;
  }

  // Members of the current view, then those that were dropped since the page was opened.
  all() {
    return [...this.known.values()].sort((a, b) => a.member - b.member);
  }

  current() {
    return this.all().filter((member) => !member.dropped);
  }

  dismiss(member) {
    this.known.delete(member);
    this.store.plan();
  }

  static hue(member) {
    return `var(--m${(Number(member) - 1) % HUES})`;
  }

  look() {
    const rows = this.store.rows("members");
    if (!rows.length) return;
    const there = new Set(rows.map((row) => row.member));
    const view = Math.max(...rows.map((row) => Number(row.view)));
    for (const row of rows) this.known.set(row.member, row);
    for (const [number, row] of this.known) {
      if (!there.has(number) && !row.dropped) {
        const left = row.state === "leaving";
        const cause = left ? `has left with view ${view}` : `dropped by view ${view}`;
        this.known.set(number, { ...row, dropped: true, left, at: Date.now(), cause });
      }
    }
    this.view = view;
  }

  health() {
    const members = this.all();
    const gone = members.filter((member) => member.dropped && !member.left).length;
    const suspected = members.filter((member) => !member.dropped && member.state !== "alive").length;
    const states = this.store.rows("partitions").map((row) => row.state);
    const lost = states.filter((found) => found === "lost" || found === "unreachable").length;
    const waiting = states.filter((found) => found !== "complete").length;
    if (!members.length) return { kind: "", text: "Connecting" };
    if (lost) return { kind: "bad", text: `${lost} partitions unreachable` };
    if (suspected) return { kind: "bad", text: `${suspected} suspected or silent` };
    if (waiting) return { kind: "warn", text: `${waiting} partitions move` };
    if (gone) return { kind: "bad", text: `${gone} dropped` };
    return { kind: "good", text: "All members serve" };
  }
}

export function kindOf(member) {
  if (member.dropped) return member.left ? "warn" : "bad";
  return { alive: "good", leaving: "warn" }[member.state] ?? "bad";
}

export function stateOf(member) {
  if (!member.dropped) return member.state;
  return `${member.left ? "left" : "dropped"} ${clock(member.at)}`;
}
