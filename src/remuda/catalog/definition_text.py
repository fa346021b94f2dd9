"""Maps and views as the statements that define them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from remuda.datatypes.identifiers import quoted_name, sql_name
from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.map_options import shown
from remuda.datatypes.schema import (
    PUBLIC,
    Check,
    Column,
    ForeignKey,
    KeyAction,
    MapSchema,
    ViewDefinition,
    local_name,
)


def definition_of(relation: MapSchema | ViewDefinition) -> str:
    """The CREATE statement that makes it again; comments follow as statements of their own."""
    if isinstance(relation, ViewDefinition):
        columns = ", ".join(quoted_name(column.name) for column in relation.columns)
        text = f"CREATE VIEW {sql_name(relation)} ({columns}) AS\n{relation.text}"
        return "\n".join([text + ";", *_comments(relation, "VIEW")])
    lines = [f"    {column_text(column)}" for column in relation.shown]
    if not relation.has_row_ids:
        named = f"CONSTRAINT {quoted_name(relation.key_name)} " if relation.key_name else ""
        lines.append(f"    {named}PRIMARY KEY ({', '.join(map(quoted_name, relation.key))})")
    lines += [
        f"    CONSTRAINT {quoted_name(index.name)} {unique_text(relation, index)}"
        for index in relation.uniques
        if index.constraint
    ]
    lines += [f"    CONSTRAINT {quoted_name(c.name)} CHECK ({c.text})" for c in relation.checks]
    lines += [
        f"    CONSTRAINT {quoted_name(key.name)} {foreign_key_text(key)}"
        for key in relation.foreign_keys
    ]
    text = f"CREATE TABLE {sql_name(relation)} (\n" + ",\n".join(lines) + "\n)"
    options = []
    if relation.replicated:
        options.append("replicated = true")
    if relation.partition_by != relation.key:
        quoted = ", ".join(map(quoted_name, relation.partition_by)).replace("'", "''")
        options.append(f"partition_by = '{quoted}'")
    options += shown(relation.options)
    if options:
        text += f" WITH ({', '.join(options)})"
    return "\n".join([text + ";", *_comments(relation, "TABLE")])


def unique_text(schema: MapSchema, index: IndexDefinition) -> str:
    """A UNIQUE constraint, or a primary key that was added."""
    if index is schema.added_key:
        return f"PRIMARY KEY ({', '.join(map(quoted_name, index.names))})"
    nulls = "" if index.nulls_distinct else " NULLS NOT DISTINCT"
    return f"UNIQUE{nulls} ({', '.join(map(quoted_name, index.names))})"


def foreign_key_text(key: ForeignKey, parent: str = "") -> str:
    """A foreign key as ``pg_get_constraintdef`` shows it. ``parent``: how the session names it."""
    if not parent:
        parent = quoted_name(local_name(key.namespace, key.parent))
        if key.namespace != PUBLIC:
            parent = f"{quoted_name(key.namespace)}.{parent}"
    columns = ", ".join(map(quoted_name, key.columns))
    others = ", ".join(map(quoted_name, key.parent_columns))
    text = f"FOREIGN KEY ({columns}) REFERENCES {parent}({others})"
    if key.full:
        text += " MATCH FULL"
    for event, action in (("UPDATE", key.on_update), ("DELETE", key.on_delete)):
        if action is not KeyAction.NO_ACTION:
            text += f" ON {event} {action.value}"
    if key.set_columns:
        text += f" ({', '.join(map(quoted_name, key.set_columns))})"
    if key.deferrable:
        text += " DEFERRABLE"
    if key.deferred:
        text += " INITIALLY DEFERRED"
    return text if key.valid else f"{text} NOT VALID"


def constraint_text(schema: MapSchema, check: Check | None, *, pretty: bool = False) -> str:
    """A CHECK constraint, or the primary key (None), as ``pg_get_constraintdef`` shows it: without
    ``pretty`` PostgreSQL puts each operation into parentheses."""
    if check is None:
        return f"PRIMARY KEY ({', '.join(map(quoted_name, schema.key))})"
    condition = _without_parentheses(check.text)
    is_operation = _OPERAND.fullmatch(condition) is None and not _is_call(condition)
    text = f"CHECK (({condition}))" if is_operation and not pretty else f"CHECK ({condition})"
    return text if check.valid else f"{text} NOT VALID"


_OPERAND: Final = re.compile(r'(?is)[a-z_][\w$]*|"(?:[^"]|"")+"|case\b.*\bend')
_CALLED: Final = re.compile(r"[A-Za-z_][\w$.]*\s*(?=\()")
_PARTS: Final = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]""")


def _without_parentheses(text: str) -> str:
    """``text`` without the parentheses that enclose all of it."""
    found = text.strip()
    while _closing(found, 0) == len(found) - 1:
        found = found[1:-1].strip()
    return found


def _is_call(text: str) -> bool:
    """Whether all of ``text`` is one call of a function."""
    name = _CALLED.match(text)
    if name is None or name[0].strip().upper() == "NOT":
        return False
    return _closing(text, name.end()) == len(text) - 1


def _closing(text: str, start: int) -> int:
    """Where the parenthesis that opens at ``start`` is closed; -1: none opens there, or it is not
    closed."""
    depth = 0
    for part in _PARTS.finditer(text, start):
        if part.start() == start and part[0] != "(":
            return -1
        depth += {"(": 1, ")": -1}.get(part[0], 0)
        if not depth:
            return part.start() if text[start] == "(" else -1
    return -1


def expression_shown(text: str) -> str:
    """The DEFAULT of a column, or the expression of a generated one, as ``pg_get_expr`` shows it:
    an operation in parentheses, and names of sequences as ``regclass``."""
    shown = _SEQUENCE.sub(r"\1::regclass", _without_parentheses(text))
    plain = _OPERAND.fullmatch(shown) or _LITERAL.fullmatch(shown) or _is_call(shown)
    return shown if plain else f"({shown})"


_SEQUENCE: Final = re.compile(r"(?i)(\b(?:next|curr)val\s*\(\s*'(?:[^']|'')*')(?=\s*\))")
_LITERAL: Final = re.compile(
    r"""(?ix)
    (?: [+-]?\s*[\d.]+(?:e[+-]?\d+)? | (?:[a-z_]+\s+)? e?'(?:[^']|'')*'
      | array\s*\[[^\[\]]*\] | [a-z_]\w* )
    (?: \s*::\s*[a-z_"][\w\s".]*(?:\([\d,\s]*\))?[\w\s]*(?:\[\])* )*
    """
)
"""A constant, perhaps with a cast."""


def column_text(column: Column) -> str:
    """A column as CREATE TABLE writes it."""
    text = f"{quoted_name(column.name)} {column.type}"
    if column.generated:
        text += f" {generated_text(column)}"
    elif column.default is not None:
        text += f" DEFAULT {column.default.text}"
    return text if column.nullable else text + " NOT NULL"


def generated_text(column: Column) -> str:
    """The clause of a generated column."""
    return f"GENERATED ALWAYS AS ({column.generated}) STORED"


def _comments(relation: MapSchema | ViewDefinition, kind: str) -> list[str]:
    name = sql_name(relation)
    found = []
    if relation.comment:
        found.append(f"COMMENT ON {kind} {name} IS {_string(relation.comment)};")
    found += [
        f"COMMENT ON COLUMN {name}.{quoted_name(column.name)} IS {_string(column.comment)};"
        for column in relation.columns
        if column.comment
    ]
    if isinstance(relation, MapSchema):
        found += [
            f"COMMENT ON {place} IS {_string(text)};"
            for place, text in _parts(relation, name)
            if text
        ]
    return found


def _parts(schema: MapSchema, name: str) -> Iterator[tuple[str, str]]:
    """The constraints and the indexes behind them, with their comments. Other indexes are made by
    statements of their own."""
    key = quoted_name(schema.primary_key)
    yield f"CONSTRAINT {key} ON {name}", schema.key_comment
    yield f"INDEX {_index(schema, schema.primary_key)}", schema.key_index_comment
    for index in schema.uniques:
        if index.constraint:
            unique = quoted_name(index.name)
            yield f"CONSTRAINT {unique} ON {name}", index.constraint_comment
            yield f"INDEX {_index(schema, index.name)}", index.comment
    for check in schema.checks:
        yield f"CONSTRAINT {quoted_name(check.name)} ON {name}", check.comment
    for foreign in schema.foreign_keys:
        yield f"CONSTRAINT {quoted_name(foreign.name)} ON {name}", foreign.comment


def _index(schema: MapSchema, name: str) -> str:
    """Indexes are in the schemas of their maps."""
    table, index = sql_name(schema), quoted_name(name)
    return table.removesuffix(quoted_name(schema.local)) + index


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
