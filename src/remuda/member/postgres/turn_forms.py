"""The form of a prepared read by key that is bound, executed and answered in one turn: decoders,
description and writers of rows, made once for each plan."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.maps.point_reads import PointRows, Row
from remuda.member.metrics.postgres_statements import kind_of
from remuda.planner.point import PointRead
from remuda.postgres.catalog_values import wire_oid
from remuda.postgres.messages import row_description
from remuda.postgres.parameters import exact_decoder
from remuda.postgres.prepared import Turn
from remuda.postgres.rows import RowForm
from remuda.rpc.messages.control_pb2 import EntryForm
from remuda.session.planning import Planned, PlannedQuery

Values = tuple[PhysicalValue, ...]


@dataclass(frozen=True, slots=True)
class TurnForm:
    """How one plan reads parameters and writes rows, for one form of messages."""

    query: PlannedQuery
    point: PointRead
    asked: tuple[tuple[int, ...], tuple[int, ...], str]
    """The formats of parameters and of columns, and the zone."""
    decoders: tuple[Callable[[bytes], PhysicalValue], ...]
    description: bytes
    """The RowDescription."""
    form: RowForm
    kind: str
    """Of the statement, among the measures."""
    elsewhere: bytes
    """Has another member write an entry, as ``stored`` does: a serialized ``EntryForm``."""
    stored: Callable[[Row], bytes] | None
    """Writes an entry whose columns are the result's; None: a filter or expressions make rows."""

    def values(self, given: Sequence[bytes | None]) -> Values | None:
        """The parameters; None if one cannot be read: the general way tells why."""
        try:
            return tuple(
                [
                    None if data is None else decode(data)
                    for data, decode in zip(given, self.decoders, strict=True)
                ]
            )
        except (RemudaError, struct.error):
            return None

    def serves(self, limit: int) -> bool:
        """Whether the read can find no more rows than ``limit`` (0: any number)."""
        return not limit or not (self.point.by_array or len(self.point.keys) > limit)

    def rows(self, core: Core, values: Values, entries: list[Row]) -> list[bytes]:
        """The DataRow messages of the entries that were found."""
        if self.stored is not None:
            return list(map(self.stored, entries))
        made = PointRows(core, self.query, self.point, values).output(entries)
        return list(map(self.form.row, made))


class TurnForms:
    """The form that was used last by a prepared statement: its client uses no other one, as a
    rule."""

    def __init__(self) -> None:
        self._last: TurnForm | None = None

    def of(
        self,
        found: Planned | None,
        turn: Turn,
        types: tuple[SqlType, ...],
        oids: tuple[int, ...],
        zone: str,
    ) -> TurnForm | None:
        """For a statement whose parameters have these types, declared by these oids. None: the
        statement, or a parameter, is for the general way."""
        last, asked = self._last, (turn.message.formats, turn.formats, zone)
        if last is None or last.query is not found or last.asked != asked:
            last = self._last = _form(found, turn, types, oids, zone)
        return last


def _form(
    found: Planned | None,
    turn: Turn,
    types: tuple[SqlType, ...],
    oids: tuple[int, ...],
    zone: str,
) -> TurnForm | None:
    if not isinstance(found, PlannedQuery) or found.locking or found.point is None:
        return None
    fields = turn.prepared.fields or ()
    shape = found.shape.types
    if found.parameter_types != types or len(oids) != len(types):
        return None
    if [field.type for field in fields] != [wire_oid(sql_type) for sql_type in shape]:
        return None  # the table was altered
    given = turn.message.formats
    if len(given) < 2:
        given = (given or (0,)) * len(types)
    decoders = [exact_decoder(*each) for each in zip(given, oids, types, strict=True)]
    known = tuple(decoder for decoder in decoders if decoder is not None)
    if len(known) != len(types):
        return None
    point, form = found.point, RowForm(shape, turn.formats, zone)
    stored, elsewhere = None, b""
    if point.filter is None and point.positions is not None:
        stored = form.writer(point.positions)
        elsewhere = EntryForm(
            positions=point.positions, formats=turn.formats, zone=zone
        ).SerializeToString()
    return TurnForm(
        query=found,
        point=point,
        asked=(turn.message.formats, turn.formats, zone),
        decoders=known,
        description=row_description(fields, turn.formats),
        form=form,
        kind=kind_of(turn.prepared.text),
        elsewhere=elsewhere,
        stored=stored,
    )
