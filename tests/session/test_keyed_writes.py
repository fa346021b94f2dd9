"""Which statements the owner of a key carries out by itself (the short way)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import FixedStatistics
from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.schema import Column, MapSchema, SequenceOptions
from remuda.datatypes.sql import BIGINT, INTEGER, TIMESTAMPTZ, VARCHAR
from remuda.plan.codec import decode, encode
from remuda.plan.keyed_write import KeyedWrite, Meets
from remuda.session.keyed_writes import KeyedPlan
from remuda.session.planning import Environment, PlannedChange, PlannedInsert, bound, planned
from remuda.session.routes import route_of_write

COLUMNS = (Column("a", INTEGER), Column("b", VARCHAR), Column("v", BIGINT))
PLAIN = MapSchema("t", COLUMNS, ("a",), ("a",))
PAIRS = MapSchema("pairs", COLUMNS, ("a", "b"), ("b",))
EVERYWHERE = MapSchema("everywhere", COLUMNS, ("a",), ("a",), replicated=True)
NO_VERSIONS: Mapping[int, int] = {}
NUMBERS = MapSchema(
    "numbers",
    COLUMNS,
    ("a",),
    ("a",),
    sequence=SequenceOptions("bigint", 1, 1, 1, 2**63 - 1, 1, cycle=False, slot=1, link=1),
)


def catalog() -> Catalog:
    found = Catalog()
    unique = IndexDefinition("u", IndexKind.SORTED, (IndexedColumn("v"),), unique=True)
    secondary = IndexDefinition("s", IndexKind.SORTED, (IndexedColumn("v"),))
    timed = MapSchema("timed", (COLUMNS[0], Column("at", TIMESTAMPTZ)), ("a",), ("a",))
    for schema in (
        PLAIN,
        PAIRS,
        EVERYWHERE,
        timed,
        NUMBERS,
        MapSchema("single", COLUMNS, ("a",), ("a",), indexes=(unique,)),
        MapSchema("indexed", COLUMNS, ("a",), ("a",), indexes=(secondary,)),
    ):
        found = found.with_map(schema, if_not_exists=False)[0]
    return found


CATALOG = catalog()


def keyed(text: str) -> KeyedPlan | None:
    environment = Environment(CATALOG, 1, 3, FixedStatistics(), NO_VERSIONS)
    found = planned(bound(text, None, CATALOG), environment)
    assert isinstance(found, PlannedInsert | PlannedChange)
    return found.keyed


@pytest.mark.parametrize(
    ("text", "meets"),
    [
        ("UPDATE t SET v = v + ? WHERE a = ?", Meets.EXISTING),
        ("UPDATE t SET v = 1, b = upper(b) WHERE a = 1 + 1 AND v > ?", Meets.EXISTING),
        ("UPDATE t SET v = DEFAULT WHERE a = ? RETURNING v, b", Meets.EXISTING),
        ("UPDATE pairs SET v = 1 WHERE b = ? AND a = ?", Meets.EXISTING),
        ("UPDATE indexed SET v = 1 WHERE a = ?", Meets.EXISTING),
        ("UPDATE timed SET at = now() WHERE a = ?", Meets.EXISTING),
        ("DELETE FROM t WHERE a = ?", Meets.EXISTING),
        ("DELETE FROM t WHERE a = ? AND b LIKE ? RETURNING *", Meets.EXISTING),
        ("DELETE FROM single WHERE a = ?", Meets.EXISTING),
        ("INSERT INTO t VALUES (?, ?, ?)", Meets.ABSENT),
        ("INSERT INTO t (a) VALUES (1) RETURNING a", Meets.ABSENT),
        ("INSERT INTO timed VALUES (?, now())", Meets.ABSENT),
        ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT DO NOTHING", Meets.ABSENT),
        ("INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO NOTHING RETURNING v", Meets.ABSENT),
        (
            (
                "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET v = t.v + excluded.v "
                "WHERE t.v < 10 RETURNING v"
            ),
            Meets.EITHER,
        ),
        ("SINK INTO t VALUES (?, ?, ?)", Meets.EITHER),
    ],
)
def test_a_statement_with_the_whole_key(text: str, meets: Meets) -> None:
    found = keyed(text)
    assert found is not None
    assert found.write.meets is meets
    assert found.write.refuses == (meets is Meets.ABSENT and "CONFLICT" not in text)
    assert bool(found.write.row) == (not text.startswith("DELETE"))
    assert decode(found.encoded) == found.write


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET v = 1",
        "UPDATE t SET v = 1 WHERE a IN (1, 2)",
        "UPDATE t SET v = 1 WHERE a = ANY(?::INTEGER[])",
        "UPDATE t SET v = 1 WHERE a = 1 OR a = 2",
        "UPDATE t SET v = 1 WHERE b = 'x'",
        "UPDATE pairs SET v = 1 WHERE b = ?",
        "UPDATE t SET a = a + 1 WHERE a = ?",
        "UPDATE t SET v = (SELECT max(v) FROM pairs) WHERE a = ?",
        "UPDATE t SET v = pairs.v FROM pairs WHERE t.a = 1 AND pairs.a = 1",
        "UPDATE t SET v = 1 WHERE a = ? AND EXISTS (SELECT 1 FROM pairs)",
        "UPDATE t SET v = (random() * 10)::BIGINT WHERE a = ?",
        "UPDATE t SET v = 1 WHERE a = ? AND random() < 0.5",
        "UPDATE single SET v = 1 WHERE a = ?",
        "UPDATE everywhere SET v = 1 WHERE a = ?",
        "DELETE FROM t",
        "DELETE FROM everywhere WHERE a = ?",
        "DELETE FROM t USING pairs WHERE t.a = ? AND pairs.a = t.a",
        "WITH x AS (DELETE FROM t WHERE a = 1 RETURNING v) SELECT sum(v) FROM x",
        "INSERT INTO t VALUES (?, ?, ?), (?, ?, ?)",
        "INSERT INTO t SELECT a, b, v FROM pairs WHERE a = 1 AND b = 'x'",
        "INSERT INTO t VALUES (1, 'x', (SELECT count(*) FROM pairs))",
        "INSERT INTO t VALUES (1, 'x', (random() * (SELECT count(*) FROM pairs))::BIGINT)",
        "INSERT INTO t VALUES (1, 'x', setval('numbers', 7))",
        "INSERT INTO t VALUES (1, 'x', nextval('num' || 'bers'))",
        "INSERT INTO t SELECT 1, 'x', nextval('numbers') WHERE random() < 0.5",
        "INSERT INTO t VALUES (1, 'x', nextval('numbers')), (2, 'y', nextval('numbers'))",
        "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET v = nextval('numbers')",
        "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE SET v = t.v * random()",
        "UPDATE t SET v = nextval('numbers') WHERE a = 1",
        "INSERT INTO single VALUES (?, ?, ?)",
        "INSERT INTO single VALUES (?, ?, ?) ON CONFLICT (v) DO NOTHING",
        "INSERT INTO everywhere VALUES (?, ?, ?)",
        (
            "INSERT INTO t VALUES (?, ?, ?) ON CONFLICT (a) DO UPDATE "
            "SET v = (SELECT max(v) FROM pairs)"
        ),
    ],
)
def test_any_other_statement_takes_the_general_way(text: str) -> None:
    environment = Environment(CATALOG, 1, 3, FixedStatistics(), NO_VERSIONS)
    found = planned(bound(text, None, CATALOG), environment)
    assert getattr(found, "keyed", None) is None


@pytest.mark.parametrize(
    ("text", "drawn", "given"),
    [
        ("INSERT INTO t VALUES (?, gen_random_uuid()::VARCHAR, 1)", ["value"], 1),
        ("INSERT INTO t VALUES (nextval('numbers'), 'x', ?) RETURNING a", ["nextval"], 1),
        ("INSERT INTO t VALUES (1, 'x', random() * ?)", ["value"], 1),
        ("INSERT INTO timed VALUES (nextval('numbers'), now())", ["nextval"], 0),
        (
            "INSERT INTO t VALUES (nextval('numbers'), lastval()::VARCHAR, currval('numbers'))",
            ["nextval", "lastval", "currval"],
            0,
        ),
        ("INSERT INTO t VALUES (nextval('numbers'), ?, 1) ON CONFLICT DO NOTHING", ["nextval"], 1),
        (
            (
                "INSERT INTO t VALUES (nextval('numbers'), ?, 1) ON CONFLICT (a) DO UPDATE "
                "SET v = t.v + excluded.v WHERE t.v < 10 RETURNING v"
            ),
            ["nextval"],
            1,
        ),
        (
            "INSERT INTO t VALUES (1, 'x', CASE WHEN ? THEN nextval('numbers') END)",
            ["nextval"],
            1,
        ),
        ("INSERT INTO t SELECT 1, 'x', 2 WHERE nextval('numbers') > ?", ["nextval"], 1),
        (
            "INSERT INTO t VALUES (nextval('numbers') + nextval('numbers'), '', 1)",
            ["nextval", "nextval"],
            0,
        ),
    ],
)
def test_the_initiator_draws_numbers_and_volatile_values(
    text: str, drawn: list[str], given: int
) -> None:
    found = keyed(text)
    assert found is not None
    assert [each.call.function if each.call else "value" for each in found.draws] == drawn
    assert found.given == given
    assert len(found.write.parameter_types) == given + len(found.clock_parameters) + len(drawn)
    assert decode(found.encoded) == found.write
    route = route_of_write(found, PLAIN)
    assert route is None or max(route) < given


def test_a_write_is_encoded_whole() -> None:
    found = keyed("UPDATE t SET v = v + ?, b = 'x' WHERE a = ? AND v > 1.5 RETURNING b || 'y'")
    assert found is not None
    assert isinstance(found.write, KeyedWrite)
    assert decode(encode(found.write)) == found.write
    assert len(found.write.parameter_types) == 2
