"""Which names mean which columns."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from remuda.datatypes.schema import HIDDEN, ROW_ID
from remuda.datatypes.sql import BIGINT, BOOLEAN, Kind, aliased, row
from remuda.errors import AmbiguousColumn, DuplicateAlias, UndefinedColumn, UndefinedMap
from remuda.plan.expression import (
    Call,
    Case,
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
)
from remuda.plan.logical import OutputColumn
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.schema_names import check_qualifier
from remuda.sql.text.suggest import closest
from remuda.sql.trees import ast

TABLE_OID = "tableoid"
OID = aliased(BIGINT, "oid")
_OTHER_SYSTEM_COLUMNS: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax"})
"""PostgreSQL's tables have them: places of rows, and the numbers of transactions."""


def column_refs(output: Iterable[OutputColumn]) -> list[tuple[str, Expression]]:
    return [(column.name, ColumnRef(column.type, column.id, column.name)) for column in output]


@dataclass(slots=True)
class Scope:
    """The columns that a FROM clause offers.

    ``visible`` lists what ``*`` stands for and what bare names may mean (a column merged by USING
    appears once); ``relations`` maps aliases to all of their columns. ``parent`` is the scope of
    the enclosing query, for correlated subqueries; ids found there are collected in ``outer``.
    """

    visible: list[tuple[str, Expression]] = field(default_factory=list)
    relations: dict[str, list[tuple[str, Expression]]] = field(default_factory=dict)
    parent: Scope | None = None
    outer: set[ColumnId] = field(default_factory=set)
    owner: object = None
    """The binder of the query whose FROM clause this is; None inside of a FROM clause; the name of
    a clause that sees rows one by one, over which subqueries can have no aggregates."""
    hidden: tuple[Scope, ...] = ()
    """Relations nearby that cannot be referred to from here."""
    oids: dict[str, int] = field(default_factory=dict)
    """Of tables by alias: their column ``tableoid``."""
    single: set[str] = field(default_factory=set)
    """Aliases of functions that give one value for each row: as a value, that one and no row."""
    _by_name: dict[str, list[Expression]] | None = None

    def add(self, context: Context, alias: str, columns: list[tuple[str, Expression]],
            node: ast.Node) -> None:  # fmt: skip
        if alias:
            if alias in self.relations:
                raise context.error(
                    DuplicateAlias,
                    f'table name "{alias}" specified more than once',
                    node,
                    hint=f'Give it an alias: "{alias} AS x".',
                )
            self.relations[alias] = columns
        self.visible += [entry for entry in columns if entry[0] not in HIDDEN]
        self._by_name = None

    def of_table(self, oid: int) -> None:
        """Its relation is a table with this number."""
        self.oids = dict.fromkeys(self.relations, oid)

    def merge(self, other: Scope, context: Context, node: ast.Node | None) -> None:
        """All columns of ``other``, after ours."""
        for alias, columns in other.relations.items():
            if alias in self.relations:
                raise context.error(
                    DuplicateAlias,
                    f'table name "{alias}" specified more than once',
                    node,
                    hint=f'Give it an alias: "{alias} AS x".',
                )
            self.relations[alias] = columns
        self.single |= other.single
        self.oids |= other.oids
        self.visible += other.visible
        self._by_name = None

    def has_any(self, columns: Collection[ColumnId]) -> bool:
        """Whether any of ``columns`` is one of this level."""
        listed = (self.visible, *self.relations.values())
        return any(columns_of(e) & set(columns) for entries in listed for _, e in entries)

    def candidates(self, name: str) -> list[Expression]:
        if name == ROW_ID:
            return [e for columns in self.relations.values() for n, e in columns if n == ROW_ID]
        if self._by_name is None:
            by_name: dict[str, list[Expression]] = {}
            for column, expression in self.visible:
                by_name.setdefault(column, []).append(expression)
            self._by_name = by_name
        return self._by_name.get(name, [])


def resolve_column(context: Context, scope: Scope, node: ast.Column) -> Expression:
    """The column that ``node`` names, here or in an enclosing query."""
    context.only(node, "this", "table", "db", "catalog")
    check_qualifier(context, node)
    name = identifier(node.this)
    qualifier = node.args.get("table")
    alias = None if qualifier is None else identifier(qualifier)
    crossed: list[Scope] = []
    for level in all_levels(scope):
        found = _find(context, level, alias, name, node)
        if found is not None:
            return _crossing(crossed, found)
        crossed.append(level)
    row = None if alias is not None else whole_row(scope, name)
    if row is None:
        raise _undefined(context, scope, alias, name, node)
    return row


def is_of_this_level(context: Context, scope: Scope, node: ast.Column) -> bool:
    """Whether ``node`` names a column of this query, and not one of a query around it."""
    qualifier = node.args.get("table")
    alias = None if qualifier is None else identifier(qualifier)
    return _find(context, scope, alias, identifier(node.this), node) is not None


def whole_row(scope: Scope, alias: str) -> Expression | None:
    """The row of the relation ``alias``, here or in an enclosing query, as one value; None
    without such a relation. It is NULL where an outer join found no row."""
    crossed: list[Scope] = []
    for level in all_levels(scope):
        columns = level.relations.get(alias)
        if columns is not None:
            break
        crossed.append(level)
    else:
        return None
    parts = [(name, part) for name, part in columns if name not in HIDDEN]
    if alias in level.single:
        return _crossing(crossed, parts[0][1])
    if not parts or any(part.type.kind is Kind.NULL for _, part in parts):
        return None
    type_ = row((name, part.type) for name, part in parts)
    value = Call(type_, "row", tuple(part for _, part in parts))
    # Keys and row ids are never NULL in a row that is there.
    return _crossing(crossed, Case(type_, ((_absent(columns), Literal(type_, None)),), value))


def _absent(columns: list[tuple[str, Expression]]) -> Expression:
    """Whether an outer join found no row of the relation with these columns."""
    marks = [part for name, part in columns if name == ROW_ID] or [part for _, part in columns]
    absent: Expression = Call(BOOLEAN, "is_null", (marks[0],))
    if len(marks) > 1:
        absent = Call(BOOLEAN, "and", tuple(Call(BOOLEAN, "is_null", (m,)) for m in marks))
    return absent


def _table_oid(scope: Scope, alias: str | None, node: ast.Column, context: Context) -> Expression:
    """PostgreSQL's system column: the table that a row is of. Raises AmbiguousColumn."""
    if alias is None and len(scope.oids) > 1:
        raise context.error(
            AmbiguousColumn,
            f'column reference "{TABLE_OID}" is ambiguous',
            node,
            hint=f"Write {next(iter(scope.oids))}.{TABLE_OID}.",
        )
    name = next(iter(scope.oids)) if alias is None else alias
    value = Literal(OID, scope.oids[name])
    if len(scope.relations) == 1:
        return value
    return Case(OID, ((_absent(scope.relations[name]), Literal(OID, None)),), value)


def columns_of_alias(scope: Scope, alias: str) -> list[tuple[str, Expression]] | None:
    """Names and columns of the relation ``alias``, here or in an enclosing query, as ``alias.*``
    has them; None without such a relation."""
    crossed: list[Scope] = []
    for level in all_levels(scope):
        columns = level.relations.get(alias)
        if columns is not None:
            return [
                (name, _crossing(crossed, part)) for name, part in columns if name not in HIDDEN
            ]
        crossed.append(level)
    return None


def _crossing(crossed: list[Scope], found: Expression) -> Expression:
    for inner in crossed:
        inner.outer |= columns_of(found)
    return found


def _find(
    context: Context, scope: Scope, alias: str | None, name: str, node: ast.Column
) -> Expression | None:
    if alias is None:
        found = scope.candidates(name)
        if not found and name == TABLE_OID and scope.oids:
            return _table_oid(scope, None, node, context)
    else:
        columns = scope.relations.get(alias)
        if columns is None:
            return None
        found = [expression for column, expression in columns if column == name]
        if not found and name == TABLE_OID and alias in scope.oids:
            return _table_oid(scope, alias, node, context)
        if not found:
            raise _undefined(context, scope, alias, name, node)
    if len(found) > 1:
        owners = [a for a, cs in scope.relations.items() if any(c == name for c, _ in cs)]
        raise context.error(
            AmbiguousColumn,
            f'column reference "{name}" is ambiguous',
            node,
            hint="Write " + " or ".join(f"{a}.{name}" for a in owners[:3]) + "."
            if len(owners) > 1
            else "",
        )
    return found[0] if found else None


def all_levels(scope: Scope) -> Iterable[Scope]:
    level: Scope | None = scope
    while level is not None:
        yield level
        level = level.parent


def _undefined(
    context: Context, scope: Scope, alias: str | None, name: str, node: ast.Column
) -> Exception:
    levels = list(all_levels(scope))
    if alias is not None and not any(alias in level.relations for level in levels):
        return _undefined_alias(context, levels, alias, node)
    if name in _OTHER_SYSTEM_COLUMNS and any(level.oids for level in levels):
        return context.unsupported(
            f"the system column {name}", node, hint="Name rows by the columns of their key."
        )
    if alias is not None:
        columns = next(s.relations[alias] for s in levels if alias in s.relations)
        guess = closest(name, [column for column, _ in columns])
        hint = f'Did you mean the column "{alias}.{guess}"?' if guess else ""
        return context.error(
            UndefinedColumn, f"column {alias}.{name} does not exist", node, hint=hint
        )
    names = {column: a for s in levels for a, cs in s.relations.items() for column, _ in cs}
    names.update({column: names.get(column, "") for s in levels for column, _ in s.visible})
    guess = closest(name, names)
    hint = ""
    if guess is not None:
        owner = names[guess]
        hint = (
            f'Did you mean the column "{owner}.{guess}"?' if owner else f'Did you mean "{guess}"?'
        )
    elif isinstance(node.this, ast.Identifier) and node.this.args.get("quoted"):
        hint = "Double quotes name columns; text is written in single quotes."
    return context.error(UndefinedColumn, f'column "{name}" does not exist', node, hint=hint)


def _undefined_alias(
    context: Context, levels: list[Scope], alias: str, node: ast.Column
) -> Exception:
    if any(alias in nearby.relations for level in levels for nearby in level.hidden):
        return context.error(
            UndefinedMap,
            f'invalid reference to FROM-clause entry for table "{alias}"',
            node,
            hint=f'There is an entry for table "{alias}", but it cannot be referenced from this '
            "part of the query. Write LATERAL before the subquery.",
        )
    known = [a for level in levels for a in level.relations]
    guess = closest(alias, known)
    hint = f'Did you mean "{guess}"?' if guess else ""
    if not hint and known:
        hint = "Known here: " + ", ".join(known[:8]) + "."
    return context.error(
        UndefinedMap, f'missing FROM-clause entry for table "{alias}"', node, hint=hint
    )
