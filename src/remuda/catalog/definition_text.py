"""Maps and views as the statements that define them."""

from __future__ import annotations

import re
from typing import Final

from remuda.datatypes.schema import Check, Column, MapSchema, ViewDefinition

_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
_RESERVED: Final = frozenset(
    [
        "all",
        "analyse",
        "analyze",
        "and",
        "any",
        "array",
        "as",
        "asc",
        "asymmetric",
        "both",
        "case",
        "cast",
        "check",
        "collate",
        "column",
        "constraint",
        "create",
        "current_date",
        "current_role",
        "current_time",
        "current_timestamp",
        "current_user",
        "default",
        "deferrable",
        "desc",
        "distinct",
        "do",
        "else",
        "end",
        "except",
        "false",
        "fetch",
        "for",
        "foreign",
        "from",
        "grant",
        "group",
        "having",
        "in",
        "initially",
        "intersect",
        "into",
        "lateral",
        "leading",
        "limit",
        "localtime",
        "localtimestamp",
        "not",
        "null",
        "offset",
        "on",
        "only",
        "or",
        "order",
        "placing",
        "primary",
        "references",
        "returning",
        "select",
        "session_user",
        "some",
        "symmetric",
        "table",
        "then",
        "to",
        "trailing",
        "true",
        "union",
        "unique",
        "user",
        "using",
        "variadic",
        "when",
        "where",
        "window",
        "with",
    ]
)


def name_text(name: str) -> str:
    """A name as an identifier of SQL, in quotes where it needs them."""
    if _PLAIN.match(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def definition_of(relation: MapSchema | ViewDefinition) -> str:
    """The CREATE statement that makes it again; comments follow as statements of their own."""
    if isinstance(relation, ViewDefinition):
        columns = ", ".join(name_text(column.name) for column in relation.columns)
        text = f"CREATE VIEW {name_text(relation.name)} ({columns}) AS\n{relation.text}"
        return "\n".join([text + ";", *_comments(relation, "VIEW")])
    lines = [f"    {column_text(column)}" for column in relation.shown]
    if not relation.has_row_ids:
        named = f"CONSTRAINT {name_text(relation.key_name)} " if relation.key_name else ""
        lines.append(f"    {named}PRIMARY KEY ({', '.join(map(name_text, relation.key))})")
    lines += [f"    CONSTRAINT {name_text(c.name)} CHECK ({c.text})" for c in relation.checks]
    text = f"CREATE TABLE {name_text(relation.name)} (\n" + ",\n".join(lines) + "\n)"
    options = []
    if relation.replicated:
        options.append("replicated = true")
    if relation.partition_by != relation.key:
        quoted = ", ".join(map(name_text, relation.partition_by)).replace("'", "''")
        options.append(f"partition_by = '{quoted}'")
    if options:
        text += f" WITH ({', '.join(options)})"
    return "\n".join([text + ";", *_comments(relation, "TABLE")])


def constraint_text(schema: MapSchema, check: Check | None) -> str:
    """A CHECK constraint, or the primary key (None), as ``pg_get_constraintdef`` shows it."""
    if check is None:
        return f"PRIMARY KEY ({', '.join(map(name_text, schema.key))})"
    return f"CHECK (({check.text}))"


def column_text(column: Column) -> str:
    """A column as CREATE TABLE writes it."""
    text = f"{name_text(column.name)} {column.type}"
    if column.default is not None:
        text += f" DEFAULT {column.default.text}"
    return text if column.nullable else text + " NOT NULL"


def _comments(relation: MapSchema | ViewDefinition, kind: str) -> list[str]:
    name = name_text(relation.name)
    found = []
    if relation.comment:
        found.append(f"COMMENT ON {kind} {name} IS {_string(relation.comment)};")
    found += [
        f"COMMENT ON COLUMN {name}.{name_text(column.name)} IS {_string(column.comment)};"
        for column in relation.columns
        if column.comment
    ]
    return found


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
