"""Options of maps: how they are read, shown and combined."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from remuda.catalog.definition_text import definition_of
from remuda.datatypes.map_options import (
    NO_OPTIONS,
    Eviction,
    MapOptions,
    changed,
    read_duration,
    shown,
)
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import INTEGER
from remuda.errors import InvalidDefinition
from remuda.rpc.codec import decode_schema, encode_schema

SECOND = 10**6


@pytest.mark.parametrize(
    ("written", "micros"),
    [
        ("10 s", 10 * SECOND),
        ("10", 10 * SECOND),
        (10, 10 * SECOND),
        (0.25, SECOND // 4),
        ("1.5 min", 90 * SECOND),
        ("250ms", SECOND // 4),
        (" 2 Hours ", 7200 * SECOND),
        ("none", 0),
        (1e-9, 1),  # more than 0 stays so: 0 is for ever
        ("0.0000001 s", 1),
        (0.0, 0),
        (timedelta(days=1), 86_400 * SECOND),
    ],
)
def test_durations(written: Any, micros: int) -> None:
    assert read_duration(written) == micros


@pytest.mark.parametrize(
    "written",
    ["", "soon", "-1 s", "1 parsec", "1e3 s", "9" * 30, -1, float("nan"), float("inf"), True, b"1"],
)
def test_what_is_no_duration_is_refused_with_what_to_write(written: Any) -> None:
    with pytest.raises(InvalidDefinition, match="invalid value for option ttl") as caught:
        changed(NO_OPTIONS, {"ttl": written})
    assert "10 s" in caught.value.hint


def test_a_limit_means_lru_and_eviction_needs_a_limit() -> None:
    assert changed(NO_OPTIONS, {"max_bytes": "1 GB"}) == MapOptions(
        eviction=Eviction.LRU, max_bytes=2**30
    )
    with pytest.raises(InvalidDefinition, match="needs max_entries or max_bytes"):
        changed(NO_OPTIONS, {"eviction": "LFU"})
    with pytest.raises(InvalidDefinition, match="max_entries needs an eviction"):
        changed(NO_OPTIONS, {"max_entries": 5, "eviction": "none"})
    limited = changed(NO_OPTIONS, {"max_entries": "5"})
    assert changed(limited, {"max_entries": None, "eviction": None}) == NO_OPTIONS


def test_a_full_map_refuses_writes_where_eviction_is_said_to_be_none() -> None:
    refusing = changed(NO_OPTIONS, {"max_bytes": "1 GB", "eviction": "none"})
    assert refusing == MapOptions(max_bytes=2**30)
    assert changed(refusing, {"ttl": "1 s"}).eviction is Eviction.NONE
    assert changed(refusing, {"eviction": None}).eviction is Eviction.LRU
    assert changed(refusing, {"max_bytes": "2 GB"}).eviction is Eviction.NONE
    evicting = changed(NO_OPTIONS, {"max_bytes": "1 GB"})
    assert changed(evicting, {"eviction": "none"}) == refusing
    with pytest.raises(InvalidDefinition, match="max_entries needs an eviction"):
        changed(refusing, {"max_entries": 5})


def test_shown_options_are_read_back_as_they_were() -> None:
    options = MapOptions(90 * SECOND, 1500, Eviction.LFU, 7, 3 * 2**20)
    assert shown(options) == [
        "ttl = '90 s'",
        "max_idle = '1500 us'",
        "eviction = 'LFU'",
        "max_entries = 7",
        "max_bytes = '3 MB'",
    ]
    pairs = [text.split(" = ") for text in shown(options)]
    assert changed(NO_OPTIONS, {name: value.strip("'") for name, value in pairs}) == options


def test_options_are_part_of_the_definition_and_of_its_message() -> None:
    columns = (Column("id", INTEGER, nullable=False),)
    options = changed(NO_OPTIONS, {"ttl": "1 min"})
    schema = MapSchema("m", columns, ("id",), ("id",), options=options)
    assert definition_of(schema).endswith(") WITH (ttl = '1 min');")
    assert decode_schema(encode_schema(schema)).options == options
    plain = MapSchema("m", columns, ("id",), ("id",))
    assert decode_schema(encode_schema(plain)).options == NO_OPTIONS
    assert not encode_schema(plain).HasField("options")
