// What the members say, kept up to date by one stream of server-sent events: whole tables at first,
// then what has changed. A view names its topics; "members" is always among them.

export class Refusal extends Error {
  constructor(found, status) {
    super(found.message);
    this.found = found;
    this.status = status;
  }
}

let token = "";

export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Remuda-Token": token },
    body: JSON.stringify(body),
  };
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Refusal({ message: "the gateway does not answer", hint: "Is it still running?" }, 0);
  }
  const found = await response.json();
  if (!response.ok) throw new Refusal(found.error ?? { message: response.statusText }, response.status);
  if (found.token) token = found.token;
  return found;
}

export function post(path, body, signal) {
  return fetch(path, {
    method: "POST", signal, body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", "X-Remuda-Token": token },
  });
}

export class Store {
  constructor(onLogin) {
    this.tables = new Map();
    this.problems = new Map();
    this.connected = true;
    this.onLogin = onLogin;
    this.render = () => {};
    this.always = [];
    this.source = null;
    this.asked = "";
    this.planned = false;
    this.heard = new Map();
    // A browser may keep a page that was left, and its stream: it opens six per host, and no more.
    addEventListener("pagehide", () => this.pause());
    addEventListener("pageshow", (event) => { if (event.persisted) this.resume(); });
  }

  rows(topic) {
    return [...(this.tables.get(topic)?.values() ?? [])];
  }

  has(topic) {
    return this.tables.has(topic);
  }

  // Follow these topics from now on; render() is called after each change, once per frame.
  follow(topics, render) {
    this.render = render;
    const names = [...new Set(["members", ...topics])];
    const asked = names.join(" ");
    if (asked !== this.asked) {
      this.asked = asked;
      this.open(names);
    }
    this.plan();
  }

  open(names) {
    this.source?.close();
    for (const name of [...this.tables.keys()]) if (!names.includes(name)) this.tables.delete(name);
    this.problems.clear();
    const query = names.map((name) => `topic=${encodeURIComponent(name)}`).join("&");
    const source = new EventSource(`/console/events?${query}`);
    this.source = source;
    source.addEventListener("open", () => { this.connected = true; this.plan(); });
    source.addEventListener("error", () => {
      this.connected = false;
      this.plan();
      if (source.readyState === EventSource.CLOSED && this.source === source) {
        this.asked = "";
        this.onLogin();
      }
    });
    source.addEventListener("message", (event) => this.take(JSON.parse(event.data)));
  }

  pause() {
    this.source?.close();
    this.source = null;
  }

  resume() {
    if (this.asked && this.source === null) this.open(this.asked.split(" "));
  }

  close() {
    this.pause();
    this.asked = "";
    this.tables.clear();
  }

  take(event) {
    const { topic } = event;
    if ("problem" in event) {
      if (event.problem === null) this.problems.delete(topic);
      else this.problems.set(topic, event.problem);
      if (event.problem?.login) this.onLogin();
    } else {
      const before = this.tables.get(topic);
      const table = event.whole || !before ? new Map() : before;
      for (const [key, cells] of Object.entries(event.set)) {
        const row = table.get(key) ?? (event.whole ? before?.get(key) : undefined);
        table.set(key, { ...(event.whole ? {} : row), ...cells, id: key });
      }
      for (const key of event.gone ?? []) table.delete(key);
      this.tables.set(topic, table);
      this.heard.set(topic, performance.now());
      for (const hear of this.always) hear(topic, table);
    }
    this.plan();
  }

  plan() {
    if (this.planned) return;
    this.planned = true;
    requestAnimationFrame(() => {
      this.planned = false;
      this.render();
      // For whoever waits for a page that has everything: tests, scripts that take pictures.
      const names = this.asked.split(" ");
      document.documentElement.toggleAttribute("data-complete", names.every((name) => this.has(name) || this.problems.has(name)));
    });
  }
}
