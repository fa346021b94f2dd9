"""Prints logical plans as compact trees: for tests and EXPLAIN VERBOSE.

Columns print as ``name#id``, so that equal names stay apart.
"""

from __future__ import annotations

from collections.abc import Collection

from remuda.plan.expression import ColumnId, ColumnRef, Expression, Subquery, columns_of
from remuda.plan.logical import (
    Aggregate,
    DependentJoin,
    Expand,
    Filter,
    Join,
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
    inputs_of,
)
from remuda.plan.printing import aggregate_text, expression_text, sort_text, value_text
from remuda.plan.uses import expressions_of, subqueries_of
from remuda.plan.windows import window_call_text

_SHOWN_ROWS = 3


def logical_text(plan: Logical, used_around: Collection[ColumnId] = ()) -> str:
    """The tree, one operator per line, inputs indented below it; plans of subqueries come before
    the inputs of the operator in whose expressions they stand."""
    used = used_columns(plan) | set(used_around)
    lines: list[str] = []
    pending: list[tuple[Logical, int]] = [(plan, 0)]
    while pending:
        node, depth = pending.pop()
        lines.append("  " * depth + _line(node, used))
        for subquery in _subqueries(node):
            lines.append("  " * (depth + 1) + "Subquery")
            inner = logical_text(subquery.plan, used).splitlines()
            lines += ["  " * (depth + 2) + line for line in inner]
        pending += [(child, depth + 1) for child in reversed(inputs_of(node))]
    return "\n".join(lines)


def used_columns(plan: Logical) -> set[ColumnId]:
    """Ids that the root puts out or any operator refers to: scans print only those."""
    used = {column.id for column in plan.output}
    pending = [plan]
    while pending:
        node = pending.pop()
        for expression in expressions_of(node):
            used |= columns_of(expression)
        match node:
            case Aggregate(group=group):
                used |= set(group)
            case Window(partition=partition, order=order):
                used |= set(partition) | {key.column for key in order}
            case Sort(keys=keys):
                used |= {key.column for key in keys}
            case Expand(sources=sources):
                used |= set(sources)
            case _:
                pass
        pending += inputs_of(node)
    return used


def _name(column: ColumnId, name: str | None) -> str:
    return f"{name or ''}#{column}"


def _line(node: Logical, used: set[ColumnId]) -> str:
    match node:
        case Scan(schema=schema, alias=alias, output=output):
            shown = ", ".join(_column(c) for c in output if c.id in used)
            name = schema.name if alias == schema.name else f"{schema.name} {alias}"
            return f"Scan {name} [{shown}]"
        case Project(output=output, expressions=expressions):
            pairs = zip(output, expressions, strict=True)
            return "Project [" + ", ".join(_projected(c, e) for c, e in pairs) + "]"
        case Filter(condition=condition):
            return f"Filter {expression_text(condition, _name)}"
        case Join(kind=kind, condition=condition):
            shown = "" if condition is None else f" on {expression_text(condition, _name)}"
            return f"Join {kind.value}{shown}"
        case MarkJoin() | DependentJoin():
            return _special_join(node)
        case Aggregate(output=output, group=group, calls=calls):
            keys = ", ".join(_reference(c) for c in output[: len(group)])
            results = output[len(group) :]
            shown = ", ".join(
                f"{_column(c)} = {aggregate_text(call, _name)}"
                for c, call in zip(results, calls, strict=True)
            )
            return f"Aggregate by [{keys}] compute [{shown}]"
        case Expand():
            return _expand(node)
        case Window() | Sort():
            return _window(node) if isinstance(node, Window) else _sort(node)
        case Values() | Supplied() | Unfold():
            return _unfold(node) if isinstance(node, Unfold) else _leaf(node)
        case Union() | SetOperation():
            return _set_operation(node)
        case _:
            return type(node).__name__


def _set_operation(node: Union | SetOperation) -> str:
    word = "Union"
    if isinstance(node, SetOperation):
        word = node.kind.value.capitalize() + ("" if node.distinct else " all")
    return f"{word} [" + ", ".join(_column(c) for c in node.output) + "]"


def _sort(node: Sort) -> str:
    parts = []
    if node.keys:
        names = {column.id: column.name for column in node.output}
        parts.append(f"by [{sort_text(node.keys, lambda i, _: _name(i, names.get(i)))}]")
    if node.limit is not None:
        parts.append(f"limit {expression_text(node.limit, _name)}")
    if node.offset is not None:
        parts.append(f"offset {expression_text(node.offset, _name)}")
    return "Sort " + " ".join(parts)


def _unfold(node: Unfold) -> str:
    calls = ", ".join(
        f"{call.function}"
        f"({', '.join(expression_text(part, _name) for part in call.shown_arguments)})"
        for call in node.calls
    )
    results = ", ".join(_column(column) for column in node.output[len(node.input.output) :])
    return f"Unfold {calls} as [{results}]" + (" or NULL" if node.outer else "")


def _leaf(node: Values | Supplied) -> str:
    columns = ", ".join(_column(c) for c in node.output)
    if isinstance(node, Supplied):
        return f"Supplied {node.relation} [{columns}]"
    types = [column.type for column in node.output]
    texts = [
        "(" + ", ".join(value_text(v, t) for v, t in zip(row, types, strict=True)) + ")"
        for row in node.rows[:_SHOWN_ROWS]
    ]
    if len(node.rows) > _SHOWN_ROWS:
        texts.append(f"... {len(node.rows)} rows")
    return f"Values [{columns}] " + ", ".join(texts)


def _expand(node: Expand) -> str:
    added = node.output[len(node.input.output) :]
    sources = {column.id: column for column in node.input.output}
    copies = [
        f"{_column(copy)} = {_reference(sources[source])}"
        for copy, source in zip(added[:-1], node.sources, strict=True)
    ]
    names = [copy.name for copy in added]
    sets = ", ".join("(" + ", ".join(names[i] for i in kept) + ")" for kept in node.sets)
    return f"Expand to [{sets}] with [{', '.join([*copies, _column(added[-1])])}]"


def _special_join(node: MarkJoin | DependentJoin) -> str:
    texts = []
    if isinstance(node, MarkJoin):
        start = f"Mark join [{_column(node.mark)}]"
        if node.guard is not None:
            texts.append(f" where {expression_text(node.guard, _name)}")
    else:
        start = f"Dependent join {node.kind.value}"
    if node.condition is not None:
        texts.append(f" on {expression_text(node.condition, _name)}")
    return start + "".join(texts)


def _subqueries(node: Logical) -> list[Subquery]:
    """The subqueries in the expressions of ``node``, each plan once."""
    found: dict[int, Subquery] = {}
    for subquery in subqueries_of(node):
        found.setdefault(id(subquery.plan), subquery)
    return list(found.values())


def _window(node: Window) -> str:
    names = {column.id: column.name for column in node.output}
    keys = ", ".join(_name(column, names.get(column)) for column in node.partition)
    text = f"Window partition by [{keys}]"
    if node.order:
        text += f" order by [{sort_text(node.order, lambda i, _: _name(i, names.get(i)))}]"
    results = node.output[len(node.input.output) :]
    shown = ", ".join(
        f"{_column(column)} = {window_call_text(call, _name)}"
        for column, call in zip(results, node.calls, strict=True)
    )
    return f"{text} compute [{shown}]"


def _column(column: OutputColumn) -> str:
    return f"{_reference(column)} {column.type}" + ("" if column.nullable else " NOT NULL")


def _reference(column: OutputColumn) -> str:
    return f"{column.name}#{column.id}"


def _projected(column: OutputColumn, expression: Expression) -> str:
    if isinstance(expression, ColumnRef) and expression.column == column.id:
        return _column(column)
    return f"{_column(column)} = {expression_text(expression, _name)}"
