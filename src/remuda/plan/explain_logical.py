"""Prints logical plans as compact trees: for tests and EXPLAIN VERBOSE.

Columns print as ``name#id``, so that equal names stay apart.
"""

from __future__ import annotations

from remuda.plan.expression import ColumnId, ColumnRef, Expression, columns_of
from remuda.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Logical,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Union,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.printing import aggregate_text, expression_text, sort_text, value_text
from remuda.plan.windows import expressions_of, window_call_text

_SHOWN_ROWS = 3


def logical_text(plan: Logical) -> str:
    """The tree, one operator per line, inputs indented below it."""
    used = used_columns(plan)
    lines: list[str] = []
    pending: list[tuple[Logical, int]] = [(plan, 0)]
    while pending:
        node, depth = pending.pop()
        lines.append("  " * depth + _line(node, used))
        pending += [(child, depth + 1) for child in reversed(inputs_of(node))]
    return "\n".join(lines)


def used_columns(plan: Logical) -> set[ColumnId]:
    """Ids that the root puts out or any operator refers to: scans print only those."""
    used = {column.id for column in plan.output}
    pending = [plan]
    while pending:
        node = pending.pop()
        match node:
            case Project(expressions=expressions):
                _collect(expressions, used)
            case Filter(condition=condition):
                _collect((condition,), used)
            case Join(condition=condition) if condition is not None:
                _collect((condition,), used)
            case Aggregate(group=group, calls=calls):
                used |= set(group)
                for call in calls:
                    _collect(tuple(e for e in (call.argument, call.filter) if e is not None), used)
            case Window(partition=partition, order=order, calls=window_calls):
                used |= set(partition) | {key.column for key in order}
                for window_call in window_calls:
                    _collect(tuple(expressions_of(window_call)), used)
            case Sort(keys=keys):
                used |= {key.column for key in keys}
            case _:
                pass
        pending += inputs_of(node)
    return used


def _collect(expressions: tuple[Expression, ...], used: set[ColumnId]) -> None:
    for expression in expressions:
        used |= columns_of(expression)


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
        case Aggregate(output=output, group=group, calls=calls):
            keys = ", ".join(_reference(c) for c in output[: len(group)])
            results = output[len(group) :]
            shown = ", ".join(
                f"{_column(c)} = {aggregate_text(call, _name)}"
                for c, call in zip(results, calls, strict=True)
            )
            return f"Aggregate by [{keys}] compute [{shown}]"
        case Window():
            return _window(node)
        case Sort(output=output, keys=keys, limit=limit, offset=offset):
            parts = []
            if keys:
                names = {column.id: column.name for column in output}
                parts.append(f"by [{sort_text(keys, lambda i, _: _name(i, names.get(i)))}]")
            if limit is not None:
                parts.append(f"limit {expression_text(limit, _name)}")
            if offset is not None:
                parts.append(f"offset {expression_text(offset, _name)}")
            return "Sort " + " ".join(parts)
        case Values(output=output, rows=rows):
            types = [column.type for column in output]
            texts = [
                "(" + ", ".join(value_text(v, t) for v, t in zip(row, types, strict=True)) + ")"
                for row in rows[:_SHOWN_ROWS]
            ]
            if len(rows) > _SHOWN_ROWS:
                texts.append(f"... {len(rows)} rows")
            return f"Values [{', '.join(_column(c) for c in output)}] " + ", ".join(texts)
        case Union(output=output):
            return "Union [" + ", ".join(_column(c) for c in output) + "]"
        case _:
            return type(node).__name__


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
