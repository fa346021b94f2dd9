// The frame: login, navigation, theme, and the view that the address names.

import { h, setText, state } from "./dom.js";
import { Herd } from "./members.js";
import { ask, Refusal, Store } from "./store.js";
import { ClusterView } from "./cluster.js";
import { CutsView } from "./cuts.js";
import { EditorView } from "./editor.js";
import { icon } from "./icons.js";
import { PartitionsView } from "./partitions.js";
import { MapsView } from "./maps.js";
import { SettingsView } from "./settings.js";
import { StatementsView } from "./statements.js";
import { StreamsView } from "./streams.js";
import { TransactionsView } from "./transactions.js";

const VIEWS = [
  ["cluster", "Cluster", ClusterView],
  ["partitions", "Partitions", PartitionsView],
  ["maps", "Maps", MapsView],
  ["statements", "Statements", StatementsView],
  ["transactions", "Transactions", TransactionsView],
  ["sql", "SQL", EditorView],
  ["streams", "Streams", StreamsView],
  ["snapshots", "Snapshots", CutsView],
  ["settings", "Settings", SettingsView],
];
const root = document.getElementById("app");
const store = new Store(() => start());
const herd = new Herd(store);
let session = null;
let frame = null;

function theme(name) {
  const wanted = name ?? localStorage.getItem("remuda-theme") ??
    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  document.documentElement.dataset.theme = wanted;
  if (name) localStorage.setItem("remuda-theme", name);
}

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const found = VIEWS.find(([known]) => known === name) ?? VIEWS[0];
  return { name: found[0], title: found[1], View: found[2], rest };
}

class Frame {
  constructor() {
    this.links = new Map(VIEWS.map(([name, title]) => {
      const number = h("span", { class: "count" });
      return [name, { link: h("a", { href: `#/${name}` }, icon(name), h("span", { class: "grow" }, title), number), number }];
    }));
    this.health = h("div");
    this.main = h("main", { class: "main", id: "main", tabindex: "-1" });
    this.banner = h("div", { class: "banner", role: "alert", hidden: true });
    this.view = null;
    this.place = "";
    const user = session.user ?? "";
    this.element = h("div", { class: "frame" },
      h("nav", { class: "side", "aria-label": "Views" },
        h("a", { class: "brand", href: "#/cluster" }, h("img", { src: "/console/mark.svg", alt: "" }), "Remuda"),
        h("ul", { class: "pages" }, [...this.links.values()].map(({ link }) => h("li", {}, link))),
        h("div", { class: "foot" }, this.health,
          h("div", { class: "row user" }, h("span", { class: "grow" }, user),
            session.login ? h("button", { class: "quiet", type: "button", onclick: logout }, "Log out") : null),
          h("button", { class: "quiet", type: "button", title: "Light or dark", onclick: () =>
            theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark") }, "Theme"))),
      this.main);
  }

  show() {
    const { name, title, View, rest } = route();
    const place = [name, ...rest].join("/");
    if (place !== this.place) {
      this.view?.close?.();
      this.view = new View({ store, herd, rest, session });
      this.place = place;
      this.main.replaceChildren(this.banner, this.view.element);
      document.title = `${title} – Remuda`;
      for (const [known, { link }] of this.links) {
        if (known === name) {
          link.setAttribute("aria-current", "page");
          link.scrollIntoView({ block: "nearest", inline: "center" });
        } else link.removeAttribute("aria-current");
      }
    }
    store.follow(this.view.topics, () => this.render());
  }

  render() {
    const health = herd.health();
    const kind = `${health.kind} ${health.text}`;
    if (this.health.dataset.kind !== kind) {
      this.health.dataset.kind = kind;
      this.health.replaceChildren(state(health.kind, health.text));
    }
    const members = herd.current().length;
    setText(this.links.get("cluster").number, members ? `${members}` : "");
    this.problem();
    this.view.render();
  }

  problem() {
    const found = [...store.problems.values()][0];
    const text = !store.connected ? "The gateway does not answer. Trying again."
      : found ? `${found.message}` : "";
    this.banner.hidden = text === "";
    if (this.banner.dataset.text !== text) {
      this.banner.dataset.text = text;
      this.banner.replaceChildren(text, found?.hint ? h("div", { class: "hint" }, found.hint) : "");
    }
  }
}

async function logout() {
  store.close();
  await ask("/console/logout", {}).catch(() => {});
  start();
}

function login(message) {
  frame = null;
  const user = h("input", { name: "user", autocomplete: "username", required: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password" });
  const wrong = h("p", { class: "bad-text", role: "alert" }, message ?? "");
  const form = h("form", { class: "login panel", onsubmit: async (event) => {
    event.preventDefault();
    try {
      const found = await ask("/console/login", { user: user.value, password: password.value });
      if (found.error) throw new Refusal(found.error, 0);
      begin({ ...found, login: true });
    } catch (error) {
      setText(wrong, error.message);
      password.value = "";
      password.focus();
    }
  } },
  h("h1", {}, "Remuda"), h("p", { class: "soft" }, "Log in as a user of the cluster."),
  h("label", {}, "User", user), h("label", {}, "Password", password), wrong,
  h("button", { class: "primary" }, "Log in"));
  root.replaceChildren(h("main", { id: "main" }, form));
  user.focus();
}

function begin(found) {
  session = found;
  herd.forget();
  frame = new Frame();
  root.replaceChildren(frame.element);
  frame.show();
}

let starting = false;

async function start() {
  if (starting) return;
  starting = true;
  try {
    const found = await ask("/console/session");
    if (found.error?.login) login();
    else begin({ ...found, login: (found.logged_in ?? false) });
  } catch {
    frame?.render();
    setTimeout(start, 2000);
  } finally {
    starting = false;
  }
}

theme();
addEventListener("hashchange", () => {
  frame?.show();
  document.getElementById("main")?.focus({ preventScroll: true });
});
start();
