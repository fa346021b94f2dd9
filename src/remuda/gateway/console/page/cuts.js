// Snapshots and their cuts on a time line: moments that a restore can reach, and the gaps between.

import { h, setText, state, svg, Table } from "./dom.js";
import { bytes, clock, count, moment, plural } from "./format.js";

const WIDTH = 1000, LANE = 44, LEFT = 130, RIGHT = 20, BOTTOM = 24;

export class CutsView {
  topics = ["snapshots", "restorable", "snapshot_tasks", "logs"];

  constructor({ store }) {
    this.store = store;
    this.summary = h("p", { class: "lede" });
    this.picture = h("div", { class: "body picture", tabindex: "0", role: "region", "aria-label": "Time line" });
    this.drawn = "";
    this.tasks = new Table([
      { title: "Work", cell: (row) => state("busy", row.kind), same: (row) => row.kind },
      { title: "Snapshot", cell: (row) => row.snapshot },
      { title: "Cut", number: true, cell: (row) => count(row.cut) },
      { title: "Objects", number: true, cell: (row) => `${count(row.objects)} of ${count(row.objects_total)}` },
      { title: "Rows", number: true, cell: (row) => count(row.rows) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Attempt", number: true, cell: (row) => count(row.attempt) },
      { title: "Member", number: true, cell: (row) => count(row.member) },
    ], { caption: "Snapshots being made or restored", empty: "No snapshot is being made or restored." });
    this.table = new Table([
      { title: "Snapshot", cell: (row) => row.snapshot, sort: (row) => row.snapshot },
      { title: "Cut", number: true, cell: (row) => count(row.cut), sort: (row) => Number(row.cut) },
      { title: "Kind", cell: (row) => row.kind },
      { title: "Created", number: true, cell: (row) => moment(row.created), sort: (row) => row.created },
      { title: "Maps", number: true, cell: (row) => count(row.maps) },
      { title: "Rows", number: true, cell: (row) => count(row.rows), sort: (row) => Number(row.rows) },
      { title: "Removed", number: true, cell: (row) => count(row.removed) },
      { title: "Bytes", number: true, cell: (row) => bytes(row.bytes), sort: (row) => Number(row.bytes) },
      { title: "Problem", class: "text", cell: (row) => row.problem ?? "" },
    ], { caption: "Cuts", sort: 3, descending: true, mark: (row) => (row.problem ? "bad" : ""), empty: "The store has no snapshots." });
    this.logs = new Table([
      { title: "Member", number: true, cell: (row) => count(row.member), sort: (row) => row.member },
      { title: "Sync", cell: (row) => row.sync ?? "" },
      { title: "Records", number: true, cell: (row) => count(row.records) },
      { title: "Durable", number: true, cell: (row) => count(row.durable) },
      { title: "Checkpoint", number: true, cell: (row) => count(row.checkpoint) },
      { title: "Archived", number: true, cell: (row) => count(row.archived) },
      { title: "Written", number: true, cell: (row) => bytes(row.bytes) },
      { title: "Archive failures", number: true, cell: (row) => count(row.archive_failures) },
    ], { caption: "Write-ahead logs", sort: 0, empty: "The members keep no logs (setting data_dir)." });
    this.element = h("div", { class: "stack" },
      h("div", { class: "head" }, h("h1", {}, "Snapshots"), this.summary),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Moments that can be restored")), this.picture),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Work")), this.tasks.element),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Cuts")), this.table.element),
      h("section", { class: "panel" }, h("header", {}, h("h2", {}, "Logs")), this.logs.element));
  }

  render() {
    const cuts = this.store.rows("snapshots"), spans = this.store.rows("restorable");
    this.tasks.update(this.store.rows("snapshot_tasks"));
    this.table.update(cuts);
    this.logs.update(this.store.rows("logs"));
    if (this.store.has("snapshots")) setText(this.summary, `${plural(cuts.length, "cut")}, ${bytes(cuts.reduce((sum, cut) => sum + Number(cut.bytes ?? 0), 0))}`);
    const drawn = JSON.stringify([cuts.map((cut) => cut.id), spans.map((span) => [span.id, span.last])]);
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    this.picture.replaceChildren(timeline(cuts, spans));
  }
}

function timeline(cuts, spans) {
  const names = [...new Set([...cuts, ...spans].map((row) => row.snapshot))].sort();
  if (!names.length) return h("p", { class: "soft" }, "No snapshot has been made yet: CREATE SNAPSHOT, or the setting snapshot_every.");
  const times = [...cuts.map((cut) => cut.created), ...spans.flatMap((span) => [span.first, span.last])].filter((time) => time !== null);
  const low = Math.min(...times), high = Math.max(...times, low + 1000);
  const x = (time) => LEFT + ((time - low) / (high - low)) * (WIDTH - LEFT - RIGHT);
  const height = names.length * LANE + BOTTOM;
  const lanes = names.map((name, place) => {
    const y = place * LANE + 8;
    const own = spans.filter((span) => span.snapshot === name).sort((a, b) => a.first - b.first);
    return svg("g", {}, svg("text", { class: "name", x: 0, y: y + 18 }, name.slice(0, 18)),
      own.slice(1).map((span, index) => svg("rect", { class: "gap", x: x(own[index].last), y: y + 4, height: 20,
        width: Math.max(0, x(span.first) - x(own[index].last)) }, svg("title", {}, `gap: ${moment(own[index].last)} to ${moment(span.first)}`))),
      own.map((span) => svg("rect", { class: "span", x: x(span.first), y: y + 4, height: 20, rx: 3, width: Math.max(3, x(span.last) - x(span.first)) },
        svg("title", {}, `${name}: any moment from ${moment(span.first)} to ${moment(span.last)}`))),
      cuts.filter((cut) => cut.snapshot === name && cut.created !== null).map((cut) => svg("circle", {
        class: `cut ${cut.problem ? "problem" : /increment/i.test(cut.kind ?? "") ? "" : "full"}`, cx: x(cut.created), cy: y + 14, r: /increment/i.test(cut.kind ?? "") ? 4 : 6 },
      svg("title", {}, `${name}, cut ${cut.cut}, ${cut.kind}: ${moment(cut.created)}, ${count(cut.rows)} rows${cut.problem ? `, ${cut.problem}` : ""}`))));
  });
  const day = new Date(low).toDateString() === new Date(high).toDateString();
  const shares = high - low < 4000 ? [0, 1] : [0, 0.25, 0.5, 0.75, 1];
  const ticks = shares.map((share) => {
    const time = low + share * (high - low);
    return svg("text", { x: x(time), y: height - 6, "text-anchor": share === 1 ? "end" : share ? "middle" : "start" },
      day && share ? clock(time) : moment(time));
  });
  return svg("svg", { class: "cuts", viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `Cuts of ${names.join(", ")} from ${moment(low)} to ${moment(high)}` },
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: height - BOTTOM, y2: height - BOTTOM }), lanes, ticks);
}
