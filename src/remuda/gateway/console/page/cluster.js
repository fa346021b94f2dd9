// The cluster: its members with their places and loads, and what happened to them.

import { h, setClass, setText, state } from "./dom.js";
import { bytes, clock, count, plural } from "./format.js";
import { Herd, kindOf, stateOf } from "./members.js";

export class ClusterView {
  topics = ["partitions", "logs"];

  constructor({ store, herd }) {
    this.store = store;
    this.herd = herd;
    this.cards = new Map();
    this.facts = ["Members", "View", "Partitions", "Clients", "Statements", "Stored"].map((name) => {
      const value = h("dd", {}, "–");
      return { name, value, element: h("div", {}, h("dt", {}, name), value) };
    });
    this.list = h("div", { class: "cards" });
    this.events = h("ol", { class: "timeline" });
    this.quiet = h("p", { class: "empty" }, "Nothing has happened since this page was opened.");
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Cluster")),
      h("dl", { class: "facts panel" }, this.facts.map((fact) => fact.element)),
      h("section", { "aria-label": "Members" }, this.list),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Membership events"),
        h("span", { class: "soft" }, "since this page was opened")), this.events, this.quiet));
    this.noted = -1;
  }

  render() {
    const members = this.herd.all();
    const now = this.herd.current();
    const sum = (name) => now.reduce((total, member) => total + Number(member[name] ?? 0), 0);
    const partitions = this.store.rows("partitions");
    const complete = partitions.filter((row) => row.state === "complete").length;
    const texts = [
      count(now.length), `${this.herd.view ?? "–"}`,
      partitions.length ? `${complete} / ${partitions.length}` : "–",
      count(sum("clients")), count(sum("queries")), bytes(sum("storage_held")),
    ];
    this.facts.forEach((fact, place) => setText(fact.value, texts[place]));
    const there = new Set();
    for (const member of members) {
      there.add(member.member);
      let card = this.cards.get(member.member);
      if (!card) {
        card = new Card(member.member, () => this.herd.dismiss(member.member));
        this.cards.set(member.member, card);
        this.list.append(card.element);
      }
      card.update(member, this.store.rows("logs").find((log) => log.member === member.member));
    }
    for (const [number, card] of this.cards) {
      if (!there.has(number)) {
        card.element.remove();
        this.cards.delete(number);
      }
    }
    const latest = this.herd.events[0]?.key;
    if (latest !== this.noted) {
      this.noted = latest;
      this.events.replaceChildren(...this.herd.events.map((event) =>
        h("li", {}, h("time", {}, clock(event.at)), state(event.kind, event.title), h("span", {}, event.text))));
      this.quiet.hidden = this.herd.events.length > 0;
    }
  }
}

class Card {
  constructor(number, dismiss) {
    this.figures = ["Primaries", "Backups", "Clients", "Statements"].map((name) => {
      const value = h("dd");
      return { value, element: h("div", {}, h("dt", {}, name), value) };
    });
    this.state = h("span");
    this.chips = h("div", { class: "row" });
    this.cause = h("p", { class: "bad-text" });
    this.gauges = ["Stored", "Statements", "Log"].map((name) => {
      const fill = h("i"), text = h("span");
      const meter = h("div", { class: "meter" }, fill);
      return { fill, text, meter, element: h("div", { class: "gauge" }, h("span", {}, name), meter, text) };
    });
    this.dismiss = h("button", { class: "quiet", type: "button", onclick: dismiss, hidden: true }, "Dismiss");
    this.element = h("article", { class: "member panel", "data-member": number },
      h("div", { class: "title" }, h("h2", {}, `Member ${number}`), h("span", { class: "grow" }), this.state, this.dismiss),
      this.chips, this.cause, h("dl", {}, this.figures.map((figure) => figure.element)),
      this.gauges.map((gauge) => gauge.element));
    this.element.style.setProperty("--hue", Herd.hue(number));
    this.chipped = "";
    this.shown = "";
  }

  update(member, log) {
    const kind = kindOf(member), text = stateOf(member);
    setClass(this.element, `member panel ${kind === "good" ? "" : kind}`.trim());
    if (this.shown !== kind + text) {
      this.shown = kind + text;
      this.state.replaceChildren(state(kind, text));
    }
    this.dismiss.hidden = !member.dropped;
    const labels = (member.labels ?? "").split(", ").filter(Boolean);
    const chips = [`${member.host}:${member.user_port}`, ...labels, `view ${member.view}`,
      ...(member.coordinator && !member.dropped ? ["coordinator"] : []),
      ...(Number(member.queued) ? [`${plural(member.queued, "statement")} queued`] : []),
      ...(Number(member.writes_refused) ? [`${plural(member.writes_refused, "write")} refused`] : []),
      ...(Number(member.internal_errors) ? [plural(member.internal_errors, "internal error")] : [])];
    if (this.chipped !== chips.join()) {
      this.chipped = chips.join();
      this.chips.replaceChildren(...chips.map((chip) => h("span", { class: "chip" }, chip)));
    }
    setText(this.cause, member.cause ?? "");
    this.cause.hidden = !member.cause;
    const values = [member.partitions, member.backups, member.clients, member.queries];
    this.figures.forEach((figure, place) => setText(figure.value, member.dropped ? "–" : count(values[place])));
    this.gauge(0, member.storage_held, member.storage_limit);
    this.gauge(1, member.memory_held, member.memory_limit);
    const waits = log ? Number(log.records) - Number(log.durable) : 0;
    this.gauges[2].element.hidden = !log;
    if (log) {
      setText(this.gauges[2].text, `${bytes(log.bytes)}, ${plural(waits, "record")} to sync`);
      this.gauges[2].fill.style.transform = `scaleX(${Math.min(1, waits / 1000)})`;
    }
  }

  gauge(place, held, limit) {
    const share = Number(limit) ? Math.min(1, Number(held ?? 0) / Number(limit)) : 0;
    const { fill, text, meter } = this.gauges[place];
    fill.style.transform = `scaleX(${share})`;
    setClass(meter, `meter ${share > 0.95 ? "bad" : share > 0.8 ? "warn" : ""}`.trim());
    setText(text, `${bytes(held)} of ${bytes(limit)}`);
  }
}
