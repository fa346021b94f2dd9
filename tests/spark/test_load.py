"""``load`` and ``remuda load``: files become maps, and what does not fit is told."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from remuda.datatypes import sql
from remuda.errors import (
    DiskFull,
    InputError,
    InvalidDefinition,
    TypeMismatch,
    UndefinedColumn,
    UndefinedMap,
    UniqueViolation,
)
from remuda.spark.loading.loader import Progress, RejectFile, load, writing_rejects
from remuda.spark.loading.read_files import Piece, Rejected
from remuda.spark.loading.splits import Split

pytestmark = [pytest.mark.spark, pytest.mark.cluster]

TABLE = pa.table(
    {
        "k": pa.array(range(5000), pa.int64()),
        "name": [None if i % 11 == 0 else f"n{i % 97}" for i in range(5000)],
        "price": [i / 4 for i in range(5000)],
    }
)


@pytest.fixture
def client(grid: Any) -> Iterator[Any]:
    with grid.connect() as made:
        yield made


@pytest.fixture
def name(request: pytest.FixtureRequest, client: Any) -> Iterator[str]:
    made = "l_" + "".join(c if c.isalnum() else "_" for c in request.node.name)[-40:].lower()
    yield made
    client.drop_map(made, if_exists=True)


def save(directory: Path, kind: str, table: pa.Table = TABLE) -> Path:
    path = directory / f"t.{kind}"
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=700)
    elif kind == "csv":
        pa_csv.write_csv(table, path)
    elif kind == "json":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=900)
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "arrow"])
def test_each_format(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path, kind: str
) -> None:
    seen: list[Progress] = []
    path = save(tmp_path, kind)
    report = load(
        spark, path, address=address, map=name, key=["k"], split_size=20_000, progress=seen.append
    )
    assert (report.rows, report.rejected, report.created) == (5000, 0, True)
    assert report.splits > 1
    assert (seen[-1].rows, seen[-1].splits_done) == (5000, report.splits)
    found = client.sql(f'SELECT k, name, price FROM "{name}" ORDER BY k').to_arrow()
    assert found.to_pylist() == TABLE.to_pylist()


def test_again_with_overwrite_and_other_types(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path
) -> None:
    path = save(tmp_path, "csv")
    kinds = {"k": sql.INTEGER, "price": sql.decimal(9, 2)}
    load(
        spark, path, address=address, map=name, key=["k"], types=kinds, columns=["price", "k"],
        replicated=True,
    )  # fmt: skip
    schema = client.describe(name)
    assert [str(c) for c in schema.columns] == ["price DECIMAL(9,2)", "k INTEGER NOT NULL"]
    assert schema.replicated
    half = save(tmp_path, "parquet", TABLE.slice(0, 10).select(["k", "price"]).set_column(
        1, "price", pa.array([1] * 10, pa.int64())
    ))  # fmt: skip
    report = load(spark, half, address=address, map=name, overwrite=True)
    assert (report.rows, report.created) == (10, False)
    assert client.map(name).size() == 10


def test_rejected_rows_are_written_aside(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{i},{'x' if i % 100 == 5 else i}" for i in range(2000)]
    path.write_text("k,v\n" + "\n".join(lines) + "\n,7\n1,2,3\n")
    report = load(
        spark, path, address=address, map=name, key=["k"], types={"v": sql.INTEGER},
        rejects=tmp_path / "bad", split_size=3000,
    )  # fmt: skip
    assert (report.rows, report.rejected) == (1980, 22)
    assert report.reasons['column v: invalid input syntax for type integer: "x"'] == 20
    written = [
        json.loads(line) for file in report.rejects for line in Path(file).read_text().splitlines()
    ]
    assert len(written) == 22
    assert {"file", "offset", "row", "reason", "record"} == set(written[0])
    assert sorted(p.name for p in (tmp_path / "bad").iterdir()) == sorted(
        Path(file).name for file in report.rejects
    )
    assert client.map(name).size() == 1980


def test_nothing_is_left_when_a_load_fails(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path
) -> None:
    path = save(tmp_path, "parquet", TABLE.append_column("twice", pa.array([7] * 5000)))
    with pytest.raises(UniqueViolation, match="7") as caught:
        load(spark, path, address=address, map=name, key=["twice"])
    assert "more than once" in caught.value.hint
    with pytest.raises(TypeMismatch, match=r"column name of map .* BIGINT, found VARCHAR"):
        load(spark, path, address=address, map=name, key=["k"], types={"name": sql.BIGINT})
    path = save(tmp_path, "csv")
    with pytest.raises(InputError, match="all 5000 rows were rejected") as refused:
        load(spark, path, address=address, map=name, key=["name"], types={"name": sql.BIGINT})
    assert refused.value.detail == "key column name is NULL"
    with pytest.raises(UndefinedMap):
        client.describe(name)


def test_wrong_before_any_task(
    spark: Any, client: Any, address: str, name: str, tmp_path: Path
) -> None:
    path = save(tmp_path, "parquet")
    with pytest.raises(InvalidDefinition, match="no key is named"):
        load(spark, path, address=address, map=name)
    with pytest.raises(UndefinedColumn, match="key column nix"):
        load(spark, path, address=address, map=name, key=["nix"])
    with pytest.raises(InputError, match="no such file"):
        load(spark, tmp_path / "gone", address=address, map=name, key=["k"])
    client.sql(f"CREATE TABLE {name} (k BIGINT PRIMARY KEY, name BYTEA, price DOUBLE PRECISION)")
    with pytest.raises(
        TypeMismatch, match=f"column name of map {name}: expected BYTEA, found VARCHAR"
    ):
        load(spark, path, address=address, map=name)
    with pytest.raises(InvalidDefinition, match="exists with key"):
        load(spark, path, address=address, map=name, key=["name"])


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "remuda.cli.main", "load", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=280)


def test_command(client: Any, address: str, name: str, tmp_path: Path) -> None:
    path = save(tmp_path, "csv")
    with path.open("a") as file:
        file.write("bad,x,1\n")
    first = address.split(",", maxsplit=1)[0]
    result = command(
        str(path), "--map", name, "--key", "k", "--connect", first,
        "--types", "k:BIGINT,price:DECIMAL(9,2)", "--rejects", str(tmp_path / "bad"),
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    assert f"5,000 rows loaded into {name} (made)" in result.stdout
    assert "1 row rejected" in result.stdout
    assert "Traceback" not in result.stderr
    assert client.map(name).size() == 5000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.csv", "--map", "m"], "no such file"),
        (["{file}", "--map", "m", "--types", "k"], "is not COLUMN:TYPE"),
        (["{file}", "--map", "m", "--types", "k:NUMBR"], "numbr"),
        (["{file}", "--map", "m", "--connect", "127.0.0.1:1"], "127.0.0.1:1"),
        (["{file}", "--map", "m", "--parallelism", "0"], "at least 1"),
    ],
)
def test_command_errors(tmp_path: Path, arguments: list[str], message: str) -> None:
    path = save(tmp_path, "csv")
    result = command(*(argument.format(file=path) for argument in arguments))
    assert result.returncode == 1
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_rejected_rows_that_cannot_be_written(tmp_path: Path) -> None:
    """The task fails with an error that says so, and is ours after Spark has passed it on."""
    occupied = tmp_path / "file"
    occupied.write_text("")
    aside = RejectFile(str(occupied / "rejects"), 0, "0:0", Split("a.csv", "csv", 0, 1, 1))
    piece = Piece(
        pa.record_batch([pa.array([], pa.int64())], names=["k"]), [Rejected(1, "no number", {})]
    )
    with pytest.raises(InputError, match=f"cannot be written to {occupied}"):
        aside.add(piece)
    with pytest.raises(DiskFull, match="No space left"), writing_rejects(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_master_that_is_none(address: str, name: str, tmp_path: Path) -> None:
    path = save(tmp_path, "csv")
    first = address.split(",", maxsplit=1)[0]
    result = command(
        str(path), "--map", name, "--key", "k", "--connect", first, "--master", "nonsense"
    )
    assert result.returncode == 1
    assert "Spark does not start with the master nonsense" in result.stderr
    assert "Traceback" not in result.stderr
    assert "bug" not in result.stderr
