r"""``\d``: one relation with its columns, indexes, constraints, layout and options."""

from __future__ import annotations

from typing import Any

from remuda.cli.results.aligned import Table
from remuda.cli.results.table import Alignment, harmless_name
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.cli.shell.commands.lists import list_relations
from remuda.cli.shell.patterns import pattern_of
from remuda.cli.shell.words import folded
from remuda.errors import UndefinedMap

_TITLES = {"r": "Table", "p": "Table", "v": "View", "m": "Materialized view", "f": "Foreign table"}
_LEFT = Alignment.LEFT


def _describe(call: Call) -> Outcome:
    word = call.words.pattern()
    if word is None:
        return list_relations(call, "rvmSfp", None)
    condition, values = pattern_of(word).condition(
        "n.nspname", "c.relname", "pg_table_is_visible(c.oid)"
    )
    found = call.session.rows(
        "SELECT c.oid, n.nspname, c.relname, c.relkind, pg_table_is_visible(c.oid) "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE {condition} ORDER BY 2, 3",
        *values,
    )
    if not found and not _system(call, word):
        raise UndefinedMap(f'Did not find any relation named "{harmless_name(word)}".')
    for oid, schema, name, kind, _ in found:
        match kind:
            case "S":
                _sequence(call, oid, f"{schema}.{name}")
            case "i" | "I":
                _index(call, oid, f"{schema}.{name}")
            case _:
                _relation(call, oid, (schema, name), kind)
    return None


def _system(call: Call, word: str) -> bool:
    """Describe a relation about the grid: ``sys`` is not in PostgreSQL's catalog. Whether
    there is one of this name."""
    schema, _, name = folded(word).partition(".")
    if schema != "sys" or not name.isidentifier():
        return False
    try:
        with call.session.client.sql(f"SELECT * FROM sys.{name} LIMIT 0") as cursor:
            columns = cursor.columns
    except UndefinedMap:
        return False
    cells = [
        (column.name, str(column.type).lower(), None if column.nullable else "not null")
        for column in columns
    ]
    names = ("Column", "Type", "Nullable")
    call.session.print_table(Table(names, [_LEFT] * 3, cells, f'View "sys.{name}"', []))
    return True


def _relation(call: Call, oid: int, name: tuple[str, str], kind: str) -> None:
    more = "+" in call.flags
    rows = call.session.rows(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, "
        "a.attgenerated, pg_get_expr(d.adbin, d.adrelid), col_description(a.attrelid, a.attnum) "
        "FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_attrdef d "
        "ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
        "WHERE a.attrelid = ? AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
        oid,
    )
    names = ["Column", "Type", "Collation", "Nullable", "Default"]
    cells = [
        [column, kind_, None, "not null" if full else None, _default(*how)]
        for column, kind_, full, *how, _ in rows
    ]
    if more:
        names.append("Description")
        for cell, row in zip(cells, rows, strict=True):
            cell.append(row[-1])
    footers = _view(call, oid) if kind == "v" and more else []
    if kind in ("r", "p"):
        footers = [
            *_indexes(call, oid),
            *_constraints(call, oid),
            *_layout(call, name, more=more),
        ]
    title = f'{_TITLES.get(kind, "Relation")} "{".".join(name)}"'
    call.session.print_table(Table(names, [_LEFT] * len(names), cells, title, footers))


def _default(identity: str, generated: str, expression: str | None) -> str | None:
    if identity:
        return f"generated {'always' if identity == 'a' else 'by default'} as identity"
    if generated:
        return f"generated always as ({expression}) stored"
    return expression


def _indexes(call: Call, oid: int) -> list[str]:
    rows = call.session.rows(
        "SELECT c.relname, i.indisprimary, i.indisunique, pg_get_indexdef(i.indexrelid, 0, true), "
        "k.contype FROM pg_catalog.pg_index i "
        "JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
        "LEFT JOIN pg_catalog.pg_constraint k "
        "ON k.conindid = i.indexrelid AND k.contype IN ('p', 'u', 'x') "
        "WHERE i.indrelid = ? ORDER BY i.indisprimary DESC, c.relname",
        oid,
    )
    lines = []
    for name, primary, unique, definition, constraint in rows:
        kind = " PRIMARY KEY," if primary else ""
        if unique and not primary:
            kind = " UNIQUE CONSTRAINT," if constraint == "u" else " UNIQUE,"
        lines.append(f'    "{name}"{kind} {definition.partition(" USING ")[2]}')
    return ["Indexes:", *lines] if lines else []


def _constraints(call: Call, oid: int) -> list[str]:
    """Checks and foreign keys, and foreign keys of others that lead here."""
    rows = call.session.rows(
        "SELECT k.contype, k.conname, pg_get_constraintdef(k.oid, true), k.conrelid = ?, "
        "k.confrelid = ?, c.relname FROM pg_catalog.pg_constraint k "
        "JOIN pg_catalog.pg_class c ON c.oid = k.conrelid "
        "WHERE k.contype IN ('c', 'f') AND (k.conrelid = ? OR k.confrelid = ?) ORDER BY 2",
        *(oid, oid, oid, oid),
    )
    parts: dict[str, list[str]] = {
        "Check constraints:": [],
        "Foreign-key constraints:": [],
        "Referenced by:": [],
    }
    for kind, name, definition, own, other, table in rows:
        if kind == "c":
            parts["Check constraints:"].append(f'    "{name}" {definition}')
            continue
        if own:
            parts["Foreign-key constraints:"].append(f'    "{name}" {definition}')
        if other:
            line = f'    TABLE "{table}" CONSTRAINT "{name}" {definition}'
            parts["Referenced by:"].append(line)
    return [line for title, lines in parts.items() if lines for line in (title, *lines)]


def _layout(call: Call, name: tuple[str, str], *, more: bool) -> list[str]:
    """How the rows lie in the cluster, which PostgreSQL does not have."""
    names = [name[1]] if name[0] == "public" else [".".join(name)]
    rows = call.session.rows(
        "SELECT kind, partition_by, options, rows, bytes FROM sys.maps WHERE name = ?", *names
    )
    if not rows:
        return []
    kind, columns, options, count, size = rows[0]
    lines = [
        "Replicated: on every member" if kind == "replicated" else f"Partitioned by: {columns}"
    ]
    if options:
        lines.append(f"Options: {options}")
    if more and count is not None:
        lines.append(f"Rows: {count:,}, bytes: {size:,}")
    return lines


def _view(call: Call, oid: int) -> list[str]:
    rows = call.session.rows("SELECT pg_get_viewdef(?, true)", oid)
    definition = rows[0][0] if rows else ""
    return ["View definition:", definition] if definition else []


def _index(call: Call, oid: int, name: str) -> None:
    rows = call.session.rows(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod), "
        "pg_get_indexdef(a.attrelid, a.attnum, true), a.attnum <= i.indnkeyatts "
        "FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_index i ON i.indexrelid = a.attrelid "
        "WHERE a.attrelid = ? AND a.attnum > 0 ORDER BY a.attnum",
        oid,
    )
    cells = [(column, kind, "yes" if key else "no", text) for column, kind, text, key in rows]
    about: list[Any] = call.session.rows(
        "SELECT i.indisprimary, i.indisunique, m.amname, n.nspname, t.relname, "
        "pg_get_expr(i.indpred, i.indrelid, true) "
        "FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid "
        "JOIN pg_catalog.pg_class t ON t.oid = i.indrelid "
        "JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace "
        "LEFT JOIN pg_catalog.pg_am m ON m.oid = c.relam WHERE i.indexrelid = ?",
        oid,
    )
    footers = []
    for primary, unique, method, schema, table, condition in about:
        kind = "primary key, " if primary else "unique, " if unique else ""
        line = f'{kind}{method}, for table "{schema}.{table}"'
        footers.append(line + (f", predicate ({condition})" if condition else ""))
    names = ["Column", "Type", "Key?", "Definition"]
    title = f'Index "{name}"'
    call.session.print_table(Table(names, [_LEFT] * 4, cells, title, footers))


def _sequence(call: Call, oid: int, name: str) -> None:
    rows = call.session.rows(
        "SELECT format_type(seqtypid, NULL), seqstart, seqmin, seqmax, seqincrement, "
        "CASE WHEN seqcycle THEN 'yes' ELSE 'no' END, seqcache "
        "FROM pg_catalog.pg_sequence WHERE seqrelid = ?",
        oid,
    )
    names = ["Type", "Start", "Minimum", "Maximum", "Increment", "Cycles?", "Cache"]
    right = Alignment.RIGHT
    sides = [_LEFT, right, right, right, right, _LEFT, right]
    cells = [[str(value) for value in row] for row in rows]
    owners = call.session.rows(
        "SELECT n.nspname, c.relname, a.attname, d.deptype FROM pg_catalog.pg_depend d "
        "JOIN pg_catalog.pg_class c ON c.oid = d.refobjid "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = d.refobjsubid "
        "WHERE d.objid = ? AND d.deptype IN ('a', 'i')",
        oid,
    )
    kinds = {"i": "Sequence for identity column", "a": "Owned by"}
    footers = [f"{kinds[kind]}: {'.'.join(column)}" for *column, kind in owners]
    call.session.print_table(Table(names, sides, cells, f'Sequence "{name}"', footers))


COMMANDS = (
    Command(
        ("d",), _describe, "[NAME]", "tables, views and sequences; or one with all it has", "S+"
    ),
)
