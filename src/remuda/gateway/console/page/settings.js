// The settings of the members, those that differ from their defaults first.

import { h, setText, Table } from "./dom.js";

export class SettingsView {
  topics = ["settings"];

  constructor({ store }) {
    this.store = store;
    this.search = h("input", { type: "search", placeholder: "Search", "aria-label": "Search settings", oninput: () => this.render() });
    this.only = h("button", { type: "button", "aria-pressed": "false", onclick: () => {
      this.only.setAttribute("aria-pressed", this.only.getAttribute("aria-pressed") === "true" ? "false" : "true");
      this.render();
    } }, "Changed only");
    this.summary = h("p", { class: "lede" });
    this.table = new Table([
      { title: "Setting", cell: (row) => h("code", {}, row.name), same: (row) => row.name, sort: (row) => row.name },
      { title: "Value", class: "text", cell: (row) => row.setting || "–" },
      { title: "Default", class: "text", cell: (row) => row.default_value || "–" },
      { title: "Differs", cell: (row) => (row.setting === row.default_value ? "" : h("span", { class: "chip" }, "changed")), same: (row) => row.setting },
      { title: "Meaning", class: "wrap", cell: (row) => row.description },
    ], { caption: "Settings", sort: 0 });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Settings"), this.summary, h("span", { class: "grow" }), this.only, this.search),
      h("section", { class: "panel" }, this.table.element));
  }

  render() {
    const all = this.store.rows("settings");
    const word = this.search.value.toLowerCase();
    const only = this.only.getAttribute("aria-pressed") === "true";
    const changed = all.filter((row) => row.setting !== row.default_value);
    setText(this.summary, all.length ? `of the member that answered; ${changed.length} of ${all.length} differ from their defaults` : "");
    this.table.update((only ? changed : all).filter((row) => `${row.name} ${row.description}`.toLowerCase().includes(word)));
  }
}
