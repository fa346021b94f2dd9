"""The printer of physical plans: EXPLAIN, EXPLAIN ANALYZE, the console and the golden tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from remuda.plan.explain.index import index_scan_text, lookup_join_text
from remuda.plan.expression import ColumnId, Expression
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    Distribution,
    Exchange,
    ExchangeKind,
    ExpandRows,
    FilterRows,
    Fragment,
    GroupLimitRows,
    HashAggregate,
    HashJoin,
    IndexScan,
    KeyLookup,
    LimitRows,
    LookupJoin,
    MergeJoin,
    NestedLoopJoin,
    Physical,
    PhysicalPlan,
    Placement,
    ProjectRows,
    Receive,
    Root,
    Send,
    SortRows,
    SpoolScan,
    Store,
    StreamingAggregate,
    SuppliedScan,
    TableScan,
    UnfoldRows,
    UnionRows,
    ValuesScan,
    WindowRows,
    inputs_of,
)
from remuda.plan.printing import aggregate_text, expression_text, sort_text
from remuda.plan.windows import window_call_text

NAMES_SHOWN = 8
WAIT_SHOWN = 0.01
"""Seconds; and more than the operator worked."""
MEMORY_SHOWN = 1 << 20
"""Bytes that one member held."""


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """What one operator did on one member, all its instances together; the times are those of the
    slowest one. ``seconds`` and ``wait`` exclude its inputs."""

    rows: int
    batches: int
    seconds: float
    bytes: int = 0
    wait: float = 0.0
    waits: int = 0
    memory: int = 0
    spilled: int = 0
    files: int = 0
    instances: int = 1

    def beside(self, other: OperatorProfile) -> OperatorProfile:
        """With what another instance did."""
        return OperatorProfile(
            self.rows + other.rows,
            self.batches + other.batches,
            max(self.seconds, other.seconds),
            self.bytes + other.bytes,
            max(self.wait, other.wait),
            self.waits + other.waits,
            self.memory + other.memory,
            self.spilled + other.spilled,
            self.files + other.files,
            self.instances + other.instances,
        )


Profile: TypeAlias = Mapping[tuple[int, int], Mapping[int, OperatorProfile]]
"""(fragment id, pre-order index of the operator in it, 0 = the root) -> member -> profile."""


def explain(
    plan: PhysicalPlan,
    verbose: bool = False,
    profile: Profile | None = None,
    costs: bool = True,
) -> str:
    """One compact tree per fragment. With ``profile``: EXPLAIN ANALYZE."""
    printer = Printer(plan, verbose, profile, costs)
    lines = [line for fragment in plan.fragments for line in printer.fragment(fragment)]
    if verbose and plan.rules:
        lines.append("Rules: " + ", ".join(plan.rules))
    lines += [f"Note: {note}" for note in plan.notes]
    return "\n".join(lines)


def preorder(node: Physical) -> Iterator[Physical]:
    """The operators of a fragment in the order in which ``Profile`` counts them."""
    yield node
    for child in inputs_of(node):
        yield from preorder(child)


def quantity(value: float) -> str:
    """A short number: 7, 240, 6.1k, 2.88M."""
    for limit, divisor, suffix in ((1e3, 1.0, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if value < limit * 0.9995:
            return f"{value / divisor:.3g}{suffix}"
    return f"{value / 1e9:.3g}G"


def size_text(size: float) -> str:
    """A number of bytes for people: 512 B, 4.2 MiB."""
    for limit, unit in ((1 << 10, "B"), (1 << 20, "KiB"), (1 << 30, "MiB")):
        if size < limit:
            return f"{size * 1024 / limit:.3g} {unit}"
    return f"{size / (1 << 30):.3g} GiB"


def _remarkable(members: Collection[OperatorProfile]) -> str:
    """Waiting, memory and spilling, where they matter."""
    parts = []
    wait, seconds = max(p.wait for p in members), max(p.seconds for p in members)
    if wait >= WAIT_SHOWN and wait > seconds:
        parts.append(f"wait={wait * 1e3:.3f} ms in {sum(p.waits for p in members)}")
    memory = max(p.memory for p in members)
    if memory >= MEMORY_SHOWN:
        parts.append(f"memory={size_text(memory)}")
    spilled = sum(p.spilled for p in members)
    if spilled:
        parts.append(f"spilled={size_text(spilled)} in {sum(p.files for p in members)} files")
    return " ".join(parts)


class Printer:
    """Names and texts of one plan."""

    def __init__(
        self, plan: PhysicalPlan, verbose: bool, profile: Profile | None, costs: bool = True
    ) -> None:
        self.costs = costs
        self.verbose = verbose
        self.profile = profile
        self.names = _column_names([fragment.root for fragment in plan.fragments])

    # --- fragments ---

    def fragment(self, fragment: Fragment) -> Iterator[str]:
        line = f"Fragment {fragment.id} at the {fragment.site.value}"
        if fragment.pruning is not None:
            keys = ", ".join(self._tuple(key) for key in fragment.pruning.keys[:NAMES_SHOWN])
            more = ", …" if len(fragment.pruning.keys) > NAMES_SHOWN else ""
            line += f" owning {keys}{more}"
        yield line
        yield from self.tree(fragment.root, 1, fragment.id, iter(range(1_000_000)))

    def tree(
        self, node: Physical, depth: int, fragment: int, numbers: Iterator[int]
    ) -> Iterator[str]:
        indent = "  " * depth
        yield f"{indent}{self.title(node)}  {self._estimates(node)}"
        if self.verbose:
            yield f"{indent}    output: {self._outputs(node.output)}"
        number = next(numbers)
        if self.profile is not None:
            yield from self._actual(indent, self.profile.get((fragment, number), {}))
        for child in inputs_of(node):
            yield from self.tree(child, depth + 1, fragment, numbers)

    def _estimates(self, node: Physical) -> str:
        traits = node.traits
        parts = [self.distribution(traits.distribution)]
        if self.verbose and traits.collation:
            parts.append(f"sorted by {sort_text(traits.collation, self.name)}")
        if self.costs:
            parts.append(f"rows={quantity(traits.rows)} cost={quantity(traits.cost)}")
        return f"[{' '.join(parts)}]"

    def _actual(self, indent: str, members: Mapping[int, OperatorProfile]) -> Iterator[str]:
        if not members:
            yield f"{indent}    actual: not run"
            return
        rows = sum(p.rows for p in members.values())
        batches = sum(p.batches for p in members.values())
        slowest = max(p.seconds for p in members.values())
        line = f"{indent}    actual: rows={rows} batches={batches} time={slowest * 1e3:.3f} ms"
        if len(members) > 1:
            each = ", ".join(
                f"{member}: {p.rows} in {p.seconds * 1e3:.3f} ms"
                for member, p in sorted(members.items())
            )
            line += f" ({each})"
        yield line
        more = _remarkable(members.values())
        if more:
            yield f"{indent}    {more}"

    # --- operators ---

    def title(self, node: Physical) -> str:
        match node:
            case TableScan() | KeyLookup():
                return self._access(node)
            case ValuesScan() | SuppliedScan():
                return _given(node)
            case FilterRows(condition=condition):
                return f"Filter {self.expression(condition)}"
            case ProjectRows():
                return f"Project {self._projection(node)}"
            case LookupJoin() | HashJoin() | NestedLoopJoin():
                return self._join(node)
            case HashAggregate() | ExpandRows() | GroupLimitRows():
                return self._grouping(node)
            case WindowRows() | UnfoldRows():
                return self._window(node) if isinstance(node, WindowRows) else self._unfold(node)
            case SortRows(keys=keys, limit=limit):
                by = sort_text(keys, self.name)
                return f"Sort by {by}" if limit is None else f"Top {self.expression(limit)} by {by}"
            case LimitRows(limit=limit, offset=offset):
                text = "Limit" if limit is None else f"Limit {self.expression(limit)}"
                return text if offset is None else f"{text} offset {self.expression(offset)}"
            case UnionRows():
                return "Union all"
            case _:
                return self._movement(node)

    def _movement(self, node: Physical) -> str:
        match node:
            case Exchange(kind=kind, hash_keys=hash_keys, collation=collation):
                text = f"Exchange {kind.value}"
                if collation:
                    text += f" by {sort_text(collation, self.name)}"
                return text if not hash_keys else f"{text} by {self.columns(hash_keys)}"
            case Receive(sender_fragment=sender, collation=collation):
                if collation:
                    return f"Merge from fragment {sender} by {sort_text(collation, self.name)}"
                return f"Receive from fragment {sender}"
            case Send(kind=kind, receiver_fragment=receiver, hash_keys=hash_keys):
                text = f"Send {kind.value} to fragment {receiver}"
                return (
                    text
                    if kind is not ExchangeKind.UNICAST
                    else (f"{text} by {self.columns(hash_keys)}")
                )
            case Store(spool=spool):
                return f"Store as spool {spool}"
            case SpoolScan(spool=spool):
                return f"Read spool {spool}"
            case Root(output=output):
                return f"Root {self.columns(tuple(column.id for column in output))}"
            case _:
                return type(node).__name__

    def _access(self, node: TableScan | KeyLookup) -> str:
        alias = "" if node.alias in ("", node.map_name) else f" {node.alias}"
        if isinstance(node, KeyLookup):
            text = f"Key lookup {node.map_name}{alias}"
            keys = [self._tuple(key) for key in node.keys[:NAMES_SHOWN]]
            if len(node.keys) > NAMES_SHOWN:
                keys.append(f"… {len(node.keys)} keys")
            text += f" by {', '.join(keys)}"
        else:
            text = f"Scan {node.map_name}{alias}"
            if isinstance(node, IndexScan):
                text = f"Index scan {node.map_name}{alias} {index_scan_text(node, self.name)}"
            if node.partitioned_replica:
                text += " (own keys of the replica)"
        if node.filter is not None:
            text += f" where {self.expression(node.filter)}"
        return text

    def _projection(self, node: ProjectRows) -> str:
        parts = []
        for column, expression in zip(node.output, node.expressions, strict=True):
            name, text = self.name(column.id, column.name), self.expression(expression)
            parts.append(text if name == text else f"{text} AS {name}")
        return ", ".join(parts)

    def _join(self, node: LookupJoin | HashJoin | NestedLoopJoin) -> str:
        if isinstance(node, LookupJoin):
            return lookup_join_text(node, self.name)
        kind = node.kind.value
        if isinstance(node, NestedLoopJoin):
            text = f"Nested loop join {kind}"
            return (
                text if node.condition is None else f"{text} on {self.expression(node.condition)}"
            )
        pairs = " AND ".join(
            f"{self.name(left)} = {self.name(right)}"
            for left, right in zip(node.left_keys, node.right_keys, strict=True)
        )
        text = f"Hash join {kind} on {pairs}"
        if isinstance(node, MergeJoin):
            text = f"Merge join {kind} on {pairs} by {sort_text(node.order, self.name)}"
        if node.null_aware:
            text += " or NULL"
        if node.residual is not None:
            text += f" and also {self.expression(node.residual)}"
        return text

    def _grouping(self, node: HashAggregate | ExpandRows | GroupLimitRows) -> str:
        if isinstance(node, GroupLimitRows):
            text = f"First {self.expression(node.limit)} by {sort_text(node.order, self.name)}"
            return text if not node.partition else f"{text} in each {self.columns(node.partition)}"
        if isinstance(node, ExpandRows):
            sets = (tuple(node.sources[place] for place in kept) for kept in node.sets)
            return "Expand to " + ", ".join(self.columns(kept) for kept in sets)
        streaming = isinstance(node, StreamingAggregate)
        text = f"{'Streaming aggregate' if streaming else 'Aggregate'} {node.phase.value}"
        if node.group:
            text += f" by {self.columns(node.group)}"
        if node.calls:
            text += ": " + ", ".join(aggregate_text(call, self.name) for call in node.calls)
        return text

    def _unfold(self, node: UnfoldRows) -> str:
        calls = ", ".join(
            f"{call.function}({', '.join(self.expression(part) for part in call.arguments)})"
            for call in node.calls
        )
        numbered = " with ordinality" if node.ordinality else ""
        return f"Unfold {calls}{numbered}" + (" or NULL" if node.outer else "")

    def _window(self, node: WindowRows) -> str:
        text = "Window"
        if node.partition:
            text += f" partition by {self.columns(node.partition)}"
        if node.order:
            text += f" order by {sort_text(node.order, self.name)}"
        return text + ": " + ", ".join(window_call_text(call, self.name) for call in node.calls)

    # --- pieces ---

    def distribution(self, distribution: Distribution) -> str:
        if distribution.placement is not Placement.PARTITIONED or not distribution.keys:
            return distribution.placement.value
        alternatives = " = ".join(self.columns(keys) for keys in distribution.keys)
        return f"{distribution.placement.value} {alternatives}"

    def expression(self, expression: Expression) -> str:
        return expression_text(expression, self.name)

    def name(self, column: ColumnId, name: str | None = None) -> str:
        text = self.names.get(column) or name or "?"
        return f"{text}#{column}" if self.verbose else text

    def columns(self, columns: tuple[ColumnId, ...]) -> str:
        return f"({', '.join(self.name(column) for column in columns)})"

    def _outputs(self, output: tuple[OutputColumn, ...]) -> str:
        return ", ".join(f"{self.name(c.id, c.name)} {c.type}" for c in output) or "nothing"

    def _tuple(self, key: tuple[Expression, ...]) -> str:
        return f"({', '.join(self.expression(part) for part in key)})"


def _given(node: ValuesScan | SuppliedScan) -> str:
    if isinstance(node, SuppliedScan):
        alias = "" if node.alias in ("", node.relation) else f" {node.alias}"
        return f"Supplied {node.relation}{alias}"
    return f"Values {len(node.rows)} row{'' if len(node.rows) == 1 else 's'}"


def _column_names(roots: list[Physical]) -> dict[ColumnId, str]:
    """Column id -> its name; equal names of different maps are told apart by the maps' aliases."""
    names: dict[ColumnId, str] = {}
    owners: dict[ColumnId, str] = {}
    for root in roots:
        for node in preorder(root):
            for column in node.output:
                names.setdefault(column.id, column.name or f"#{column.id}")
            if isinstance(node, TableScan | KeyLookup):
                for column in node.output:
                    owners[column.id] = node.alias or node.map_name
    # A column that a filter uses but no operator puts out goes by the name in the expression.
    count = Counter(names[column] for column in owners)
    return {
        column: f"{owners[column]}.{name}" if column in owners and count[name] > 1 else name
        for column, name in names.items()
    }
