"""Records as bytes and back; every kind has a text and is told apart from damage."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_records import records

from remuda.errors import DataCorrupted, UnknownFormat
from remuda.storage.format import records as log
from remuda.storage.format.record_codec import _KINDS, _LAYOUTS, decode_record, encode_record


@given(records)
def test_a_record_comes_back(record: log.Record) -> None:
    kind, payload = encode_record(record)
    assert decode_record(kind, payload) == record
    assert len(str(record)) < 400


@given(records, st.data())
def test_a_record_cut_short_is_refused(record: log.Record, data: st.DataObject) -> None:
    kind, payload = encode_record(record)
    shorter = data.draw(st.integers(0, len(payload) - 1))
    with pytest.raises(DataCorrupted):
        decode_record(kind, payload[:shorter])
    with pytest.raises(DataCorrupted):
        decode_record(kind, payload + b"\0")


@given(st.integers(0, 255), st.binary(max_size=60))
def test_any_bytes_are_a_record_or_refused(kind: int, payload: bytes) -> None:
    try:
        record = decode_record(kind, payload)
    except DataCorrupted:
        return
    except UnknownFormat:
        assert kind not in _LAYOUTS
        return
    assert decode_record(*encode_record(record)) == record


def test_every_kind_has_one_number() -> None:
    assert set(_KINDS) == set(get_args(log.Record))
    assert set(_KINDS.values()) == set(_LAYOUTS)
    assert len(set(_KINDS.values())) == len(_KINDS)


def test_a_newer_kind_is_named() -> None:
    with pytest.raises(UnknownFormat, match="kind 200"):
        decode_record(200, b"")


def test_texts() -> None:
    part = log.PartId(7, 2, 5)
    change = log.Change(1, 1, b"\x01", None)
    assert str(log.Prepared(part, 9, (5, 6), b"", (change,))) == (
        "prepared 2:7/5 at 9, of 2 parts, 1 changes"
    )
    assert str(log.Committed(part, 9, (5,), None)) == "committed 2:7/5 at 9, as prepared"
    assert str(log.CutFinish(3, frozenset({part}), frozenset())) == (
        "cut 3 finishes, before 1, after 0"
    )
    assert str(change) == "map 1 -01"
