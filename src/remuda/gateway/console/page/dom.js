// Elements without a framework: h() makes them, and nothing ever becomes markup from text.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

export function h(tag, properties, ...children) {
  return fill(document.createElement(tag), properties, children);
}

export function svg(tag, properties, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

// Change a text only when it differs: an unchanged page costs no layout.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setClass(element, text) {
  if (element.getAttribute("class") !== text) element.setAttribute("class", text);
}

export function state(kind, text) {
  return h("span", { class: `state ${kind}` }, text);
}

// A table whose rows stay the same elements while their cells change. columns: {title, number,
// cell(row) -> text or node, sort(row)}; a cell is made anew only when same(row) gives another value.
export class Table {
  constructor(columns, { caption, key, open, mark, empty, sort, descending } = {}) {
    this.columns = columns;
    this.key = key ?? ((row) => row.id);
    this.open = open;
    this.mark = mark ?? (() => "");
    this.sorted = sort ?? null;
    this.descending = descending ?? false;
    this.shown = new Map();
    this.rows = [];
    this.heads = columns.map((column, place) =>
      h("th", { scope: "col", class: column.number ? "number" : "" },
        column.sort
          ? h("button", { type: "button", onclick: () => this.sortBy(place) }, column.title)
          : h("span", {}, column.title || h("span", { class: "hidden" }, "Action"))));
    this.body = h("tbody");
    this.none = h("p", { class: "empty" }, empty ?? "Nothing here.");
    this.element = h("div", { class: "scroll" },
      h("table", {}, h("caption", { class: "hidden" }, caption ?? ""), h("thead", {}, h("tr", {}, this.heads)),
        this.body), this.none);
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "region");
    this.element.setAttribute("aria-label", caption ?? "table");
  }

  sortBy(place) {
    this.descending = this.sorted === place ? !this.descending : Boolean(this.columns[place].number);
    this.sorted = place;
    this.update(this.rows);
  }

  update(rows) {
    this.rows = [...rows];
    if (this.sorted !== null) {
      const by = this.columns[this.sorted].sort;
      const sign = this.descending ? -1 : 1;
      this.rows.sort((a, b) => sign * compare(by(a), by(b)));
    }
    this.heads.forEach((head, place) => {
      if (place === this.sorted) {
        head.setAttribute("aria-sort", this.descending ? "descending" : "ascending");
      } else head.removeAttribute("aria-sort");
    });
    const there = new Set();
    let before = null;
    for (const row of this.rows) {
      const key = this.key(row);
      there.add(key);
      let line = this.shown.get(key);
      if (line === undefined) {
        line = this.line(row);
        this.shown.set(key, line);
      }
      this.fillLine(line, row);
      const next = before === null ? this.body.firstChild : before.nextSibling;
      if (next !== line.element) this.body.insertBefore(line.element, next);
      before = line.element;
    }
    for (const [key, line] of this.shown) {
      if (!there.has(key)) {
        line.element.remove();
        this.shown.delete(key);
      }
    }
    this.none.hidden = this.rows.length > 0;
    this.body.parentElement.hidden = this.rows.length === 0;
  }

  line(row) {
    const cells = this.columns.map((column) =>
      h("td", { class: column.number ? "number" : (column.class ?? "nowrap") }));
    const element = h("tr", {}, cells);
    const line = { element, cells, values: [], row };
    if (this.open) {
      element.addEventListener("click", (event) => {
        if (!event.target.closest("button, a")) this.open(line.row);
      });
      element.tabIndex = 0;
      element.addEventListener("keydown", (event) => {
        if (event.key === "Enter" && event.target === element) this.open(line.row);
      });
    }
    return line;
  }

  fillLine(line, row) {
    line.row = row;
    setClass(line.element, [this.open ? "open" : "", this.mark(row)].join(" ").trim());
    this.columns.forEach((column, place) => {
      const made = column.cell(row);
      const value = column.same ? column.same(row) : made;
      if (typeof made === "string" || typeof made === "number") setText(line.cells[place], `${made}`);
      else if (line.values[place] !== value || !column.same) line.cells[place].replaceChildren(made ?? "");
      line.values[place] = value;
      if (column.class === "text" && typeof made === "string") line.cells[place].title = made;
    });
  }
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : 1;
}
