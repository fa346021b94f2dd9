"""Words that the shell offers to complete: keywords, maps, columns, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from remuda.datatypes.schema import MapSchema

KEYWORDS = tuple(
    """
    SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT OFFSET JOIN INNER LEFT RIGHT FULL OUTER
    CROSS ON USING AS AND OR NOT IN IS NULL TRUE FALSE LIKE ILIKE BETWEEN CASE WHEN THEN
    ELSE END DISTINCT UNION ALL EXISTS CAST ASC DESC NULLS FIRST LAST WITH VALUES INSERT
    INTO SINK CREATE TABLE MAP MAPPING DROP IF PRIMARY KEY REPLICATED PARTITION EXPLAIN
    ANALYZE VERBOSE SHOW TABLES MAPS COLUMNS DESCRIBE DATE TIME TIMESTAMP INTERVAL BIGINT
    INTEGER SMALLINT TINYINT DOUBLE PRECISION REAL DECIMAL VARCHAR CHAR BOOLEAN BYTEA COUNT
    SUM AVG MIN MAX COALESCE NULLIF EXTRACT SUBSTRING DATE_TRUNC UPPER LOWER LENGTH TRIM
    ROUND ABS
    """.split()  # noqa: SIM905  (a list of words is read, not its quotes)
)
COMMANDS = ("\\?", "\\d", "\\dt", "\\q", "\\timing", "\\x")

_WORD = re.compile(r"[\w$]*$")
_COMMAND = re.compile(r"\\[\w?]*$")
_AFTER_MAP_WORD = re.compile(
    r"\b(?:from|join|into|table|map|describe|columns\s+from)\s+[\w$]*$|\\d\s+[\w$]*$|,\s*[\w$]*$",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"([\w$]+)\.([\w$]*)$")
_NAMES_A_MAP = re.compile(
    r"\b(?:from|join|into|,)\s+([\w$]+)(?:\s+(?:as\s+)?(?!on\b|where\b|join\b)([\w$]+))?",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that would replace the last ``replaces`` characters before the cursor."""

    text: str
    replaces: int
    kind: str


def complete(before: str, schemas: Sequence[MapSchema]) -> list[Completion]:
    """Completions for the text before the cursor: the likeliest kind first."""
    command = _COMMAND.search(before)
    if command is not None and before.strip() == command.group():
        return _matching(command.group(), COMMANDS, "command")
    qualified = _QUALIFIED.search(before)
    if qualified is not None:
        schema = _aliases(before, schemas).get(qualified.group(1).lower())
        columns = [] if schema is None else [column.name for column in schema.columns]
        return _matching(qualified.group(2), columns, "column")
    found = _WORD.search(before)
    word = found.group() if found else ""
    maps = _matching(word, [schema.name for schema in schemas], "map")
    if _AFTER_MAP_WORD.search(before):
        return maps
    if not word:
        return []
    mentioned = {id(s): s for s in _aliases(before, schemas).values()}.values() or schemas
    names = dict.fromkeys(column.name for schema in mentioned for column in schema.columns)
    keywords = [name.lower() if word.islower() else name for name in KEYWORDS]
    return [
        *_matching(word, names, "column"),
        *maps,
        *_matching(word, keywords, "keyword"),
    ]


def _aliases(text: str, schemas: Sequence[MapSchema]) -> dict[str, MapSchema]:
    """Map names and aliases that the text mentions."""
    by_name = {schema.name.lower(): schema for schema in schemas}
    found = {}
    for match in _NAMES_A_MAP.finditer(text):
        schema = by_name.get(match.group(1).lower())
        if schema is not None:
            found[match.group(1).lower()] = schema
            if match.group(2):
                found[match.group(2).lower()] = schema
    return found


def _matching(word: str, names: Iterable[str], kind: str) -> list[Completion]:
    low = word.lower()
    return [
        Completion(name, len(word), kind)
        for name in sorted(names, key=str.lower)
        if name.lower().startswith(low) and name != word
    ]
