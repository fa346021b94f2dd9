"""The map API against fake members: objects in, the same objects out, each at its owner."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import remuda
from remuda.datatypes import sql
from remuda.datatypes.schema import Column, MapSchema, ValueShape
from remuda.errors import (
    InputError,
    InvalidDefinition,
    ObjectMismatch,
    UndefinedColumn,
    UndefinedMap,
    ViewChanged,
)


@dataclass
class Flight:
    carrier: str
    delay: float | None = None


@dataclass(frozen=True)
class Leg:
    origin: str
    day: date


class Point(NamedTuple):
    x: int
    y: int


def test_put_infers_the_schema_and_get_returns_the_object(client, grid):
    flights = client.map("flights")
    flights.put(1, Flight("UA", 2.0))
    flights.put(2, Flight("AA"))
    assert flights.get(1) == Flight("UA", 2.0)
    assert flights.get(2) == Flight("AA", None)
    assert flights.get(3) is None
    assert flights.get(3, "none") == "none"
    assert grid.maps["flights"].columns == (
        Column("__key", sql.BIGINT, False),
        Column("carrier", sql.VARCHAR, False),
        Column("delay", sql.DOUBLE, True),
    )


def test_another_handle_gets_rows_or_the_class_it_names(client):
    client.map("flights").put(1, Flight("UA", 2.0))
    row = client.map("flights").get(1)
    assert row == ("UA", 2.0)
    assert row.carrier == row["carrier"] == row[0] == "UA"
    assert row._asdict() == {"carrier": "UA", "delay": 2.0}
    assert client.map("flights", Flight).get(1) == Flight("UA", 2.0)


def test_many_keys_reach_their_owners(client, grid):
    numbers = client.map("numbers")
    for key in range(100):
        numbers.put(key, str(key))
    assert all(numbers.get(key) == str(key) for key in range(100))
    assert [len(member.rows["numbers"]) for member in grid.members] != [100, 0, 0]
    assert len(numbers) == 100
    assert grid.maps["numbers"].value_shape is ValueShape.SCALAR


def test_composite_keys(client):
    legs = client.map("legs")
    key = Leg("JFK", date(2013, 1, 2))
    legs.put(key, {"seats": 5})
    assert legs.get(key).seats == 5
    assert legs.get(("JFK", date(2013, 1, 2))).seats == 5
    assert legs.get({"day": date(2013, 1, 2), "origin": "JFK"}).seats == 5
    assert legs.schema.key == ("origin", "day")
    assert key in legs
    assert Leg("EWR", date(2013, 1, 2)) not in legs
    with pytest.raises(ObjectMismatch, match="expected a key of origin VARCHAR, day DATE"):
        legs.get("JFK")
    with pytest.raises(ObjectMismatch, match='field "origin": expected VARCHAR'):
        legs.get((1, date(2013, 1, 2)))


def test_tuple_keys_get_numbered_columns(client):
    pairs = client.map("pairs")
    pairs.put((1, "a"), 2.5)
    assert pairs.get((1, "a")) == 2.5
    assert pairs.schema.key == ("__key_1", "__key_2")


def test_named_tuples_and_scalars_of_every_type(client):
    points = client.map("points")
    points.put("p", Point(1, 2))
    assert points.get("p") == Point(1, 2)
    assert type(points.get("p")) is Point
    plain = namedtuple("plain", "a b")  # noqa: PYI024  (without annotations)
    client.map("plain").put(1, plain(1, "x"))
    assert client.map("plain").get(1) == (1, "x")
    values = [True, 7, 2.5, "x", b"\x00\xff", Decimal("1.25"), date(2020, 2, 29)]
    values += [datetime(2020, 1, 2, 3, 4, 5, 6)]  # noqa: DTZ001
    values += [datetime(2020, 1, 2, 3, tzinfo=UTC)]
    for number, value in enumerate(values):
        handle = client.map(f"scalar{number}")
        handle.put("k", value)
        assert handle.get("k") == value
        assert client.map(f"scalar{number}").get("k") == value


def test_conditional_writes_and_removal(client):
    stock = client.map("stock")
    assert stock.put_if_absent("a", 1)
    assert not stock.put_if_absent("a", 2)
    assert stock.replace("a", 3)
    assert not stock.replace("b", 3)
    assert stock.get_and_put("a", 4) == 3
    assert stock.get_and_put("c", 4) is None
    assert stock.remove("a") == 4
    assert stock.remove("a", "gone") == "gone"
    assert stock.delete("c")
    assert not stock.delete("c")
    stock["d"] = 9
    assert stock["d"] == 9
    del stock["d"]
    with pytest.raises(KeyError):
        stock["d"]
    with pytest.raises(KeyError):
        del stock["d"]


def test_reading_an_unknown_map_says_so(client):
    with pytest.raises(UndefinedMap, match="nothing"):
        client.map("nothing").get(1)
    with pytest.raises(UndefinedMap):
        len(client.map("nothing"))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            Flight("UA", "late"),
            r'map "flights", field "delay": expected DOUBLE PRECISION, found str',
        ),
        (Flight(None), r'field "carrier": expected VARCHAR, found NULL'),
        ({"carrier": "UA", "dely": 1.0}, r'has no column for the field "dely"'),
        ({"delay": 1.0}, r'field "carrier": expected VARCHAR, found no such field'),
        (3, r"expected an object with the fields carrier, delay, found int"),
        (None, r"expected an object with the fields"),
    ],
)
def test_objects_that_do_not_fit(client, value, message):
    flights = client.map("flights")
    flights.put(1, Flight("UA", 2.0))
    with pytest.raises(ObjectMismatch, match=message):
        flights.put(1, value)
    assert flights.get(1) == Flight("UA", 2.0)


def test_nothing_of_a_batch_is_stored_when_one_object_does_not_fit(client, grid):
    flights = client.map("flights")
    flights.put(0, Flight("UA"))
    with pytest.raises(ObjectMismatch, match='field "delay"'):
        flights.put_all([(1, Flight("AA")), (2, Flight("B6", "x"))])
    assert len(flights) == 1


@pytest.mark.parametrize("count", [10, 500])
def test_put_all_and_get_all(client, count):
    flights = client.map("flights")
    entries = {key: Flight("UA", float(key)) for key in range(count)}
    assert flights.put_all(entries) == count
    assert flights.get_all([*range(count), -1]) == entries
    assert flights.put_all([(1, Flight("B6")), (1, Flight("DL"))]) == 2
    assert flights.get(1) == Flight("DL")
    assert flights.put_all({}) == 0
    with pytest.raises(InputError, match="pairs"):
        flights.put_all([1, 2])


def test_a_declared_map_takes_objects_with_its_fields(client, grid):
    columns = (
        Column("id", sql.INTEGER, False),
        Column("price", sql.decimal(12, 2)),
        Column("note", sql.varchar(5)),
    )
    client.create_map(MapSchema("items", columns, ("id",), ("id",)))
    items = client.map("items")
    items.put(1, {"price": Decimal("9.5"), "note": "ok"})
    items.put(2, {"id": 2, "price": 7})
    assert items.get(1) == (1, Decimal("9.50"), "ok")
    assert items.get(2) == (2, Decimal("7.00"), None)
    items.put(3, items.get(1)._asdict() | {"id": 3})
    with pytest.raises(ObjectMismatch, match="must equal the key"):
        items.put(1, {"id": 2, "price": 7})
    with pytest.raises(ObjectMismatch, match=r"field \"price\": expected DECIMAL\(12,2\)"):
        items.put(1, {"price": Decimal("0.001")})
    with pytest.raises(ObjectMismatch, match=r'field "note": expected VARCHAR\(5\)'):
        items.put(1, {"note": "too long"})
    with pytest.raises(ObjectMismatch, match=r'field "id": expected INTEGER, found int 4294967296'):
        items.get(2**32)


def test_declared_types_and_computed_fields(client, grid):
    @dataclass
    class Item:
        price: Annotated[Decimal, remuda.decimal(9, 2)]
        count: Annotated[int, sql.INTEGER] | None
        total: Decimal = field(init=False)

        def __post_init__(self):
            self.total = self.price * (self.count or 0)

    handle = client.map("priced", Item)
    handle.put("a", Item(Decimal("1.50"), 2))
    assert handle.get("a") == Item(Decimal("1.50"), 2)
    types = {column.name: (column.type, column.nullable) for column in handle.schema.columns}
    assert types["price"] == (sql.decimal(9, 2), False)
    assert types["count"] == (sql.INTEGER, True)


def test_types_that_cannot_be_inferred(client):
    with pytest.raises(ObjectMismatch, match='field "x": its type cannot be inferred from None'):
        client.map("m").put(1, {"x": None})
    with pytest.raises(ObjectMismatch, match='field "x": set has no SQL type'):
        client.map("m").put(1, {"x": {1}})
    with pytest.raises(ObjectMismatch, match='field "this"'):
        client.map("m").put(1, None)


def test_objects_of_plain_classes_and_objects_within_objects(client):
    class Plain:
        def __init__(self, x):
            self.x = x

    @dataclass
    class Inner:
        x: int

    @dataclass
    class Outer:
        inner: Inner

    made = client.map("outer")
    for key, value, name in ((1, Plain(1), "this"), (1, {"x": Plain(1)}, "x"), (Plain(1), 1, "")):
        with pytest.raises(ObjectMismatch, match=f'field "{name}.*Plain has no SQL type') as found:
            made.put(key, value)
        assert "Make Plain a dataclass" in found.value.hint
    with pytest.raises(ObjectMismatch, match='field "inner": Inner has no SQL type') as found:
        made.put(1, Outer(Inner(1)))
    assert "An object within an object is no column" in found.value.hint
    with pytest.raises(UndefinedMap):
        client.describe("outer")

    k = Column("k", sql.BIGINT, nullable=False)
    columns = (k, Column("x", sql.BIGINT), Column("j", sql.JSON))
    client.create_map(MapSchema("typed", columns, ("k",), ("k",)))
    typed = client.map("typed")
    for value in (Plain(1), {"x": Plain(1)}, {"j": Plain(1)}):
        with pytest.raises(ObjectMismatch) as found:
            typed.put(1, value)
        assert "Make Plain a dataclass" in found.value.hint
    with pytest.raises(ObjectMismatch, match='field "j"') as found:
        typed.put(1, {"j": Inner(1)})
    assert "a dict of them, which is JSON" in found.value.hint

    for given in ({"value_type": Plain}, {"key_type": Plain}):
        with pytest.raises(InputError, match="found the class Plain") as refused:
            client.map("typed", **given)
        assert "Make Plain a dataclass" in refused.value.hint
    with pytest.raises(InputError, match="value_type is a class, found 'Plain'"):
        client.map("typed", "Plain")
    for usual in (int, str, Decimal, dict, Inner, list[int], Any, object):
        client.map("typed", usual)


def test_numpy_scalars_are_values(client):
    handle = client.map("np")
    handle.put(np.int64(1), np.float64(2.5))
    assert handle.get(np.int32(1)) == 2.5


def test_a_schema_that_changed_is_learned_again(client, grid):
    handle = client.map("m")
    handle.put(1, "a")
    client.drop_map("m")
    other = client.map("m")
    other.put(1, 5)
    for member in grid.members:
        member.rows["m"] = {
            key: row for key, row in member.rows.get("m", {}).items() if row[1] == 5
        }
    assert handle.get(1) == 5
    handle.put(2, 6)
    assert handle.get(2) == 6


def test_tables_are_put_as_one_job(client, grid):
    table = pa.table({"id": range(1000), "name": [f"n{i}" for i in range(1000)]})
    people = client.map("people")
    with pytest.raises(InvalidDefinition, match="needs a key"):
        people.put_all(table)
    with pytest.raises(UndefinedColumn, match='"nr"'):
        people.put_all(table, key="nr")
    assert people.put_all(table, key="id") == 1000
    assert len(people) == 1000
    assert people.get(17) == (17, "n17")
    frame = pd.DataFrame({"id": [17], "name": ["changed"]})
    assert people.put_all(frame) == 1
    assert people.get(17).name == "changed"
    with pytest.raises(ObjectMismatch, match="column id"):
        people.put_all(pd.DataFrame({"id": [1, "x"], "name": ["a", "b"]}))
    with pytest.raises(InvalidDefinition, match="exists with the key"):
        people.put_all(table, key="name")
    with pytest.raises(ObjectMismatch, match='field "name": expected VARCHAR, found BIGINT'):
        people.put_all(pa.table({"id": [1], "name": [5]}))
    with pytest.raises(ObjectMismatch, match='null value in column "id"'):
        people.put_all(pa.table({"id": pa.array([None], pa.int64()), "name": ["x"]}))
    with pytest.raises(ObjectMismatch, match='no column for the field "age"'):
        people.put_all(pa.table({"id": [1], "age": [5]}))


def test_the_client_carries_the_highest_clock(client, grid):
    handle = client.map("m")
    handle.put(1, 1)
    seen = grid.clock
    handle.get(1)
    assert grid.clocks[-1] == seen


def test_another_view_is_learned(client, grid, monkeypatch):
    handle = client.map("m")
    handle.put(1, "a")
    refused = []
    real = type(grid.members[0]).table

    def table(member, message):
        if message.context.view != grid.view.number:
            refused.append(message.context.view)
            raise ViewChanged("another view")
        return real(member, message)

    monkeypatch.setattr(type(grid.members[0]), "table", table)
    grid.view = type(grid.view)(2, grid.view.members, grid.view.replicas)
    assert handle.get(1) == "a"
    handle.put(2, "b")
    assert handle.get(2) == "b"
    assert refused == [1]
