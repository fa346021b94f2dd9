"""Reads by the values of a unique index, validated as reads of one key.

A scan for the value of a unique index is part of the commit on all partitions: any of them may get
a row with the value. A transaction that has written the row with the value needs only that row's
key: while nobody else changes that row, no other row can have the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import Kind
from remuda.datatypes.values import PhysicalValue
from remuda.member.state.transaction_sets import ReadSet, Scan
from remuda.plan.expression import Call, ColumnRef, Expression, Literal, Parameter, conjuncts
from remuda.transaction.own_writes import Key, Row

_EXACT: Final = frozenset(
    {Kind.TINYINT, Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.VARCHAR, Kind.UUID, Kind.DATE}
)
"""Kinds of which SQL takes two values for equal exactly if they are the same value."""


def keyed_reads(reads: ReadSet, schema: MapSchema, rows: Mapping[Key, Row]) -> ReadSet:
    """``reads`` with keys in place of scans. ``rows``: those that the transaction writes to the
    map, each of which has had its values of all unique indexes since before the snapshot."""
    keys = dict(reads.keys)
    owners = {index.name: _owners(index, schema, rows) for index in schema.uniques}
    scans = []
    for scan in reads.scans:
        key = None
        if scan.map_id == schema.map_id and scan.schema_version == schema.version:
            key = _key_of(scan, schema, owners)
        if key is None:
            scans.append(scan)
        else:
            keys[scan.map_id] = keys.get(scan.map_id, set()) | {key}
    return ReadSet(reads.snapshot, keys, scans, reads.since)


def _owners(index: IndexDefinition, schema: MapSchema, rows: Mapping[Key, Row]) -> dict[Row, Key]:
    """By its values, whose they are."""
    places = [schema.position[name] for name in index.names]
    if any(schema.columns[place].type.kind not in _EXACT for place in places):
        return {}
    return {tuple([row[place] for place in places]): key for key, row in rows.items()}


def _key_of(scan: Scan, schema: MapSchema, owners: Mapping[str, Mapping[Row, Key]]) -> Key | None:
    """The key of the only row that the scan can find; None if that is not known."""
    fixed = dict(_fixed(scan, schema))
    for index in schema.uniques:
        if all(name in fixed for name in index.names):
            values = tuple([fixed[name] for name in index.names])
            if None not in values and (key := owners[index.name].get(values)) is not None:
                return key
    return None


def _fixed(scan: Scan, schema: MapSchema) -> Iterator[tuple[str, PhysicalValue]]:
    """The columns of which every row that the scan finds has one value."""
    places = dict(scan.columns)
    for part in conjuncts(scan.predicate):
        match part:
            case Call(function="=", arguments=(ColumnRef() as column, value)):
                pass
            case Call(function="=", arguments=(value, ColumnRef() as column)):
                pass
            case _:
                continue
        place = places.get(column.column)
        if place is not None and value.type.kind is schema.columns[place].type.kind:
            yield from _constant(schema.columns[place].name, value, scan.parameters)


def _constant(
    name: str, value: Expression, parameters: tuple[PhysicalValue, ...]
) -> Iterator[tuple[str, PhysicalValue]]:
    match value:
        case Literal(value=constant):
            yield name, constant
        case Parameter(index=index):
            yield name, parameters[index]
