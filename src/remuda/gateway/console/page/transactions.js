// Open transactions, and a picture of who waits for whom.

import { h, setText, state, svg, Table } from "./dom.js";
import { bytes, count, seconds } from "./format.js";
import { ask } from "./store.js";

const WIDTH = 190, HEIGHT = 46, ACROSS = 90, DOWN = 14;

export class TransactionsView {
  topics = ["transactions", "lock_waits", "clients"];

  constructor({ store }) {
    this.store = store;
    this.problem = h("p", { class: "bad-text", role: "alert" });
    this.graph = h("div", { class: "scroll" });
    this.none = h("p", { class: "empty" }, "Nobody waits for a lock.");
    this.drawn = "";
    this.open = new Table([
      { title: "State", cell: (row) => state(row.state === "committing" ? "busy" : "good", row.state), same: (row) => row.state },
      { title: "Transaction", cell: (row) => h("code", {}, row.transaction.slice(0, 13)), same: (row) => row.transaction },
      { title: "Label", cell: (row) => row.label ?? "" },
      { title: "User", cell: (row) => row.user_name ?? "" },
      { title: "Isolation", cell: (row) => `${row.isolation ?? ""}${row.read_only ? ", read only" : ""}` },
      { title: "Open for", number: true, cell: (row) => seconds(row.seconds), sort: (row) => row.seconds },
      { title: "Idle", number: true, cell: (row) => seconds(row.idle), sort: (row) => row.idle },
      { title: "Writes", number: true, cell: (row) => count(row.writes), sort: (row) => Number(row.writes) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Reads", number: true, cell: (row) => count(row.reads) },
      { title: "Member", number: true, cell: (row) => count(row.member) },
      { title: "", cell: (row) => h("button", { class: "danger", type: "button", onclick: () => this.cancel(row.transaction) }, "Roll back"), same: () => 1 },
    ], { caption: "Open transactions", sort: 5, descending: true, empty: "No transaction is open." });
    this.clients = new Table([
      { title: "Client", cell: (row) => row.application || "–", sort: (row) => row.application },
      { title: "User", cell: (row) => row.user_name ?? "" },
      { title: "Address", cell: (row) => row.address ?? "" },
      { title: "Protocol", cell: (row) => row.protocol ?? "" },
      { title: "State", cell: (row) => row.state ?? "", sort: (row) => row.state },
      { title: "Statement", class: "text", cell: (row) => row.text ?? "" },
      { title: "Member", number: true, cell: (row) => count(row.member), sort: (row) => row.member },
    ], { caption: "Connected clients", sort: 0, empty: "No client is connected." });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Transactions")), this.problem,
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Who waits for whom")), this.none, this.graph),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Open")), this.open.element),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Clients")), this.clients.element));
  }

  async cancel(transaction) {
    setText(this.problem, "");
    try {
      await ask("/console/cancel", { transaction });
    } catch (error) {
      setText(this.problem, error.message);
    }
  }

  render() {
    this.open.update(this.store.rows("transactions"));
    this.clients.update(this.store.rows("clients"));
    const waits = this.store.rows("lock_waits");
    this.none.hidden = waits.length > 0;
    const drawn = JSON.stringify(waits.map((wait) => [wait.id, Math.round(wait.seconds)]));
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.graph.replaceChildren(waits.length ? picture(waits) : "");
  }
}

// Holders stand left of the ones that wait for them; a cycle stays in the order in which it was met.
function picture(waits) {
  const nodes = new Map();
  const node = (name, title, text) => {
    if (!nodes.has(name)) nodes.set(name, { name, title, text, level: 0 });
    return nodes.get(name);
  };
  const edges = waits.map((wait) => ({
    wait,
    from: node(wait.transaction ?? `pid ${wait.pid}`, wait.application || `pid ${wait.pid}`, wait.text ?? ""),
    to: node(wait.blocking_transaction ?? `pid ${wait.blocking_pid}`, wait.blocking_application || `pid ${wait.blocking_pid}`,
      wait.blocking_text ?? wait.blocking_state ?? ""),
  }));
  for (let round = 0; round < nodes.size; round += 1) {
    for (const { from, to } of edges) from.level = Math.min(nodes.size, Math.max(from.level, to.level + 1));
  }
  const columns = [];
  for (const found of [...nodes.values()].sort((a, b) => a.level - b.level)) {
    found.column = columns.findIndex((column) => column[0].level === found.level);
    if (found.column < 0) found.column = columns.push([]) - 1;
    found.row = columns[found.column].push(found) - 1;
    found.x = found.column * (WIDTH + ACROSS) + 14;
    found.y = found.row * (HEIGHT + DOWN) + 14;
  }
  const width = columns.length * (WIDTH + ACROSS) - ACROSS + 28;
  const height = Math.max(...columns.map((column) => column.length)) * (HEIGHT + DOWN) + 14;
  const label = edges.map(({ from, to, wait }) => `${from.title} waits for ${to.title}, ${wait.map} ${wait.key}`).join("; ");
  return svg("svg", { class: "waits", width, height, role: "img", "aria-label": label },
    svg("defs", {}, svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { d: "M0 0L8 4L0 8z" }))),
    edges.map(({ from, to, wait }) => {
      const x = from.x, y = from.y + HEIGHT / 2, u = to.x + WIDTH, v = to.y + HEIGHT / 2;
      return svg("g", {}, svg("path", { class: "wait", d: `M${x} ${y}C${x - 40} ${y} ${u + 40} ${v} ${u + 2} ${v}`, "marker-end": "url(#arrow)" }),
        svg("text", { class: "soft", x: (x + u) / 2, y: (y + v) / 2 - 5, "text-anchor": "middle" }, `${wait.map} ${seconds(wait.seconds)}`),
        svg("title", {}, `${wait.mode} on ${wait.map} ${wait.key}`));
    }),
    [...nodes.values()].map((found) => svg("g", { transform: `translate(${found.x} ${found.y})` },
      svg("title", {}, `${found.name}\n${found.text}`),
      svg("rect", { class: found.level ? "waiter" : "holder", width: WIDTH, height: HEIGHT, rx: 6 }),
      svg("text", { x: 10, y: 19 }, found.title.slice(0, 26)), svg("text", { class: "soft", x: 10, y: 35 }, found.text.slice(0, 30)))));
}
