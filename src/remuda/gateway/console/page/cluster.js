// The cluster: its members with their places and loads, and what happened to them.

import { h, setClass, setText, state, Table } from "./dom.js";
import { bytes, count, moment, plural } from "./format.js";
import { Herd, kindOf, stateOf } from "./members.js";

export class ClusterView {
  topics = ["partitions", "logs", "membership", "spark"];

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
    this.quiet = h("p", { class: "empty" }, "The members have seen nothing yet.");
    this.places = h("div", { class: "body places" });
    this.placed = "";
    this.services = new Table([
      { title: "Service", cell: (row) => h("code", {}, row.service), same: (row) => row.service, sort: (row) => row.service },
      { title: "State", cell: (row) => state(row.state === "busy" ? "busy" : "good", row.state), same: (row) => row.state },
      { title: "User", cell: (row) => row.user_name || "–" },
      { title: "Address", cell: (row) => row.address || "–" },
      { title: "Cores", number: true, cell: (row) => count(row.cores) },
      { title: "Running", number: true, cell: (row) => count(row.running) },
      { title: "Takes", number: true, cell: (row) => count(row.free) },
      { title: "Heard", number: true, cell: (row) => (Number(row.silent) ? `${row.silent} s ago` : "now") },
      { title: "Serves member", number: true, cell: (row) => count(row.member) },
    ], { caption: "Spark services", sort: 0, empty: "No Spark service asks for work (remuda spark-service)." });
    this.hosted = h("span", { class: "soft" });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Cluster")),
      h("dl", { class: "facts panel" }, this.facts.map((fact) => fact.element)),
      h("section", { "aria-label": "Members" }, this.list),
      h("div", { class: "pair" },
        h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Membership events"),
          h("span", { class: "soft" }, "the last that the members have seen")),
        h("div", { class: "scroll events", tabindex: "0", role: "region", "aria-label": "Membership events" }, this.events, this.quiet)),
        h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Places"),
          h("span", { class: "soft" }, "copies of a partition lie in different ones")), this.places)),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Spark"), this.hosted), this.services.element));
    this.noted = "";
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
    this.tellEvents();
    this.showPlaces(now);
    this.services.update(this.store.rows("spark"));
    const hosted = now.filter((member) => labelsOf(member).hosted === "spark").map((member) => member.member);
    setText(this.hosted, hosted.length ? `runs ${plural(hosted.length, "member")} on its executors: ${hosted.join(", ")}` : "no member runs on its executors");
  }

  tellEvents() {
    const events = merged(this.store.rows("membership"));
    const noted = JSON.stringify(events);
    if (noted === this.noted) return;
    this.noted = noted;
    this.quiet.hidden = events.length > 0;
    this.events.replaceChildren(...events.map((event) => h("li", {}, h("time", {}, moment(event.at)),
      state(KINDS[event.kind] ?? "", event.subject === null ? `View ${event.view}` : `Member ${event.subject}`),
      h("span", {}, sentence(event)))));
  }

  showPlaces(members) {
    const placed = JSON.stringify(members.map((member) => [member.member, member.host, member.labels]));
    if (placed === this.placed) return;
    this.placed = placed;
    this.places.replaceChildren(placesOf(members));
  }
}

const KINDS = { joined: "good", heard: "good", left: "warn", dropped: "bad", suspected: "bad", view: "busy" };

function sentence({ kind, view, cause, seen }) {
  const by = `, as ${seen.length > 1 ? "members" : "member"} ${seen.join(", ")} saw it`;
  if (kind === "view") return `begins: ${cause}`;
  if (kind === "joined") return `joined with view ${view}, at ${cause}`;
  if (kind === "left") return `left with view ${view}`;
  if (kind === "dropped") return `dropped by view ${view}: ${cause}`;
  return `${kind === "heard" ? "heard again" : kind}${cause ? `: ${cause}` : ""}${by}`;
}

// Members tell of one event each: what they saw within some seconds is one line, the latest first.
function merged(rows) {
  const found = [];
  for (const row of [...rows].sort((a, b) => a.at - b.at)) {
    const before = found.findLast((event) => event.kind === row.kind && event.view === row.view && event.subject === row.subject);
    if (before && row.at - before.at < 15000) {
      if (!before.seen.includes(row.member)) before.seen = [...before.seen, row.member].sort((a, b) => a - b);
    } else found.push({ kind: row.kind, view: row.view, subject: row.subject, cause: row.cause, at: row.at, seen: [row.member] });
  }
  return found.reverse().slice(0, 100);
}

function labelsOf(member) {
  return Object.fromEntries((member.labels ?? "").split(", ").filter(Boolean).map((label) => {
    const at = label.indexOf("=");
    return [label.slice(0, at), label.slice(at + 1)];
  }));
}

// Zones, racks and hosts as a tree with the members as leaves; a level that no member names is left out.
function placesOf(members) {
  const levels = ["zone", "rack", "host"].filter((level) => level === "host" || members.some((member) => labelsOf(member)[level]));
  const grow = (group, depth) => {
    if (depth === levels.length) {
      return h("span", { class: "row" }, group.map((member) => {
        const leaf = h("span", { class: "leaf" }, `Member ${member.member}`);
        leaf.style.setProperty("--hue", Herd.hue(member.member));
        return leaf;
      }));
    }
    const level = levels[depth];
    const parts = new Map();
    for (const member of group) {
      const name = labelsOf(member)[level] ?? (level === "host" ? member.host : "none");
      parts.set(name, [...(parts.get(name) ?? []), member]);
    }
    return h("ul", {}, [...parts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) =>
      h("li", {}, h("span", { class: "soft" }, level), " ", h("b", {}, name), grow(part, depth + 1))));
  };
  return grow(members, 0);
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
    this.gauges = ["Stored", "Statements", "Log", "Lease"].map((name) => {
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
    this.leased = 1;
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
    this.lease(member);
  }

  // The right to serve: what is left of it, and for how long the others have not heard the member.
  lease(member) {
    const { fill, text, meter, element } = this.gauges[3];
    const left = member.dropped ? 0 : Number(member.lease ?? 0);
    const silent = Number(member.silent ?? 0);
    element.hidden = !member.dropped && member.lease === null && silent < 2;
    this.leased = Math.max(this.leased, left);
    fill.style.transform = `scaleX(${left / this.leased})`;
    setClass(meter, `meter ${left === 0 ? "bad" : silent > 2 ? "warn" : "good"}`);
    setText(text, `${left ? `${left} s left` : "none"}${silent > 2 ? `, silent for ${silent} s` : ""}`);
  }

  gauge(place, held, limit) {
    const share = Number(limit) ? Math.min(1, Number(held ?? 0) / Number(limit)) : 0;
    const { fill, text, meter } = this.gauges[place];
    fill.style.transform = `scaleX(${share})`;
    setClass(meter, `meter ${share > 0.95 ? "bad" : share > 0.8 ? "warn" : ""}`.trim());
    setText(text, `${bytes(held)} of ${bytes(limit)}`);
  }
}
