"""Words that the shell offers to complete: keywords, maps, columns, functions, conditions of joins,
commands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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

_WORD = re.compile(r"[\w$]*$")
_COMMAND = re.compile(r"\\[\w?!+]*$")
_ARGUMENT = re.compile(r"\s*(\\?[\w]+)\s+(\S*)", re.DOTALL)
_VARIABLE = re.compile(r"(?<![:\w\"')\]]):[\"']?(\w*)$")
_JOINED = re.compile(
    r"\bjoin\s+([\w$]+)(?:\s+(?:as\s+)?(?!on\b|using\b)([\w$]+))?\s+(on\s+|using\s*\(\s*)([\w$.]*)$",
    re.IGNORECASE,
)
_AFTER_MAP_WORD = re.compile(
    r"\b(?:from|join|into|table|map|describe|columns\s+from)\s+[\w$]*$|\\d[a-zA-Z]*\+?\s+[\w$]*$|,\s*[\w$]*$",
    re.IGNORECASE,
)
_QUALIFIED = re.compile(r"([\w$]+)\.([\w$]*)$")
_SYSTEM = re.compile(r"\bsys\.([a-z_]+)")
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


@dataclass(frozen=True, slots=True)
class Known:
    """Names to complete from. ``words``: of the arguments of commands and statements, by the text
    in front of them, such as ``\\pset`` or ``SET``."""

    schemas: Sequence[MapSchema] = ()
    functions: Sequence[str] = ()
    commands: Sequence[str] = ()
    variables: Sequence[str] = ()
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)
    system: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Columns of the relations ``sys.NAME``, by NAME."""


def complete(before: str, known: Known) -> list[Completion]:
    """Completions for the text before the cursor: the likeliest kind first."""
    schemas = known.schemas
    command = _COMMAND.search(before)
    if command is not None and before.strip() == command.group():
        return _matching(command.group(), known.commands, "command")
    argument = _ARGUMENT.fullmatch(before)
    if argument is not None and (start := argument.group(1)).lower() in known.words:
        kind = start.lower().lstrip("\\")
        return _matching(argument.group(2), known.words[start.lower()], kind)
    variable = _VARIABLE.search(before)
    if variable is not None:
        return _matching(variable.group(1), known.variables, "variable")
    joined = _JOINED.search(before)
    if joined is not None and (conditions := _conditions(joined, before, schemas)):
        return conditions
    qualified = _QUALIFIED.search(before)
    if qualified is not None:
        if qualified.group(1).lower() == "sys":
            return _matching(qualified.group(2), known.system, "relation")
        schema = _aliases(before, schemas).get(qualified.group(1).lower())
        columns = [] if schema is None else [column.name for column in schema.columns]
        return _matching(qualified.group(2), columns, "column")
    found = _WORD.search(before)
    word = found.group() if found else ""
    maps = _matching(word, [schema.name for schema in schemas], "map")
    if _AFTER_MAP_WORD.search(before):
        return [*maps, *_matching(word, [f"sys.{name}" for name in known.system], "relation")]
    if not word:
        return []
    mentioned = {id(s): s for s in _aliases(before, schemas).values()}.values()
    of_system = [name for found in _SYSTEM.findall(before) for name in known.system.get(found, ())]
    shown = mentioned if mentioned or of_system else schemas
    columns = [column.name for schema in shown for column in schema.columns]
    names = dict.fromkeys([*columns, *of_system])
    keywords = [name.lower() if word.islower() else name for name in KEYWORDS]
    return [
        *_matching(word, names, "column"),
        *maps,
        *_matching(word, keywords, "keyword"),
        *_matching(word, [f for f in known.functions if f.upper() not in KEYWORDS], "function"),
    ]


def _conditions(
    joined: re.Match[str], before: str, schemas: Sequence[MapSchema]
) -> list[Completion]:
    """Conditions of the join that is being entered: columns of one name, and a column ``m_id`` with
    the key ``id`` of a map ``m`` or ``ms``."""
    name, alias, how, word = joined.groups()
    by_name = {schema.name.lower(): schema for schema in schemas}
    right = by_name.get(name.lower())
    if right is None:
        return []
    label = alias or name
    seen = _aliases(before[: joined.start()], schemas)
    left = {id(schema): (found, schema) for found, schema in seen.items()}
    equal: dict[str, None] = {}
    for found, schema in left.values():
        for a, b in _pairs(schema, right):
            if how.lower().startswith("on"):
                equal[f"{found}.{a} = {label}.{b}"] = None
            elif a == b:
                equal[a] = None
    return [
        Completion(text, len(word), "join")
        for text in equal
        if text.lower().startswith(word.lower())
    ]


def _pairs(left: MapSchema, right: MapSchema) -> Iterator[tuple[str, str]]:
    ours, theirs = ([column.name for column in schema.columns] for schema in (left, right))
    yield from ((column, column) for column in ours if column in theirs)
    for column in ours:
        yield from ((column, key) for key in right.key if _leads_to(column, right.name, key))
    for column in theirs:
        yield from ((key, column) for key in left.key if _leads_to(column, left.name, key))


def _leads_to(column: str, name: str, key: str) -> bool:
    one = name.removesuffix("ies") + "y" if name.endswith("ies") else name.removesuffix("s")
    return column.lower() in (f"{name}_{key}".lower(), f"{one}_{key}".lower())


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
