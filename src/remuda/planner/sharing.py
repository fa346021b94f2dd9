"""Common sub-plans: a CTE that is used twice, or anything else that a statement says twice.

Two sub-plans are the same if they are, column for column, apart from column ids and aliases.
The largest of them that occur more than once can be computed once, and stored (``Store``,
``SpoolScan``); the planner plans the statement both ways and takes the cheaper one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields

from remuda.plan.expression import ColumnId, Expression
from remuda.plan.functions.catalog import is_volatile
from remuda.plan.logical import (
    Aggregate,
    Filter,
    Join,
    Logical,
    OutputColumn,
    Project,
    Scan,
    SetOperation,
    Sort,
    Supplied,
    Union,
    Values,
    Window,
    inputs_of,
)
from remuda.plan.windows import expressions_of
from remuda.planner.algebra import (
    make_project,
    nodes_of,
    rename,
    rename_call,
    rename_keys,
    rename_window_call,
    with_inputs,
)

_FIELDS = {
    Scan: {"output", "schema", "alias", "positions"},
    Project: {"output", "input", "expressions"},
    Filter: {"output", "input", "condition"},
    Join: {"output", "kind", "left", "right", "condition"},
    Aggregate: {"output", "input", "group", "calls", "always"},
    Window: {"output", "input", "partition", "order", "calls"},
    Sort: {"output", "input", "keys", "limit", "offset"},
    Union: {"output", "inputs"},
}
"""The compared fields of a node; nodes of other types, or with other fields, equal nothing."""

Names = dict[ColumnId, OutputColumn]


@dataclass(frozen=True, slots=True)
class SharedRead(Logical):
    """A use of a shared sub-plan: ``output[i]`` is what definition ``number`` has as
    ``columns[i]``."""

    number: int
    columns: tuple[ColumnId, ...]


def kept_columns(node: SharedRead, needed: frozenset[ColumnId]) -> SharedRead:
    pairs = zip(node.output, node.columns, strict=True)
    kept = [(column, source) for column, source in pairs if column.id in needed]
    if len(kept) == len(node.output):
        return node
    return SharedRead(tuple(c for c, _ in kept), node.number, tuple(s for _, s in kept))


@dataclass(frozen=True, slots=True)
class SharedPlan:
    """``definitions[n]`` may read those before it."""

    root: Logical
    definitions: tuple[Logical, ...]


def share(root: Logical) -> SharedPlan | None:
    """``root`` with everything that it says twice said once; None when there is nothing."""
    scanned = Counter(n.schema.map_id for n in nodes_of(root) if isinstance(n, Scan))
    if not any(count > 1 for count in scanned.values()):
        return None
    prints = _Fingerprints()
    prints.of(root)
    uses: Counter[int] = Counter()
    _count(root, prints, uses)
    wanted = {number for number, count in uses.items() if count > 1}
    if not wanted:
        return None
    sharing = _Sharing(prints, wanted)
    changed = sharing.rewrite(root)
    return SharedPlan(changed, tuple(sharing.definitions))


def _count(node: Logical, prints: _Fingerprints, uses: Counter[int]) -> None:
    """Below the second use of a sub-plan nothing is counted: it goes away."""
    if _worth(node) and prints.of(node) is not None:
        number = prints.of(node)
        assert number is not None
        uses[number] += 1
        if uses[number] > 1:
            return
    for child in inputs_of(node):
        _count(child, prints, uses)


def _worth(node: Logical) -> bool:
    """Whether storing the rows of ``node`` can be cheaper than computing them again."""
    if isinstance(node, Aggregate | Join | Window | SetOperation):
        return True
    return isinstance(node, Project | Filter | Sort | Union) and any(
        _worth(child) for child in inputs_of(node)
    )


def narrowed(definition: Logical, number: int, readers: Iterable[Logical]) -> Logical:
    """Definition ``number`` with only the columns that ``readers`` use."""
    reads = (node for reader in readers for node in nodes_of(reader))
    used = {c for n in reads if isinstance(n, SharedRead) and n.number == number for c in n.columns}
    kept = tuple(column for column in definition.output if column.id in used)
    return make_project(definition, kept or definition.output[:1])


class _Sharing:
    def __init__(self, prints: _Fingerprints, wanted: set[int]) -> None:
        self.prints = prints
        self.wanted = wanted
        self.definitions: list[Logical] = []
        self._places: dict[int, int] = {}

    def rewrite(self, node: Logical) -> Logical:
        number = self.prints.of(node)
        if number is None or number not in self.wanted:
            return self._inside(node)
        place = self._places.get(number)
        if place is None:
            definition = self._inside(node)
            place = self._places[number] = len(self.definitions)
            self.definitions.append(definition)
        columns = tuple(column.id for column in self.definitions[place].output)
        return SharedRead(node.output, place, columns)

    def _inside(self, node: Logical) -> Logical:
        inputs = inputs_of(node)
        new = tuple(self.rewrite(child) for child in inputs)
        if all(a is b for a, b in zip(new, inputs, strict=True)):
            return node
        return with_inputs(node, new)


@dataclass(slots=True)
class _Fingerprints:
    """Equal numbers for equal sub-plans; None for what equals nothing but itself."""

    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _known: dict[int, int | None] = field(default_factory=dict)
    _kept: list[Logical] = field(default_factory=list)

    def of(self, node: Logical) -> int | None:
        known = self._known.get(id(node), -1)
        if known != -1:
            return known
        self._kept.append(node)  # ids of live objects only are unique
        below = [self.of(child) for child in inputs_of(node)]
        number: int | None = None
        if None not in below:
            key = self._key(node, tuple(below))
            if key is not None:
                number = self._numbers.setdefault(key, len(self._numbers))
        self._known[id(node)] = number
        return number

    def _key(self, node: Logical, below: tuple[int | None, ...]) -> Hashable | None:
        if (
            type(node) in _FIELDS
            and {f.name for f in fields(node) if f.init} != _FIELDS[type(node)]
        ):
            return None
        if any(is_volatile(expression) for expression in _expressions(node)):
            return None
        columns = [c for child in inputs_of(node) for c in child.output]
        names = {c.id: OutputColumn(-1 - i, "", c.type) for i, c in enumerate(columns)}
        places = {c.id: i for i, c in enumerate(columns)}
        types = tuple(c.type for c in node.output)
        own = _content(node, names, places)
        return None if own is None else (type(node).__name__, own, types, below)


def _content(node: Logical, names: Names, places: dict[ColumnId, int]) -> Hashable | None:
    """The work of ``node``, with its input's columns by place."""
    match node:
        case Scan(schema=schema, positions=positions):
            return (schema.map_id, schema.version, positions)
        case Supplied(relation=relation, positions=positions):
            return (relation, positions)
        case Values(rows=rows):
            return tuple(tuple((type(value), value) for value in row) for row in rows)
        case Project(expressions=expressions):
            return tuple(rename(e, names) for e in expressions)
        case Filter(condition=condition):
            return rename(condition, names)
        case Join(kind=kind, condition=condition):
            return (kind, None if condition is None else rename(condition, names))
        case Aggregate(group=group, calls=calls, always=always):
            made = tuple(rename_call(call, names) for call in calls)
            return (tuple(places[c] for c in group), made, always)
        case Window(partition=partition, order=order, calls=calls):
            window = tuple(rename_window_call(call, names) for call in calls)
            return (tuple(places[c] for c in partition), rename_keys(order, names), window)
        case Sort(keys=keys, limit=limit, offset=offset):
            return (rename_keys(keys, names), limit, offset)
        case Union():
            return ()
        case _:
            return None


def _expressions(node: Logical) -> tuple[Expression, ...]:
    match node:
        case Project(expressions=expressions):
            return expressions
        case Filter(condition=condition) | Join(condition=Expression() as condition):
            return (condition,)
        case Aggregate(calls=calls):
            return tuple(e for call in calls for e in call.expressions)
        case Window(calls=calls):
            return tuple(e for call in calls for e in expressions_of(call))
        case _:
            return ()
