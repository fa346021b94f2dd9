// The SQL editor: colours, completion, a result as table, chart or plan, cancelled by a click.

import { chartOf } from "./chart.js";
import { h, setText } from "./dom.js";
import { plural, seconds } from "./format.js";
import { PlanTree } from "./plan.js";
import { complete, statementAt, tokens } from "./sql.js";
import { ask, post, Refusal } from "./store.js";

const KEPT = "remuda-editor";
const SHOWN = 12;

export class EditorView {
  topics = [];

  constructor() {
    this.words = { relations: {}, functions: [] };
    this.colours = h("pre", { "aria-hidden": "true" });
    this.text = h("textarea", { "aria-label": "SQL", spellcheck: "false", autocapitalize: "off", autocomplete: "off",
      "aria-autocomplete": "list", "aria-controls": "choices", placeholder: "SELECT …" });
    this.text.value = localStorage.getItem(KEPT) ?? "SELECT name, rows, bytes FROM sys.maps ORDER BY bytes DESC";
    this.choices = h("ul", { class: "choices", id: "choices", role: "listbox", "aria-label": "Completions", hidden: true });
    this.run = h("button", { class: "primary", type: "button", title: "Ctrl+Enter", onclick: () => this.execute("") }, "Run");
    this.explain = h("button", { type: "button", onclick: () => this.execute("EXPLAIN (FORMAT JSON) ") }, "Explain");
    this.analyze = h("button", { type: "button", title: "Runs the statement", onclick: () => this.execute("EXPLAIN (ANALYZE, FORMAT JSON) ") }, "Explain analyze");
    this.cancel = h("button", { class: "danger", type: "button", hidden: true, onclick: () => this.stop.abort() }, "Cancel");
    this.told = h("p", { class: "soft", role: "status" }, "Ctrl+Enter runs the statement at the caret, Ctrl+Space completes.");
    this.error = h("div", { class: "banner", role: "alert", hidden: true });
    this.tabs = ["Table", "Chart", "Plan"].map((name) => h("button", { type: "button", role: "tab", "aria-selected": "false", hidden: true,
      onclick: () => this.choose(name) }, name));
    this.result = h("div", { class: "scroll results", tabindex: "0", role: "region", "aria-label": "Result" });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "SQL")),
      h("section", { class: "panel" }, h("div", { class: "editor" }, this.colours, this.text, this.choices),
        h("div", { class: "body row" }, this.run, this.explain, this.analyze, this.cancel, this.told)),
      this.error,
      h("section", { class: "panel" }, h("header", {}, h("div", { class: "tabs", role: "tablist", "aria-label": "Forms of the result" }, this.tabs)), this.result));
    this.element.lastChild.hidden = true;
    this.text.addEventListener("input", () => { this.wrong = null; this.paint(); this.offer(); });
    this.text.addEventListener("keydown", (event) => this.key(event));
    this.text.addEventListener("scroll", () => { this.colours.scrollTop = this.text.scrollTop; });
    this.text.addEventListener("blur", () => { this.choices.hidden = true; });
    this.wrong = null;
    this.stop = null;
    this.items = [];
    this.paint();
    ask("/console/words").then((words) => { this.words = words; }).catch(() => {});
  }

  render() {}

  close() {
    this.stop?.abort();
  }

  paint() {
    const { value } = this.text;
    localStorage.setItem(KEPT, value);
    const wrong = this.wrong;
    this.colours.replaceChildren(...tokens(value).map(([kind, start, end]) => {
      const bad = wrong && start < wrong[1] && end > wrong[0];
      const name = `${"ksnc".includes(kind) ? kind : ""}${bad ? " wrong" : ""}`.trim();
      return name ? h("span", { class: name }, value.slice(start, end)) : value.slice(start, end);
    }), "\n");
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(420, Math.max(144, this.text.scrollHeight))}px`;
  }

  // --- completion ---

  offer() {
    const place = this.text.selectionStart;
    const found = complete(this.text.value.slice(0, place), { ...this.words, after: this.text.value.slice(place) });
    this.items = found.items.slice(0, SHOWN);
    this.word = found.word;
    this.picked = 0;
    this.choices.hidden = this.items.length === 0;
    this.list();
    if (this.choices.hidden) return;
    const before = this.text.value.slice(0, place - found.word.length);
    const line = before.split("\n").length - 1, column = before.length - before.lastIndexOf("\n") - 1;
    this.choices.style.left = `${Math.min(14 + column * 7.83, this.text.clientWidth - 240)}px`;
    this.choices.style.top = `${12 + (line + 1) * 20 - this.text.scrollTop + 2}px`;
  }

  list() {
    this.choices.replaceChildren(...this.items.map(([text, kind], place) => h("li", { role: "option", id: `choice-${place}`,
      "aria-selected": place === this.picked ? "true" : "false",
      onmousedown: (event) => { event.preventDefault(); this.picked = place; this.take(); } }, text, h("span", {}, kind))));
    if (this.choices.hidden) this.text.removeAttribute("aria-activedescendant");
    else this.text.setAttribute("aria-activedescendant", `choice-${this.picked}`);
    this.choices.children[this.picked]?.scrollIntoView({ block: "nearest" });
  }

  take() {
    const place = this.text.selectionStart;
    this.text.setRangeText(this.items[this.picked][0], place - this.word.length, place, "end");
    this.choices.hidden = true;
    this.paint();
  }

  key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
      event.preventDefault();
      this.choices.hidden = true;
      this.execute("");
    } else if (event.ctrlKey && event.key === " ") {
      event.preventDefault();
      this.offer();
    } else if (!this.choices.hidden) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) {
        event.preventDefault();
        this.picked = (this.picked + step + this.items.length) % this.items.length;
        this.list();
      } else if (event.key === "Enter" || event.key === "Tab") {
        event.preventDefault();
        this.take();
      } else if (event.key === "Escape") {
        event.preventDefault();
        this.choices.hidden = true;
      }
    }
  }

  // --- running ---

  async execute(prefix) {
    if (this.stop) return;
    const { selectionStart: from, selectionEnd: to, value } = this.text;
    const found = from < to ? { text: value.slice(from, to), start: from } : statementAt(value, from);
    if (!found.text.trim()) return;
    this.stop = new AbortController();
    this.busy(true);
    this.error.hidden = true;
    this.wrong = null;
    const began = performance.now();
    const clock = setInterval(() => setText(this.told, `Running for ${seconds((performance.now() - began) / 1000)}`), 200);
    this.columns = [];
    this.rows = [];
    try {
      const end = await this.read(prefix + found.text, prefix !== "");
      if (end.error) throw new Refusal(end.error, 200);
      const about = end.more ? `the first ${plural(end.rows, "row")}` : end.rows >= 0 ? plural(end.rows, "row") : "";
      setText(this.told, [prefix ? "EXPLAIN" : end.tag, about, seconds(end.seconds)].filter(Boolean).join(", "));
      this.show(prefix !== "");
    } catch (error) {
      if (error.name === "AbortError") setText(this.told, "Cancelled.");
      else this.fail(error, found.start - prefix.length, prefix.length);
    } finally {
      clearInterval(clock);
      this.stop = null;
      this.busy(false);
      this.paint();
    }
  }

  busy(now) {
    this.cancel.hidden = !now;
    for (const button of [this.run, this.explain, this.analyze]) button.disabled = now;
  }

  async read(text, whole) {
    const response = await post("/console/statements", { text, whole }, this.stop.signal);
    if (!response.ok) throw new Refusal((await response.json()).error, response.status);
    const decoder = new TextDecoder();
    let rest = "", end = null;
    const take = (line) => {
      if (!line) return;
      const found = JSON.parse(line);
      if (found.columns) this.columns = found.columns;
      if (found.rows) for (const row of found.rows) this.rows.push(row);
      if (found.end) ({ end } = found);
    };
    const reader = response.body.getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + decoder.decode(part.value, { stream: true })).split("\n");
      rest = lines.pop();
      lines.forEach(take);
    }
    take(rest);
    if (!end) throw new Refusal({ message: "the answer broke off", hint: "Does the gateway still run?" }, 0);
    return end;
  }

  fail(error, start, shift) {
    const found = error.found ?? { message: error.message };
    setText(this.told, "");
    this.error.hidden = false;
    this.error.replaceChildren(h("b", {}, found.sqlstate ? `${found.sqlstate}: ` : ""), found.message,
      ...[found.detail, found.hint].filter(Boolean).map((line) => h("div", { class: "hint" }, line)));
    if (found.offset !== undefined && found.offset >= shift) {
      this.wrong = [start + found.offset, start + found.offset + Math.max(1, found.length ?? 1)];
    }
  }

  show(explained) {
    const plan = explained ? planOf(this.rows) : null;
    this.plan = plan;
    const numbers = this.columns.some((column) => column.number) && this.rows.length > 0;
    [!plan && this.columns.length > 0, !plan && numbers, Boolean(plan)].forEach((there, place) => { this.tabs[place].hidden = !there; });
    this.element.lastChild.hidden = this.columns.length === 0;
    this.choose(plan ? "Plan" : this.form === "Chart" && numbers ? "Chart" : "Table");
  }

  choose(form) {
    if (form !== "Plan") this.form = form;
    for (const tab of this.tabs) tab.setAttribute("aria-selected", tab.textContent === form ? "true" : "false");
    if (form === "Plan") {
      const tree = new PlanTree(this.plan);
      this.result.replaceChildren(h("div", { class: "panel-body" }, tree.element));
    } else if (form === "Chart") this.result.replaceChildren(chartOf(this.columns, this.rows));
    else this.result.replaceChildren(tableOf(this.columns, this.rows));
  }
}

function planOf(rows) {
  try {
    const [found] = JSON.parse(rows.map((row) => row[0]).join("\n"));
    return found.Fragments ?? null;
  } catch {
    return null;
  }
}

function tableOf(columns, rows) {
  return h("table", {}, h("caption", { class: "hidden" }, "Result"),
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column.number ? "number" : "", title: column.type },
      h("span", {}, column.name))))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((value, place) => (value === null
      ? h("td", { class: `null${columns[place].number ? " number" : ""}` }, "NULL")
      : h("td", { class: columns[place].number ? "number" : "", title: value.length > 60 ? value : undefined }, value)))))));
}
