// Statements that run and that have ended, and one of them with its plan while it works.

import { h, setText, state, Table } from "./dom.js";
import { bytes, clock, count, plural, seconds, short } from "./format.js";
import { figuresOfRows, PlanTree } from "./plan.js";
import { ask } from "./store.js";

const ENDED = { finished: "good", failed: "bad", cancelled: "warn" };

export class StatementsView {
  constructor({ store, rest }) {
    this.store = store;
    this.chosen = rest[0] ?? null;
    this.topics = this.chosen ? ["queries", `operators:${this.chosen}`] : ["queries", "history"];
    this.problem = h("p", { class: "bad-text", role: "alert" });
    this.view = this.chosen ? new Detail(this) : new Lists(this);
    this.element = h("div", { class: "stack" }, this.view.head, this.problem, this.view.element);
  }

  async cancel(query) {
    setText(this.problem, "");
    try {
      await ask("/console/cancel", { query });
    } catch (error) {
      setText(this.problem, error.message);
    }
  }

  render() {
    this.view.render();
  }
}

function open(row) {
  location.hash = `/statements/${row.query}`;
}

const text = { title: "Statement", class: "text", cell: (row) => row.text };

class Lists {
  constructor(view) {
    this.store = view.store;
    this.head = h("div", { class: "head" }, h("h1", {}, "Statements"));
    this.running = new Table([
      { title: "State", cell: (row) => state("busy", row.state), same: (row) => row.state },
      text,
      { title: "User", cell: (row) => row.user_name ?? "" },
      { title: "Time", number: true, cell: (row) => seconds(row.seconds), sort: (row) => row.seconds },
      { title: "Waited", number: true, cell: (row) => seconds(row.waited), sort: (row) => row.waited },
      { title: "Rows", number: true, cell: (row) => short(row.rows), sort: (row) => Number(row.rows) },
      { title: "Memory", number: true, cell: (row) => bytes(row.memory), sort: (row) => Number(row.memory) },
      { title: "Member", number: true, cell: (row) => count(row.member) },
      { title: "", cell: (row) => h("button", { class: "danger", type: "button", onclick: () => view.cancel(row.query) }, "Cancel"), same: () => 1 },
    ], { caption: "Running statements", sort: 3, descending: true, open, empty: "Nothing runs." });
    this.ended = new Table([
      { title: "State", cell: (row) => state(ENDED[row.state] ?? "", row.state), same: (row) => row.state, sort: (row) => row.state },
      text,
      { title: "Started", number: true, cell: (row) => clock(row.started), sort: (row) => row.started },
      { title: "Planning", number: true, cell: (row) => seconds(row.planning), sort: (row) => row.planning },
      { title: "Waited", number: true, cell: (row) => seconds(row.queued + row.waited), sort: (row) => row.queued + row.waited },
      { title: "Execution", number: true, cell: (row) => seconds(row.execution), sort: (row) => row.execution },
      { title: "Rows", number: true, cell: (row) => short(row.rows), sort: (row) => Number(row.rows) },
      { title: "Memory", number: true, cell: (row) => bytes(row.memory), sort: (row) => Number(row.memory) },
      { title: "Spilled", number: true, cell: (row) => bytes(row.spilled), sort: (row) => Number(row.spilled) },
      { title: "Error", class: "text", cell: (row) => (row.error ? `${row.sqlstate} ${row.error}` : "") },
    ], { caption: "Ended statements", sort: 2, descending: true, open, empty: "No statement has ended yet." });
    this.element = h("div", { class: "stack" },
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Running")), this.running.element),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Ended"),
        h("span", { class: "soft" }, "the last 200 that the members keep")), this.ended.element));
  }

  render() {
    this.running.update(this.store.rows("queries"));
    this.ended.update(this.store.rows("history"));
  }
}

class Detail {
  constructor(view) {
    this.view = view;
    this.store = view.store;
    this.query = view.chosen;
    this.state = h("span");
    this.button = h("button", { class: "danger", type: "button", hidden: true, onclick: () => view.cancel(this.query) }, "Cancel");
    this.head = h("div", { class: "head" }, h("h1", {}, "Statement"), this.state, h("span", { class: "grow" }), this.button,
      h("a", { href: "#/statements" }, "All statements"));
    this.text = h("pre");
    this.facts = h("dl", { class: "facts small" });
    this.place = h("div", { class: "scroll" });
    this.error = h("p", { class: "bad-text" });
    this.exchanges = new Table([
      { title: "From fragment", number: true, cell: (row) => count(row.fragment), sort: (row) => row.fragment },
      { title: "Member", number: true, cell: (row) => count(row.member) },
      { title: "Rows sent", number: true, cell: (row) => count(row.rows), sort: (row) => Number(row.rows) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes), sort: (row) => Number(row.bytes) },
      { title: "Batches", number: true, cell: (row) => count(row.batches) },
      { title: "Waits for credit", number: true, cell: (row) => count(row.waits) },
      { title: "Waited", number: true, cell: (row) => seconds(row.wait) },
    ], { caption: "Exchanges", sort: 0, empty: "No rows go between members." });
    this.element = h("div", { class: "stack" },
      h("section", { class: "panel" }, h("div", { class: "body stack" }, this.text, this.error), this.facts),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Plan")), h("div", { class: "body" }, this.place)),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Exchanges")), this.exchanges.element));
    this.tree = null;
    this.runs = null;
    this.final = false;
    this.asking = false;
    this.last = [];
  }

  async load() {
    if (this.asking || this.final) return;
    this.asking = true;
    try {
      const found = await ask(`/console/profile/${this.query}`);
      this.take(found);
    } catch (error) {
      setText(this.view.problem, error.message);
      this.final = true;
    }
    this.asking = false;
    this.render();
  }

  take(profile) {
    this.profile = profile;
    this.final = profile.state in ENDED;
    const run = profile.runs?.at(-1);
    if (run?.plan?.Fragments) {
      this.tree = new PlanTree(run.plan.Fragments);
      this.place.replaceChildren(this.tree.element);
    } else this.place.replaceChildren(h("p", { class: "empty" }, "The statement has no plan of its own."));
    if (this.final && run) {
      this.last = run.fragments.flatMap((fragment) => fragment.operators.map((operator) => ({
        ...operator, fragment: fragment.fragment, member: fragment.member, instance: fragment.instance,
        name: operator.operator, operator: operator.index,
        id: `${fragment.fragment}|${fragment.member}|${fragment.instance}|${operator.index}` })));
    }
  }

  render() {
    if (!this.store.has("queries")) return;
    const now = this.store.rows("queries").find((row) => row.query === this.query);
    const operators = this.store.rows(`operators:${this.query}`);
    if (!this.profile || (!now && !this.final) || (now && !this.tree && operators.length)) this.load();
    const profile = this.profile;
    if (!profile) return;
    const running = Boolean(now) && !this.final;
    const shown = running ? { ...profile, ...now, execution: now.seconds } : profile;
    const kind = running ? "busy" : (ENDED[shown.state] ?? "");
    if (this.state.dataset.kind !== kind + shown.state) {
      this.state.dataset.kind = kind + shown.state;
      this.state.replaceChildren(state(kind, shown.state));
    }
    this.button.hidden = !running;
    setText(this.text, profile.text);
    setText(this.error, profile.error ? `${profile.error.sqlstate}: ${profile.error.message}` : "");
    const rows = running ? operators : this.last;
    if (rows.length) this.tree?.update(figuresOfRows(rows), running);
    this.exchanges.update(rows.filter((row) => row.name === "Send"));
    this.fact([["Time", seconds(shown.execution)], ["Planning", seconds(shown.planning)], ["Queued", seconds(shown.queued)],
      ["Waited", seconds(shown.waited)], ["Rows", count(shown.rows)], ["Memory", bytes(shown.memory)],
      ["Spilled", bytes(shown.spilled)], ["Member", `${profile.member}`], ["User", profile.user || "–"],
      ["Runs", plural((profile.runs ?? []).length, "run")]]);
  }

  fact(facts) {
    if (this.values) return facts.forEach(([, value], place) => setText(this.values[place], value));
    this.values = facts.map(([, value]) => h("dd", {}, value));
    return this.facts.replaceChildren(...facts.map(([name], place) => h("div", {}, h("dt", {}, name), this.values[place])));
  }
}
