"""Rules that narrow rows: fewer projections, fewer columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from remuda.plan.expression import (
    ColumnId,
    ColumnRef,
    Expression,
    Literal,
    columns_of,
    walk,
)
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.windows import expressions_of
from remuda.planner.algebra import (
    columns,
    in_order,
    is_rename,
    make_expand,
    make_filter,
    make_join,
    make_mark_join,
    make_unfold,
    make_window,
    project_map,
    reference,
    rename,
    rename_call,
    rename_keys,
    rename_window_call,
    substitute,
    window_results,
    with_inputs,
)
from remuda.planner.rules.rule import Rewriting, Rule
from remuda.planner.sharing import SharedRead, kept_columns

# --- projections ---------------------------------------------------------------------------


def _merge_projects(node: Logical, _: Rewriting) -> Logical | None:
    """One Project for two, unless that would compute an expression twice."""
    match node:
        case Project(input=Project(input=child) as inner, expressions=expressions):
            inside = project_map(inner)
            uses = Counter(
                part.column
                for expression in expressions
                for part in walk(expression)
                if isinstance(part, ColumnRef)
            )
            for column, expression in inside.items():
                if uses[column] > 1 and not isinstance(expression, ColumnRef | Literal):
                    return None
            merged = tuple(substitute(expression, inside) for expression in expressions)
            return Project(node.output, child, merged)
        case _:
            return None


MERGE_PROJECTS = Rule("merge projects", (Project,), _merge_projects)


def _remove_identity_project(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Project(input=child, expressions=expressions) if len(expressions) == len(
            child.output
        ) and all(
            isinstance(expression, ColumnRef) and expression.column == out.id == below.id
            for out, expression, below in zip(node.output, expressions, child.output, strict=True)
        ):
            return child
        case _:
            return None


REMOVE_IDENTITY_PROJECT = Rule("remove identity project", (Project,), _remove_identity_project)

# --- renames -------------------------------------------------------------------------------

Names = dict[ColumnId, OutputColumn]


def _inline_renames(node: Logical, _: Rewriting) -> Logical | None:
    """A Project that only renames or selects columns (a derived table, a CTE) goes away: the nodes
    above use the columns below. It would keep joins on both sides of it from being reordered."""
    new = _inline_input(node) if isinstance(node, Project) else _inline_root(node)
    return None if new is node else new


def _inline_root(node: Logical) -> Logical:
    new, names = _inline(node)
    output = node.output
    if not names:
        return in_order(new, output) if new is not node else node
    return Project(output, new, tuple(reference(names.get(c.id, c)) for c in output))


def _inline_input(project: Project) -> Project:
    """For a Project that must stay, because its columns count by position and id."""
    below, names = _inline(project.input)
    if below is project.input:
        return project
    return Project(project.output, below, tuple(rename(e, names) for e in project.expressions))


def _inline(node: Logical) -> tuple[Logical, Names]:
    """``node`` without renaming Projects, and the columns in place of its output columns."""
    if isinstance(node, Union):
        return _inline_below_union(node)
    done = [_inline(child) for child in inputs_of(node)]
    inputs = tuple(child for child, _ in done)
    names: Names = {}
    for _, below in done:
        names.update(below)
    if names:
        node = _renamed(node, inputs, names)
    elif any(new is not old for new, old in zip(inputs, inputs_of(node), strict=True)):
        node = with_inputs(node, inputs)
    if isinstance(node, Project):
        return _inline_project(node)
    visible = {old: new for old, new in names.items() if new.id in columns(node)}
    return node, visible


def _inline_project(project: Project) -> tuple[Logical, Names]:
    sources = [e.column for e in project.expressions if isinstance(e, ColumnRef)]
    if not is_rename(project) or len(set(sources)) != len(sources):
        return project, {}
    below = {column.id: column for column in project.input.output}
    names = {
        column.id: below[source]
        for column, source in zip(project.output, sources, strict=True)
        if column.id != source
    }
    return project.input, names


def _inline_below_union(union: Union) -> tuple[Logical, Names]:
    inputs = tuple(
        _inline_input(child) if isinstance(child, Project) else _inline_root(child)
        for child in union.inputs
    )
    if all(new is old for new, old in zip(inputs, union.inputs, strict=True)):
        return union, {}
    return replace(union, inputs=inputs), {}


def _renamed(node: Logical, inputs: tuple[Logical, ...], names: Names) -> Logical:
    match node:
        case Filter(condition=condition):
            return make_filter(inputs[0], rename(condition, names))
        case Join(kind=kind, condition=condition):
            new = None if condition is None else rename(condition, names)
            return make_join(kind, inputs[0], inputs[1], new)
        case MarkJoin(guard=guard, condition=value):
            new_guard = None if guard is None else rename(guard, names)
            new_value = None if value is None else rename(value, names)
            return make_mark_join(inputs[0], inputs[1], new_guard, new_value, node.mark)
        case Project(output=output, expressions=expressions):
            return Project(output, inputs[0], tuple(rename(e, names) for e in expressions))
        case Aggregate(output=output, group=group, calls=calls):
            keys = tuple(names[c].id if c in names else c for c in group)
            return Aggregate(
                tuple(names.get(column.id, column) for column in output),
                inputs[0],
                keys,
                tuple(rename_call(call, names) for call in calls),
                node.always,
            )
        case Expand(sources=sources):
            renamed_sources = tuple(names[c].id if c in names else c for c in sources)
            return make_expand(replace(node, sources=renamed_sources), inputs[0])
        case Unfold(calls=set_calls):
            renamed_calls = tuple(call.rewritten(lambda e: rename(e, names)) for call in set_calls)
            return make_unfold(replace(node, calls=renamed_calls), inputs[0])
        case Window(partition=partition, order=order):
            return make_window(
                inputs[0],
                tuple(names[c].id if c in names else c for c in partition),
                rename_keys(order, names),
                tuple(rename_window_call(call, names) for call in node.calls),
                window_results(node),
            )
        case Sort(keys=keys_):
            renamed = replace(node, keys=rename_keys(keys_, names))
            return with_inputs(renamed, inputs)
        case _:
            return node


INLINE_RENAMES = Rule("inline renames", (Logical,), _inline_renames, whole=True)

# --- pruning -------------------------------------------------------------------------------


def _prune_columns(node: Logical, _: Rewriting) -> Logical | None:
    """Nothing computes or carries a column that nobody above asks for."""
    pruned = _prune(node, columns(node))
    return None if pruned is node else pruned


def _prune(node: Logical, needed: frozenset[ColumnId]) -> Logical:
    """``node`` putting out at least ``needed``, and less than before where that is easy."""
    match node:
        case Scan() | Supplied() | Values() | Project() | Aggregate():
            return _prune_producer(node, needed)
        case SharedRead():
            return kept_columns(node, needed)
        case Union():
            return _prune_union(node, needed)
        case Window():
            return _prune_window(node, needed)
        case Expand(input=child, sources=sources):
            inputs: tuple[Logical, ...] = (_prune(child, (needed & columns(child)) | set(sources)),)
        case Unfold(input=child, calls=calls):
            used = _all_columns(tuple(part for call in calls for part in call.arguments))
            inputs = (_prune(child, (needed & columns(child)) | used),)
        case Filter(input=child, condition=condition):
            inputs = (_prune(child, needed | columns_of(condition)),)
        case Sort(input=child, keys=keys):
            inputs = (_prune(child, needed | {key.column for key in keys}),)
        case MarkJoin(left=left) if node.mark.id not in needed:
            return _prune(left, needed & columns(left))
        case MarkJoin(left=left, right=right, guard=guard, condition=condition):
            parts = [e for e in (guard, condition) if e is not None]
            used = needed | _all_columns(parts)
            inputs = (
                _prune(left, used & columns(left)),
                _prune(right, used & columns(right)),
            )
        case Join(left=left, right=right, condition=condition):
            wanted = needed | (frozenset() if condition is None else columns_of(condition))
            inputs = (
                _prune(left, wanted & columns(left)),
                _prune(right, wanted & columns(right)),
            )
        case _:
            return node
    if all(new is old for new, old in zip(inputs, inputs_of(node), strict=True)):
        return node
    return with_inputs(node, inputs)


def _prune_producer(
    node: Scan | Supplied | Values | Project | Aggregate, needed: frozenset[ColumnId]
) -> Logical:
    keep = [i for i, column in enumerate(node.output) if column.id in needed]
    output = tuple(node.output[i] for i in keep)
    if isinstance(node, Scan | Supplied):
        if len(keep) == len(node.output):
            return node
        return replace(node, output=output, positions=tuple(node.positions[i] for i in keep))
    if isinstance(node, Values):
        if len(keep) == len(node.output):
            return node
        return Values(output, tuple(tuple(row[i] for i in keep) for row in node.rows))
    if isinstance(node, Project):
        expressions = tuple(node.expressions[i] for i in keep)
        child = _prune(node.input, _all_columns(expressions))
        if len(keep) == len(node.output) and child is node.input:
            return node
        return Project(output, child, expressions)
    return _prune_aggregate(node, needed)


def _prune_aggregate(node: Aggregate, needed: frozenset[ColumnId]) -> Logical:
    """Group columns stay: they decide the rows."""
    results = node.output[len(node.group) :]
    kept = [(c, call) for c, call in zip(results, node.calls, strict=True) if c.id in needed]
    calls = tuple(call for _, call in kept)
    used = frozenset(node.group).union(*(columns_of(e) for call in calls for e in call.expressions))
    child = _prune(node.input, used)
    if len(calls) == len(node.calls) and child is node.input:
        return node
    output = node.output[: len(node.group)] + tuple(column for column, _ in kept)
    return replace(node, output=output, input=child, calls=calls)


def _prune_window(node: Window, needed: frozenset[ColumnId]) -> Logical:
    results = window_results(node)
    kept = [(c, call) for c, call in zip(results, node.calls, strict=True) if c.id in needed]
    if not kept:
        return _prune(node.input, needed)
    calls = tuple(call for _, call in kept)
    used = frozenset(node.partition) | {key.column for key in node.order}
    used |= _all_columns(e for call in calls for e in expressions_of(call))
    child = _prune(node.input, (needed & columns(node.input)) | used)
    if len(calls) == len(node.calls) and child is node.input:
        return node
    return make_window(child, node.partition, node.order, calls, tuple(c for c, _ in kept))


def _prune_union(node: Union, needed: frozenset[ColumnId]) -> Logical:
    keep = [i for i, column in enumerate(node.output) if column.id in needed]
    inputs = []
    for child in node.inputs:
        wanted = tuple(child.output[i] for i in keep)
        inputs.append(in_order(_prune(child, frozenset(c.id for c in wanted)), wanted))
    if len(keep) == len(node.output) and all(
        new is old for new, old in zip(inputs, node.inputs, strict=True)
    ):
        return node
    return Union(tuple(node.output[i] for i in keep), tuple(inputs))


def _all_columns(expressions: Iterable[Expression]) -> frozenset[ColumnId]:
    return frozenset().union(*(columns_of(expression) for expression in expressions))


PRUNE_COLUMNS = Rule("prune columns", (Logical,), _prune_columns, whole=True)
