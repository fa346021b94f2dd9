"""dbt-postgres over the door: seeds, models of every kind, snapshots, tests, documentation."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest

PROJECT = Path(__file__).parent / "dbt_shop"
Dbt = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def dbt(python_of_programs: Path, door: dict[str, Any], tmp_path_factory: Any) -> Iterator[Dbt]:
    """Runs a command of dbt in a copy of the project, and tells its results."""
    folder = tmp_path_factory.mktemp("dbt") / "shop"
    shutil.copytree(PROJECT, folder)
    environment = os.environ | {
        "DOOR_HOST": door["host"], "DOOR_PORT": str(door["port"]), "DBT_PROFILES_DIR": str(folder),
        "PGOPTIONS": "-c definitions_in_transactions=commit", "HOME": str(folder),
    }  # fmt: skip
    log = (folder / "output.txt").open("w")
    process = subprocess.Popen(
        [str(python_of_programs), str(folder / "driver.py")],
        cwd=folder, env=environment, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def run(*words: str) -> dict[str, Any]:
        print(json.dumps(words), file=process.stdin, flush=True)
        line = process.stdout.readline()
        assert line, (folder / "output.txt").read_text()
        return json.loads(line) | {"folder": folder}

    yield run
    process.stdin.close()
    process.kill()
    process.wait()
    log.close()


def test_a_project(dbt: Dbt, connection: psycopg.Connection[Any]) -> None:
    """One process runs all commands, and one test all steps: each needs the one before it."""

    def asked(text: str) -> list[Any]:
        return connection.execute(text).fetchall()

    def succeeds(*words: str) -> dict[str, str]:
        done = dbt(*words)
        log = (done["folder"] / "output.txt").read_text()
        assert done["success"], f"{words}: {done['error']} {done['results']}\n{log}"
        return {name.rpartition(".")[2]: said for name, (_, said) in done["results"].items()}

    connection.execute("CREATE SCHEMA till")
    connection.execute(
        "CREATE TABLE till.sales (id INT PRIMARY KEY, amount NUMERIC(10,2), at TIMESTAMP)"
    )
    connection.execute("INSERT INTO till.sales VALUES (1, 5, '2024-03-01'), (2, 7, '2024-03-02')")
    assert succeeds("seed") == {"customers": "INSERT 3", "orders": "INSERT 4"}
    assert succeeds("run").keys() == {
        "placed_orders", "totals", "oslo_totals",
        "sales_appended", "sales_replaced", "sales_merged",
    }  # fmt: skip
    totals = [(1, Decimal("14.75")), (2, Decimal("99.00")), (3, Decimal("0.75"))]
    assert asked("SELECT * FROM warehouse.totals ORDER BY 1") == totals
    assert asked("SELECT * FROM warehouse.oslo_totals ORDER BY 1") == [totals[0], totals[2]]
    succeeds("snapshot")

    connection.execute("UPDATE till.sales SET amount = 6, at = '2024-04-01' WHERE id = 1")
    connection.execute("DELETE FROM till.sales WHERE id = 2")
    connection.execute("INSERT INTO till.sales VALUES (3, 9, '2024-03-03')")
    again = succeeds("run")
    assert again["sales_appended"] == "INSERT 0 2"
    assert again["sales_merged"] == "MERGE 2"
    sales = "SELECT id, amount FROM warehouse.sales_{} ORDER BY 1, 2"
    old, two, new, three = (1, Decimal(5)), (2, Decimal(7)), (1, Decimal(6)), (3, Decimal(9))
    assert asked(sales.format("appended")) == [old, new, two, three]
    assert asked(sales.format("merged")) == [new, two, three]
    assert asked("SELECT id, amount, seen FROM warehouse.sales_replaced ORDER BY 1") == [
        (*new, "later"), (*two, None), (*three, "later"),
    ]  # fmt: skip
    succeeds("snapshot")
    rows = "SELECT id, amount, dbt_valid_to IS NULL FROM history.{} ORDER BY 1, 2"
    assert asked(rows.format("sales_by_values")) == [
        (*old, False), (*new, True), (*two, True), (*three, True),
    ]  # fmt: skip
    assert asked(rows.format("sales_by_time")) == [  # a row that is gone is not valid any more
        (*old, False), (*new, True), (*two, False), (*three, True),
    ]  # fmt: skip

    assert len(succeeds("test")) == 5
    connection.execute("UPDATE warehouse.orders SET amount = -1 WHERE id = 4")
    failed = dbt("test")
    assert {
        name: said for name, (status, said) in failed["results"].items() if status == "fail"
    } == {"test.shop.no_order_is_negative": "Got 1 result, configured to fail if != 0"}
    done = dbt("docs", "generate")
    assert done["success"]
    catalog = json.loads((done["folder"] / "target/catalog.json").read_text())
    found = catalog["nodes"]["model.shop.placed_orders"]
    assert found["metadata"]["type"] == "VIEW"
    assert found["metadata"]["comment"] == "Orders, with the buyer's name"
    assert found["columns"]["id"]["comment"] == "the order's number"
    assert [column["type"] for column in found["columns"].values()] == [
        "integer", "integer", "text", "numeric(10,2)", "text", "timestamp without time zone",
    ]  # fmt: skip
    succeeds("source", "freshness")
