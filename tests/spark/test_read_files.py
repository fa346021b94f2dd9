"""Reading splits: what fits arrives in engine form, what does not is named with its reason."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from remuda.datatypes import sql
from remuda.datatypes.arrow import engine_schema, to_external
from remuda.datatypes.schema import ROW_ID, Column, MapSchema
from remuda.spark.loading.read_files import Rejected, TextFormat, read_split
from remuda.spark.loading.source import inspect
from remuda.spark.loading.splits import plan_splits
from remuda.spark.transfer.rows import of_files, with_row_ids

SCHEMA = MapSchema(
    name="t",
    columns=(
        Column("k", sql.BIGINT, nullable=False),
        Column("name", sql.varchar(5)),
        Column("price", sql.decimal(7, 2)),
        Column("day", sql.DATE),
        Column("at", sql.TIMESTAMP),
        Column("ok", sql.BOOLEAN),
        Column("x", sql.DOUBLE),
        Column("raw", sql.BYTEA),
    ),
    key=("k",),
    partition_by=("k",),
)
GOOD: list[dict[str, Any]] = [
    {
        "k": 1,
        "name": "a,b",
        "price": Decimal("1.50"),
        "day": dt.date(2024, 2, 29),
        "at": dt.datetime(2024, 2, 29, 1, 2, 3),  # noqa: DTZ001 (TIMESTAMP has no zone)
        "ok": True,
        "x": 0.5,
        "raw": b"\x01\xff",
    },
    {"k": 2, "name": "x\ny", **dict.fromkeys(("price", "day", "at", "ok", "x", "raw"))},
]


def load(
    path: Path,
    text: TextFormat | None = None,
    split_size: int | None = None,
    schema: MapSchema = SCHEMA,
) -> tuple[list[dict[str, Any]], list[Rejected]]:
    files = [str(path)]
    source = inspect(files, None, text or TextFormat())
    rows: list[dict[str, Any]] = []
    rejected: list[Rejected] = []
    for split in plan_splits(files, None, 1, split_size=split_size):
        for piece in read_split(split, schema, source.text):
            assert piece.batch.schema == engine_schema(schema)
            arrays = [
                to_external(a, c.type)
                for a, c in zip(piece.batch.columns, schema.columns, strict=True)
            ]
            rows += pa.RecordBatch.from_arrays(arrays, names=list(schema.position)).to_pylist()
            rejected += piece.rejected
    return rows, rejected


HEADER = "k,name,price,day,at,ok,x,raw\n"
CSV = HEADER + '1,"a,b",1.5,2024-02-29,2024-02-29 01:02:03,true,0.5,\\x01ff\n2,"x\ny",,,,,,\n'


def test_csv(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV)
    assert load(path) == (GOOD, [])
    assert load(path, split_size=1) == (GOOD, [])


def test_csv_compressed(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(CSV.encode()))
    assert load(path) == (GOOD, [])


BAD_CSV = {
    "3,toolong,,,,,,": "column name: a value of 7 characters does not fit VARCHAR(5)",
    ",a,,,,,,": "key column k is NULL",
    "four,a,,,,,,": 'column k: invalid input syntax for type bigint: "four"',
    "5,a,123456.00,,,,,": "column price: numeric field overflow",
    "6,a,,2024-02-30,,,,": 'column day: date/time field value out of range: "2024-02-30"',
    "7,a,,,,maybe,,": 'column ok: invalid input syntax for type boolean: "maybe"',
    "8,a": "expected 8 columns, found 2",
    "9,a,,,,,,,,": "expected 8 columns, found 10",
    "10,a,,,,,,\\xzz": 'column raw: invalid input syntax for type bytea: "\\xzz"',
}


@pytest.mark.parametrize("line", BAD_CSV)
def test_csv_rejects_one_row(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(CSV + line + "\n11,z,,,,,,\n")
    rows, rejected = load(path)
    assert [row["k"] for row in rows] == [1, 2, 11]
    assert rows[:2] == GOOD
    assert [r.reason for r in rejected] == [BAD_CSV[line]]
    json.dumps(rejected[0].record)


def test_csv_rejects_many_rows_among_many(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i if i % 7 else 'x'},a,,,,,," for i in range(5000)]
    path.write_text(HEADER + "\n".join(lines) + "\n")
    rows, rejected = load(path, split_size=4000)
    assert sorted(row["k"] for row in rows) == [i for i in range(5000) if i % 7]
    assert len(rejected) == sum(1 for i in range(5000) if i % 7 == 0)
    assert {r.record["k"] for r in rejected} == {"x"}


def test_csv_null_text_and_empty_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(HEADER + '1,"",,,,,,\n2,NA,NA,,,,,\n')
    rows, rejected = load(path, TextFormat(nulls=("", "NA")))
    assert not rejected
    assert [row["name"] for row in rows] == ["", None]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    first = {
        **GOOD[0],
        "price": 1.5,
        "day": "2024-02-29",
        "at": "2024-02-29 01:02:03",
        "raw": "\\x01ff",
    }
    path.write_text(json.dumps(first) + "\n" + json.dumps({"k": 2, "name": "x\ny"}) + "\n")
    assert load(path) == (GOOD, [])
    assert load(path, split_size=1) == (GOOD, [])


def test_json_array(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    first = {
        **GOOD[0],
        "price": 1.5,
        "day": "2024-02-29",
        "at": "2024-02-29 01:02:03",
        "raw": "\\x01ff",
    }
    path.write_text(json.dumps([first, {"k": 2, "name": "x\ny"}], indent=1))
    assert load(path, split_size=1) == (GOOD, [])


BAD_JSON = {
    '{"k": 3, "name": "toolong"}': "column name: a value of 7 characters does not fit VARCHAR(5)",
    '{"name": "a"}': "key column k is NULL",
    '{"k": "four"}': 'column k: invalid input syntax for type bigint: "four"',
    '{"k": 5, "name": 5}': "column name: expected VARCHAR(5), found BIGINT",
    "[1]": "not an object",
    '{"k": 6, "price": 1.005}': (
        "column price: 1.005 has more than 2 decimal places and does not fit DECIMAL(7,2)"
    ),
}


@pytest.mark.parametrize("line", BAD_JSON)
def test_json_rejects_one_row(tmp_path: Path, line: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"k": 1}\n' + line + '\n{"k": 11}\n')
    rows, rejected = load(path)
    assert [row["k"] for row in rows] == [1, 11]
    assert [r.reason for r in rejected] == [BAD_JSON[line]]
    assert rejected[0].row == 1
    json.dumps(rejected[0].record)


def test_json_line_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"k": 1}\n{"k": \n{"k": 11}\n')
    rows, rejected = load(path)
    assert [row["k"] for row in rows] == [1, 11]
    assert rejected[0].reason.startswith("not JSON: ")
    assert rejected[0].record == '{"k": '


def test_parquet_and_arrow_reject_rows(tmp_path: Path) -> None:
    schema = MapSchema(
        "t",
        (Column("k", sql.SMALLINT, nullable=False), Column("s", sql.varchar(3))),
        ("k",),
        ("k",),
    )
    table = pa.table(
        {"s": ["abc", "abcd", None, "x"], "k": pa.array([1, 2, None, 70000], pa.int64())}
    )
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=2)
    with (
        pa.OSFile(str(tmp_path / "t.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as w,
    ):
        w.write_table(table)
    for name in ("t.parquet", "t.arrow"):
        rows, rejected = load(tmp_path / name, schema=schema, split_size=1)
        assert rows == [{"k": 1, "s": "abc"}]
        assert [r.row for r in rejected] == [1, 2, 3]
        assert rejected[0].record == {"k": 2, "s": "abcd"}
        assert "does not fit VARCHAR(3)" in rejected[0].reason
        assert rejected[1].reason == "key column k is NULL"
        assert "does not fit SMALLINT" in rejected[2].reason


def test_inspect_guesses_types(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d,e\n1,x,2024-01-01,1.5,\n2,y,2024-01-02,2,\n")
    found = {c.name: str(c.type) for c in inspect([str(path)], None, TextFormat()).columns}
    assert found == {
        "a": "BIGINT",
        "b": "VARCHAR",
        "c": "DATE",
        "d": "DOUBLE PRECISION",
        "e": "VARCHAR",
    }
    chosen = inspect(
        [str(path)], None, TextFormat(), wanted=("d", "a"), types={"a": sql.INTEGER}
    ).columns
    assert [(c.name, c.type) for c in chosen] == [("d", sql.DOUBLE), ("a", sql.INTEGER)]


def test_rows_for_a_map_without_a_key(tmp_path: Path) -> None:
    columns = (Column("a", sql.BIGINT), Column(ROW_ID, sql.BIGINT, False), Column("b", sql.VARCHAR))
    schema = MapSchema("log", columns, (ROW_ID,), (ROW_ID,))
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"b": ["x", "x"], "a": [1, 1]}), file)
    splits = plan_splits([str(file)], None, 1)
    (piece,) = read_split(splits[0], of_files(schema), TextFormat())
    made = with_row_ids(schema, piece.batch)
    assert made.schema == engine_schema(schema)
    assert made.drop_columns(ROW_ID).to_pydict() == {"a": [1, 1], "b": ["x", "x"]}
    assert len(set(made.column(ROW_ID).to_pylist())) == 2


def test_rows_for_a_map_with_a_generated_column(tmp_path: Path) -> None:
    columns = (
        Column("a", sql.BIGINT, False),
        Column("b", sql.BIGINT, False, generated="a * 2"),
        Column("c", sql.VARCHAR),
    )
    schema = MapSchema("m", columns, ("a",), ("a",))
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1, 2], "c": ["x", None]}), file)
    (piece,) = read_split(plan_splits([str(file)], None, 1)[0], of_files(schema), TextFormat())
    made = with_row_ids(schema, piece.batch)
    assert made.schema.names == ["a", "b", "c"]
    assert made.to_pydict() == {"a": [1, 2], "b": [None, None], "c": ["x", None]}
