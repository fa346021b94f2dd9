"""Relational algebra as Spark SQL: every operator is one SELECT over those of its inputs.

Every column is called by its number, ``c7``, and has at each place exactly the Spark type of its
SQL type, so that nothing is converted by rules of Spark's own. The plan that comes in has been
normalized by the planner: subqueries are joins already, and every conversion is written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.plan.expression import (
    AggregateCall,
    Expression,
    Literal,
    SortKey,
    columns_of,
    conjuncts,
)
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    Scan,
    SetOperation,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
)
from remuda.sql.spark_sql.aggregates import aggregate
from remuda.sql.spark_sql.expressions import Expressions, GridFunction, column, native
from remuda.sql.spark_sql.literals import COMPARABLE, literal, name, type_name
from remuda.sql.spark_sql.refusal import refused
from remuda.sql.spark_sql.windows import window

Fold = Callable[[Expression], PhysicalValue]

_JOINS: Final = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.LEFT: "LEFT OUTER JOIN",
    JoinKind.RIGHT: "RIGHT OUTER JOIN",
    JoinKind.FULL: "FULL OUTER JOIN",
    JoinKind.SEMI: "LEFT SEMI JOIN",
    JoinKind.ANTI: "LEFT ANTI JOIN",
}
NOTHING: Final = "nothing"
"""The name of the column that a relation without columns has in Spark."""


@dataclass(frozen=True, slots=True)
class MapScan:
    """A view that must be there: some columns of a map."""

    view: str
    map: str
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]


@dataclass(frozen=True, slots=True)
class SparkQuery:
    """``text`` gives the columns ``types`` of the statement in order."""

    text: str
    types: tuple[SqlType, ...]
    scans: tuple[MapScan, ...]
    functions: tuple[GridFunction, ...]


def spark_query(
    plan: Logical, output: Sequence[OutputColumn], fold: Fold, prefix: str
) -> SparkQuery:
    """``plan`` is normalized and has no parameters; ``output`` are the columns of the statement.
    ``fold`` evaluates expressions without columns. The names of views begin with ``prefix``.
    Raises NotOnSpark with what is in the way."""
    made = _Relations(fold, prefix)
    for wanted in output:
        type_name(wanted.type)
    chosen = ", ".join(f"{column(c.id)} AS r{place}" for place, c in enumerate(output))
    text = _select(chosen or f"1 AS {NOTHING}", made.source(plan))
    functions = tuple(made.expressions.functions.values())
    return SparkQuery(text, tuple(c.type for c in output), tuple(made.scans), functions)


class _Relations:
    def __init__(self, fold: Fold, prefix: str) -> None:
        self.fold = fold
        self.prefix = prefix
        self.expressions = Expressions()
        self.scans: list[MapScan] = []
        self._made = 0

    def source(self, node: Logical) -> str:
        """``node`` as it stands in FROM."""
        if isinstance(node, Join) and node.kind is JoinKind.INNER:
            return self._inner(node)
        return f"({self.select(node)})"

    def select(self, node: Logical) -> str:
        match node:
            case Filter(input=child, condition=condition):
                parts = [self.expressions.text(part) for part in conjuncts(condition)]
                return _select(_names(node.output), self.source(child), where=parts)
            case Project(input=child, expressions=expressions):
                texts = [self.expressions.text(expression) for expression in expressions]
                return _select(_named(texts, node.output), self.source(child))
            case Union(inputs=inputs):
                return self._combined(node, inputs, "UNION ALL")
            case SetOperation(kind=kind, distinct=distinct, inputs=inputs):
                for c in node.output:
                    _comparable(c.type, kind.value)
                return self._combined(node, inputs, kind.value + ("" if distinct else " ALL"))
            case Supplied():
                raise refused(_supplied(node))
            case _:
                return self._by_kind(node)

    def _by_kind(self, node: Logical) -> str:
        match node:
            case Scan():
                return self._scan(node)
            case Join():
                return self._join(node)
            case MarkJoin():
                return self._mark(node)
            case Aggregate():
                return self._aggregate(node)
            case Expand():
                return self._expand(node)
            case Window():
                return self._window(node)
            case Sort():
                return self._sort(node)
            case Values():
                return self._values(node)
            case Unfold(calls=(SetCall(function="given_rows") as call,)):
                return self._values(_given_rows(node, call))
            case _:
                raise refused(_WORDS.get(type(node).__name__, type(node).__name__))

    def _fresh(self) -> str:
        self._made += 1
        return f"x{self._made}"

    # --- leaves -------------------------------------------------------------------------------

    def _scan(self, node: Scan) -> str:
        found = [node.schema.columns[position] for position in node.positions]
        texts = [name(c.name) for c in found]
        for c in found:
            type_name(c.type)
        view = f"{self.prefix}_{len(self.scans)}"
        # Where only the number of rows matters, some column must do.
        read = {c.name: c.type for c in found or [node.schema.column(node.schema.key[0])]}
        self.scans.append(MapScan(view, node.schema.name, tuple(read), tuple(read.values())))
        return _select(_named(texts, node.output), view)

    def _values(self, node: Values) -> str:
        rows = [
            "SELECT "
            + _named(
                [literal(v, c.type) for v, c in zip(row, node.output, strict=True)], node.output
            )
            for row in node.rows
        ]
        if rows:
            return " UNION ALL ".join(rows)
        nulls = [literal(None, c.type) for c in node.output]
        return f"SELECT {_named(nulls, node.output)} WHERE false"

    # --- one input ----------------------------------------------------------------------------

    def _computed(self, source: str, expressions: Iterable[Expression]) -> tuple[str, list[str]]:
        """Texts of ``expressions`` over the source that is returned with them: expressions that run
        in Python are computed below, where Spark takes it."""
        texts: list[str] = []
        below: list[str] = []
        for expression in expressions:
            text = native(expression)
            if text is None:
                alias = self._fresh()
                below.append(f"{self.expressions.text(expression)} AS {alias}")
                text = alias
            texts.append(text)
        if below:
            source = f"({_select(', '.join(['*', *below]), source)})"
        return source, texts

    def _aggregate(self, node: Aggregate) -> str:
        groups = node.output[: len(node.group)]
        for group in groups:
            _comparable(group.type, "GROUP BY or DISTINCT")
        source, real = self.source(node.input), ""
        if node.always:
            source, real = self._with_always(node, source)
        parts = [part for call in node.calls for part in call.expressions]
        source, texts = self._computed(source, parts)
        rest = iter(texts)
        made = [column(c.id) for c in groups]
        made += [self._call(call, rest, real) for call in node.calls]
        by = ", ".join(column(identity) for identity in node.group)
        if not made:
            return _select(f"count(*) AS {NOTHING}", source)
        text = _select(_named(made, node.output), source)
        return text + (f" GROUP BY {by}" if by else "")

    def _call(self, call: AggregateCall, texts: Iterable[str], real: str) -> str:
        rest = iter(texts)
        arguments = [next(rest) for _ in call.arguments]
        order = [
            f"{next(rest)} {_direction(key.descending, key.nulls_first)}" for key in call.order
        ]
        own = next(rest) if call.filter is not None else None
        conditions = [part for part in (real, own) if part]
        return aggregate(call, arguments, " AND ".join(conditions) or None, order)

    def _with_always(self, node: Aggregate, source: str) -> tuple[str, str]:
        """A row for each group that is always there, and the condition that leaves these rows out
        of the calls."""
        below, mark = node.input.output, self._fresh()
        rows = [_select(f"{_names(below)}, true AS {mark}", source)]
        for values in node.always:
            given = dict(zip(node.group, values, strict=True))
            texts = [literal(given.get(c.id), c.type) for c in below]
            rows.append(f"SELECT {_named(texts, below)}, false AS {mark}")
        return f"({' UNION ALL '.join(rows)})", mark

    def _expand(self, node: Expand) -> str:
        below, place_of_set = node.input.output, self._fresh()
        copies = node.output[len(below) : len(below) + len(node.sources)]
        texts = [column(c.id) for c in below]
        for place, (identity, copy) in enumerate(zip(node.sources, copies, strict=True)):
            keeping = ", ".join(str(n) for n, kept in enumerate(node.sets) if place in kept)
            null = literal(None, copy.type)
            value = f"CASE WHEN {place_of_set} IN ({keeping}) THEN {column(identity)} "
            texts.append(f"{value}ELSE {null} END" if keeping else null)
        texts.append(f"CAST({place_of_set} AS {type_name(node.output[-1].type)})")
        numbers = ", ".join(str(n) for n in range(len(node.sets)))
        each = f"{_names(below)}, explode(array({numbers})) AS {place_of_set}"
        source = f"({_select(each, self.source(node.input))})"
        return _select(_named(texts, node.output), source)

    def _window(self, node: Window) -> str:
        below = node.input.output
        types = {c.id: c.type for c in below}
        for identity in (*node.partition, *(key.column for key in node.order)):
            _comparable(types[identity], "a window over it")
        parts: list[Expression] = []
        for call in node.calls:
            parts += call.arguments
            parts += [call.filter] if call.filter is not None else []
        source, texts = self._computed(self.source(node.input), parts)
        rest = iter(texts)
        by = ", ".join(column(identity) for identity in node.partition)
        partition = f"PARTITION BY {by}" if by else ""
        order = f"ORDER BY {_keys(node.order)}" if node.order else ""
        made = [column(c.id) for c in below]
        for call in node.calls:
            arguments = [next(rest) for _ in call.arguments]
            condition = next(rest) if call.filter is not None else None
            made.append(window(call, arguments, condition, partition, order))
        return _select(_named(made, node.output), source)

    def _sort(self, node: Sort) -> str:
        types = {c.id: c.type for c in node.input.output}
        for key in node.keys:
            _comparable(types[key.column], "ORDER BY")
        text = _select(_names(node.output), self.source(node.input))
        if node.keys:
            text += f" ORDER BY {_keys(node.keys)}"
        for word, expression in (("LIMIT", node.limit), ("OFFSET", node.offset)):
            number = None if expression is None else self._number(expression)
            if number is not None:
                if not 0 <= number < 2**31:
                    raise refused(f"{word} {number}")
                text += f" {word} {number}"
        return text

    def _number(self, expression: Expression) -> int | None:
        value = expression.value if isinstance(expression, Literal) else self.fold(expression)
        return value if isinstance(value, int) else None

    # --- several inputs -----------------------------------------------------------------------

    def _combined(self, node: Logical, inputs: tuple[Logical, ...], word: str) -> str:
        """Set operations go by position; the names are those of the first input."""
        parts = [f"({_select(_names(i.output), self.source(i))})" for i in inputs]
        texts = [column(c.id) for c in inputs[0].output]
        together = parts[0]
        for part in parts[1:]:
            together = f"({together} {word} {part})"
        return _select(_named(texts, node.output), together)

    def _inner(self, node: Join) -> str:
        """Inner joins side by side, as Spark's own search for the order of joins wants them."""
        left, right = self.source(node.left), self.source(node.right)
        conditions = self._conditions(node)
        if conditions is None:
            return f"({self._join(node)})"
        word = f" ON {' AND '.join(conditions)}" if conditions else ""
        return f"({left} {'INNER' if conditions else 'CROSS'} JOIN {right}{word})"

    def _conditions(self, node: Join) -> list[str] | None:
        """None: some of them are computed in Python."""
        found = [native(part) for part in conjuncts(node.condition)]
        return None if None in found else [part for part in found if part is not None]

    def _join(self, node: Join) -> str:
        inner = node.kind is JoinKind.INNER
        left, right = self.source(node.left), self.source(node.right)
        conditions: list[str] = []
        after: list[str] = []
        for part in conjuncts(node.condition):
            text = native(part)
            used = columns_of(part)
            if text is not None:
                conditions.append(text)
            elif inner:
                after.append(self.expressions.text(part))
            elif used <= node.left.column_ids:
                left, (text,) = self._computed(left, [part])
                conditions.append(text)
            elif used <= node.right.column_ids:
                right, (text,) = self._computed(right, [part])
                conditions.append(text)
            else:
                raise refused("the condition of an outer join")
        on = " AND ".join(conditions) or "true"
        source = f"{left} {_JOINS[node.kind]} {right} ON {on}"
        return _select(_names(node.output), source, where=after)

    def _mark(self, node: MarkJoin) -> str:
        """Every row of the left side gets a number, is joined with the rows for which the condition
        is not false, and is put together again."""
        row, hit, mark = self._fresh(), self._fresh(), self._fresh()
        guard = [self._native_part(part) for part in conjuncts(node.guard)]
        condition = "true"
        if node.condition is not None:
            condition = self._native_part(node.condition)
            guard.append(
                condition
                if _is_equality(node.condition) and not _nullable(node)
                else f"coalesce({condition}, true)"
            )
        numbered = f"*, monotonically_increasing_id() AS {row}"
        left = f"({_select(numbered, self.source(node.left))})"
        right = f"({_select(f'*, true AS {hit}', self.source(node.right))})"
        own = [column(c.id) for c in node.left.output]
        marked = f"CASE WHEN {hit} IS NULL THEN false ELSE {condition} END AS {mark}"
        on = " AND ".join(guard) or "true"
        joined = _select(", ".join([*own, row, marked]), f"{left} LEFT OUTER JOIN {right} ON {on}")
        result = (
            f"CASE WHEN bool_or({mark}) THEN true WHEN count({mark}) < count(*) "
            f"THEN CAST(NULL AS BOOLEAN) ELSE false END"
        )
        texts = [f"first({text})" for text in own] + [result]
        return f"{_select(_named(texts, node.output), f'({joined})')} GROUP BY {row}"

    def _native_part(self, expression: Expression) -> str:
        found = native(expression)
        if found is None:
            raise refused("a subquery with such a condition")
        return found


def _given_rows(node: Unfold, call: SetCall) -> Values:
    """The rows of a long VALUES, whose parameters are constants here."""
    cells = [part.value for part in call.arguments if isinstance(part, Literal)]
    width = len(call.types)
    rows = [tuple(cells[first : first + width]) for first in range(0, len(cells), width)]
    return Values(node.output, tuple(rows))


_WORDS: Final = {
    "Unfold": "a function that gives rows",
    "DependentJoin": "LATERAL",
}


def _select(columns: str, source: str, where: Sequence[str] = ()) -> str:
    """The one form of everything here. Names are numbers or quoted, constants are written by
    ``literals``: nothing of what a user has written stands in it."""
    text = f"SELECT {columns} FROM {source}"  # noqa: S608 (see above)
    return text + (f" WHERE {' AND '.join(where)}" if where else "")


def _supplied(node: Supplied) -> str:
    if node.definition is None:
        return f"the system relation {node.relation}"
    if node.definition.step is not None:
        return "WITH RECURSIVE"
    return "a query that must be computed only once"


def _is_equality(expression: Expression) -> bool:
    return getattr(expression, "function", "") == "="


def _nullable(node: MarkJoin) -> bool:
    """Whether a value that the condition compares may be NULL."""
    assert node.condition is not None
    sides = {c.id: c.nullable for c in (*node.left.output, *node.right.output)}
    used = columns_of(node.condition)
    plain = all(type(part).__name__ == "ColumnRef" for part in node.condition.arguments)  # type: ignore[attr-defined]
    return not plain or any(sides.get(identity, True) for identity in used)


def _comparable(sql_type: SqlType, where: str) -> None:
    if sql_type.kind not in COMPARABLE:
        raise refused(f"{where} of type {sql_type}")


def _names(output: Sequence[OutputColumn]) -> str:
    return ", ".join(column(c.id) for c in output) or f"1 AS {NOTHING}"


def _named(texts: Sequence[str], output: Sequence[OutputColumn]) -> str:
    pairs = zip(texts, output, strict=True)
    return ", ".join(f"{text} AS {column(c.id)}" for text, c in pairs) or f"1 AS {NOTHING}"


def _keys(keys: Sequence[SortKey]) -> str:
    return ", ".join(
        f"{column(key.column)} {_direction(key.descending, key.nulls_first)}" for key in keys
    )


def _direction(descending: bool, nulls_first: bool) -> str:
    return f"{'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
