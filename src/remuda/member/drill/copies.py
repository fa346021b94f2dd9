"""COPY on the user channel: its data goes out in pages of one column, and comes in by COPY_DATA."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import pyarrow as pa

from remuda.copying.options import CopyOptions
from remuda.copying.writing import RowWriter
from remuda.datatypes.schema import Column
from remuda.datatypes.sql import BYTEA
from remuda.errors import ProtocolError
from remuda.limits import MIB
from remuda.member.base.call import Call
from remuda.member.queries.copy_port import CopyInput
from remuda.member.queries.cursors import Acknowledged, End, RpcWire, Wire
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.session.shape import ResultShape

PIECE: Final = 4 * MIB
"""Bytes of the data in one page: rows of a batch may be longer as text than in memory."""
_DATA: Final = ResultShape((Column("data", BYTEA),))


class UserCopies:
    """The ``CopyPort`` of one statement of Remuda's own client.

    The member asks for the data by a page without rows, which names the columns. Each COPY_DATA is
    answered when there is room for more. Data that arrives after the end of the statement is
    dropped.
    """

    def __init__(self, wire: Callable[[ResultShape, user_pb2.CopyWay], RpcWire]) -> None:
        """``wire`` sends the pages of a COPY in one of the two directions."""
        self._wire = wire
        self._input: CopyInput | None = None
        self._next = 0
        self._unanswered: deque[Call] = deque()

    # --- for the statement --------------------------------------------------------------------

    def outgoing(
        self, options: CopyOptions, names: Sequence[str], zone: str
    ) -> Callable[[ResultShape], Wire]:
        def wire(shape: ResultShape) -> Wire:
            writer = RowWriter(names, shape.types, options, zone, framed=False)
            return _OutgoingWire(self._wire(_DATA, user_pb2.COPY_OUT), writer, shape)

        return wire

    def begin(self, options: CopyOptions, columns: Sequence[Column]) -> CopyInput:  # noqa: ARG002
        self._input = CopyInput(self._answer)
        shape = ResultShape(columns)
        self._wire(shape, user_pb2.COPY_IN).external_page(shape.rows([]), lambda _: None)
        return self._input

    def close(self) -> None:
        """The statement is over."""
        if self._input is not None:
            self._input.end()
        self._answer()

    # --- for the connection -------------------------------------------------------------------

    def take(self, call: Call, message: user_pb2.CopyData) -> None:
        """Raises ProtocolError for data that its statement has not asked for, or a gap:
        some are lost, and the statement fails."""
        given = self._input
        if given is None:
            raise ProtocolError("COPY_DATA for a statement that has not asked for it")
        if given.ended or message.ordinal < self._next:
            _answer(call, wanted=not given.ended)
            return
        if message.ordinal > self._next:
            error = ProtocolError(
                f"piece {self._next} of the data of a COPY is missing: {message.ordinal} came"
            )
            given.end(error)
            raise error
        self._next += 1
        if len(call.dbody):
            given.put(bytes(call.dbody))
        if message.last:
            given.end()
        self._unanswered.append(call)
        if given.ended or not given.full:
            self._answer()

    def _answer(self) -> None:
        wanted = self._input is not None and not self._input.ended
        while self._unanswered:
            _answer(self._unanswered.popleft(), wanted=wanted)


def _answer(call: Call, *, wanted: bool) -> None:
    call.reply(RpcType.COPY_DATA, user_pb2.CopyTaken(wanted=wanted))


def unwanted(call: Call) -> None:
    """Answers the data of a statement that has ended."""
    _answer(call, wanted=False)


class _OutgoingWire:
    """Takes the rows of a result away as pieces of the data of a COPY TO."""

    def __init__(self, wire: RpcWire, writer: RowWriter, shape: ResultShape) -> None:
        self._wire = wire
        self._writer = writer
        self._shape = shape
        self._first = True

    def page(self, columns: Sequence[pa.Array], rows: int, on_acknowledged: Acknowledged) -> None:
        self._send(self._head() + bytes(self._writer.rows(columns, rows)), on_acknowledged)

    def external_page(self, batch: pa.RecordBatch, on_acknowledged: Acknowledged) -> None:
        self.page(self._shape.engine(batch), batch.num_rows, on_acknowledged)

    def finish(self, end: End) -> None:
        if end.error is None:
            rest = self._head() + self._writer.tail()
            if rest:
                self._send(rest, lambda _: None)
        self._wire.finish(End(end.error, "COPY", end.rows, end.rows, end.session, end.transaction))

    def _head(self) -> bytes:
        first, self._first = self._first, False
        return self._writer.head() if first else b""

    def _send(self, data: bytes, on_acknowledged: Acknowledged) -> None:
        """``on_acknowledged`` hears of the last piece: those before have arrived by then."""
        starts = range(0, len(data), PIECE) or range(1)
        for start in starts:
            piece = pa.record_batch(
                [pa.array([data[start : start + PIECE]], pa.binary())], ["data"]
            )
            last = start + PIECE >= len(data)
            self._wire.page(piece.columns, 1, on_acknowledged if last else lambda _: None)
