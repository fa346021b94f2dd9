"""Pipelines that go on: every row exactly once over restarts, rows put aside, broken promises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from remuda.errors import RemudaError
from remuda.spark.pipeline import RunReport, parse, run, stream
from remuda.spark.pipeline.errors import ExpectationFailed

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

PIPELINE = """\
pipeline: flow
sources:
  - {name: events, format: json, path: in, schema: "id INT, shop INT, amount DOUBLE", stream: true}
steps:
  - name: clean
    sql: SELECT * FROM events
    expect:
      - {name: positive, condition: amount > 0, action: quarantine}
      - {name: finite, condition: amount < 1e6, action: fail}
quarantine: {parquet: rejected}
targets:
  - {map: NAME_events, from: clean, key: id, indexes: [{columns: shop}]}
stream: {checkpoint: state, trigger: available-now}
"""


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


def active(spark: Any, pipeline: str) -> list[str]:
    return [q.name for q in spark.streams.active if q.name and q.name.startswith(f"{pipeline} ")]


def put(folder: Path, name: str, rows: list[tuple[int, int, float]]) -> None:
    """Whole files appear at once, as they must for a stream of files."""
    lines = [json.dumps({"id": i, "shop": s, "amount": a}) for i, s, a in rows]
    (folder / "in").mkdir(exist_ok=True)
    (folder / name).write_text("\n".join(lines))
    (folder / name).rename(folder / "in" / name)


def test_a_stream_goes_on_where_it_was(
    spark: Any, client: Any, address: str, tmp_path: Path
) -> None:
    name = "ps_flow"
    file = tmp_path / "p.yml"
    file.write_text(PIPELINE.replace("NAME", name))
    told: list[str] = []

    def go() -> RunReport:
        return run(spark, parse(file), address=address, tell=told.append)

    put(tmp_path, "a.json", [(i, i % 3, i - 2.0) for i in range(20)])
    first = go()
    assert first.created == (f"{name}_events",)
    assert first.target(f"map {name}_events").rows == 17
    assert (first.view("clean").rows, first.view("clean").quarantined) == (20, 3)
    assert first.view("clean").broken == {"positive": 3, "finite": 0}
    assert any(line.startswith(f"map {name}_events: batch 0, 17 rows in ") for line in told)
    put(tmp_path, "b.json", [(100 + i, i % 3, -1.0 if i == 0 else 5.0) for i in range(7)])
    second = go()
    assert second.target(f"map {name}_events").rows == 6
    assert client.map(f"{name}_events").size() == 23
    aside = pq.read_table(tmp_path / "rejected" / "clean").to_pylist()
    assert sorted(row["id"] for row in aside) == [0, 1, 2, 100]
    assert aside[0]["_reasons"] == ["positive"]

    put(tmp_path, "c.json", [(200, 1, 1.0), (201, 1, 1e9)])
    with pytest.raises(ExpectationFailed, match=r"p.yml:9: map .* finite is broken by a row of"):
        go()
    assert client.map(f"{name}_events").size() == 23
    file.write_text(file.read_text().replace("1e6", "1e12"))
    go()
    assert client.map(f"{name}_events").size() == 25
    assert active(spark, "flow") == []
    client.drop_map(f"{name}_events")


@pytest.mark.soak
def test_a_stream_is_stopped(spark: Any, client: Any, address: str, tmp_path: Path) -> None:
    """Changes of a map flow into another one until somebody says stop."""
    client.sql("CREATE TABLE ps_from (id BIGINT PRIMARY KEY, word VARCHAR)")
    client.sql("INSERT INTO ps_from VALUES (1, 'a'), (2, 'b')")
    file = tmp_path / "p.yml"
    file.write_text(
        """\
pipeline: copy
sources:
  - {name: changes, format: remuda, map: ps_from, stream: true}
steps:
  - {name: rows, sql: "SELECT id, word, _change AS op, _transaction AS n FROM changes"}
targets:
  - {map: ps_to, key: id, mode: changes, operation: op, latest: n}
stream: {checkpoint: state}
"""
    )
    asked = 0

    def stopped() -> bool:
        """When the copy is what is expected; on the way the original is changed."""
        nonlocal asked
        if not client.sql("SELECT 1 FROM sys.maps WHERE name = 'ps_to'").fetchall():
            return False
        rows = [tuple(row) for row in client.sql("SELECT id, word FROM ps_to ORDER BY id")]
        if rows == [(1, "a"), (2, "b")] and not asked:
            asked = 1
            client.sql("UPDATE ps_from SET word = 'bb' WHERE id = 2")
            client.sql("UPDATE ps_from SET word = 'B' WHERE id = 2")
            client.sql("DELETE FROM ps_from WHERE id = 1")
        return rows == [(2, "B")]

    report = run(spark, parse(file), address=address, stopped=stopped)
    # What the last batch counted comes after its rows: the stream may be stopped in between.
    assert report.target("map ps_to").rows >= 2
    assert active(spark, "copy") == []
    client.drop_map("ps_from")
    client.drop_map("ps_to")


class _Query:
    """Ended, with an error or without one."""

    isActive = False  # noqa: N815 (Spark's name)
    recentProgress = ()  # noqa: N815

    def __init__(self, error: str | None) -> None:
        self._error = error

    def exception(self) -> RuntimeError | None:
        return None if self._error is None else RuntimeError(self._error)

    def awaitTermination(self) -> None:  # noqa: N802
        """At once."""


@pytest.mark.parametrize(("slow", "given_up"), [(2, False), (stream.SLOW_STARTS + 1, True)])
def test_a_query_whose_python_was_too_slow_begins_again(slow: int, given_up: bool) -> None:
    late = "terminated with exception: Python worker failed to connect back."
    queries = [_Query(late) for _ in range(slow)] + [_Query(None)]
    told: list[str] = []
    context = SimpleNamespace(
        tell=told.append, explained=lambda error, *_: error, at=lambda *_: nullcontext()
    )
    writer = SimpleNamespace(start=lambda: queries.pop(0))
    one: Any = stream.Running("map m", 1, writer.start(), 0.0, writer)  # type: ignore[arg-type]
    found: list[RemudaError] = []
    while one.ended is None:
        try:
            stream._look(context, one)  # type: ignore[arg-type]
        except RemudaError as error:
            found.append(error)
    assert ["did not start" in error.message for error in found] == [True] * given_up
    assert len(told) == min(slow, stream.SLOW_STARTS)
