// A plan as a tree: one box for each operator, live figures in it. Fragments hang below the operators
// that receive their rows, and the edges between members say how many bytes went over them.

import { h, setClass, setText, svg } from "./dom.js";
import { bytes, seconds, short } from "./format.js";

const WIDTH = 216, HEIGHT = 88, ACROSS = 20, DOWN = 24;

// {fragments: [{Fragment, Site, Plan}]} -> the nodes in one tree, with their place in the plan.
export function treeOf(fragments) {
  const byNumber = new Map(fragments.map((fragment) => [Number(fragment.Fragment), fragment]));
  const used = new Set();
  const grow = (fragment) => {
    used.add(Number(fragment.Fragment));
    let index = 0;
    const node = (plan) => {
      const made = { plan, fragment: Number(fragment.Fragment), site: fragment.Site, index, inputs: [] };
      made.key = `${made.fragment}.${index}`;
      index += 1;
      made.inputs = (plan.Plans ?? []).map(node);
      const source = /from fragment (\d+)/.exec(plan.Description ?? "");
      const other = source && byNumber.get(Number(source[1]));
      if (other && !used.has(Number(other.Fragment))) {
        const sender = grow(other);
        sender.exchange = true;
        made.inputs.push(sender);
      }
      return made;
    };
    return node(fragment.Plan);
  };
  return grow(fragments[0]);
}

// The figures that a plan carries itself, after EXPLAIN ANALYZE or from a profile.
export function figuresOf(plan) {
  const found = { rows: 0, seconds: 0, wait: 0, memory: 0, spilled: 0, bytes: 0, waits: 0, members: new Set() };
  for (const part of plan.Members ?? []) {
    found.rows += part.Rows ?? 0;
    found.seconds = Math.max(found.seconds, (part.Time ?? 0) / 1000);
    found.wait = Math.max(found.wait, (part["Wait Time"] ?? 0) / 1000);
    found.memory = Math.max(found.memory, part["Peak Memory"] ?? 0);
    found.spilled += part["Spilled Bytes"] ?? part.Spilled ?? 0;
    found.bytes += part.Bytes ?? 0;
    found.waits += part.Waits ?? 0;
    found.members.add(part.Member);
  }
  return plan.Members ? found : null;
}

// Rows of sys.operators -> figures by the key of the node.
export function figuresOfRows(rows) {
  const found = new Map();
  for (const row of rows) {
    const key = `${row.fragment}.${row.operator}`;
    const sum = found.get(key) ?? { rows: 0, seconds: 0, wait: 0, memory: 0, spilled: 0, bytes: 0, waits: 0, members: new Set() };
    sum.rows += Number(row.rows);
    sum.bytes += Number(row.bytes);
    sum.spilled += Number(row.spilled);
    sum.waits += Number(row.waits);
    sum.seconds = Math.max(sum.seconds, row.seconds);
    sum.wait = Math.max(sum.wait, row.wait);
    sum.memory = Math.max(sum.memory, Number(row.memory));
    sum.members.add(row.member);
    found.set(key, sum);
  }
  return found;
}

export class PlanTree {
  constructor(fragments) {
    this.root = treeOf(fragments);
    this.nodes = [];
    this.edges = [];
    this.lines = svg("svg", { class: "edges", "aria-hidden": "true" });
    this.element = h("div", { class: "plan", role: "tree", "aria-label": "Plan", tabindex: "0" }, this.lines);
    let leaf = 0;
    const place = (node, depth) => {
      node.depth = depth;
      this.nodes.push(node);
      node.inputs.forEach((input) => place(input, depth + 1));
      if (node.inputs.length) node.x = (node.inputs[0].x + node.inputs.at(-1).x) / 2;
      else {
        node.x = leaf;
        leaf += 1;
      }
    };
    place(this.root, 0);
    const width = leaf * (WIDTH + ACROSS) - ACROSS;
    const height = (Math.max(...this.nodes.map((node) => node.depth)) + 1) * (HEIGHT + DOWN) - DOWN;
    this.lines.setAttribute("width", width);
    this.lines.setAttribute("height", height);
    this.element.style.setProperty("--plan-height", `${height}px`);
    for (const node of this.nodes) this.box(node);
    for (const node of this.nodes) for (const input of node.inputs) this.edge(node, input);
    this.update(null, false);
  }

  box(node) {
    const { plan } = node;
    node.left = node.x * (WIDTH + ACROSS);
    node.top = node.depth * (HEIGHT + DOWN);
    node.rows = h("b");
    node.facts = h("span", { class: "soft" });
    node.bar = h("i");
    const estimate = plan["Plan Rows"] === undefined ? "" : `est. ${short(Math.round(plan["Plan Rows"]))}`;
    node.element = h("div", { class: "node", role: "treeitem", "aria-level": node.depth + 1,
      "data-node": node.key, title: `${plan.Description ?? plan["Node Type"]}\nfragment ${node.fragment}, ${node.site}` },
    h("div", { class: "top" }, h("b", {}, plan["Node Type"]), h("span", { class: "chip" }, `fragment ${node.fragment}`)),
    h("div", { class: "what" }, (plan.Description ?? "").replace(plan["Node Type"], "").trim() || plan["Node Type"]),
    h("div", { class: "figures" }, h("span", {}, node.rows, " rows ", h("span", { class: "soft" }, estimate)), node.facts),
    h("div", { class: "meter" }, node.bar));
    node.element.style.left = `${node.left}px`;
    node.element.style.top = `${node.top}px`;
    this.element.append(node.element);
  }

  edge(node, input) {
    const x = node.left + WIDTH / 2, y = node.top + HEIGHT, u = input.left + WIDTH / 2, v = input.top;
    const middle = (y + v) / 2;
    const line = svg("path", { d: `M${u} ${v}C${u} ${middle} ${x} ${middle} ${x} ${y}`,
      class: input.exchange ? "exchange" : "" });
    const label = svg("text", { x: (x + u) / 2 + 6, y: middle + 4 });
    this.lines.append(line, label);
    this.edges.push({ input, line, label });
  }

  // figures: a Map by node key; null takes those of the plan. live: whether the statement runs.
  update(figures, live) {
    const known = this.nodes.map((node) => (figures ? figures.get(node.key) : figuresOf(node.plan)) ?? null);
    const most = Math.max(...known.map((found) => found?.seconds ?? 0), 1e-9);
    this.nodes.forEach((node, place) => {
      const found = known[place];
      node.found = found;
      setText(node.rows, found ? short(found.rows) : "–");
      const facts = !found ? [] : [seconds(found.seconds), found.wait > 0.001 ? `waits ${seconds(found.wait)}` : "",
        found.memory ? bytes(found.memory) : "", found.spilled ? `spilled ${bytes(found.spilled)}` : ""];
      setText(node.facts, facts.filter(Boolean).join(" · "));
      node.bar.style.transform = `scaleX(${found ? found.seconds / most : 0})`;
      const busy = live && found && node.before !== undefined && found.rows !== node.before;
      node.before = found?.rows ?? 0;
      const hot = found && found.seconds > 0.4 * most && found.seconds > 0.01;
      setClass(node.element, `node${hot ? " hot" : ""}${busy ? " busy" : ""}`);
    });
    for (const { input, line, label } of this.edges) {
      const found = input.found;
      const thick = found?.rows ? Math.min(9, 1 + Math.log10(1 + found.rows)) : 1;
      line.style.strokeWidth = `${thick}px`;
      setText(label, input.exchange && found?.bytes ? bytes(found.bytes) : "");
    }
  }
}
