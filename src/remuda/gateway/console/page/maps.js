// Maps: entries, bytes, indexes, and which of them are asked most.

import { h, setText, svg, Table } from "./dom.js";
import { ago, bytes, count, moment, short } from "./format.js";
import { Herd } from "./members.js";
import { Rates, spark } from "./rates.js";

// Gets are requests by key. Statements read rows, and both write them.
const RATES = [["Gets/s", "gets"], ["Rows read/s", "rows_read"], ["Rows written/s", "rows_written"]];

export class MapsView {
  topics = ["maps", "map_parts", "indexes"];

  constructor({ store, rest }) {
    this.store = store;
    this.chosen = rest[0] ?? null;
    this.rates = new Rates(["gets", "rows_read", "rows_written"]);
    this.timer = setInterval(() => store.plan(), 1000);
    this.summary = h("p", { class: "lede" });
    this.table = new Table([
      { title: "Map", cell: (row) => h("a", { href: `#/maps/${encodeURIComponent(row.name)}` }, row.name),
        same: (row) => row.name, sort: (row) => row.name },
      { title: "Entries", number: true, cell: (row) => count(row.rows), sort: (row) => Number(row.rows) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes), sort: (row) => Number(row.bytes) },
      ...RATES.map(([title, name]) => ({ title, number: true, cell: (row) => short(this.rates.of(row.id, name)),
        sort: (row) => this.rates.of(row.id, name) })),
      { title: "Last minute", number: true, cell: (row) => spark(this.rates.line(row.id)), same: (row) => this.rates.at(row.id),
        sort: (row) => this.rates.sum(row.id) },
      { title: "Indexes", number: true, cell: (row) => count(this.indexes(row.name).length) },
      { title: "Time to live", number: true, cell: (row) => ttl(row) },
      { title: "Backups", number: true, cell: (row) => bytes(row.backup_bytes), sort: (row) => Number(row.backup_bytes) },
      { title: "Last write", number: true, cell: (row) => ago(row.last_update), sort: (row) => row.last_update },
      { title: "Kind", cell: (row) => row.kind },
      { title: "Options", class: "text", cell: (row) => row.options ?? "" },
    ], { caption: "Maps", sort: 1, descending: true, empty: "There are no maps yet.",
      open: (row) => { location.hash = `/maps/${encodeURIComponent(row.name)}`; },
      mark: (row) => (row.no_answer ? "bad" : "") });
    this.detail = h("section", { class: "panel", hidden: true });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Maps"), this.summary),
      h("section", { class: "panel" }, this.table.element), this.detail);
    this.parts = new Table([
      { title: "Member", number: true, cell: (row) => count(row.member), sort: (row) => row.member },
      { title: "Entries", number: true, cell: (row) => count(row.rows) },
      { title: "Share", cell: (row) => bar(row), same: (row) => `${row.rows} ${row.most}` },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Backup entries", number: true, cell: (row) => count(row.backup_rows) },
      { title: "Rows read", number: true, cell: (row) => short(row.rows_read) },
      { title: "Rows written", number: true, cell: (row) => short(row.rows_written) },
      { title: "Gets", number: true, cell: (row) => short(row.gets) },
      { title: "Misses", number: true, cell: (row) => short(row.misses) },
      { title: "Puts", number: true, cell: (row) => short(row.puts) },
      { title: "Evicted", number: true, cell: (row) => short(row.evictions) },
      { title: "Expired", number: true, cell: (row) => short(row.expirations) },
    ], { caption: "Members with entries of the map", sort: 0 });
    this.found = new Table([
      { title: "Index", cell: (row) => row.name, sort: (row) => row.name },
      { title: "Kind", cell: (row) => row.kind },
      { title: "Columns", cell: (row) => row.columns },
      { title: "State", cell: (row) => row.state },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
    ], { caption: "Indexes of the map", sort: 0, empty: "The map has no secondary indexes." });
    this.about = h("dl", { class: "facts small" });
    this.title = h("h2");
    this.detail.append(h("header", {}, this.title, h("span", { class: "grow" }),
      h("a", { href: "#/maps" }, "Close")), this.about, this.parts.element,
    h("header", {}, h("h3", {}, "Indexes")), this.found.element);
  }

  close() {
    clearInterval(this.timer);
  }

  indexes(name) {
    return this.store.rows("indexes").filter((index) => index.map === name);
  }

  render() {
    const rows = this.store.rows("maps");
    this.rates.look(rows, this.store.heard.get("maps"));
    this.table.update(rows);
    const entries = rows.reduce((sum, row) => sum + Number(row.rows), 0);
    const size = rows.reduce((sum, row) => sum + Number(row.bytes) + Number(row.backup_bytes), 0);
    if (this.store.has("maps")) setText(this.summary, `${count(rows.length)} with ${count(entries)} entries, ${bytes(size)} with backups`);
    const row = rows.find((map) => map.name === this.chosen);
    this.detail.hidden = !row;
    if (row) this.describe(row);
  }

  describe(row) {
    setText(this.title, row.name);
    const facts = [["Key", row.key ?? "hidden"], ["Partitioned by", row.partition_by ?? "–"], ["Hits", short(row.hits)],
      ["Misses", short(row.misses)], ["Evicted", short(row.evictions)], ["Expired", short(row.expirations)],
      ["Removed as idle", short(row.idle_removals)], ["Last read", moment(row.last_access)], ["Options", row.options ?? "none"]];
    const text = JSON.stringify(facts);
    if (this.about.dataset.text !== text) {
      this.about.dataset.text = text;
      this.about.replaceChildren(...facts.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", { class: "mono" }, `${value}`))));
    }
    const parts = this.store.rows("map_parts").filter((part) => part.name === row.name);
    const most = Math.max(1, ...parts.map((part) => Number(part.rows)));
    this.parts.update(parts.map((part) => ({ ...part, most })));
    this.found.update(this.indexes(row.name));
  }
}

// The option is written as an interval.
function ttl(row) {
  return /(?:^|, )ttl = '?([^',]+)/.exec(row.options ?? "")?.[1] ?? "–";
}

function bar(row) {
  const width = 120;
  const fill = svg("rect", { width: (width * Number(row.rows)) / row.most, height: 8, rx: 2 });
  fill.style.fill = Herd.hue(row.member);
  return svg("svg", { width, height: 8, "aria-hidden": "true" }, fill);
}
