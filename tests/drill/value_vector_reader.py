"""Reads value vectors as Drill's clients do: value by value, from the description and the bytes.

Written from the layout alone; shares no code with the encoder.
"""

from __future__ import annotations

import struct
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

from remuda.rpc.messages import vectors_pb2 as v

EPOCH = datetime.fromisoformat("1970-01-01")


def read_batch(fields: Any, body: bytes) -> dict[str, list[Any]]:
    """The columns by name. Every byte of the body must belong to a vector."""
    found: dict[str, list[Any]] = {}
    place = 0
    for field in fields:
        size = field.buffer_length
        assert field.name_part.name not in found, "two columns of one name"
        found[field.name_part.name] = read_vector(field, body[place : place + size])
        place += size
    assert place == len(body), "bytes that belong to no vector"
    return found


def read_vector(field: Any, data: bytes) -> list[Any]:
    assert len(data) == field.buffer_length
    kind, mode, count = field.major_type.minor_type, field.major_type.mode, field.value_count
    if kind == v.MAP:
        return read_map(field, data, mode)
    if mode == v.REPEATED:
        offsets, values = field.child
        assert (offsets.name_part.name, values.name_part.name) == ("$offsets$", "$data$")
        cut = offsets.buffer_length
        return in_lists(offsets, data[:cut], read_vector(values, data[cut:]), count)
    if mode == v.OPTIONAL:
        bits, values = field.child
        assert (bits.name_part.name, values.name_part.name) == ("$bits$", field.name_part.name)
        assert values.major_type == field.major_type
        assert bits.major_type.minor_type == v.UINT1
        assert values.major_type.minor_type == kind
        assert bits.buffer_length == bits.value_count == count == values.value_count
        flags = data[:count]
        assert set(flags) <= {0, 1}
        found = read_required(values, data[count:])
        return [x if flag else None for flag, x in zip(flags, found, strict=True)]
    return read_required(field, data)


def read_map(field: Any, data: bytes, mode: int) -> list[Any]:
    members = list(field.child)
    place = 0
    if mode == v.REPEATED:
        place = members[0].buffer_length
    rows: dict[str, list[Any]] = {}
    for member in members[1 if mode == v.REPEATED else 0 :]:
        size = member.buffer_length
        rows[member.name_part.name] = read_vector(member, data[place : place + size])
        place += size
    assert place == len(data)
    values = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
    if mode != v.REPEATED:
        assert len(values) == field.value_count
        return values
    head = members[0]
    return in_lists(head, data[: head.buffer_length], values, field.value_count)


def in_lists(field: Any, data: bytes, values: list[Any], count: int) -> list[Any]:
    ends = read_offsets(field, data, count)
    assert ends[-1] == len(values)
    return [values[a:b] for a, b in pairwise(ends)]


def read_offsets(field: Any, data: bytes, count: int) -> tuple[int, ...]:
    assert field.name_part.name == "$offsets$"
    assert field.major_type.minor_type == v.UINT4
    if count == 0:
        assert (field.value_count, len(data)) == (0, 0)
        return (0,)
    assert field.value_count == count + 1
    ends = struct.unpack(f"<{count + 1}I", data)
    assert ends[0] == 0
    return ends


FIXED = {
    v.TINYINT: "b",
    v.SMALLINT: "h",
    v.INT: "i",
    v.BIGINT: "q",
    v.FLOAT4: "f",
    v.FLOAT8: "d",
    v.DATE: "q",
    v.TIME: "i",
    v.TIMESTAMP: "q",
}


def read_required(field: Any, data: bytes) -> list[Any]:
    kind, count = field.major_type.minor_type, field.value_count
    if kind == v.BIT:
        assert len(data) == (count + 7) // 8
        return [bool(data[i // 8] >> (i % 8) & 1) for i in range(count)]
    if kind == v.INTERVAL:
        assert len(data) == 16 * count
        return [struct.unpack_from("<iii", data, 16 * i) for i in range(count)]
    if kind in FIXED:
        raw = struct.unpack(f"<{count}{FIXED[kind]}", data)
        return [MEANING.get(kind, lambda x: x)(x) for x in raw]
    (offsets,) = field.child
    cut = offsets.buffer_length
    ends = read_offsets(offsets, data[:cut], count)
    assert field.var_byte_length == len(data) - cut == ends[-1]
    pieces = [data[cut:][a:b] for a, b in pairwise(ends)]
    if kind == v.VARBINARY:
        return pieces
    if kind == v.VARDECIMAL:
        scale = field.major_type.scale
        numbers = [int.from_bytes(p, "big", signed=True) for p in pieces]
        return [Decimal(n).scaleb(-scale, Context(prec=40)) for n in numbers]
    assert kind == v.VARCHAR
    return [piece.decode(errors="replace") for piece in pieces]


def _date(millis: int) -> date:
    found = EPOCH + timedelta(milliseconds=millis)
    assert found.time() == time()
    return found.date()


MEANING: dict[int, Any] = {
    v.DATE: _date,
    v.TIME: lambda millis: (EPOCH + timedelta(milliseconds=millis)).time(),
    v.TIMESTAMP: lambda millis: EPOCH + timedelta(milliseconds=millis),
}
