"""JSON text: one normalized form, errors that say where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.datatypes.jsons import (
    DEPTH_MAX,
    from_python,
    json_text,
    json_type,
    normalized,
    parse_json,
    to_python,
)
from remuda.errors import DataError, InvalidText, NumericOverflow, UntranslatableCharacter

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(DOCUMENTS)
def test_values_survive(value: Any) -> None:
    text = json_text(from_python(value))
    assert to_python(text) == value
    assert json_text(parse_json(text)) == text == normalized(json.dumps(value, indent=3))


def test_the_normalized_form() -> None:
    assert normalized(' {"bb":1,"a":[1.0,1e3,-0],"a":2} ') == '{"a": 2, "bb": 1}'
    assert normalized("[1.50, 12345678901234567890.123]") == "[1.50, 12345678901234567890.123]"
    assert normalized('"\\u0041\\n\\/"') == '"A\\n/"'
    assert [json_type(parse_json(t)) for t in ("{}", "[]", '"x"', "1", "true", "null")] == [
        "object", "array", "string", "number", "boolean", "null",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", "line 1, column 1"),
        ('{"a":1', "line 1, column 7"),
        ('{"a":1,\n "b":x}', "line 2, column 6"),
        ("1 2", "line 1, column 3"),
        ("[1,]", "line 1, column"),
        ("[NaN]", "line 1, column 2"),
        ("{a:1}", "line 1, column 2"),
        ("[" * (DEPTH_MAX + 1), f"line 1, column {DEPTH_MAX + 1}"),
    ],
)
def test_errors_name_the_place(text: str, place: str) -> None:
    with pytest.raises(InvalidText, match="invalid input syntax for type json") as raised:
        parse_json(text)
    assert place in raised.value.detail


def test_deep_but_allowed() -> None:
    text = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert normalized(text) == text


def test_what_text_cannot_hold() -> None:
    with pytest.raises(UntranslatableCharacter):
        parse_json('"\\u0000"')
    with pytest.raises(InvalidText):
        parse_json('"\\ud83d"')
    assert parse_json('"\\ud83d\\ude00"') == "😀"
    with pytest.raises(NumericOverflow):
        parse_json("1e99999")


def test_objects_without_a_json_form() -> None:
    for value in ({1: 2}, {"a": {1}}, float("nan"), b"x"):
        with pytest.raises(DataError):
            json_text(from_python(value))
