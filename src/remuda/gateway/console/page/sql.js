// SQL as the editor sees it: tokens for colours, statements at semicolons, words to complete.

const KEYWORDS = `SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN INNER LEFT RIGHT FULL OUTER CROSS LATERAL ON USING AS
AND OR NOT IN IS NULL TRUE FALSE LIKE ILIKE BETWEEN CASE WHEN THEN ELSE END DISTINCT UNION ALL INTERSECT EXCEPT EXISTS CAST ASC DESC
NULLS FIRST LAST WITH RECURSIVE VALUES INSERT INTO UPDATE SET DELETE MERGE RETURNING CREATE TABLE VIEW INDEX DROP ALTER ADD COLUMN IF
PRIMARY KEY UNIQUE DEFAULT REFERENCES CHECK EXPLAIN ANALYZE VERBOSE SHOW DATE TIME TIMESTAMP INTERVAL BIGINT INTEGER SMALLINT DOUBLE
PRECISION REAL DECIMAL NUMERIC VARCHAR TEXT BOOLEAN JSON UUID ARRAY OVER PARTITION ROWS RANGE FILTER WITHIN SNAPSHOT RESTORE TRUNCATE
CONFLICT DO NOTHING COMMENT GRANT REVOKE`.split(/\s+/);
const KNOWN = new Set(KEYWORDS);
const TOKEN = /(--[^\n]*)|(\/\*)|(\$([A-Za-z_]*)\$)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|([A-Za-z_][\w$]*)|(;)|(\s+)|([^])/gy;

// [kind, start, end]: c comments, s strings, n numbers, k keywords, w other words, e the end of a statement.
export function tokens(text) {
  const found = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match !== null; match = TOKEN.exec(text)) {
    const start = match.index;
    let end = TOKEN.lastIndex, kind = "";
    if (match[1]) kind = "c";
    else if (match[2]) {
      kind = "c";
      let depth = 1;
      while (end < text.length && depth) {
        const pair = text.slice(end, end + 2);
        depth += pair === "/*" ? 1 : pair === "*/" ? -1 : 0;
        end += pair === "/*" || pair === "*/" ? 2 : 1;
      }
    } else if (match[3]) {
      kind = "s";
      const close = text.indexOf(match[3], end);
      end = close < 0 ? text.length : close + match[3].length;
    } else if (match[5]) kind = "s";
    else if (match[6]) kind = "w";
    else if (match[7]) kind = "n";
    else if (match[8]) kind = KNOWN.has(match[8].toUpperCase()) ? "k" : "w";
    else if (match[9]) kind = "e";
    found.push([kind, start, end]);
    TOKEN.lastIndex = end;
  }
  return found;
}

// The statement around a place, as {text, start}.
export function statementAt(text, place) {
  let start = 0;
  const parts = [];
  for (const [kind, , end] of tokens(text)) {
    if (kind === "e") {
      parts.push([start, end - 1]);
      start = end;
    }
  }
  parts.push([start, text.length]);
  const filled = parts.filter(([from, to]) => text.slice(from, to).trim());
  const found = filled.find(([, to]) => place <= to + 1) ?? filled.at(-1);
  if (!found) return { text: "", start: 0 };
  const raw = text.slice(...found);
  const blank = raw.length - raw.trimStart().length;
  return { text: raw.trim(), start: found[0] + blank };
}

// Completions for the text before the caret: {word, items: [[text, kind]]}.
export function complete(before, words) {
  const word = /[\w$]*$/.exec(before)[0];
  const rest = before.slice(0, before.length - word.length);
  const relations = words.relations;
  const named = new Map();
  const NAMES = /\b(?:from|join|into|update|table|,)\s+([\w$.]+)(?:\s+(?:as\s+)?([\w$]+))?/gi;
  for (const [, name, alias] of before.concat(" ", words.after ?? "").matchAll(NAMES)) {
    const columns = relations[name.toLowerCase()];
    if (!columns) continue;
    named.set(name.toLowerCase().split(".").at(-1), columns);
    if (alias && !KNOWN.has(alias.toUpperCase())) named.set(alias.toLowerCase(), columns);
  }
  const fit = (items) => {
    const low = word.toLowerCase();
    const seen = new Set();
    return items.filter(([text]) => text.toLowerCase().startsWith(low) && text.toLowerCase() !== low && !seen.has(text) && seen.add(text));
  };
  const qualifier = /([\w$]+)\.$/.exec(rest);
  if (qualifier) {
    const columns = named.get(qualifier[1].toLowerCase());
    if (columns) return { word, items: fit(columns) };
    const prefix = `${qualifier[1].toLowerCase()}.`;
    return { word, items: fit(Object.keys(relations).filter((name) => name.startsWith(prefix)).map((name) => [name.slice(prefix.length), "map"])) };
  }
  const maps = Object.keys(relations).map((name) => [name, "map"]);
  if (/\b(?:from|join|into|update|table|describe)\s+$/i.test(rest)) return { word, items: fit(maps) };
  if (!word) return { word, items: [] };
  const capital = word !== word.toLowerCase();
  return { word, items: [
    ...fit([...named.values()].flat()), ...fit(maps), ...fit(words.functions.map((name) => [name, "function"])),
    ...fit(KEYWORDS.map((name) => [capital ? name : name.toLowerCase(), "keyword"])),
  ] };
}
