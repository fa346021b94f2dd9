"""ARRAY and ROW as text, and UUIDs."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.texts.arraytext import array_text, row_text, split_array
from remuda.datatypes.uuids import parse_uuid, uuid_text, uuid_texts
from remuda.errors import InvalidText, UnsupportedValue


@given(st.lists(st.none() | st.text()))
def test_arrays_are_read_back(items: list[str | None]) -> None:
    assert split_array(array_text(items)) == items


def test_forms() -> None:
    assert array_text(["a", None, "NULL", "", "x y", 'q"', "b\\"]) == (
        '{a,NULL,"NULL","","x y","q\\"","b\\\\"}'
    )
    assert split_array(' { a , "b c" , null } ') == ["a", "b c", None]
    assert split_array("[1:2]={1,2}") == ["1", "2"]
    assert row_text(["1", None, "a b", ""]) == '(1,,"a b","")'


@pytest.mark.parametrize(
    "text", ["", "1,2", "{1", "{1,}", "{,}", "{1}2", '{"a}', '{a"b}', "[1:3]={1}"]
)
def test_bad_arrays(text: str) -> None:
    with pytest.raises(InvalidText, match="malformed array literal"):
        split_array(text)


def test_arrays_that_are_not_supported() -> None:
    for text in ("{{1},{2}}", "[0:1]={1,2}"):
        with pytest.raises(UnsupportedValue):
            split_array(text)


@given(st.uuids())
def test_uuids(value: uuid.UUID) -> None:
    for text in (str(value), value.hex, f"{{{value}}}", str(value).upper()):
        assert parse_uuid(text) == value.bytes
    assert uuid_text(value.bytes) == str(value)


@given(st.lists(st.none() | st.uuids(), max_size=5), st.integers(0, 2))
def test_columns_of_uuids(values: list[uuid.UUID | None], cut: int) -> None:
    array = pa.array([None if v is None else v.bytes for v in values], pa.binary())
    texts = [None if v is None else str(v) for v in values]
    assert uuid_texts(array.slice(cut)).to_pylist() == texts[cut:]


@pytest.mark.parametrize("text", ["", "x", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1", "{" + "0" * 32])
def test_bad_uuids(text: str) -> None:
    with pytest.raises(InvalidText, match="invalid input syntax for type uuid"):
        parse_uuid(text)
