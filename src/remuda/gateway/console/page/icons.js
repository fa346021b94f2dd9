// One line drawing for each page, on a field of 16 by 16.

import { svg } from "./dom.js";

const LINES = {
  cluster: "M8 3.2a1.7 1.7 0 1 0 0-.01M3.5 12.8a1.7 1.7 0 1 0 0-.01M12.5 12.8a1.7 1.7 0 1 0 0-.01M7 5.9 4.4 10M9 5.9l2.6 4.1M5.3 11.5h5.4",
  partitions: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
  maps: "M2.5 3h11v10h-11zM2.5 6.3h11M2.5 9.7h11M6.5 3v10",
  statements: "M2 8h2.5l2-5 3 10 2-5H14",
  transactions: "M3 5.5h9.5M10 3l2.5 2.5L10 8M13 10.5H3.5M6 8l-2.5 2.5L6 13",
  sql: "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10.2H11",
  streams: "M2 5.2c2-2 4-2 6 0s4 2 6 0M2 10.6c2-2 4-2 6 0s4 2 6 0",
  snapshots: "M8 2.5a5.5 5.5 0 1 0 .01 0M8 5v3.2l2.2 1.4",
  spark: "M9 1.8 3.8 9H8l-1 5.2L12.2 7H8z",
  settings: "M2.5 4.5h5M11 4.5h2.5M9.3 2.8v3.4M2.5 11.5H5M8.5 11.5h5M6.7 9.8v3.4",
};

export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: LINES[name] }));
}
