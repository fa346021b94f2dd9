"""Pipelines over what is there: what they write, what they refuse, what a failure leaves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from remuda.cli.main import main
from remuda.errors import InputError, InvalidDefinition, JobAborted, RemudaError, UniqueViolation
from remuda.spark.pipeline import RunReport, parse, run
from remuda.spark.pipeline.errors import ExpectationFailed, PipelineInvalid
from remuda.spark.pipeline.running import dry_run

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

SALES = [(i, None if i % 40 == 7 else i % 3, (i % 50) - 2, f"2026-01-{i % 9 + 1:02}")
         for i in range(200)]  # fmt: skip
CITIES = {0: "Bern", 1: "Genf", 2: "Basel"}

PIPELINE = """\
pipeline: sales
sources:
  - {name: raw, format: csv, path: in/sales.csv, schema: "id INT, shop INT, amount INT, day DATE"}
  - {name: shops, format: json, path: in/shops.json, schema: "shop INT, city STRING"}
steps:
  - name: clean
    sql: |
      SELECT id, shop, amount, day FROM raw WHERE id >= :low  -- all of them
    arguments: {low: "${LOW:-0}"}
    expect:
      - {name: positive, condition: amount > 0, action: quarantine}
      - {name: known shop, condition: shop IS NOT NULL, action: drop}
  - {name: doubled, python: "scoring.py:double", inputs: clean, arguments: {factor: 2}}
  - name: daily
    sql: >
      SELECT city, day, sum(amount) AS amount, count(*) AS sales
      FROM doubled JOIN shops USING (shop) GROUP BY city, day
quarantine: {parquet: rejected}
targets:
  - map: PREFIX_sales
    from: doubled
    key: id
    types: {id: bigint, amount: "decimal(12,2)"}
    indexes: [{columns: [shop, day desc]}, {columns: day, kind: hash, name: by_day}]
  - {map: PREFIX_daily, key: [city, day], partition_by: city}
  - {parquet: out/daily, partition_by: city}
"""

VIEWS = {"raw", "shops", "clean", "doubled", "daily"}
CALL = 'scoring.py:double", inputs: clean, arguments: {factor: 2}'
SCORING = """\
from pyspark.sql import functions as F


def times(value, factor):  # the workers get it with the function below
    return None if value is None else float(value * factor)


def double(clean, factor):
    make = F.udf(lambda value: times(value, factor), "double")
    return clean.withColumn("amount", make("amount"))


def wrong(clean):
    return clean.count() / 0


def nothing(clean):
    return clean.columns
"""


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


@pytest.fixture
def prefix(request: pytest.FixtureRequest, client: Any) -> Iterator[str]:
    made = "p_" + "".join(c if c.isalnum() else "_" for c in request.node.name)[-30:].lower()
    yield made
    for (name,) in client.sql("SELECT name FROM sys.maps").fetchall():
        if name.startswith(made):
            client.drop_map(name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    lines = [",".join("" if v is None else str(v) for v in row) for row in SALES]
    (tmp_path / "in" / "sales.csv").write_text("\n".join(["id,shop,amount,day", *lines]) + "\n")
    shops = [json.dumps({"shop": shop, "city": city}) for shop, city in CITIES.items()]
    (tmp_path / "in" / "shops.json").write_text("\n".join(shops))
    (tmp_path / "scoring.py").write_text(SCORING)
    return tmp_path


class Runner:
    """Runs texts as pipelines of one folder; ``PREFIX`` in them is one of this test."""

    def __init__(self, spark: Any, address: str, folder: Path, prefix: str) -> None:
        self.spark, self.address, self.folder, self.prefix = spark, address, folder, prefix
        self.told: list[str] = []

    def file(self, text: str) -> Any:
        path = self.folder / "p.yml"
        path.write_text(text.replace("PREFIX", self.prefix))
        return parse(path)

    def __call__(self, text: str, **options: Any) -> RunReport:
        return run(
            self.spark, self.file(text), address=self.address, tell=self.told.append, **options
        )


@pytest.fixture
def runner(spark: Any, address: str, folder: Path, prefix: str) -> Runner:
    return Runner(spark, address, folder, prefix)


def maps(client: Any, prefix: str) -> list[str]:
    names = [name for (name,) in client.sql("SELECT name FROM sys.maps").fetchall()]
    return sorted(name for name in names if name.startswith(prefix))


GOOD = [row for row in SALES if row[1] is not None and row[2] > 0]
ASIDE = [row for row in SALES if row[2] <= 0]


def test_a_whole_pipeline(runner: Runner, client: Any, prefix: str, folder: Path) -> None:
    first = runner(PIPELINE)
    assert first.created == (f"{prefix}_sales", f"{prefix}_daily")
    again = runner(PIPELINE)
    for report in (first, again):
        view = report.view("clean")
        assert (view.rows, view.kept, view.quarantined) == (200, len(GOOD), len(ASIDE))
        assert view.broken == {"positive": len(ASIDE), "known shop": 5}
        assert report.target(f"map {prefix}_sales").rows == len(GOOD)
        assert report.quarantined == len(ASIDE)
    rows = client.sql(f"SELECT id, shop, amount FROM {prefix}_sales ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [(i, s, Decimal(2 * a)) for i, s, a, _ in GOOD]
    daily: dict[tuple[str, str], float] = {}
    for _, shop, amount, day in GOOD:
        place = (CITIES[shop or 0], day)
        daily[place] = daily.get(place, 0) + 2 * amount
    found = client.sql(f"SELECT city, CAST(day AS VARCHAR), amount FROM {prefix}_daily").fetchall()
    assert {(city, day): amount for city, day, amount in found} == daily
    assert pq.read_table(folder / "out" / "daily").num_rows == len(daily)
    schema = client.describe(f"{prefix}_sales")
    assert [str(c) for c in schema.columns][:3] == [
        "id BIGINT NOT NULL", "shop INTEGER", "amount DECIMAL(12,2)",
    ]  # fmt: skip
    assert [(i.name, str(i.kind.value)) for i in schema.indexes] == [
        (f"{prefix}_sales_shop_day", "sorted"), ("by_day", "hash"),
    ]  # fmt: skip
    assert client.describe(f"{prefix}_daily").partition_by == ("city",)
    kept = pq.read_table(folder / "rejected" / "clean").to_pylist()
    assert sorted((r["id"], r["run"]) for r in kept) == sorted(
        (row[0], report.run) for row in ASIDE for report in (first, again)
    )
    reasons = {r["id"]: r["_reasons"] for r in kept}
    assert reasons[0] == ["positive"]
    assert not VIEWS & {table.name for table in runner.spark.catalog.listTables()}
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["daily"]


def test_a_dry_run_writes_nothing(
    runner: Runner, client: Any, prefix: str, folder: Path, address: str
) -> None:
    text = dry_run(runner.spark, runner.file(PIPELINE), address=address)
    assert "columns city string, day date, amount double, sales bigint" in text
    assert text.endswith(
        f"map {prefix}_sales does not exist and will be made\n"
        f"map {prefix}_daily does not exist and will be made"
    )
    assert maps(client, prefix) == []
    left = {path.name for path in folder.iterdir() if path.suffix != ".py"} - {"__pycache__"}
    assert left == {"in", "p.yml"}
    client.sql(f"CREATE TABLE {prefix}_daily (city VARCHAR, day DATE, amount DOUBLE PRECISION, "
               "PRIMARY KEY (city, day))")  # fmt: skip
    with pytest.raises(RemudaError, match=r"p.yml:\d+: map .*_daily: .* has no column sales"):
        dry_run(runner.spark, runner.file(PIPELINE), address=address)


def test_a_broken_promise_leaves_everything_as_it_was(
    runner: Runner, client: Any, prefix: str, folder: Path
) -> None:
    (folder / "out" / "daily").mkdir(parents=True)
    (folder / "out" / "daily" / "old").write_text("old")
    text = PIPELINE.replace("IS NOT NULL, action: drop", "IS NOT NULL, action: fail")
    with pytest.raises(ExpectationFailed, match="known shop is broken by 5 of 200 rows") as caught:
        runner(text)
    assert "p.yml:12: view clean: " in caught.value.message
    assert '"shop": null' in caught.value.detail
    assert maps(client, prefix) == []
    assert (folder / "out" / "daily" / "old").exists()
    assert not (folder / "rejected").exists()


def test_a_target_that_fails_leaves_nothing_half_written(
    runner: Runner, client: Any, prefix: str, folder: Path
) -> None:
    (folder / "scoring.py").write_text(
        SCORING.replace("float(value * factor)", "1 / 0 if value == 47 else float(value)")
    )
    one = PIPELINE[: PIPELINE.index("  - {map: PREFIX_daily")]
    swapped = one.replace("targets:", "targets:\n  - {parquet: first, from: shops}")
    with pytest.raises(JobAborted, match=r"p.yml:\d+: map .*: the Spark job failed: ZeroDivision"):
        runner(swapped, run_id="tried")
    assert maps(client, prefix) == []
    assert pq.read_table(folder / "first").num_rows == 3
    (folder / "scoring.py").write_text(SCORING)
    runner(swapped, run_id="tried")
    assert client.map(f"{prefix}_sales").size() == len(GOOD)
    assert pq.read_table(folder / "rejected" / "clean").num_rows == len(ASIDE)


def small(target: str, source: str = "SELECT 1 AS id, 'a' AS word") -> str:
    return f"""\
pipeline: small
sources: [{{name: shops, format: json, path: in/shops.json}}]
steps: [{{name: rows, sql: "{source}"}}]
targets: [{target}]
"""


def test_modes(runner: Runner, client: Any, prefix: str) -> None:
    def rows() -> list[tuple[Any, ...]]:
        return [tuple(r) for r in client.sql(f"SELECT * FROM {prefix}_m ORDER BY id").fetchall()]

    runner(small("{map: PREFIX_m, key: id}", "SELECT * FROM VALUES (1, 'a'), (2, 'b') t(id, word)"))
    runner(small("{map: PREFIX_m}", "SELECT 2 AS id, 'B' AS word"))
    assert rows() == [(1, "a"), (2, "B")]
    insert = "{map: PREFIX_m, mode: insert}"
    with pytest.raises(UniqueViolation):
        runner(small(insert, "SELECT * FROM VALUES (2, 'x'), (3, 'c') t(id, word)"))
    assert rows() == [(1, "a"), (2, "B")]
    runner(
        small(
            "{map: PREFIX_m, key: id, mode: changes, operation: op, latest: n}",
            "SELECT * FROM VALUES (1, 'delete', 1, ''), (1, 'update', 2, 'b'), "
            "(2, 'update', 2, 'bb'), (1, 'insert', 9, 'z') t(n, op, id, word)",
        )
    )
    assert rows() == [(2, "bb"), (9, "z")]
    runner(small("{map: PREFIX_m, mode: delete}", "SELECT 2 AS id"))
    assert rows() == [(9, "z")]


def test_a_map_without_a_key_is_refused(runner: Runner, client: Any, prefix: str) -> None:
    client.sql(f"CREATE TABLE {prefix}_m (id INTEGER, word VARCHAR)")
    with pytest.raises(InvalidDefinition, match="has no key: each run would add its rows once"):
        runner(small("{map: PREFIX_m}"))
    assert client.map(f"{prefix}_m").size() == 0


@pytest.mark.soak  # rows of a stream are put aside into a map in test_pipelines_page
def test_rows_put_aside_into_a_map(runner: Runner, client: Any, prefix: str) -> None:
    text = PIPELINE.replace("quarantine: {parquet: rejected}", "quarantine: {map: PREFIX_aside}")
    text = text[: text.index("  - {map: PREFIX_daily")]
    for run_id in ("one", "one"):
        runner(text, run_id=run_id)
    found = client.sql(
        f"SELECT run, count(*), count(DISTINCT record ->> 'id') FROM {prefix}_aside "
        "WHERE 'positive' = ANY(reasons) AND view = 'clean' GROUP BY run ORDER BY run"
    ).fetchall()
    assert [tuple(row) for row in found] == [(r, len(ASIDE), len(ASIDE)) for r in ("one",)]


def test_arrow_and_maps_and_other_databases(
    runner: Runner, client: Any, prefix: str, folder: Path, address: str
) -> None:
    table = pa.table({
        "id": pa.array([1, 2, 3], pa.uint32()),
        "word": pa.array(["a", "b", "a"]).dictionary_encode(),
        "big": pa.array(["x", None, "z"], pa.large_string()),
        "at": pa.array([1000, 2000, 3000], pa.timestamp("ns", "UTC")),
    })  # fmt: skip
    for name, new in (("a", pa.ipc.new_file), ("b", pa.ipc.new_stream)):
        with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as sink, new(sink, table.schema) as to:
            to.write_table(table)
    client.sql(f"CREATE TABLE {prefix}_words (word VARCHAR PRIMARY KEY, weight DOUBLE PRECISION)")
    client.sql(f"INSERT INTO {prefix}_words VALUES ('a', 0.5), ('c', 1.5)")
    url = f"jdbc:derby:memory:{prefix};create=true;user=app;password=${{DERBY_SECRET}}"
    report = runner(
        f"""\
pipeline: many
sources:
  - {{name: one, format: arrow, path: a.arrow}}
  - {{name: other, format: arrow, path: b.arrow}}
  - {{name: words, format: remuda, map: PREFIX_words, where: weight < 1, columns: [word, weight],
     grid: {{address: "{address}"}}}}
  - {{name: db, format: jdbc, url: "{url}", query: SELECT 7 AS n FROM SYSIBM.SYSDUMMY1}}
steps:
  - name: made
    sql: >
      SELECT CAST(one.id AS BIGINT) AS id, one.word, weight, one.at, big, N AS n
      FROM one JOIN other USING (id, big) JOIN words ON one.word = words.word CROSS JOIN db
targets: [{{map: PREFIX_made, key: id}}]
""",
        environment={"DERBY_SECRET": "sesame"},
    )
    assert report.targets[0].rows == 2
    rows = client.sql(f"SELECT id, word, weight, big, n FROM {prefix}_made ORDER BY id").fetchall()
    assert [tuple(row) for row in rows] == [(1, "a", 0.5, "x", 7), (3, "a", 0.5, "z", 7)]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("SELECT id, shop", "SELECT id, shpo", r"p.yml:6: step clean: .*`shpo`.*`shop`"),
        ("SELECT id, shop", "DROP TABLE raw; SELECT id", "step clean: .*[Ss]yntax"),
        ("FROM raw", "FROM rwa", "step clean: .*rwa.*cannot be found.*A step sees the sources"),
        ("amount > 0", "amuont > 0", "p.yml:11: expectation positive: .*amuont"),
        ("amount > 0", "amount >", "p.yml:11: expectation positive: .*[Ss]yntax"),
        ("scoring.py:double", "scoring.py:duoble", "has no function duoble.*double"),
        ("scoring.py:double", "scorin.py:double", "there is no file .*scorin.py"),
        ("scoring.py:double", "no_such_module:double", "no Python module no_such_module"),
        (", arguments: {factor: 2}", "", "failed: .*TypeError: .*factor"),
        (CALL, 'scoring.py:wrong", inputs: clean', "wrong failed: scoring.py:14: Zero"),
        (CALL, 'scoring.py:nothing", inputs: clean', "list instead of a DataFrame"),
        ("${LOW:-0}", "${LOW}", "variable LOW of the environment is not set"),
        ("in/sales.csv", "in/none.csv", "p.yml:3: source raw: .*Path does not exist.*none.csv"),
        ("format: csv, path", "format: delta, path", "p.yml:3: source raw: .*delta.*class path"),
        ("types: {id", "types: {idd", "types: there is no column idd.*Did you mean"),
        ("shop, day desc]", "shop, dya desc]", "index .* there is no column dya"),
        ("key: id", "key: idd", "key column idd"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(
    runner: Runner, client: Any, prefix: str, old: str, new: str, message: str
) -> None:
    assert old in PIPELINE
    file = runner.file(PIPELINE.replace(old, new))
    with pytest.raises(InputError) as caught:
        dry_run(runner.spark, file, address=runner.address, environment={})
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert maps(client, prefix) == []
    assert not VIEWS & {table.name for table in runner.spark.catalog.listTables()}


def test_secrets_are_not_told(runner: Runner) -> None:
    text = PIPELINE.replace("in/sales.csv", "'in/${SECRET_FOLDER}.csv'")
    with pytest.raises(PipelineInvalid) as caught:
        runner(text, environment={"SECRET_FOLDER": "s3cr3t-folder"})
    assert "${SECRET_FOLDER}" in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    text = PIPELINE.replace(
        "pipeline: sales", "pipeline: sales\ngrid: {user: me, password: '${PW}'}"
    )
    with pytest.raises(RemudaError) as caught2:
        run(runner.spark, runner.file(text), address="127.0.0.1:1", environment={"PW": "s3cr3t"})
    assert "127.0.0.1:1" in str(caught2.value)
    assert "s3cr3t" not in str(caught2.value)


def test_wrong_run_ids(runner: Runner) -> None:
    with pytest.raises(InputError, match="no id of a run"):
        runner(PIPELINE, run_id="a/b")


def test_the_command(
    runner: Runner, client: Any, prefix: str, folder: Path, address: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    text = small("{map: PREFIX_m, key: id}", "SELECT :low AS id, 'a' AS word")
    text = text.replace('word"}', 'word", arguments: {low: "${LOW_ID:-7}"}}')
    runner.file(text.replace(":-7", ""))
    file = str(folder / "p.yml")
    assert main(["pipeline", "validate", file]) == 0
    checked = capsys.readouterr()
    assert "target  PREFIX_m".replace("PREFIX", prefix) in checked.out
    assert "not set in this environment: LOW_ID" in checked.out
    assert main(["pipeline", "run", file]) == 1
    assert "variable LOW_ID of the environment is not set" in capsys.readouterr().err
    runner.file(text)
    assert main(["pipeline", "run", file, "--dry-run", "--connect", address]) == 0
    assert f"map {prefix}_m does not exist and will be made" in capsys.readouterr().out
    assert maps(client, prefix) == []
    assert main(["pipeline", "run", file, "--connect", address, "--run-id", "today"]) == 0
    output = capsys.readouterr()
    assert output.out.startswith("small: run today wrote 1 row to 1 target in ")
    assert f"map {prefix}_m: 1 row in " in output.err
    assert [tuple(r) for r in client.sql(f"SELECT * FROM {prefix}_m")] == [("7", "a")]
    assert main(["pipeline", "run", str(folder / "none.yml")]) == 1
    assert "none.yml cannot be read" in capsys.readouterr().err
