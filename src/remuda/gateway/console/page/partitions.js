// Partitions as a picture: each member is a pen with one place for each partition. A partition has
// the same place in every pen, so a move is a flight from one pen to another.

import { h, setClass, setText, svg, Table } from "./dom.js";
import { count } from "./format.js";
import { Herd, kindOf, stateOf } from "./members.js";

const ACROSS = 20, STEP = 13, CELL = 10, GAP = 18, HEAD = 44, PAD = 12;
const narrow = matchMedia("(max-width: 620px)");
const KINDS = { "short of backups": "short", "to be moved": "move", unreachable: "lost", lost: "lost" };

export class PartitionsView {
  topics = ["partitions"];

  constructor({ store, herd }) {
    this.store = store;
    this.herd = herd;
    this.pens = new Map();
    this.cells = new Map();
    this.slots = svg("g");
    this.moving = svg("g");
    this.picture = svg("svg", { class: "herd", role: "img" }, this.slots, this.moving);
    this.summary = h("p", { class: "lede" });
    this.table = new Table([
      { title: "Partition", number: true, cell: (row) => count(row.partition), sort: (row) => row.partition },
      { title: "State", cell: (row) => row.state },
      { title: "Primary", number: true, cell: (row) => row.member ?? "none" },
      { title: "Backups", cell: (row) => row.backups ?? "none" },
      { title: "Awaited", cell: (row) => row.awaited ?? "" },
      { title: "Cause", class: "text", cell: (row) => row.cause ?? "" },
    ], { caption: "Partitions that are not complete", sort: 0,
      empty: "Every partition has all its copies where they should be." });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Partitions"), this.summary),
      h("section", { class: "panel" }, h("div", { class: "body stack" }, this.picture,
        h("div", { class: "legend" },
          h("span", {}, h("i"), "primary"), h("span", {}, h("i", { class: "copy" }), "backup, in the colour of its primary"),
          h("span", {}, h("i", { class: "move" }), "to be moved"), h("span", {}, h("i", { class: "short" }), "short of backups"),
          h("span", {}, h("i", { class: "lost" }), "unreachable or lost")))),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Not complete")), this.table.element));
    this.layout = "";
  }

  render() {
    const rows = this.store.rows("partitions");
    const members = this.herd.all();
    if (!rows.length || !members.length) return;
    const down = Math.ceil(rows.length / ACROSS);
    this.width = ACROSS * STEP + 2 * PAD;
    this.height = HEAD + down * STEP + PAD;
    this.place(members, rows.length);
    const there = new Set();
    const owned = new Map();
    for (const row of rows) {
      const copies = row.backups ? row.backups.split(", ").map(Number) : [];
      const kind = KINDS[row.state] ?? "";
      const title = `Partition ${row.partition}: primary ${row.member ?? "none"}, backups ${row.backups ?? "none"}, ${row.state}`;
      if (row.member !== null) {
        owned.set(row.member, (owned.get(row.member) ?? 0) + 1);
        this.cell(`${row.partition}`, row.partition, row.member, row.member, `cell ${kind}`, title, there);
      }
      copies.forEach((copy, place) =>
        this.cell(`${row.partition}/${place}`, row.partition, copy, row.member, "cell copy", title, there));
    }
    for (const [key, cell] of this.cells) {
      if (!there.has(key)) {
        cell.element.remove();
        this.cells.delete(key);
      }
    }
    const open = rows.filter((row) => row.state !== "complete");
    setText(this.summary, open.length
      ? `${count(open.length)} of ${count(rows.length)} are not complete`
      : `all ${count(rows.length)} complete`);
    const label = members.map((member) => `member ${member.member}: ${owned.get(member.member) ?? 0} primaries`);
    this.picture.setAttribute("aria-label", `Partitions of ${label.join(", ")}`);
    this.table.update(open);
  }

  place(members, partitions) {
    const across = narrow.matches ? 1 : Math.max(1, Math.min(members.length, 4));
    const layout = members.map((member) => `${member.member}${kindOf(member)}${stateOf(member)}${member.partitions}`).join() + across;
    if (layout === this.layout) return;
    this.layout = layout;
    this.slots.replaceChildren();
    this.pens.clear();
    members.forEach((member, index) => {
      const x = (index % across) * (this.width + GAP), y = Math.floor(index / across) * (this.height + GAP);
      this.pens.set(member.member, { x, y });
      const kind = kindOf(member);
      const pen = svg("g", { transform: `translate(${x} ${y})` },
        svg("rect", { class: `pen ${kind === "good" ? "" : kind}`, width: this.width, height: this.height, rx: 8 }),
        svg("text", { x: PAD, y: 20 }, `Member ${member.member}`),
        svg("text", { class: "soft", x: PAD, y: 35 }, kind === "good"
          ? `${count(member.partitions)} primaries, ${count(member.backups)} backups` : stateOf(member)));
      let dots = "";
      for (let slot = 0; slot < partitions; slot += 1) {
        const [dx, dy] = spot(slot);
        dots += `M${dx + CELL / 2 - 1} ${dy + CELL / 2}h2`;
      }
      pen.append(svg("path", { class: "slot", d: dots }));
      this.slots.append(pen);
    });
    const rows = Math.ceil(members.length / across);
    const total = across * (this.width + GAP) - GAP;
    this.picture.setAttribute("viewBox", `-1 -1 ${total + 2} ${rows * (this.height + GAP) - GAP + 2}`);
    this.picture.style.maxWidth = `${total * 1.25}px`;
    for (const cell of this.cells.values()) this.move(cell);
  }

  cell(key, partition, on, primary, kind, title, there) {
    there.add(key);
    let cell = this.cells.get(key);
    if (!cell) {
      const label = svg("title");
      cell = { label, element: svg("rect", { width: CELL, height: CELL, rx: 2 }, label) };
      this.cells.set(key, cell);
      this.moving.append(cell.element);
    }
    cell.partition = partition;
    if (cell.on !== on) {
      cell.on = on;
      this.move(cell);
    }
    const hue = primary === null ? "var(--bad)" : Herd.hue(primary);
    if (cell.hue !== hue) {
      const copy = kind.includes("copy");
      cell.hue = hue;
      cell.element.style.fill = copy ? `color-mix(in srgb, ${hue} 20%, var(--surface))` : hue;
      cell.element.style.stroke = copy ? hue : "";
    }
    setClass(cell.element, kind.trim());
    setText(cell.label, title);
  }

  move(cell) {
    const pen = this.pens.get(cell.on);
    if (!pen) return;
    const [dx, dy] = spot(cell.partition);
    cell.element.style.transform = `translate(${pen.x + dx}px, ${pen.y + dy}px)`;
  }
}

function spot(partition) {
  return [PAD + (partition % ACROSS) * STEP, HEAD + Math.floor(partition / ACROSS) * STEP];
}
