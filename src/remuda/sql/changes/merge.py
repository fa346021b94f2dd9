"""MERGE: one query that says for every pair of source and target row which clause applies.

The source is joined with the target; a first projection finds the WHEN clause of each row, a second
one what becomes of it: an action (see ``statements.MergeAction``), the row to write, the key to
remove, the columns of RETURNING.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BOOLEAN, INTEGER, VARCHAR
from remuda.errors import Position, SqlSyntaxError
from remuda.plan.expression import Call, Case, ColumnRef, Expression, Literal
from remuda.plan.logical import Filter, Logical
from remuda.sql.changes.generated_columns import computed, refuse_given, refuse_value
from remuda.sql.changes.modify import assignments_of, joined_rows, target_of
from remuda.sql.changes.returning import Outcome, returned
from remuda.sql.changes.rows import insert_positions
from remuda.sql.definitions.constraints import default_of
from remuda.sql.expressions.calls import function_name
from remuda.sql.expressions.expressions import Embedding, ExpressionBinder
from remuda.sql.queries.queries import bind_query
from remuda.sql.queries.relations import CommonTable, Environment
from remuda.sql.scope.context import Context, identifier
from remuda.sql.scope.output import project
from remuda.sql.scope.scope import Scope
from remuda.sql.scope.statements import ChangeStatement, MergeAction, Repeats
from remuda.sql.text.places import position_at
from remuda.sql.trees import ast

MARK: Final = "source row"
"""A column that is true where there is a source row."""
ACTION_RELATION: Final = "merge action"
ACTION_NAMES: Final = {
    MergeAction.INSERT: "INSERT",
    MergeAction.UPDATE: "UPDATE",
    MergeAction.DELETE: "DELETE",
}


@dataclass(slots=True)
class _Clause:
    """One WHEN. ``values``: by schema position, the values that the row gets (UPDATE: the changed
    ones)."""

    node: ast.Node
    matched: bool
    by_source: bool
    condition: Expression | None = None
    action: MergeAction | None = None
    values: dict[int, Expression] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        if self.matched:
            return "MATCHED"
        return "NOT MATCHED BY SOURCE" if self.by_source else "NOT MATCHED"


def bind_merge(context: Context, node: ast.Merge) -> ChangeStatement:
    """The statement without its parameter types (the caller knows them at the end)."""
    context.only(node, "this", "using", "on", "whens", "returning", "with_")
    schema, alias = target_of(context, node.this, "this", "alias")
    whens = [_when(context, when) for when in node.args["whens"]]
    _check_order(context, whens)
    return _Merge(context, node, schema, alias, whens).bind()


def _when(context: Context, node: ast.Node) -> _Clause:
    context.only(node, "matched", "source", "condition", "then")
    clause = _Clause(node, bool(node.args.get("matched")), bool(node.args.get("source")))
    then = node.args["then"]
    word = str(then.this).upper() if isinstance(then, ast.Var) else ""
    if isinstance(then, ast.Update):
        clause.action = MergeAction.UPDATE
    elif isinstance(then, ast.Insert):
        clause.action = MergeAction.INSERT
    elif word == "DELETE":
        clause.action = MergeAction.DELETE
    elif word != "DO NOTHING":
        raise context.unsupported(
            f"MERGE with {word or type(then).__name__.upper()}",
            then,
            hint="Write UPDATE SET, DELETE, INSERT or DO NOTHING.",
        )
    inserts = clause.action is MergeAction.INSERT
    changes = clause.action in (MergeAction.UPDATE, MergeAction.DELETE)
    if (inserts and clause.kind != "NOT MATCHED") or (changes and clause.kind == "NOT MATCHED"):
        name = ACTION_NAMES[clause.action] if clause.action is not None else ""
        raise SqlSyntaxError(
            f"{name} is not possible WHEN {clause.kind}",
            position=_place_of_when(context, node),
            hint="Rows are inserted WHEN NOT MATCHED, and updated or deleted otherwise.",
        )
    return clause


def _check_order(context: Context, whens: Sequence[_Clause]) -> None:
    final: set[str] = set()
    for clause in whens:
        if clause.kind in final:
            raise SqlSyntaxError(
                "unreachable WHEN clause specified after unconditional WHEN clause",
                position=_place_of_when(context, clause.node),
            )
        if clause.node.args.get("condition") is None:
            final.add(clause.kind)


def _place_of_when(context: Context, node: ast.Node) -> Position:
    return position_at(context.text, node.start, node.end - node.start + 1)


class _Merge:
    def __init__(
        self,
        context: Context,
        node: ast.Merge,
        schema: MapSchema,
        alias: str,
        whens: Sequence[_Clause],
    ) -> None:
        self.context = context
        self.node = node
        self.schema = schema
        self.alias = alias
        self.whens = whens

    def bind(self) -> ChangeStatement:
        context, schema = self.context, self.schema
        plan, scope, mark, self.tables = self._joined()
        self.old = [reference for _, reference in scope.relations[self.alias]]
        target = Scope()
        target.add(context, self.alias, scope.relations[self.alias], self.node)
        source = Scope()
        for name, columns in scope.relations.items():
            if name != self.alias:
                source.add(context, name, columns, self.node)
        for clause in self.whens:
            seen = scope if clause.matched else target if clause.by_source else source
            self._bind_clause(clause, replace(seen, owner="MERGE"))
        plan, chosen = self._with_choice(plan, mark)
        plan, rows = self._with_generated(plan, self._rows(chosen))
        keys, action = self._keys(), self._action(chosen)
        clause_node = self.node.args.get("returning")
        outcome = self._returned(plan, scope, chosen, [action, *rows, *keys], clause_node)
        return ChangeStatement(
            verb="MERGE",
            schema=schema,
            source=outcome.plan,
            writes=True,
            removes=True,
            insert_only=True,
            reads_target=True,
            repeats=Repeats.REFUSE,
            returning=outcome.names,
            chooses=True,
        )

    # --- source and target side by side -------------------------------------------------------

    def _joined(self) -> tuple[Logical, Scope, Expression, dict[str, CommonTable]]:
        """Source LEFT (or FULL) JOIN target, their columns, the mark of the source, and CTEs."""
        using = self.node.args["using"]
        alias = using.args.get("alias")
        name = alias.this if alias is not None and alias.this is not None else using.this
        if not isinstance(name, ast.Identifier):
            raise self.context.error(SqlSyntaxError, "the source of MERGE needs an alias", using)
        mark = ast.Alias(this=ast.Boolean(this=True), alias=ast.name(MARK))
        inner = ast.Select(expressions=[ast.Star(), mark], from_=ast.From(this=using))
        outer = ast.Subquery(this=inner, alias=ast.TableAlias(this=name))
        side = "FULL" if any(clause.by_source for clause in self.whens) else "LEFT"
        join = ast.Join(this=self.node.this, side=side, on=self.node.args["on"])
        plan, scope, tables = joined_rows(self.context, outer, [join], self.node.args.get("with_"))
        source = identifier(name)
        found = next(e for n, e in scope.relations[source] if n == MARK)
        scope.relations[source] = [(n, e) for n, e in scope.relations[source] if e is not found]
        scope.visible = [(n, e) for n, e in scope.visible if e is not found]
        return plan, scope, found, tables

    # --- clauses ------------------------------------------------------------------------------

    def _bind_clause(self, clause: _Clause, scope: Scope) -> None:
        around = Environment(self.tables, scope)
        embedding = Embedding(
            self.context,
            f"WHEN {clause.kind}",
            lambda inner: bind_query(self.context, inner, around),
        )
        binder = ExpressionBinder(self.context, scope, embedding)
        condition = clause.node.args.get("condition")
        if condition is not None:
            clause.condition = binder.condition(condition, "WHEN")
        then = clause.node.args["then"]
        if clause.action is MergeAction.UPDATE:
            found = assignments_of(self.context, self.schema, self.alias, then.expressions)
            for assignment in found:
                column = self.schema.columns[assignment.position]
                refuse_value(self.context, column, assignment.value, assignment.place)
                clause.values[assignment.position] = self._value(
                    binder, assignment.position, assignment.value
                )
        elif clause.action is MergeAction.INSERT:
            self._insert(binder, clause, then)

    def _insert(self, binder: ExpressionBinder, clause: _Clause, then: ast.Insert) -> None:
        context, schema = self.context, self.schema
        columns, values = list(then.args.get("columns") or ()), then.args.get("expression")
        if then.args.get("default"):
            clause.values = {p: default_of(column) for p, column in enumerate(schema.columns)}
            return
        if not isinstance(values, ast.Tuple):
            raise context.unsupported(
                "this form of INSERT in MERGE",
                clause.node,
                hint="Write INSERT (column, ...) VALUES (value, ...).",
            )
        positions = insert_positions(context, schema, columns)
        overriding = str(then.args.get("overriding") or "")
        cells = values.expressions
        if len(cells) > len(positions):
            raise context.error(
                SqlSyntaxError, "INSERT has more expressions than target columns", cells[-1]
            )
        if len(cells) < len(positions) and columns:
            raise context.error(
                SqlSyntaxError,
                "INSERT has more target columns than expressions",
                columns[len(cells)],
            )
        positions = positions[: len(cells)]
        clause.values = {p: default_of(column) for p, column in enumerate(schema.columns)}
        for position, cell in zip(positions, cells, strict=True):
            column = schema.columns[position]
            if overriding == "USER" and column.identity is not None:
                cell = ast.Var(cell.start, cell.end, this="DEFAULT")  # noqa: PLW2901 (its meaning)
            if not _is_default(cell):
                refuse_given(context, column, cell, overrides=overriding == "SYSTEM")
            clause.values[position] = self._value(
                binder, position, None if _is_default(cell) else cell
            )

    def _value(self, binder: ExpressionBinder, position: int, node: ast.Node | None) -> Expression:
        column = self.schema.columns[position]
        if node is None:
            return default_of(column)
        return binder.convert.assigned(
            binder.bind(node), column.type, node, f'column "{column.name}"'
        )

    # --- what becomes of a row ----------------------------------------------------------------

    def _with_choice(self, plan: Logical, mark: Expression) -> tuple[Logical, ColumnRef]:
        """``plan`` with the number of each row's WHEN clause, without rows that have none."""
        key = self.old[self.schema.key_positions[0]]
        exists, absent = _call("is_not_null", key), _call("is_null", key)
        kinds = {
            "MATCHED": _both(_call("is_true", mark), exists),
            "NOT MATCHED": _both(_call("is_true", mark), absent),
            "NOT MATCHED BY SOURCE": _call("is_null", mark),
        }
        branches = []
        for number, clause in enumerate(self.whens):
            condition = kinds[clause.kind]
            if clause.condition is not None:
                condition = _both(condition, clause.condition)
            doing = number if clause.action is not None else None
            branches.append((condition, Literal(INTEGER, doing)))
        choice = Case(INTEGER, tuple(branches), Literal(INTEGER, None))
        names = [column.name for column in plan.output]
        kept: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in plan.output]
        ids = {column.id for column in plan.output}
        made = project(self.context, plan, [*names, "clause"], [*kept, choice])
        assert all(column.id in ids for column in made.output[:-1]), "columns keep their ids"
        last = made.output[-1]
        chosen = ColumnRef(last.type, last.id, last.name)
        return Filter(made.output, made, _call("is_not_null", chosen)), chosen

    def _by_clause(self, chosen: Expression, value: Callable[[_Clause], Expression]) -> Expression:
        """The value that belongs to the row's clause; the last one needs no test."""
        doing = [(n, c) for n, c in enumerate(self.whens) if c.action is not None]
        values = [value(clause) for _, clause in doing]
        if not values:  # nothing is done with any row
            return value(self.whens[0])
        if all(other == values[0] for other in values):
            return values[0]
        tests = [_call("=", chosen, Literal(INTEGER, number)) for number, _ in doing[:-1]]
        branches = tuple(zip(tests, values[:-1], strict=True))
        return Case(values[-1].type, branches, values[-1])

    def _rows(self, chosen: Expression) -> list[Expression]:
        """The written row; of a deleted one its last values."""
        return [
            self._by_clause(chosen, lambda clause, p=position: clause.values.get(p, self.old[p]))  # type: ignore[misc]
            for position in range(len(self.schema.columns))
        ]

    def _with_generated(
        self, plan: Logical, rows: list[Expression]
    ) -> tuple[Logical, list[Expression]]:
        """The plan with the rows, so that generated columns compute no value of them twice."""
        if not self.schema.generated:
            return plan, rows
        kept: list[Expression] = [ColumnRef(c.type, c.id, c.name) for c in plan.output]
        names = [c.name for c in plan.output] + [c.name for c in self.schema.columns]
        made = project(self.context, plan, names, [*kept, *rows])
        stored = [ColumnRef(c.type, c.id, c.name) for c in made.output[len(kept) :]]
        return made, computed(self.schema, stored)

    def _keys(self) -> list[Expression]:
        return [self.old[position] for position in self.schema.key_positions]

    def _action(self, chosen: Expression) -> Expression:
        return self._by_clause(
            chosen, lambda clause: Literal(INTEGER, clause.action.value if clause.action else 0)
        )

    def _returned(
        self,
        plan: Logical,
        scope: Scope,
        chosen: Expression,
        stored: Sequence[Expression],
        clause: ast.Node | None,
    ) -> Outcome:
        """Target columns mean the new row, or the old one where it was deleted."""
        rows = stored[1 : 1 + len(self.schema.columns)]
        relations = dict(scope.relations)
        news = [(name, new) for (name, _), new in zip(relations[self.alias], rows, strict=True)]
        olds = dict(zip((id(e) for e in self.old), news, strict=True))
        relations[self.alias] = news
        visible = [olds.get(id(e), (n, e)) for n, e in scope.visible]
        action = self._by_clause(
            chosen, lambda c: Literal(VARCHAR, ACTION_NAMES[c.action] if c.action else None)
        )
        with_actions = Scope(visible, relations)
        if clause is not None:
            clause = _with_action(clause)
            with_actions.relations[ACTION_RELATION] = [("merge_action", action)]
        return returned(self.context, Outcome(plan, with_actions, stored), clause)


def _with_action(clause: ast.Node) -> ast.Node:
    """RETURNING with columns for calls of merge_action()."""

    def changed(part: ast.Node) -> ast.Node | None:
        is_call = isinstance(part, ast.Call) and function_name(part) == "merge_action"
        if not is_call or part.expressions:
            return None
        name, table = ast.name("merge_action"), ast.name(ACTION_RELATION)
        return ast.Column(part.start, part.end, this=name, table=table)

    return clause.rewritten(changed)


def _is_default(node: ast.Node) -> bool:
    return isinstance(node, ast.Var) and str(node.this).upper() == "DEFAULT"


def _call(function: str, *arguments: Expression) -> Expression:
    return Call(BOOLEAN, function, arguments)


def _both(left: Expression, right: Expression) -> Expression:
    return _call("and", left, right)
