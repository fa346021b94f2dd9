"""Completion in the shell."""

from __future__ import annotations

import pytest

from remuda.cli.shell.completion import Known, complete
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


TICKETS = MapSchema(
    "tickets",
    (Column("number", sql.BIGINT, False), Column("flight_id", sql.BIGINT)),
    ("number",),
    ("number",),
)
COMMANDS = ["\\?", "\\d", "\\dt", "\\q", "\\timing", "\\x"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("\\", ["\\?", "\\d", "\\dt", "\\q", "\\timing", "\\x"]),
        ("\\t", ["\\timing"]),
        ("\\d fl", ["flights"]),
        ("select * from ", ["airlines", "flights", "tickets", "sys.members"]),
        ("select * from FL", ["flights"]),
        ("select * from flights join ai", ["airlines"]),
        ("select * from flights f where f.", ["carrier", "delay", "id"]),
        ("select * from flights f, airlines a where a.n", ["name"]),
        ("select * from flights where de", ["delay", "decimal", "desc", "describe"]),
        ("select na", ["name"]),
        ("SEL", ["SELECT"]),
        ("sel", ["select"]),
        ("select x.", []),
        ("\\pset f", ["format"]),
        ("set ", ["engine", "timezone"]),
        ("SET t", ["timezone"]),
        ("select :", ["HOST", "USER"]),
        ("select :'H", ["HOST"]),
        ("select id::", []),
        ("select low", ["lower"]),
        ("select le", ["left", "length"]),
        ("\\dt+ fl", ["flights"]),
        ("select * from flights f join airlines a on ", ["f.carrier = a.carrier"]),
        ("select * from flights join airlines on fl", ["flights.carrier = airlines.carrier"]),
        ("select * from flights f join airlines using (", ["carrier"]),
        ("select * from tickets t join flights on ", ["t.flight_id = flights.id"]),
        ("select * from flights f join tickets as t on ", ["f.id = t.flight_id"]),
        ("select * from sys.me", ["members"]),
        ("select * from sy", ["sys.members"]),
        ("select count(*) from sys.members where st", ["state"]),
        ("", []),
    ],
)
def test_complete(before, expected):
    known = Known(
        [FLIGHTS, AIRLINES, TICKETS],
        ["lower", "length", "json_agg"],
        COMMANDS,
        ["HOST", "USER"],
        {"\\pset": ["border", "format"], "set": ["timezone", "engine"]},
        {"members": ["member", "state"]},
    )
    assert [found.text for found in complete(before, known)] == expected
