"""From the chosen candidates to physical operators that carry only the columns somebody needs."""

from __future__ import annotations

from dataclasses import fields

from remuda.plan.expression import ColumnId, Expression, columns_of, conjunction
from remuda.plan.logical import Scan
from remuda.plan.physical import (
    AggregatePhase,
    Exchange,
    HashAggregate,
    HashJoin,
    IndexScan,
    KeyLookup,
    LimitRows,
    LookupJoin,
    MapDependency,
    MergeJoin,
    NestedLoopJoin,
    Physical,
    SortRows,
    StreamingAggregate,
    TableScan,
)
from remuda.planner.memo.access import pruning_keys
from remuda.planner.memo.candidate import (
    AggregateStep,
    Candidate,
    ExchangeStep,
    JoinStep,
    LimitStep,
    LookupJoinStep,
    LookupStep,
    ScanStep,
    SortStep,
)
from remuda.planner.memo.group_operators import PlainOperator
from remuda.planner.memo.nodes import Columns, traits_of, used_by
from remuda.planner.memo.plain_rules import PLAIN_RULES

PruningKeys = tuple[tuple[Expression, ...], ...]


class Builder:
    """``pruning`` holds, for scans and lookups by identity, the keys that they are confined to."""

    def __init__(self) -> None:
        self.pruning: dict[int, PruningKeys] = {}
        self.dependencies: dict[str, MapDependency] = {}

    def build(self, candidate: Candidate, needed: Columns) -> Physical:
        """``needed`` are columns of the candidate; they come out in the order of its group."""
        step = candidate.step
        match step:
            case ScanStep() | LookupStep():
                return self._access(candidate, step, needed)
            case PlainOperator():
                return PLAIN_RULES[type(step)].node(candidate, step, needed, self.build)
            case JoinStep():
                return self._join(candidate, step, needed)
            case LookupJoinStep():
                return self._lookup_join(candidate, step, needed)
            case AggregateStep():
                return self._aggregate(candidate, step)
            case SortStep() | LimitStep() | ExchangeStep():
                return self._arrangement(candidate, step, needed)

    # --- leaves ---

    def _access(
        self, candidate: Candidate, step: ScanStep | LookupStep, needed: Columns
    ) -> Physical:
        scan = step.scan
        schema = scan.schema
        self.dependencies[schema.name] = MapDependency(schema.name, schema.map_id, schema.version)
        kept = [
            (column, position)
            for column, position in zip(scan.output, scan.positions, strict=True)
            if column.id in needed
        ]
        output = tuple(column for column, _ in kept)
        positions = tuple(position for _, position in kept)
        node: Physical
        if isinstance(step, ScanStep):
            node = TableScan(
                output,
                traits_of(candidate),
                schema.name,
                schema.map_id,
                schema.version,
                scan.alias,
                positions,
                step.condition,
                _filter_columns(scan, step.condition),
                step.partitioned_replica,
            )
            if step.access is not None:
                shared = {field.name: getattr(node, field.name) for field in fields(node)}
                node = IndexScan(**shared, access=step.access, order=step.order)
            keys = pruning_keys(scan, step.condition)
        else:
            node = KeyLookup(
                output,
                traits_of(candidate),
                schema.name,
                schema.map_id,
                schema.version,
                scan.alias,
                positions,
                step.keys,
                step.residual,
                _filter_columns(scan, step.residual),
            )
            keys = _partition_parts(scan, step.keys)
        if keys is not None:
            self.pruning[id(node)] = keys
        return node

    # --- inner operators ---

    def _join(self, candidate: Candidate, step: JoinStep, needed: Columns) -> Physical:
        left_group, right_group = (source.group for source in candidate.inputs)
        used = needed | used_by(step.residual) | {c for pair in step.pairs for c in pair}
        left = self.build(candidate.inputs[0], used & left_group.columns.keys())
        right = self.build(candidate.inputs[1], used & right_group.columns.keys())
        # The group knows which columns the join pads with NULL.
        known = candidate.group.columns
        output = tuple(
            known.get(column.id, column)
            for column in (*left.output, *right.output)
            if column.id in needed
        )
        if step.mark is not None:
            output = (*(c for c in output if c.id in left_group.columns), step.mark)
        residual = conjunction(step.residual)
        if not step.pairs:
            return NestedLoopJoin(output, traits_of(candidate), step.kind, left, right, residual)
        keys = tuple(a for a, _ in step.pairs), tuple(b for _, b in step.pairs)
        traits = traits_of(candidate)
        if step.order:
            return MergeJoin(
                output, traits, step.kind, left, right, *keys, residual, False, step.order
            )
        return HashJoin(output, traits, step.kind, left, right, *keys, residual, step.null_aware)

    def _lookup_join(self, candidate: Candidate, step: LookupJoinStep, needed: Columns) -> Physical:
        schema = step.scan.schema
        self.dependencies[schema.name] = MapDependency(schema.name, schema.map_id, schema.version)
        outer = candidate.inputs[0]
        used = needed | used_by(step.residual)
        keys = tuple(a for a, _ in step.pairs)
        child = self.build(outer, (used | set(keys)) & outer.group.columns.keys())
        inner = [
            (column, position)
            for column, position in zip(step.scan.output, step.scan.positions, strict=True)
            if column.id in used
        ]
        names = {
            column.id: schema.columns[position].name
            for column, position in zip(step.scan.output, step.scan.positions, strict=True)
        }
        known = candidate.group.columns
        output = tuple(
            known.get(column.id, column)
            for column in (*child.output, *(column for column, _ in inner))
            if column.id in needed
        )
        return LookupJoin(
            output,
            traits_of(candidate),
            step.kind,
            child,
            schema.name,
            schema.map_id,
            schema.version,
            step.scan.alias,
            tuple(column for column, _ in inner),
            tuple(position for _, position in inner),
            "" if step.index is None else step.index.name,
            0 if step.index is None else step.index.index_id,
            keys,
            tuple(names[b] for _, b in step.pairs),
            conjunction(step.residual),
            step.spread,
        )

    def _aggregate(self, candidate: Candidate, step: AggregateStep) -> Physical:
        operator = step.operator
        group_columns = candidate.group.output[: len(operator.group)]
        state_columns = tuple(column for states in operator.states for column in states)
        if step.phase is AggregatePhase.FINAL:
            needed = frozenset(operator.group) | {column.id for column in state_columns}
        else:
            parts = [e for call in operator.calls for e in call.expressions]
            needed = frozenset(operator.group) | used_by(parts)
        child = self.build(candidate.inputs[0], needed)
        results = state_columns if step.phase is AggregatePhase.PARTIAL else operator.results
        states = tuple(tuple(c.id for c in columns) for columns in operator.states)
        node = StreamingAggregate if step.streaming else HashAggregate
        return node(
            (*group_columns, *results),
            traits_of(candidate),
            child,
            step.phase,
            operator.group,
            operator.calls,
            () if step.phase is AggregatePhase.SINGLE else states,
            # The partial phases have put it out already.
            () if step.phase is AggregatePhase.FINAL else operator.always,
        )

    def _arrangement(
        self, candidate: Candidate, step: SortStep | LimitStep | ExchangeStep, needed: Columns
    ) -> Physical:
        """The same rows in another order, fewer of them, or elsewhere."""
        match step:
            case SortStep(keys=keys, limit=limit):
                child = self.build(candidate.inputs[0], needed | {key.column for key in keys})
                return SortRows(child.output, traits_of(candidate), child, keys, limit)
            case LimitStep(limit=limit, offset=offset):
                child = self.build(candidate.inputs[0], needed)
                return LimitRows(child.output, traits_of(candidate), child, limit, offset)
            case ExchangeStep(kind=kind, keys=hash_keys, collation=collation):
                used = needed | set(hash_keys) | {key.column for key in collation}
                child = self.build(candidate.inputs[0], used)
                return Exchange(
                    child.output, traits_of(candidate), child, kind, hash_keys, collation
                )


def _filter_columns(scan: Scan, condition: Expression | None) -> tuple[tuple[ColumnId, int], ...]:
    if condition is None:
        return ()
    used = columns_of(condition)
    pairs = zip(scan.output, scan.positions, strict=True)
    return tuple((column.id, position) for column, position in pairs if column.id in used)


def _partition_parts(scan: Scan, keys: PruningKeys) -> PruningKeys | None:
    """The parts of whole keys that decide the partition."""
    if scan.schema.replicated:
        return None
    index = {position: i for i, position in enumerate(scan.schema.key_positions)}
    parts = [index[position] for position in scan.schema.partition_positions]
    return tuple(dict.fromkeys(tuple(key[i] for i in parts) for key in keys))
