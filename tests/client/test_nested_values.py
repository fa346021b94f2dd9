"""INTERVAL, UUID, JSON and ARRAY from Python to a cluster and back, by maps, SQL and Arrow."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import remuda
from remuda import Interval
from remuda.datatypes import sql
from remuda.errors import InvalidDefinition, ObjectMismatch, UndefinedFunction

pytestmark = pytest.mark.cluster

IDS = [uuid.UUID(int=n * 7919) for n in range(40)]


@dataclass
class Task:
    tags: list[str]
    notes: dict[str, Any]
    lasts: dt.timedelta | None
    owner: uuid.UUID


@pytest.fixture(scope="module")
def client(three_members: remuda.Cluster) -> Iterator[remuda.Client]:
    with three_members.connect() as found:
        yield found


def test_objects(client: remuda.Client) -> None:
    tasks = client.map("tasks", value_type=Task)
    tasks.put(IDS[1], Task(["a", "b"], {"n": [1, None]}, dt.timedelta(days=2, hours=3), IDS[2]))
    tasks.put_all({key: Task([], {}, None, key) for key in IDS[2:]})
    assert tasks.get(IDS[1]) == Task(
        ["a", "b"], {"n": [1, None]}, Interval(0, 2, 3 * 3_600_000_000), IDS[2]
    )
    assert tasks.get(IDS[5]) == Task([], {}, None, IDS[5])
    assert len(tasks) == len(IDS) - 1
    types = {column.name: column.type for column in tasks.schema.columns}
    assert types == {
        "__key": sql.UUID, "tags": sql.array(sql.VARCHAR), "notes": sql.JSON,
        "lasts": sql.INTERVAL, "owner": sql.UUID,
    }  # fmt: skip
    assert tasks.remove(IDS[1]) is not None
    assert tasks.get(IDS[1]) is None
    with pytest.raises(ObjectMismatch, match="tags"):
        tasks.put(IDS[1], Task([1], {}, None, IDS[1]))  # type: ignore[list-item]


def test_rows_and_parameters(client: remuda.Client) -> None:
    client.sql("CREATE TABLE r (id UUID PRIMARY KEY, a INTEGER[], j JSONB, i INTERVAL)")
    for n, key in enumerate(IDS):
        client.sql(
            "INSERT INTO r VALUES (?, ?::INTEGER[], ?, ?)",
            (key, [n, None], {"n": n % 3}, Interval(n % 2, 0, n)),
        )
    (row,) = client.sql("SELECT * FROM r WHERE id = ?", (IDS[7],)).fetchall()
    assert row == (IDS[7], [7, None], {"n": 1}, Interval(1, 0, 7))
    found = client.sql("SELECT id FROM r WHERE id = ANY(?) ORDER BY id", (IDS[3:6],)).fetchall()
    assert [r.id for r in found] == IDS[3:6]
    (count,) = client.sql("SELECT count(*) FROM r WHERE j = ?", ({"n": 2},)).fetchall()
    assert count[0] == sum(n % 3 == 2 for n in range(len(IDS)))
    (both,) = client.sql("SELECT ROW(id, a), NULL::JSON FROM r WHERE id = ?", (IDS[1],)).fetchall()
    assert both == ((IDS[1], [1, None]), None)


def test_arrow_and_pandas(client: remuda.Client) -> None:
    text = "SELECT id, a, j, i, ARRAY[id] AS ids FROM r ORDER BY id"
    table = client.sql(text).to_arrow()
    assert [str(t) for t in table.schema.types] == [
        "extension<arrow.uuid>", "list<item: int32>", "extension<arrow.json>",
        "month_day_nano_interval", "list<item: extension<arrow.uuid>>",
    ]  # fmt: skip
    frame = client.sql(text).to_pandas()
    assert frame["id"].tolist() == sorted(IDS)
    assert list(frame["ids"][0]) == [min(IDS)]
    client.map("copied").put_all(table.drop_columns(["ids"]), key=["id"])
    left = client.sql("SELECT * FROM copied ORDER BY id").fetchall()
    assert left == client.sql("SELECT * FROM r ORDER BY id").fetchall()


def test_prepared_statements(client: remuda.Client) -> None:
    statement = client.prepare("SELECT a FROM r WHERE id = ? AND a @> ?::INTEGER[]")
    assert statement.parameter_types == (sql.UUID, sql.array(sql.INTEGER))
    assert statement(IDS[9], [9]).fetchall() == [([9, None],)]
    with pytest.raises(UndefinedFunction, match="uuid = varchar"):
        statement("x", [9])


def test_what_cannot_be_a_key(client: remuda.Client) -> None:
    for kind in ("INTERVAL", "JSON", "INTEGER[]"):
        with pytest.raises(InvalidDefinition, match="cannot have the type"):
            client.sql(f"CREATE TABLE bad (k {kind} PRIMARY KEY)")
