"""Physical operators: *how* to compute. Immutable, serializable (``plan.codec``), printable
(``plan.explain.explain``), still with column ids; the operators of ``execution`` resolve positions.

Traits travel with every node: ``distribution`` says where its rows are, ``rows`` and ``cost`` are
the optimizer's estimates (for EXPLAIN and for buffers; never needed for correctness).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol

from remuda.datatypes.values import PhysicalValue
from remuda.plan.explain.index import access_text
from remuda.plan.expression import AggregateCall, ColumnId, Expression, SortKey
from remuda.plan.functions.set_functions import SetCall
from remuda.plan.index_access import NOTHING, IndexAccess
from remuda.plan.logical import JoinKind, OutputColumn
from remuda.plan.printing import aggregate_text, sort_text
from remuda.plan.windows import WindowCall, window_call_text

KEYS_SHOWN = 8
"""Of a lookup by many keys, in EXPLAIN."""


class Placement(Enum):
    PARTITIONED = "PARTITIONED"
    REPLICATED = "REPLICATED"
    SINGLETON = "SINGLETON"
    ANY = "ANY"


@dataclass(frozen=True, slots=True)
class Distribution:
    """Where rows live. ``keys`` (for PARTITIONED) are alternatives, each a tuple of column ids
    whose partition hash, in that order, places the row: all alternatives hold at once (key
    equivalence). PARTITIONED without keys = spread in an unknown way.
    """

    placement: Placement
    keys: tuple[tuple[ColumnId, ...], ...] = ()


SINGLETON = Distribution(Placement.SINGLETON)
REPLICATED = Distribution(Placement.REPLICATED)
ANY = Distribution(Placement.ANY)


@dataclass(frozen=True, slots=True)
class Traits:
    distribution: Distribution
    collation: tuple[SortKey, ...] = ()
    rows: float = 0.0
    cost: float = 0.0


class NodeText(Protocol):
    """How EXPLAIN writes the parts of a node's title."""

    def expression(self, expression: Expression) -> str: ...

    def name(self, column: ColumnId, name: str | None = None) -> str: ...

    def columns(self, columns: tuple[ColumnId, ...]) -> str: ...


@dataclass(frozen=True, slots=True)
class Physical:
    """A node: one subclass for each operator. ``share_of_input``: an instance of the operator can
    work on any share of the rows of its input beside other instances (``execution.parallel``)."""

    share_of_input: ClassVar[bool] = False

    output: tuple[OutputColumn, ...]
    traits: Traits

    def title(self, text: NodeText) -> str:
        """Its line in EXPLAIN. Every class of nodes has one of its own."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class TableScan(Physical):
    """Rows of the local primaries (all rows, if the map is replicated) that pass ``filter``.

    ``output[i]`` is schema column ``positions[i]``. ``filter`` may use columns that are not put
    out: ``filter_columns`` maps the ids of every column of the filter to schema positions.
    ``partitioned_replica``: scan a replicated map as if it were partitioned by its key, each member
    keeping only the keys whose partition it owns (replicated -> partitioned without network).
    """

    map_name: str
    map_id: int
    schema_version: int
    alias: str
    positions: tuple[int, ...]
    filter: Expression | None
    filter_columns: tuple[tuple[ColumnId, int], ...] = ()
    partitioned_replica: bool = False

    def title(self, text: NodeText) -> str:
        own = " (own keys of the replica)" if self.partitioned_replica else ""
        return f"Scan {_relation(self)}{own}{_where(self.filter, text)}"


class IndexOrder(Enum):
    """In which order an index scan gives its rows."""

    NONE = "none"
    FORWARD = "forward"
    BACKWARD = "backward"


@dataclass(frozen=True, slots=True)
class IndexScan(TableScan):
    """A scan that looks only at rows which secondary indexes name. With an ``order``, ``access`` is
    one probe of a SORTED index, and rows come in its order."""

    access: IndexAccess = NOTHING
    order: IndexOrder = IndexOrder.NONE

    def title(self, text: NodeText) -> str:
        found = f"Index scan {_relation(self)} by {access_text(self.access, text.name)}"
        if self.order is not IndexOrder.NONE:
            found += f" in order, {self.order.value}"
        if self.partitioned_replica:
            found += " (own keys of the replica)"
        return found + _where(self.filter, text)


@dataclass(frozen=True, slots=True)
class KeyLookup(Physical):
    """Rows by whole key: each of ``keys`` is one key (expressions without columns, in key order,
    of the key columns' types). ``filter`` is the rest of the condition."""

    map_name: str
    map_id: int
    schema_version: int
    alias: str
    positions: tuple[int, ...]
    keys: tuple[tuple[Expression, ...], ...]
    filter: Expression | None
    filter_columns: tuple[tuple[ColumnId, int], ...] = ()

    def title(self, text: NodeText) -> str:
        keys = [f"({', '.join(map(text.expression, key))})" for key in self.keys[:KEYS_SHOWN]]
        if len(self.keys) > KEYS_SHOWN:
            keys.append(f"… {len(self.keys)} keys")
        return f"Key lookup {_relation(self)} by {', '.join(keys)}{_where(self.filter, text)}"


@dataclass(frozen=True, slots=True)
class ValuesScan(Physical):
    rows: tuple[tuple[PhysicalValue, ...], ...]

    def title(self, text: NodeText) -> str:  # noqa: ARG002
        return f"Values {len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class SuppliedScan(Physical):
    """Rows that the initiator was given when the query started (see ``logical.Supplied``); they
    are no part of the plan. ``output[i]`` is the relation's column ``positions[i]``."""

    relation: str
    alias: str
    positions: tuple[int, ...]

    def title(self, text: NodeText) -> str:  # noqa: ARG002
        alias = "" if self.alias in ("", self.relation) else f" {self.alias}"
        return f"Supplied {self.relation}{alias}"


@dataclass(frozen=True, slots=True)
class FilterRows(Physical):
    share_of_input = True

    input: Physical
    condition: Expression

    def title(self, text: NodeText) -> str:
        return f"Filter {text.expression(self.condition)}"


@dataclass(frozen=True, slots=True)
class ProjectRows(Physical):
    share_of_input = True

    input: Physical
    expressions: tuple[Expression, ...]

    def title(self, text: NodeText) -> str:
        parts = []
        for column, expression in zip(self.output, self.expressions, strict=True):
            name, value = text.name(column.id, column.name), text.expression(expression)
            parts.append(value if name == value else f"{value} AS {name}")
        return f"Project {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class HashJoin(Physical):
    """Equi-join: ``left_keys[i] = right_keys[i]`` (same types), NULL never matches.

    The right side is built, the left side probes. ``residual`` is part of the ON condition: it
    decides matches, so for LEFT a row whose matches all fail it comes out once, padded with NULL.
    ``output`` may be any subset of both sides' columns (late materialization).

    MARK: every left row, and as the last column of ``output``, which is on neither side, whether it
    matches; NULL where ``residual`` is NULL for one of its pairs and true for none. ``null_aware``:
    also NULL where there is no match, but the key is NULL, or some right key is (``x IN (...)``).
    """

    kind: JoinKind
    left: Physical
    right: Physical
    left_keys: tuple[ColumnId, ...]
    right_keys: tuple[ColumnId, ...]
    residual: Expression | None
    null_aware: bool = False

    def title(self, text: NodeText) -> str:
        return f"Hash join {self._condition(text)}{self._rest(text)}"

    def _condition(self, text: NodeText) -> str:
        pairs = zip(self.left_keys, self.right_keys, strict=True)
        equal = " AND ".join(f"{text.name(left)} = {text.name(right)}" for left, right in pairs)
        return f"{self.kind.value} on {equal}"

    def _rest(self, text: NodeText) -> str:
        missing = " or NULL" if self.null_aware else ""
        return missing + _residual(self.residual, text)


@dataclass(frozen=True, slots=True)
class MergeJoin(HashJoin):
    """The same over sides that come sorted by their keys: by ``left_keys`` and by ``right_keys``,
    in this order; ``order`` says of the left ones which way. Not for MARK. Rows come out in the
    order of the left side, unless the kind is RIGHT or FULL."""

    order: tuple[SortKey, ...] = ()

    def title(self, text: NodeText) -> str:
        by = sort_text(self.order, text.name)
        return f"Merge join {self._condition(text)} by {by}{self._rest(text)}"


@dataclass(frozen=True, slots=True)
class NestedLoopJoin(Physical):
    """Any condition, or none; the right side is held in memory. MARK as in HashJoin."""

    kind: JoinKind
    left: Physical
    right: Physical
    condition: Expression | None

    def title(self, text: NodeText) -> str:
        on = "" if self.condition is None else f" on {text.expression(self.condition)}"
        return f"Nested loop join {self.kind.value}{on}"


@dataclass(frozen=True, slots=True)
class LookupJoin(Physical):
    """Each row of ``input`` finds its matches in a map: by secondary index, or by the whole primary
    key (``index_id`` 0).

    ``outer_keys`` are columns of the input, in the order of the index or of the key, and of the
    types of its columns, whose names are ``inner_keys``; NULL never matches. ``inner[i]`` is schema
    column ``positions[i]`` of the map. ``residual`` (over the columns of both) decides matches as
    it does in ``HashJoin``. Kinds: INNER, LEFT, SEMI, ANTI. ``limited``: every member has all rows
    of the input, and finds its own matches.
    """

    kind: JoinKind
    input: Physical
    map_name: str
    map_id: int
    schema_version: int
    alias: str
    inner: tuple[OutputColumn, ...]
    positions: tuple[int, ...]
    index: str
    index_id: int
    outer_keys: tuple[ColumnId, ...]
    inner_keys: tuple[str, ...]
    residual: Expression | None
    limited: bool = False

    def title(self, text: NodeText) -> str:
        how = self.index if self.index_id else "key"
        pairs = " AND ".join(
            f"{text.name(outer)} = {self.alias or self.map_name}.{inner}"
            for outer, inner in zip(self.outer_keys, self.inner_keys, strict=True)
        )
        found = f"Lookup join {self.kind.value} with {_relation(self)} by {how} on {pairs}"
        return found + _residual(self.residual, text)


class AggregatePhase(Enum):
    """SINGLE: rows in, results out. PARTIAL: rows in, states out. FINAL: states in, results out.

    The state columns of a call are listed by ``state_columns`` of the operator: for ``avg`` a sum
    and a count, for the others one column.
    """

    SINGLE = "single"
    PARTIAL = "partial"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class HashAggregate(Physical):
    """``output`` = group columns, then results (SINGLE, FINAL) or states (PARTIAL).

    ``states[i]`` are the ids of the state columns of ``calls[i]`` (empty for SINGLE). ``always``
    are groups that are put out even if no row falls into them.
    """

    input: Physical
    phase: AggregatePhase
    group: tuple[ColumnId, ...]
    calls: tuple[AggregateCall, ...]
    states: tuple[tuple[ColumnId, ...], ...] = ()
    always: tuple[tuple[PhysicalValue, ...], ...] = ()

    def title(self, text: NodeText) -> str:
        return f"Aggregate {self._groups(text)}"

    def _groups(self, text: NodeText) -> str:
        by = f" by {text.columns(self.group)}" if self.group else ""
        calls = ", ".join(aggregate_text(call, text.name) for call in self.calls)
        return f"{self.phase.value}{by}" + (f": {calls}" if calls else "")


@dataclass(frozen=True, slots=True)
class StreamingAggregate(HashAggregate):
    """The same over rows of which those of a group follow each other; there are group columns, and
    ``always`` is empty. Groups come out in the order of the input."""

    def title(self, text: NodeText) -> str:
        return f"Streaming aggregate {self._groups(text)}"


@dataclass(frozen=True, slots=True)
class ExpandRows(Physical):
    """Each input row once per grouping set: ``output`` = columns of the input (any subset), then
    a copy of each of ``sources``, NULL in the sets that do not list its place, then the number of
    the set."""

    share_of_input = True

    input: Physical
    sources: tuple[ColumnId, ...]
    sets: tuple[tuple[int, ...], ...]

    def title(self, text: NodeText) -> str:
        sets = (tuple(self.sources[place] for place in kept) for kept in self.sets)
        return "Expand to " + ", ".join(text.columns(kept) for kept in sets)


@dataclass(frozen=True, slots=True)
class UnfoldRows(Physical):
    """``output`` = some columns of the input, then ``results`` (see ``logical.Unfold``)."""

    share_of_input = True

    input: Physical
    calls: tuple[SetCall, ...]
    ordinality: bool
    outer: bool
    results: tuple[OutputColumn, ...]

    def title(self, text: NodeText) -> str:
        calls = ", ".join(
            f"{call.function}({', '.join(map(text.expression, call.shown_arguments))})"
            for call in self.calls
        )
        numbered = " with ordinality" if self.ordinality else ""
        return f"Unfold {calls}{numbered}" + (" or NULL" if self.outer else "")


@dataclass(frozen=True, slots=True)
class GroupLimitRows(Physical):
    """The rows that have a rank of at most ``limit`` in their partition, by ``order``, among the
    rows of their member; it may let others pass."""

    share_of_input = True

    input: Physical
    partition: tuple[ColumnId, ...]
    order: tuple[SortKey, ...]
    limit: Expression

    def title(self, text: NodeText) -> str:
        found = f"First {text.expression(self.limit)} by {sort_text(self.order, text.name)}"
        return f"{found} in each {text.columns(self.partition)}" if self.partition else found


@dataclass(frozen=True, slots=True)
class WindowRows(Physical):
    """``output`` = the columns of the input, then one column per call.

    The rows of a partition are all on one member; the operator sorts them itself, by
    ``partition`` and ``order``, and puts them out in that order.
    """

    input: Physical
    partition: tuple[ColumnId, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]

    def title(self, text: NodeText) -> str:
        by = f" partition by {text.columns(self.partition)}" if self.partition else ""
        order = f" order by {sort_text(self.order, text.name)}" if self.order else ""
        calls = ", ".join(window_call_text(call, text.name) for call in self.calls)
        return f"Window{by}{order}: {calls}"


@dataclass(frozen=True, slots=True)
class SortRows(Physical):
    """Full sort; with ``limit`` a Top-N that keeps ``limit`` rows (offset already added)."""

    share_of_input = True

    input: Physical
    keys: tuple[SortKey, ...]
    limit: Expression | None = None

    def title(self, text: NodeText) -> str:
        by = sort_text(self.keys, text.name)
        return (
            f"Sort by {by}" if self.limit is None else f"Top {text.expression(self.limit)} by {by}"
        )


@dataclass(frozen=True, slots=True)
class LimitRows(Physical):
    share_of_input = True

    input: Physical
    limit: Expression | None
    offset: Expression | None

    def title(self, text: NodeText) -> str:
        limit = "" if self.limit is None else f" {text.expression(self.limit)}"
        offset = "" if self.offset is None else f" offset {text.expression(self.offset)}"
        return f"Limit{limit}{offset}"


@dataclass(frozen=True, slots=True)
class UnionRows(Physical):
    inputs: tuple[Physical, ...]

    def title(self, text: NodeText) -> str:  # noqa: ARG002
        return "Union all"


class ExchangeKind(Enum):
    UNICAST = "unicast"
    """Each row to the owner of the partition of ``hash_keys``."""
    BROADCAST = "broadcast"
    """Every row to every member."""
    GATHER = "gather"
    """Every row to the initiator, in any order."""
    MERGE = "merge"
    """Every row to the initiator, sorted inputs merged by ``collation``."""


@dataclass(frozen=True, slots=True)
class Exchange(Physical):
    """Rows move between members; exists only before fragments are cut."""

    input: Physical
    kind: ExchangeKind
    hash_keys: tuple[ColumnId, ...] = ()
    collation: tuple[SortKey, ...] = ()

    def title(self, text: NodeText) -> str:
        order = f" by {sort_text(self.collation, text.name)}" if self.collation else ""
        keys = f" by {text.columns(self.hash_keys)}" if self.hash_keys else ""
        return f"Exchange {self.kind.value}{order}{keys}"


@dataclass(frozen=True, slots=True)
class Receive(Physical):
    """The reading end of an exchange. ``ordered`` streams keep the order of each sender; with
    ``collation`` they are merged."""

    edge: int
    sender_fragment: int
    collation: tuple[SortKey, ...] = ()

    def title(self, text: NodeText) -> str:
        if self.collation:
            by = sort_text(self.collation, text.name)
            return f"Merge from fragment {self.sender_fragment} by {by}"
        return f"Receive from fragment {self.sender_fragment}"


@dataclass(frozen=True, slots=True)
class Send(Physical):
    """The writing end of an exchange: the root of a fragment."""

    input: Physical
    edge: int
    kind: ExchangeKind
    receiver_fragment: int
    hash_keys: tuple[ColumnId, ...] = ()

    def title(self, text: NodeText) -> str:
        found = f"Send {self.kind.value} to fragment {self.receiver_fragment}"
        if self.kind is not ExchangeKind.UNICAST:
            return found
        return f"{found} by {text.columns(self.hash_keys)}"


@dataclass(frozen=True, slots=True)
class Store(Physical):
    """The root of a fragment whose rows stay where they are, for every ``SpoolScan`` of ``spool``
    on the same member: a sub-plan that occurs several times is computed once."""

    input: Physical
    spool: int

    def title(self, text: NodeText) -> str:  # noqa: ARG002
        return f"Store as spool {self.spool}"


@dataclass(frozen=True, slots=True)
class SpoolScan(Physical):
    """All rows stored on this member: ``output[i]`` is column ``positions[i]`` of them."""

    spool: int
    positions: tuple[int, ...]

    def title(self, text: NodeText) -> str:  # noqa: ARG002
        return f"Read spool {self.spool}"


@dataclass(frozen=True, slots=True)
class Root(Physical):
    """The root of the root fragment: rows go to the user's cursor."""

    input: Physical

    def title(self, text: NodeText) -> str:
        return f"Root {text.columns(tuple(column.id for column in self.output))}"


class Site(Enum):
    """Where a fragment runs."""

    INITIATOR = "initiator"
    DATA_MEMBERS = "data members"
    """Every member that owns partitions (or only those that ``prune`` leaves)."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """The scan of this fragment touches only the partitions of these keys (expressions without
    columns, of the types of the partition columns); evaluated by the initiator at start."""

    keys: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True)
class Fragment:
    """A piece of plan that runs in one thread at a time on each of its members."""

    id: int
    root: Physical
    site: Site
    pruning: Pruning | None = None

    @cached_property
    def nodes(self) -> tuple[Physical, ...]:
        """Its operators, each before its inputs. Every execution of the plan asks several times."""
        found: list[Physical] = []
        waiting = [self.root]
        while waiting:
            node = waiting.pop()
            found.append(node)
            waiting += reversed(inputs_of(node))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class MapDependency:
    map_name: str
    map_id: int
    schema_version: int


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A finished plan. ``fragments[0]`` is the root fragment; ``rules`` names what fired; ``notes``
    say where the optimizer did less than it could have."""

    fragments: tuple[Fragment, ...]
    output: tuple[OutputColumn, ...]
    parameter_types: tuple[str, ...]
    dependencies: tuple[MapDependency, ...]
    rules: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def _relation(node: TableScan | KeyLookup | LookupJoin) -> str:
    alias = "" if node.alias in ("", node.map_name) else f" {node.alias}"
    return f"{node.map_name}{alias}"


def _where(condition: Expression | None, text: NodeText) -> str:
    return "" if condition is None else f" where {text.expression(condition)}"


def _residual(condition: Expression | None, text: NodeText) -> str:
    return "" if condition is None else f" and also {text.expression(condition)}"


def inputs_of(node: Physical) -> tuple[Physical, ...]:
    """Its fields that hold nodes, in their order."""
    inputs: tuple[Physical, ...] = ()
    for name in _INPUTS[type(node)]:
        value = getattr(node, name)
        inputs += value if isinstance(value, tuple) else (value,)
    return inputs


def with_inputs(node: Physical, inputs: tuple[Physical, ...]) -> Physical:
    """The same node over others, one for each of ``inputs_of``."""
    if all(new is old for new, old in zip(inputs, inputs_of(node), strict=True)):
        return node
    names = _INPUTS[type(node)]
    many = isinstance(getattr(node, names[0]), tuple)
    changed: dict[str, Any] = {names[0]: inputs} if many else dict(zip(names, inputs, strict=True))
    return replace(node, **changed)


NODES: Final[tuple[type[Physical], ...]] = tuple(
    value
    for value in list(globals().values())
    if isinstance(value, type) and issubclass(value, Physical) and value is not Physical
)
"""Every class of nodes: all of them travel between members."""

_INPUTS: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(f.name for f in fields(kind) if f.type in ("Physical", "tuple[Physical, ...]"))
    for kind in NODES
}
"""Class of nodes -> its fields that hold nodes, or the one that holds a tuple of them."""
