"""FROM: maps, derived tables, CTEs, joins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from remuda.catalog.system_relations import SystemRelation, system_relation
from remuda.datatypes.schema import HIDDEN, PUBLIC, ROW_ID, MapSchema, ViewDefinition
from remuda.datatypes.sql import unrestricted
from remuda.errors import (
    AmbiguousColumn,
    DuplicateAlias,
    InvalidColumnReference,
    SqlSyntaxError,
    UndefinedColumn,
    UndefinedMap,
)
from remuda.plan.expression import ColumnRef, Expression, conjunction
from remuda.plan.logical import (
    DependentJoin,
    JoinKind,
    Logical,
    OutputColumn,
    Project,
    Scan,
    Supplied,
)
from remuda.sql.expressions.conversion import Converter
from remuda.sql.expressions.expressions import Embedding, ExpressionBinder
from remuda.sql.queries.sampling import sampled
from remuda.sql.queries.table_functions import bind_table_function, is_table_function
from remuda.sql.queries.views import view_plan
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.origins import note_origins
from remuda.sql.scope.output import free_references, joined
from remuda.sql.scope.resolution import find
from remuda.sql.scope.schema_names import relation_named, system_scan, written
from remuda.sql.scope.scope import Scope, column_refs
from remuda.sql.scope.statements import told
from remuda.sql.scope.supplied import supplied
from remuda.sql.text.suggest import closest
from remuda.sql.trees import ast


@dataclass(slots=True)
class CommonTable:
    """A CTE. Its plan is bound once for its errors; that plan serves the first use, later uses bind
    it again to get columns of their own."""

    node: ast.Node
    columns: list[ast.Node]
    environment: Environment
    first_plan: Logical | None = None
    make: Callable[[], Logical] | None = None
    """Makes the relation of a recursive CTE (see ``sql.queries.recursion``)."""


@dataclass(slots=True)
class Environment:
    """The surroundings of a query besides its own FROM: CTEs, and the scope of the query around
    it."""

    tables: dict[str, CommonTable] = field(default_factory=dict)
    parent: Scope | None = None


QueryBinder: TypeAlias = Callable[[ast.Node, Environment], Logical]

_SIDES: Final = {
    "": JoinKind.INNER,
    "LEFT": JoinKind.LEFT,
    "RIGHT": JoinKind.RIGHT,
    "FULL": JoinKind.FULL,
}
_JOIN_WORDS: Final = ("side", "kind", "method", "on", "using")


class RelationBinder:
    """Binds the FROM clause of one query to a plan and a scope."""

    def __init__(self, context: Context, environment: Environment, bind_query: QueryBinder) -> None:
        self.context = context
        self.environment = environment
        self.bind_query = bind_query
        self._left: list[Scope] = []
        """The relations to the left of the one that is being bound, for LATERAL."""

    def from_clause(self, first: ast.Node, joins: list[ast.Node]) -> tuple[Logical, Scope]:
        plan, scope = self.relation(first)
        scope.parent = self.environment.parent
        return self.joins(plan, scope, joins)

    def joins(
        self, plan: Logical, scope: Scope, joins: list[ast.Node] | None
    ) -> tuple[Logical, Scope]:
        """``a JOIN b ..., c JOIN d ...``: commas bind weaker than JOIN, so the items between them
        are joined first, and their conditions see nothing of the items before the comma."""
        found: list[tuple[Logical, Scope, ast.Node | None]] = [(plan, scope, None)]
        for join in joins or ():
            left = [known for _, known, _ in found]
            if _is_comma(join):
                found.append((*self._right_of(left, join.this), join.this))
                continue
            plan, scope, place = found[-1]
            found[-1] = (*self.join(plan, scope, join, left), place)
        plan, scope, _ = found[0]
        for other_plan, other_scope, place in found[1:]:
            scope.merge(other_scope, self.context, place)
            plan = self._combined(JoinKind.INNER, plan, other_plan, None, place)
        return plan, scope

    # --- LATERAL ---

    def _right_of(self, left: list[Scope], node: ast.Node) -> tuple[Logical, Scope]:
        """The relation ``node``; if it is lateral, it sees ``left``."""
        known = len(self._left)
        self._left += left
        try:
            return self.relation(node)
        finally:
            del self._left[known:]

    def _with_left(self) -> Environment:
        """The columns that a lateral relation sees: everything to its left, then those of its
        query."""
        around = Scope(parent=self.environment.parent)
        for scope in self._left:
            around.visible = around.visible + scope.visible
            around.relations = {**around.relations, **scope.relations}
            around.single |= scope.single
            around.oids |= scope.oids
        return Environment(self.environment.tables, around)

    def _beside_left(self) -> Environment:
        """The columns that a derived table sees: nothing to its left, but errors know of it."""
        if not self._left:
            return self.environment
        around = Scope(parent=self.environment.parent, hidden=tuple(self._left))
        return Environment(self.environment.tables, around)

    def lateral(self, node: ast.Lateral) -> tuple[Logical, Scope]:
        self.context.only(node, "this", "alias")
        plan = self.bind_query(node.this, self._with_left())
        return self.aliased(plan, node)

    def _combined(
        self,
        kind: JoinKind,
        left: Logical,
        right: Logical,
        condition: Expression | None,
        node: ast.Node | None,
    ) -> Logical:
        """The join of both; a dependent one if the right side is lateral and uses the left."""
        result = joined(kind, left, right, condition)
        used = {c: e for c, e in free_references(right).items() if c in left.column_ids}
        if not used:
            return result
        if kind not in (JoinKind.INNER, JoinKind.LEFT):
            name = next(iter(used.values())).name
            raise self.context.error(
                InvalidColumnReference,
                f'invalid reference to column "{name}" from LATERAL',
                node,
                detail="The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
            )
        return DependentJoin(result.output, kind, left, right, condition)

    def relation(self, node: ast.Node) -> tuple[Logical, Scope]:
        self.context.count_relation(node)
        if is_table_function(node):
            return self.function(node)
        if isinstance(node, ast.Lateral):
            return self.lateral(node)
        if isinstance(node, ast.Table):
            return self.table(node)
        if isinstance(node, ast.Subquery):
            return self.derived(node)
        raise self.context.unsupported(
            f"{type(node).__name__} in FROM",
            node,
            hint="Put a table, a subquery, VALUES or a table function into FROM.",
        )

    # --- one relation ---

    def table(self, node: ast.Table) -> tuple[Logical, Scope]:
        self.context.only(node, "this", "alias", "joins", "sample", "db", "catalog", "only")
        name = identifier(node.this)
        qualified = node.args.get("db") is not None
        common = None if qualified else self.environment.tables.get(name)
        plan = self.scan(name, node) if common is None else self.common_table(name, common)
        if (sample := node.args.get("sample")) is not None:
            plan = sampled(self.context, plan, sample)
        oid = _oid_of(plan)
        plan, scope = self.aliased(plan, node, name)
        if oid:
            scope.of_table(oid)
        return self.joins(plan, scope, node.args.get("joins"))

    def function(self, node: ast.Node) -> tuple[Logical, Scope]:
        """A function in FROM; it sees the relations to its left, with or without LATERAL."""
        found = bind_table_function(self.context, node, self._with_left().parent)
        alias = found.name
        if found.alias is not None and found.alias.this is not None:
            alias = identifier(found.alias.this)
        columns = self.renamed(found.columns, found.column_aliases, alias)
        scope = Scope(parent=self.environment.parent)
        scope.add(self.context, alias, columns, node)
        if len(columns) == 1:
            scope.single.add(alias)
        return self.joins(found.plan, scope, node.args.get("joins"))

    def scan(self, name: str, node: ast.Table) -> Logical:
        """A system relation, a map or a view."""
        alias = node.args.get("alias")
        shown = name if alias is None or alias.this is None else identifier(alias.this)
        plan: Logical
        match relation_named(self.context, node):
            case SystemRelation() as system:
                plan, oid = system_scan(self.context, system, shown), system.oid
            case ViewDefinition() as view:
                plan, oid = view_plan(self.context, view, node.this, self._alone), view.oid
            case MapSchema() as schema:
                self.context.uses.add(schema.name)
                plan, oid = scan(self.context, schema, shown), schema.oid
            case _:
                raise self._undefined(node)
        note_origins(self.context, oid, column_refs(plan.output))
        return plan

    def _undefined(self, node: ast.Table) -> UndefinedMap:
        return undefined_map(self.context, written(node), node.this, self.environment.tables)

    def _alone(self, _context: Context, node: ast.Node) -> Logical:
        return self.bind_query(node, Environment())

    def common_table(self, name: str, common: CommonTable) -> Logical:
        if common.make is not None:
            return common.make()
        plan = common.first_plan
        common.first_plan = None
        if plan is None:
            plan = bind_common_table(self.context, name, common, self.bind_query)
        return plan

    def derived(self, node: ast.Subquery) -> tuple[Logical, Scope]:
        """A query in parentheses, or a join in parentheses."""
        inner = node.this
        if isinstance(inner, ast.Table | ast.Subquery) and not _is_query(inner):
            self.context.only(node, "this", "alias", "joins")
            plan, scope = self.relation(inner)
            if node.args.get("alias") is not None:
                return self.aliased(plan, node, columns=scope.visible)
        else:
            self.context.only(node, "this", "alias", "joins", "order", "limit", "offset", "with_")
            node = _with_some_column(node)
            plan, scope = self.aliased(self.bind_query(node, self._beside_left()), node)
        return self.joins(plan, scope, node.args.get("joins"))

    def aliased(
        self,
        plan: Logical,
        node: ast.Node,
        default: str = "",
        columns: list[tuple[str, Expression]] | None = None,
    ) -> tuple[Logical, Scope]:
        """The scope of one relation under its alias; column aliases rename. ``columns`` are those
        of ``plan`` unless given (a join merges those of USING)."""
        alias_node = node.args.get("alias")
        alias, columns = default, column_refs(plan.output) if columns is None else columns
        if alias_node is not None:
            self.context.only(alias_node, "this", "columns")
            if alias_node.this is not None:
                alias = identifier(alias_node.this)
            new_names = alias_node.args.get("columns") or []
            columns = self.renamed(columns, new_names, alias)
        scope = Scope(parent=self.environment.parent)
        scope.add(self.context, alias, columns, node)
        return plan, scope

    def renamed(
        self, columns: list[tuple[str, Expression]], names: list[ast.Node], alias: str
    ) -> list[tuple[str, Expression]]:
        """Hidden columns keep their names, and all their places: changes find keys by these."""
        shown = sum(name not in HIDDEN for name, _ in columns)
        if len(names) > shown:
            raise self.context.error(
                InvalidColumnReference,
                f'table "{alias}" has {shown} columns available but {len(names)} columns specified',
                names[shown],
            )
        given = iter(names)
        renamed: list[tuple[str, Expression]] = []
        for name, expression in columns:
            new = None if name in HIDDEN else next(given, None)
            if new is not None:
                if not isinstance(new, ast.Identifier):
                    raise self.context.unsupported(
                        "a column definition list",
                        new,
                        hint="Name the columns: AS name (column, ...).",
                    )
                name = identifier(new)  # noqa: PLW2901
            if isinstance(expression, ColumnRef) and expression.name != name:
                expression = ColumnRef(expression.type, expression.column, name)  # noqa: PLW2901
            renamed.append((name, expression))
        return renamed

    # --- joins ---

    def join(
        self, left: Logical, scope: Scope, node: ast.Node, seen: list[Scope]
    ) -> tuple[Logical, Scope]:
        """``left JOIN right ...``; a lateral right side sees ``seen``."""
        self.context.only(node, "this", "on", "using", "using_alias", "method", "side", "kind")
        side, kind = str(node.args.get("side") or ""), str(node.args.get("kind") or "")
        method = str(node.args.get("method") or "")
        if side not in _SIDES or kind not in ("", "INNER", "OUTER", "CROSS") or method not in (
            "", "NATURAL",
        ):  # fmt: skip
            what = " ".join(word for word in (method, side, kind, "JOIN") if word)
            raise self.context.unsupported(
                what, node.this, hint="docs/sql.md lists the clauses of FROM."
            )
        right, right_scope = self._right_of(seen, node.this)
        on, using = node.args.get("on"), node.args.get("using")
        self._check_condition(node, kind, method)
        join_kind = _SIDES[side]
        if method or using:
            alias = node.args.get("using_alias")
            names = (
                [(identifier(name), name) for name in using]
                if using
                else _common_names(scope, right_scope, node)
            )
            plan, merged = self.using(join_kind, left, scope, right, right_scope, names, node)
            if alias:
                # It names the columns that both have, which stay visible without it.
                visible = list(merged.visible)
                merged.add(self.context, identifier(alias), visible[: len(names)], node.this)
                merged.visible = visible
            return plan, merged
        scope.merge(right_scope, self.context, node.this)
        condition = None
        if on is not None:
            around = Environment(self.environment.tables, scope)
            embedding = Embedding(
                self.context, "JOIN conditions", lambda inner: self.bind_query(inner, around)
            )
            binder = ExpressionBinder(self.context, scope, embedding)
            condition = binder.condition(on, "JOIN/ON")
        return self._combined(join_kind, left, right, condition, node.this), scope

    def _check_condition(self, node: ast.Node, kind: str, method: str) -> None:
        conditions = bool(node.args.get("on")) + bool(node.args.get("using")) + bool(method)
        needed = kind != "CROSS"
        if kind == "CROSS" and conditions:
            raise self.context.error(
                SqlSyntaxError, "CROSS JOIN takes no condition", node.args.get("on") or node.this
            )
        if (needed and conditions == 0) or conditions > 1:
            raise self.context.error(
                SqlSyntaxError,
                "JOIN needs one condition: ON ... or USING (...)",
                node.this,
                hint="Write CROSS JOIN for all pairs.",
            )

    def using(  # noqa: PLR0917 - both sides of a join
        self,
        kind: JoinKind,
        left: Logical,
        scope: Scope,
        right: Logical,
        right_scope: Scope,
        names: list[tuple[str, ast.Node]],
        node: ast.Node,
    ) -> tuple[Logical, Scope]:
        """JOIN USING: equal columns appear once, before all others."""
        convert = Converter(self.context)
        merged: list[tuple[str, Expression]] = []
        conditions: list[Expression] = []
        for name, place in names:
            if any(name == done for done, _ in merged):
                raise self.context.error(
                    DuplicateAlias, f'column "{name}" appears twice in USING', place
                )
            a = self._using_column(scope, name, "left", place)
            b = self._using_column(right_scope, name, "right", place)
            conditions.append(convert.call("=", [a, b], [place, place], place))
            if kind is JoinKind.FULL:
                merged.append((name, convert.call("coalesce", [a, b], [place, place], place)))
            else:
                merged.append((name, b if kind is JoinKind.RIGHT else a))
        result = Scope(parent=self.environment.parent)
        result.merge(scope, self.context, node.this)
        result.merge(right_scope, self.context, node.this)
        dropped = {name for name, _ in merged}
        rest = [(n, e) for n, e in result.visible if n not in dropped]
        result.visible = merged + rest
        condition = conjunction(tuple(conditions))
        return self._combined(kind, left, right, condition, node.this), result

    def _using_column(self, scope: Scope, name: str, side: str, place: ast.Node) -> Expression:
        found = scope.candidates(name)
        if not found:
            guess = closest(name, [n for n, _ in scope.visible])
            raise self.context.error(
                UndefinedColumn,
                f'column "{name}" specified in USING clause does not exist in {side} table',
                place,
                hint=f'Did you mean "{guess}"?' if guess else "",
            )
        if len(found) > 1:
            raise self.context.error(
                AmbiguousColumn,
                f'common column name "{name}" appears more than once in {side} table',
                place,
            )
        return found[0]


def _is_comma(join: ast.Node) -> bool:
    """Whether a comma stands before the relation, and not the word JOIN."""
    return not any(join.args.get(name) for name in _JOIN_WORDS)


def _with_some_column(node: ast.Subquery) -> ast.Subquery:
    """``(SELECT FROM m)`` with a column that nobody can name: only its rows count."""
    if not isinstance(node.this, ast.Select) or node.this.expressions:
        return node
    hidden = ast.Alias(this=ast.Literal.number(1), alias=ast.name(ROW_ID))
    return node.with_args(this=node.this.with_args(expressions=[hidden]))


def _is_query(node: ast.Node) -> bool:
    """Whether parentheses hold a query at last (and not a join)."""
    while isinstance(node, ast.Subquery):
        if node.args.get("alias") is not None or node.args.get("joins"):
            return False
        node = node.this
    return isinstance(node, ast.Query)


def _common_names(left: Scope, right: Scope, node: ast.Node) -> list[tuple[str, ast.Node]]:
    theirs = {name for name, _ in right.visible}
    place = node.this
    return [(name, place) for name in dict.fromkeys(n for n, _ in left.visible) if name in theirs]


def _oid_of(plan: Logical) -> int:
    """Of the table that is read; 0: it is none."""
    match plan:
        case Scan(schema=schema):
            return schema.oid
        case Supplied(relation=relation):
            qualifier, _, name = relation.partition(".")
            found = system_relation(qualifier, name)
            return 0 if found is None else found.oid
        case _:
            return 0


def scan(context: Context, schema: MapSchema, alias: str) -> Logical:
    """All columns of a map; the planner drops those that nobody needs. The initiator supplies the
    rows of temporary tables."""
    if schema.temporary:
        return supplied(context, schema.name, schema.columns, alias=alias)
    output = tuple(
        OutputColumn(context.new_id(), column.name, unrestricted(column.type), column.nullable)
        for column in schema.columns
    )
    return Scan(output, schema, alias, tuple(range(len(output))))


def undefined_map(
    context: Context,
    name: str,
    node: ast.Node | None,
    tables: dict[str, CommonTable] | None = None,
) -> UndefinedMap:
    catalog = told(context.catalog)
    views = list(catalog.view_names())
    guess = closest(name, [*(tables or ()), *catalog.names(), *views])
    known = sorted(catalog.names())
    if guess:
        shown = guess
        stored = "." not in guess and guess not in (tables or ())
        if stored and find(context.catalog, context.path, "", guess) is None:
            shown = f"{PUBLIC}.{guess}"
        hint = f'Did you mean the {"view" if guess in views else "map"} "{shown}"?'
    elif known:
        hint = "Maps: " + ", ".join(known[:10]) + (", ..." if len(known) > 10 else ".")
    else:
        hint = "There are no maps yet: create one with CREATE TABLE or put."
    return context.error(UndefinedMap, f'map "{name}" does not exist', node, hint=hint)


def bind_common_table(
    context: Context, name: str, common: CommonTable, bind_query: QueryBinder
) -> Logical:
    """The plan of a CTE, its columns renamed by ``name (column, ...)``."""
    plan = bind_query(common.node, common.environment)
    if len(common.columns) > len(plan.output):
        raise context.error(
            InvalidColumnReference,
            f'WITH query "{name}" has {len(plan.output)} columns available but '
            f"{len(common.columns)} columns specified",
            common.columns[len(plan.output)],
        )
    if not common.columns:
        return plan
    names = [identifier(column) for column in common.columns]
    output = tuple(
        OutputColumn(c.id, names[i] if i < len(names) else c.name, c.type, c.nullable)
        for i, c in enumerate(plan.output)
    )
    expressions = tuple(ColumnRef(c.type, c.id, c.name) for c in plan.output)
    return Project(output, plan, expressions)
