"""The catalog as a value."""

from __future__ import annotations

from dataclasses import replace

import pytest

from remuda.catalog.catalog import Catalog
from remuda.datatypes.schema import Column, MapSchema
from remuda.datatypes.sql import BIGINT, INTERVAL, JSON, NULL, VARCHAR, array, row
from remuda.errors import DuplicateColumn, DuplicateMap, InvalidDefinition, UndefinedMap

SCHEMA = MapSchema("m", (Column("k", BIGINT), Column("v", VARCHAR)), ("k",), ())


def test_create_completes_the_schema_and_gives_an_id() -> None:
    catalog, made = Catalog().with_map(SCHEMA, if_not_exists=False)
    assert (made.map_id, made.version, made.partition_by) == (1, 1, ("k",))
    assert not made.column("k").nullable
    assert made.column("v").nullable
    assert catalog.find("m") is made
    assert catalog.find_id(1) is made
    assert list(catalog.names()) == ["m"]


def test_the_first_definition_stays() -> None:
    catalog, made = Catalog().with_map(SCHEMA, if_not_exists=True)
    other = replace(SCHEMA, columns=(Column("k", VARCHAR),))
    assert catalog.with_map(other, if_not_exists=True) == (catalog, made)
    with pytest.raises(DuplicateMap):
        catalog.with_map(other, if_not_exists=False)


def test_a_map_made_again_has_another_id() -> None:
    catalog, first = Catalog().with_map(SCHEMA, if_not_exists=False)
    catalog, dropped = catalog.without_map("m", if_exists=False)
    assert dropped is first
    catalog, second = catalog.with_map(SCHEMA, if_not_exists=False)
    assert second.map_id > first.map_id
    assert catalog.version == 3
    assert catalog.without_map("other", if_exists=True) == (catalog, None)
    with pytest.raises(UndefinedMap):
        catalog.without_map("other", if_exists=False)


def test_an_undefined_map_of_another_case_is_hinted_at() -> None:
    catalog, _ = Catalog().with_map(replace(SCHEMA, name="Flights"), if_not_exists=False)
    with pytest.raises(UndefinedMap) as caught:
        catalog.get("flights")
    assert '"Flights"' in caught.value.hint


@pytest.mark.parametrize(
    ("schema", "error"),
    [
        (replace(SCHEMA, name=""), InvalidDefinition),
        (replace(SCHEMA, columns=()), InvalidDefinition),
        (replace(SCHEMA, columns=(Column("k", BIGINT), Column("k", BIGINT))), DuplicateColumn),
        (replace(SCHEMA, columns=(Column("k", BIGINT), Column("", BIGINT))), InvalidDefinition),
        (replace(SCHEMA, columns=(Column("k", INTERVAL),)), InvalidDefinition),
        (replace(SCHEMA, columns=(Column("k", JSON),)), InvalidDefinition),
        (replace(SCHEMA, columns=(Column("k", array(BIGINT)),)), InvalidDefinition),
        (
            replace(SCHEMA, columns=(Column("k", BIGINT), Column("r", row([("a", BIGINT)])))),
            InvalidDefinition,
        ),
        (replace(SCHEMA, columns=(Column("k", NULL),)), InvalidDefinition),
        (replace(SCHEMA, key=()), InvalidDefinition),
        (replace(SCHEMA, key=("x",)), InvalidDefinition),
        (replace(SCHEMA, key=("k", "k")), InvalidDefinition),
        (replace(SCHEMA, partition_by=("v",)), InvalidDefinition),
    ],
)
def test_wrong_definitions(schema: MapSchema, error: type[Exception]) -> None:
    with pytest.raises(error):
        Catalog().with_map(schema, if_not_exists=False)
