"""docs/pipelines.md: its files are valid, its examples run, and it names every key there is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from remuda.spark.pipeline import parse, parse_text, run
from remuda.spark.pipeline.picture import picture
from remuda.spark.pipeline.read import KEYS
from remuda.spark.pipeline.read_sources import SOURCES
from remuda.spark.pipeline.read_steps import ACTIONS
from remuda.spark.pipeline.read_targets import KINDS, MODES, OUTPUTS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
FILES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
NAMED = dict(re.findall(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL))


@pytest.mark.parametrize("text", FILES)
def test_files_are_valid(text: str) -> None:
    assert parse_text(text).targets


def test_the_plan_is_what_is_shown() -> None:
    assert picture(parse_text(NAMED["orders.yml"])) in PAGE


def test_every_key_is_named() -> None:
    words = set(re.findall(r"`([^`\n]+)`", PAGE))
    wanted = {*KEYS, *SOURCES, *ACTIONS, *KINDS, *MODES, *OUTPUTS}
    wanted |= {key for known in SOURCES.values() for key in known.keys}
    assert wanted - words == set()


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made
        for name in ("orders", "orders_by_city", "shops", "refused_arrivals"):
            made.drop_map(name, if_exists=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in NAMED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "in").mkdir()
    (tmp_path / "arriving").mkdir()
    return tmp_path


@pytest.mark.spark
@pytest.mark.cluster
def test_the_first_pipeline(spark: Any, client: Any, address: str, folder: Path) -> None:
    (folder / "in" / "orders-1.csv").write_text(
        "order_id,customer,amount,day\n1,1,100,2026-03-01\n2,2,200,2026-03-01\n"
        "3,1,10,2026-03-02\n4,3,30,2026-03-01\n5,,1,2026-03-01\n6,1,-5,2026-03-01\n"
    )
    people = [{"customer": 1, "city": "Bern"}, {"customer": 2, "city": "Genf"},
              {"customer": 3, "city": "Bern"}]  # fmt: skip
    (folder / "in" / "customers.json").write_text("\n".join(json.dumps(row) for row in people))
    told: list[str] = []
    report = run(spark, parse(folder / "orders.yml"), address=address, tell=told.append)
    assert told[0] in PAGE
    assert [target.rows for target in report.targets] == [4, 3, 3]
    assert report.quarantined == 1
    found = client.sql("SELECT order_id, amount FROM orders ORDER BY order_id").fetchall()
    assert [tuple(row) for row in found] == [
        (1, Decimal("108.10")), (2, Decimal("216.20")), (3, Decimal("10.81")),
        (4, Decimal("32.43")),
    ]  # fmt: skip
    cities = client.sql("SELECT city, day, orders FROM orders_by_city ORDER BY 1, 2").fetchall()
    assert [tuple(row) for row in cities] == [
        ("Bern", date(2026, 3, 1), 2), ("Bern", date(2026, 3, 2), 1), ("Genf", date(2026, 3, 1), 1),
    ]  # fmt: skip


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.soak
def test_the_stream(spark: Any, client: Any, address: str, folder: Path) -> None:
    rows = [{"shop": 1, "item": "a", "amount": 2.0}, {"shop": 1, "item": "b", "amount": 3.0},
            {"shop": None, "item": "c", "amount": 1.0}]  # fmt: skip
    (folder / "new.json").write_text("\n".join(json.dumps(row) for row in rows))
    (folder / "new.json").rename(folder / "arriving" / "new.json")
    report = run(spark, parse(folder / "arrivals.yml"), address=address)
    assert report.view("arrivals").broken == {"has shop": 1}
    found = client.sql("SELECT shop, arrivals, amount FROM shops").fetchall()
    assert [tuple(row) for row in found] == [(1, 2, 5.0)]
    aside = client.sql("SELECT reasons, record ->> 'item' FROM refused_arrivals").fetchall()
    assert [tuple(row) for row in aside] == [(["has shop"], "c")]
