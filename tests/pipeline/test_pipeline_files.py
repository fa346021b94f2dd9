"""Pipeline files: what they say, and what is said about wrong ones. No Spark runs here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from remuda.datatypes import sql
from remuda.spark.pipeline import Pipeline, parse, parse_text
from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.model import Expectation, FileTarget, Index, MapTarget, Watermark
from remuda.spark.pipeline.picture import picture, reads

SMALL = """\
pipeline: small
sources:
  - {name: raw, format: parquet, path: in/*.parquet}
targets:
  - {map: m, key: id}
"""

WHOLE = """\
pipeline: whole
grid: {address: "${GRID:-127.0.0.1:31010}", user: loader, password: "${GRID_PASSWORD}"}
spark:
  master: local[4]
  packages: [org.example:driver:1.0]
  settings: {spark.sql.shuffle.partitions: 8}
sources:
  - name: orders
    format: csv
    path: [a/*.csv, /b/c.csv]
    delimiter: ;
    options: {mode: FAILFAST, multiLine: true}
    schema: id BIGINT, country STRING, amount DOUBLE, day DATE
    expect:
      - {name: has id, condition: id IS NOT NULL, action: fail}
  - name: customers
    format: jdbc
    url: jdbc:postgresql://db/shop?password=${DB_PASSWORD}
    table: customers
    user: ${DB_USER}
    password: ${DB_PASSWORD}
  - name: rates
    format: remuda
    query: SELECT * FROM rates
    grid: {address: "other:31010"}
steps:
  - name: clean
    sql: |
      -- rates are not read here
      SELECT o.*, 'customers' AS word FROM Orders o WHERE day >= :since
    arguments: {since: "${SINCE}", low: 1, ratio: 0.5, flag: true, nothing: null}
    expect:
      - {name: positive, condition: amount > 0, action: quarantine}
      - {name: near, condition: "country IN ('CH', 'NO')", action: drop}
  - name: scored
    python: scoring.py:score
    inputs: [clean, customers]
quarantine: {map: refused}
targets:
  - map: orders
    from: scored
    key: [country, id]
    partition_by: country
    types: {amount: "DECIMAL(12, 2)", id: bigint, tags: "integer[]"}
    mode: changes
    operation: op
    indexes:
      - columns: [day desc, country]
      - {columns: country, kind: bitmap, name: by_country}
  - parquet: out/orders
    from: clean
    partition_by: [day]
schedule: {cron: "*/10 8-18 * * mon-fri", zone: Europe/Zurich}
"""

STREAM = """\
pipeline: flow
sources:
  - name: events
    format: kafka
    servers: "kafka:9092"
    topics: [clicks, views]
    stream: true
    watermark: {column: timestamp, delay: 10 min}
  - {name: users, format: remuda, map: users}
steps:
  - name: counts
    sql: SELECT key, count(*) AS n FROM events JOIN users USING (key) GROUP BY key
targets:
  - {map: counts, key: key, output: update}
stream: {checkpoint: state, trigger: 30 s}
"""


def test_a_small_file() -> None:
    made = parse_text(SMALL)
    assert made.sources[0].paths == ("in/*.parquet",)
    assert made.targets == (MapTarget("m", "raw", key=("id",), line=5),)
    assert (made.stream, made.schedule, made.variables) == (None, None, ())


def test_everything_that_a_file_can_say() -> None:
    made = parse_text(WHOLE)
    orders, customers, rates = made.sources
    assert orders.paths == ("a/*.csv", "/b/c.csv")
    assert orders.options == {
        "mode": "FAILFAST", "multiLine": "true", "sep": ";", "header": "true",
    }  # fmt: skip
    assert orders.expectations == (Expectation("has id", "id IS NOT NULL", "fail", 15),)
    assert customers.options["dbtable"] == "customers"
    assert rates.grid is not None
    assert rates.grid.address == "other:31010"
    clean, scored = made.steps
    assert clean.arguments == {
        "since": "${SINCE}", "low": 1, "ratio": 0.5, "flag": True, "nothing": None,
    }  # fmt: skip
    assert [e.action for e in clean.expectations] == ["quarantine", "drop"]
    assert scored.inputs == ("clean", "customers")
    target, files = made.targets
    assert isinstance(target, MapTarget)
    assert target.types == {
        "amount": sql.decimal(12, 2), "id": sql.BIGINT, "tags": sql.array(sql.INTEGER),
    }  # fmt: skip
    assert target.indexes == (
        Index("orders_day_country", "sorted", ("day desc", "country")),
        Index("by_country", "bitmap", ("country",)),
    )
    assert isinstance(files, FileTarget)
    assert (files.mode, files.partition_by) == ("overwrite", ("day",))
    assert made.variables == ("DB_PASSWORD", "DB_USER", "GRID_PASSWORD", "SINCE")
    assert made.schedule is not None
    assert made.schedule.cron is not None
    assert made.spark.settings == {"spark.sql.shuffle.partitions": "8"}


def test_a_stream() -> None:
    made = parse_text(STREAM)
    assert made.stream is not None
    assert (made.stream.every, made.stream.available_now) == (30.0, False)
    assert made.sources[0].options == {
        "kafka.bootstrap.servers": "kafka:9092", "subscribe": "clicks,views",
    }  # fmt: skip
    assert made.sources[0].watermark == Watermark("timestamp", "10 min")
    assert [target.output for target in made.maps] == ["update"]


def test_pictures(golden: Any) -> None:
    columns = {"events": ["key binary", "value binary"]}
    text = [picture(parse_text(file)) for file in (SMALL, WHOLE)]
    golden.check(
        "pipeline/pictures.txt", "\n\n".join([*text, picture(parse_text(STREAM), columns)])
    )


def test_what_sql_reads_is_found_in_it() -> None:
    made = parse_text(WHOLE)
    assert reads(made.steps[0], made) == ["orders"]


def test_nothing_secret_is_shown() -> None:
    assert "PASSWORD" not in picture(parse_text(WHOLE))
    assert "password" not in picture(parse_text(WHOLE))


TARGETS = "targets:\n  - {map: m, key: id}\n"
RAW = "pipeline: p\nsources:\n  - {name: raw, format: parquet, path: x}\n"

FLOW = RAW.replace("path: x", "path: x, stream: true")
ARROW = FLOW.replace("parquet", "arrow") + TARGETS + "stream: {checkpoint: c}\n"


def raw(old: str, new: str) -> str:
    return RAW.replace(old, new) + TARGETS


def step(text: str) -> str:
    return f"{RAW}steps:\n  - {{name: a, {text}}}\n{TARGETS}"


def expect(action: str) -> str:
    return step(f"sql: x, expect: [{{name: e, condition: c, action: {action}}}]")


def target(text: str) -> str:
    return f"{RAW}targets:\n  - {{map: m, {text}}}\n"


def flow(text: str) -> str:
    return f"{FLOW}{TARGETS}stream: {{{text}}}\n"


WRONG = [
    ("", "p.yml:1: the file is empty"),
    ("- a\n", "p.yml:1: the file must hold keys and values, not a list"),
    ("pipeline: p\n  x: 1\n", "p.yml:2: this is no YAML: mapping values are not allowed"),
    ("pipeline: p\nsources: [\n", "p.yml:3: this is no YAML"),
    ("pipeline: p\npipeline: q\n", 'p.yml:2: "pipeline" comes twice'),
    ("pipeline: p\n1: 2\n", 'p.yml:2: 1: there is no "1" here'),
    ("pipeline: !!python/name:os.system x\n", "has the tag"),
    ("pipeline: p\nsource: []\n", 'p.yml:2: source: there is no "source" here.*sources'),
    ("pipeline: a b\nsources: []\n", "'a b' is no name"),
    ("pipeline: p\n" + TARGETS, '"sources" is missing'),
    ("pipeline: p\nsources:\n" + TARGETS, "sources: must be a list .*, not nothing"),
    (RAW, '"targets" is missing'),
    (raw("format", "fromat"), r'p.yml:3: sources\[0\]: "format" is missing'),
    (raw("parquet", "parket"), r"sources\[0\].format: 'parket' is not.*parquet"),
    (raw("path", "paht"), r'there is no "paht" here.*Did you mean "path"'),
    (raw(", path: x", ""), '"path" is missing'),
    (raw("name: raw", "name: my-view"), "'my-view' is no name of a view"),
    (raw("path: x", "path: {a: 1}"), "must be a text, not keys and values"),
    (raw("path: x", "path: []"), "the list is empty"),
    (raw("path: x", 'path: ""'), "is empty"),
    (raw("path: x", 'path: "${}"'), "is not followed by a name"),
    (FLOW + TARGETS, "the pipeline is no stream"),
    (raw("path: x", "path: x, stream: perhaps"), "must be true or false"),
    (RAW + "  - {name: RAW, format: csv, path: x}\n" + TARGETS, 'there is a view "RAW" already'),
    (RAW + "steps:\n  - {name: a}\n" + TARGETS, '"sql" or "python": none is there'),
    (step("sql: x, python: y"), "both are there"),
    (step("python: score, inputs: raw"), "names no function"),
    (step("python: 'm:f'"), '"inputs" is missing'),
    (step("python: 'm:f', inputs: raww"), 'no view "raww" before.*"raw"'),
    (step("sql: 'SELECT ${X}'"), "not filled into SQL"),
    (expect("dorp"), 'dorp.*"drop"'),
    (expect("quarantine"), "does not say where"),
    (RAW + "quarantine: {map: q}\n" + TARGETS, "no expectation puts rows aside"),
    (target("from: row"), 'there is no view "row".*"raw"'),
    (target("parquet: x"), "both are there"),
    (RAW + "targets:\n  - {map: m}\n  - {map: m}\n", "map m is written twice"),
    (target("key: a, partition_by: b"), "b is not in the key"),
    (target("key: [a, b, a]"), "p.yml:5: targets.0..key: a comes twice"),
    ("[" * 5000, "nested too deeply"),
    (target("types: {a: decimal(99)}"), "p.yml:5: targets.0..types.a: DECIMAL precision"),
    (target("types: {a: bigit}"), "bigit.*bigint"),
    (target("mode: changes"), 'changes need "operation"'),
    (target("operation: o"), "belongs to mode: changes"),
    (target("output: update"), "belongs to streams"),
    (target("latest: n"), 'needs "key"'),
    (target("indexes: [{columns: a.b}]"), "is no column"),
    (target("indexes: [{columns: a, kind: tree}]"), "allowed: sorted, hash, bitmap"),
    (RAW + TARGETS + "schedule: {every: 10}\n", "'10' is no span of time"),
    (RAW + TARGETS + "schedule: {every: 1 min, cron: x}\n", "both are there"),
    (RAW + TARGETS + "schedule: {cron: '* * *'}\n", "it has 3 fields instead of 5"),
    (RAW + TARGETS + "schedule: {cron: '* * * * *', zone: Mars}\n", "there is no time zone 'Mars'"),
    (RAW + TARGETS + "stream: {checkpoint: c}\n", "no source is a stream"),
    (flow("trigger: 1 s"), '"checkpoint" is missing'),
    (flow("checkpoint: c, trigger: availableNow"), "Write available-now"),
    (flow("checkpoint: c") + "schedule: {every: 1 s}\n", "a stream goes on by itself"),
    (ARROW, "arrow cannot be read as a stream"),
    (STREAM.replace("output: update", "mode: overwrite"), "a stream cannot overwrite"),
    (STREAM.replace("delay: 10 min", "delay: soon"), "watermark.delay: 'soon' is no span"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG)
def test_wrong_files(text: str, message: str) -> None:
    with pytest.raises(PipelineInvalid) as caught:
        parse_text(text, "p.yml")
    assert re.search(message, str(caught.value), re.DOTALL), str(caught.value)
    assert str(caught.value).startswith("p.yml:")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineInvalid, match="No such file"):
        parse(tmp_path / "none.yml")
    (tmp_path / "bad.yml").write_bytes(b"pipeline: \xff\xfe\xfa")
    with pytest.raises(PipelineInvalid, match="not UTF-8"):
        parse(tmp_path / "bad.yml")
    (tmp_path / "good.yml").write_text("\ufeff" + SMALL, encoding="utf-8")
    made: Pipeline = parse(tmp_path / "good.yml")
    assert made.folder == tmp_path.resolve()


def test_texts_are_texts_whatever_yaml_thinks() -> None:
    text = RAW.replace(
        "path: x", "path: no, options: {nullValue: NO, header: yes, samplingRatio: 0.10}"
    )
    source = parse_text(text + TARGETS).sources[0]
    assert source.paths == ("no",)
    assert source.options == {"nullValue": "NO", "header": "yes", "samplingRatio": "0.10"}
