"""The parts of a result: its header, and pages of rows in either of two forms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat
from typing import Any, Final, TypeAlias

import pyarrow as pa

from remuda.client.requests.requests import Route
from remuda.client.values.decoding import Decoder, decoder, python_values
from remuda.client.values.row import Row, make_rows, row_class
from remuda.datatypes.arrow import external_schema, to_external
from remuda.datatypes.schema import Column
from remuda.datatypes.values import PhysicalValue, values_to_array
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.packing import RowPacker, packer

_HEADERS_KEPT: Final = 256


@dataclass(frozen=True)
class Header:
    """The columns of a result. ``form`` is the member's number for what this says (0: it gave
    none), ``route`` how to find the member that can answer the statement by itself."""

    columns: tuple[Column, ...]
    form: int = 0
    route: Route | None = None

    @classmethod
    def of(cls, columns: Sequence[common_pb2.Column]) -> Header:
        return cls(tuple(codec.decode_column(column) for column in columns))

    @classmethod
    def of_answer(cls, form: int, about: user_pb2.AnswerForm) -> Header:
        columns = tuple(codec.decode_column(column) for column in about.columns)
        route = None
        if about.route_parameters:
            types = tuple(type_codec.decode_type(t) for t in about.route_types)
            route = Route(tuple(about.route_parameters), types)
        return cls(columns, form, route)

    @cached_property
    def schema(self) -> pa.Schema:
        """The external Arrow schema."""
        return external_schema(self.columns)

    @cached_property
    def row_packer(self) -> RowPacker:
        return packer(tuple(column.type for column in self.columns))

    @cached_property
    def decoders(self) -> list[tuple[int, Decoder]]:
        """(position, function) of the columns whose Python values are not the physical ones."""
        return [(i, d) for i, column in enumerate(self.columns) if (d := decoder(column))]

    @cached_property
    def row_class(self) -> type[Row]:
        return row_class(tuple(column.name for column in self.columns))


class ArrowPage:
    """Rows as external-form batches of ``columns``."""

    __slots__ = ("batches", "columns", "count")

    def __init__(self, batches: list[pa.RecordBatch], columns: tuple[Column, ...]) -> None:
        self.batches = batches
        self.columns = columns
        self.count = sum(batch.num_rows for batch in batches)

    def rows(self) -> list[Row]:
        found: list[Row] = []
        for batch in self.batches:
            names = batch.schema.names
            columns = [
                python_values(array, column)
                for array, column in zip(batch.columns, self.columns, strict=True)
            ]
            found += make_rows(names, columns, batch.num_rows)
        return found


class RowPage:
    """Packed rows, as they come in a QUERY_ANSWER; Arrow is made of them only when asked for."""

    __slots__ = ("_header", "_values", "count")

    def __init__(self, header: Header, packed: Sequence[bytes]) -> None:
        unpack = header.row_packer.unpack
        self._header = header
        self._values: list[tuple[PhysicalValue, ...]] = list(map(unpack, packed))
        self.count = len(self._values)

    def rows(self) -> list[Row]:
        cls, decoders = self._header.row_class, self._header.decoders
        new = tuple.__new__
        if not decoders:
            return list(map(new, repeat(cls), self._values))
        found = []
        for values in self._values:
            row: list[Any] = list(values)
            for position, decode in decoders:
                row[position] = decode(row[position])
            found.append(new(cls, row))
        return found

    @property
    def batches(self) -> list[pa.RecordBatch]:
        header = self._header
        values = zip(*self._values, strict=True) if self._values else [()] * len(header.columns)
        arrays = [
            to_external(values_to_array(list(items), column.type), column.type)
            for items, column in zip(values, header.columns, strict=True)
        ]
        return [pa.RecordBatch.from_arrays(arrays, schema=header.schema)]


Page: TypeAlias = ArrowPage | RowPage


class KnownHeaders:
    """Headers of statements that read by key, by text: a statement that comes again goes straight
    to the member that owns its key, and its answer need not say the columns again. A header that
    is no longer right costs a hop, nothing more: the answer brings the new one. Thread-safe.
    """

    def __init__(self) -> None:
        self._headers: dict[str, Header] = {}

    def get(self, text: str) -> Header | None:
        return self._headers.get(text)

    def learn(self, text: str, header: Header | None) -> None:
        """Keep the header of an answer that has a form; others may be large and are read anyway."""
        if header is None or header.form == 0 or self._headers.get(text) is header:
            return
        self._headers[text] = header
        if len(self._headers) > _HEADERS_KEPT:
            self._headers.pop(next(iter(list(self._headers))), None)
