"""Every system relation: rows fit their columns, also for ugly names and all types."""

from __future__ import annotations

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.system_relations import (
    FUNCTIONS,
    INFORMATION_SCHEMA,
    PG_CATALOG,
    SYSTEM,
    SystemRelation,
    system_relation,
)
from remuda.datatypes.schema import Check, Column, Default, MapSchema, ViewDefinition
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UUID,
    VARCHAR,
    array,
    char,
    decimal,
    varchar,
)
from remuda.member.system.system_relations import engine_rows
from remuda.session.system import information_schema, pg_catalog

TYPES = (
    BIGINT, BOOLEAN, BYTEA, DATE, DOUBLE, INTEGER, INTERVAL, JSON, REAL, SMALLINT, TIME, TIMESTAMP,
    TIMESTAMPTZ, TINYINT, UUID, VARCHAR, array(INTEGER), array(VARCHAR), char(3), decimal(9, 2),
    decimal(38, 0), varchar(7),
)  # fmt: skip


def catalog() -> Catalog:
    columns = tuple(Column(f"c{i} \"x'", t) for i, t in enumerate(TYPES))
    wide = MapSchema(
        'wide "map"',
        (Column("k", BIGINT), *columns, Column("d", INTEGER, default=Default("1", True, 1))),
        ("k",),
        (),
        comment="it's",
        checks=(Check("positive", "k > 0"), Check("both", "d < k")),
    )
    plain = MapSchema("plain", (Column("x", VARCHAR, comment="y"),), ("x",), (), replicated=True)
    found = Catalog().with_map(wide, if_not_exists=False)[0]
    found = found.with_map(plain, if_not_exists=False)[0]
    view = ViewDefinition("v", "select 1 as a", (Column("a", INTEGER),), ("a",), ("plain",))
    return Catalog(found.version + 1, found.maps, (view,))


PRODUCED = [
    *((SYSTEM[INFORMATION_SCHEMA][name], rows) for name, rows in information_schema.ROWS.items()),
    *(((SYSTEM[PG_CATALOG] | FUNCTIONS)[name], rows) for name, rows in pg_catalog.ROWS.items()),
]


@pytest.mark.parametrize(
    ("relation", "rows"), PRODUCED, ids=[relation.qualified for relation, _ in PRODUCED]
)
@pytest.mark.parametrize("of", [catalog(), Catalog()], ids=["filled", "empty"])
def test_rows_fit_the_columns(relation: SystemRelation, rows: object, of: Catalog) -> None:
    found = list(rows(of))  # type: ignore[operator]
    (batch,) = engine_rows(relation, found)
    assert batch.num_rows == len(found)
    assert batch.schema.names == [column.name for column in relation.columns]


def test_numbers_are_unique() -> None:
    numbers = [row[0] for row in pg_catalog.pg_class(catalog())]
    assert len(set(numbers)) == len(numbers)
    numbers = [row[0] for row in pg_catalog.pg_type(catalog())]
    assert len(set(numbers)) == len(numbers)


def test_attributes_have_types_that_are_listed() -> None:
    types = {row[0] for row in pg_catalog.pg_type(catalog())}
    assert {row[2] for row in pg_catalog.pg_attribute(catalog())} <= types


def test_the_search_path() -> None:
    found = system_relation(None, "pg_class")
    assert found is not None
    assert found.schema == PG_CATALOG
    assert system_relation(None, "tables") is None
    assert system_relation("sys", "pg_class") is None
