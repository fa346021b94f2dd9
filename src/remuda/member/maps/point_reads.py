"""The fast path of reads by key: no operators, no fragments, no cursor (design D5). The answers of
reads by a secondary index (``index_reads``) are made here, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import itemgetter
from typing import Protocol

import pyarrow as pa

from remuda.datatypes.values import PhysicalValue, arrays_to_rows, values_to_array
from remuda.errors import RemudaError
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler, evaluate_constant
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.lookup_keys import lookup_keys
from remuda.limits import MIB, TUPLE_BATCH_ROWS
from remuda.member.base.core import Core, bug
from remuda.member.maps.entry_reads import EntryReads
from remuda.member.maps.maps import Maps
from remuda.member.maps.open_map import OpenMap
from remuda.member.queries.cursors import Results, RpcWire
from remuda.planner.index_read import IndexRead
from remuda.planner.point import PointRead
from remuda.query.ids import QueryId
from remuda.query.wire import encode_query_id
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.point_encoding import encode_answer
from remuda.rpc.transport import Request
from remuda.session.planning import PlannedQuery

Row = tuple[PhysicalValue, ...]
QUERY_ANSWER = RpcType.QUERY_ANSWER
ANSWER_SIZE_MAX = MIB
"""Several rows of together more than this travel as Arrow."""

KEYS_MAX = 1_000
"""An array of more keys is not looked up on the loop."""


class Written(Protocol):
    """A read that wants an entry of another member in the form of PostgreSQL's door."""

    @property
    def wire_form(self) -> bytes:
        """A serialized ``EntryForm``."""

    def answer_written(self, row: bytes | RemudaError | None) -> None:
        """Called once with the DataRow message; None: there is no such entry."""


class PointReads:
    def __init__(self, core: Core, maps: Maps, entries: EntryReads) -> None:
        self._core = core
        self._entries = entries
        self._maps = maps
        self._count = core.measures.by_fingerprint.read

    def run(
        self,
        query: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        answer: Callable[[list[Row] | RemudaError], None],
        *,
        text: str,
        user: str,
        written: Written | None = None,
    ) -> bool:
        """Call ``answer`` with the entries that were found (or what went wrong) if all keys are of
        one owner, at once or when that has answered; False: the query is not for this path.
        ``text`` is the statement's, by which it is counted. ``written`` hears of a single entry of
        another member instead. Raises MemberUnavailable."""
        core, point = self._core, query.point
        assert point is not None
        if not core.readiness.ready:
            return False  # the other path waits
        found = self._maps.open(point.map_name, point.map_id, point.schema_version)
        keys = keys_of(point, values)
        if len(keys) > KEYS_MAX:
            return False
        owner = self._owner(found, keys)
        if owner is None:
            return False
        if owner in core.lost:
            return False  # the other path waits
        if owner != core.number:
            core.require_alive(owner)
            self._count(text, user)
            if written is not None and len(keys) == 1:
                self._entries.ask(owner, found, keys[0], written.wire_form, written.answer_written)
            else:
                self._maps.read_elsewhere(owner, found, keys, answer)
            return True
        at = core.timestamp()
        store = found.store
        if store.pending_at_or_below(at) and self._maps.depend(found, keys, at):
            return False
        self._count(text, user)
        rows = []
        for key in keys:
            row = store.get(key, at)
            if row is not None:
                rows.append(row)
        store.counters.looked_up += len(rows)
        answer(rows)
        return True

    def _owner(self, found: OpenMap, keys: Sequence[Row]) -> int | None:
        if found.schema.replicated or not keys:
            return self._core.number
        owners, partition = self._core.view.owners, found.router.key_partition
        owner = owners[partition(keys[0])]
        if len(keys) > 1 and any(owners[partition(key)] != owner for key in keys[1:]):
            return None
        return owner


@dataclass(slots=True)
class PointRows:
    """The rows of the result, made of the entries that were found: whole ones, or the columns that
    the read fetches."""

    core: Core
    query: PlannedQuery
    point: PointRead | IndexRead
    values: tuple[PhysicalValue, ...]

    def output(self, rows: list[Row]) -> Iterable[Sequence[PhysicalValue]]:
        """Physical values."""
        positions = self.point.positions
        if positions is not None and self.point.filter is None:
            if len(positions) > 1:
                return map(itemgetter(*positions), rows)
            return [[row[position] for position in positions] for row in rows]
        columns = self._computed(rows)
        types = self.query.shape.types
        return arrays_to_rows(columns, types)

    def page(self, rows: list[Row]) -> pa.RecordBatch:
        """In external form."""
        point, shape = self.point, self.query.shape
        if point.positions is not None and point.filter is None:
            return shape.rows([[row[position] for position in point.positions] for row in rows])
        return shape.external(self._computed(rows))

    def columns(self, rows: list[Row]) -> list[pa.Array]:
        """In engine form."""
        positions, types = self.point.positions, self.query.shape.types
        if positions is None or self.point.filter is not None:
            return self._computed(rows)
        return [
            values_to_array([row[position] for row in rows], of)
            for position, of in zip(positions, types, strict=True)
        ]

    def _computed(self, rows: list[Row]) -> list[pa.Array]:
        """Filter and expressions over the rows, by the same evaluators as everywhere, in engine
        form."""
        point = self.point
        columns = self.core.store(point.map_id, point.schema_version).schema.columns
        positions = {column: index for index, (column, _) in enumerate(point.columns)}
        if point.fetched is not None:
            columns = tuple([columns[position] for position in point.fetched])
        arrays = [
            values_to_array([row[position] for row in rows], columns[position].type)
            for _, position in point.columns
        ]
        batch = Batch(arrays, len(rows))
        compiler = Compiler(positions, self.values)
        if point.filter is not None and batch.rows:
            mask = compiler.column(point.filter)(batch)
            keep = [index for index, passed in enumerate(mask.to_pylist()) if passed]
            taken = pa.array(keep, pa.int64())
            batch = Batch([array.take(taken) for array in arrays], len(keep))
        found = Batch([compiler.column(e)(batch) for e in point.expressions], batch.rows)
        types = self.query.shape.types
        return [canonical(array, t) for array, t in zip(found.columns(), types, strict=True)]


@dataclass(slots=True)
class PointAnswer(PointRows):
    """Turns the rows that were found into the answer of a RUN_QUERY.
    ``known_form``: the form of answers that the client knows already, None for one that wants
    QUERY_HANDLE, QUERY_DATA and QUERY_RESULT."""

    request: Request
    query_id: QueryId
    known_form: int | None

    def send(self, rows: list[Row] | RemudaError) -> None:
        if self.request.channel.closed:
            return
        if isinstance(rows, RemudaError):
            self.request.fail(rows)
            return
        try:
            if self.known_form is None or not self._answer(self.known_form, rows):
                self._results(rows)
        except RemudaError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            self._fail(bug(error, f"read by key of {self.query_id}"))

    def _fail(self, error: RemudaError) -> None:
        if self.request.answered:  # by QUERY_HANDLE: the client waits for a result
            self._wired().finish(error)
        else:
            self.request.fail(error)

    def _answer(self, known_form: int, rows: list[Row]) -> bool:
        """Everything in one message; False when it is too much for that."""
        if len(rows) > TUPLE_BATCH_ROWS:
            return False
        form = self.query.form
        pack = form.rows.pack
        packed = list(map(pack, self.output(rows)))
        if len(packed) > 1 and sum(map(len, packed)) > ANSWER_SIZE_MAX:
            return False
        number = form.number
        about = None if known_form == number else form.about
        query = (self.query_id.part1, self.query_id.part2)
        body = encode_answer(query, self.core.encoded_context(), number, about, packed)
        self.request.reply(QUERY_ANSWER, body)
        return True

    def _results(self, rows: list[Row]) -> None:
        """As every other query answers."""
        page = self.page(rows)
        request = self.request
        request.reply(RpcType.QUERY_HANDLE, encode_query_id(self.query_id))
        results = self._wired()
        results.external_page(page, lambda _: None)
        results.finish()

    def _wired(self) -> Results:
        channel = self.request.channel
        return Results(RpcWire(self.core, channel, self.query_id, self.query.shape))


def keys_of(point: PointRead, values: tuple[PhysicalValue, ...]) -> list[Row]:
    """The distinct keys without NULLs, in order."""
    if point.by_array:
        return list(dict.fromkeys(lookup_keys(point.keys, values)))
    keys: dict[Row, None] = {}
    for parts in point.keys:
        key = tuple(map(evaluate_constant, parts, repeat(values)))
        if None not in key:
            keys[key] = None
    return list(keys)
