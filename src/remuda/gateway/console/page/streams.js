// Readers of changes: listeners, change streams, near caches; and the maps that keep their changes.

import { h, setText, Table } from "./dom.js";
import { ago, bytes, count, moment, plural, short } from "./format.js";
import { Rates, spark } from "./rates.js";

export class StreamsView {
  topics = ["subscriptions", "maps"];

  constructor({ store }) {
    this.store = store;
    this.rates = new Rates(["changes"]);
    this.summary = h("p", { class: "lede" });
    this.table = new Table([
      { title: "Kind", cell: (row) => row.kind, sort: (row) => row.kind },
      { title: "Map", cell: (row) => row.map ?? "", sort: (row) => row.map },
      { title: "Query", class: "text", cell: (row) => row.query ?? "" },
      { title: "User", cell: (row) => row.user_name ?? "" },
      { title: "Since", number: true, cell: (row) => moment(row.started), sort: (row) => row.started },
      { title: "Changes sent", number: true, cell: (row) => count(row.changes), sort: (row) => Number(row.changes) },
      { title: "Changes/s", number: true, cell: (row) => short(this.rates.of(row.id, "changes")), sort: (row) => this.rates.of(row.id, "changes") },
      { title: "Last minute", cell: (row) => spark(this.rates.line(row.id)), same: (row) => this.rates.at(row.id) },
      { title: "Member", number: true, cell: (row) => count(row.member), sort: (row) => row.member },
    ], { caption: "Subscriptions", sort: 5, descending: true, empty: "Nobody listens to changes." });
    this.kept = new Table([
      { title: "Map", cell: (row) => row.name, sort: (row) => row.name },
      { title: "Keeps", class: "wrap", cell: (row) => row.options ?? "" },
      { title: "Entries", number: true, cell: (row) => count(row.rows) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Last write", number: true, cell: (row) => ago(row.last_update), sort: (row) => row.last_update },
    ], { caption: "Maps with a change log", sort: 0, empty: "No map keeps its changes (option change_retention)." });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Streams"), this.summary),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Subscriptions")), this.table.element),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Change logs")), this.kept.element));
  }

  render() {
    const rows = this.store.rows("subscriptions");
    this.rates.look(rows, this.store.heard.get("subscriptions"));
    this.table.update(rows);
    this.kept.update(this.store.rows("maps").filter((map) => /change_retention/.test(map.options ?? "")));
    if (this.store.has("subscriptions")) setText(this.summary, plural(rows.length, "subscription"));
  }
}
