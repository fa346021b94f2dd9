"""Completion in the shell."""

from __future__ import annotations

import pytest

from remuda.cli.completion import complete
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema

FLIGHTS = MapSchema(
    "flights",
    (Column("id", sql.BIGINT, False), Column("carrier", sql.VARCHAR), Column("delay", sql.DOUBLE)),
    ("id",),
    ("id",),
)
AIRLINES = MapSchema(
    "airlines", (Column("carrier", sql.VARCHAR, False), Column("name", sql.VARCHAR)), (), ()
)


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("\\", ["\\?", "\\d", "\\dt", "\\q", "\\timing", "\\x"]),
        ("\\t", ["\\timing"]),
        ("\\d fl", ["flights"]),
        ("select * from ", ["airlines", "flights"]),
        ("select * from FL", ["flights"]),
        ("select * from flights join ai", ["airlines"]),
        ("select * from flights f where f.", ["carrier", "delay", "id"]),
        ("select * from flights f, airlines a where a.n", ["name"]),
        ("select * from flights where de", ["delay", "decimal", "desc", "describe"]),
        ("select na", ["name"]),
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("select x.", []),
        ("", []),
    ],
)
def test_complete(before, expected):
    assert [found.text for found in complete(before, [FLIGHTS, AIRLINES])] == expected
