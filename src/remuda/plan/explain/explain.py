"""The printer of physical plans: EXPLAIN, EXPLAIN ANALYZE, the console and the golden tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from remuda.plan.expression import ColumnId, Expression
from remuda.plan.logical import OutputColumn
from remuda.plan.physical import (
    KEYS_SHOWN,
    Distribution,
    Fragment,
    KeyLookup,
    Physical,
    PhysicalPlan,
    Placement,
    TableScan,
    inputs_of,
)
from remuda.plan.printing import expression_text, sort_text

WAIT_SHOWN = 0.01
"""Seconds; and more than the operator worked."""
MEMORY_SHOWN = 1 << 20
"""Bytes that one member held."""


@dataclass(frozen=True, slots=True)
class OperatorProfile:
    """The work of one operator on one member, all its instances together; the times are those of
    the slowest one. ``seconds`` and ``wait`` exclude its inputs."""

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
            keys = ", ".join(self._tuple(key) for key in fragment.pruning.keys[:KEYS_SHOWN])
            more = ", …" if len(fragment.pruning.keys) > KEYS_SHOWN else ""
            line += f" owning {keys}{more}"
        yield line
        yield from self.tree(fragment.root, 1, fragment.id, iter(range(1_000_000)))

    def tree(
        self, node: Physical, depth: int, fragment: int, numbers: Iterator[int]
    ) -> Iterator[str]:
        indent = "  " * depth
        yield f"{indent}{node.title(self)}  {self._estimates(node)}"
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
