"""Splits cover every record exactly once."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.errors import InputError
from remuda.spark.loading import splits
from remuda.spark.loading.splits import Split, file_format, find_files, plan_splits, record_ends

cells = st.text(alphabet='ab"\n,', max_size=6)


def csv_line(values: list[str]) -> bytes:
    quoted = ['"' + value.replace('"', '""') + '"' for value in values]
    return (",".join(quoted) + "\n").encode()


@given(st.lists(st.lists(cells, min_size=1, max_size=3), max_size=40), st.integers(1, 30))
def test_csv_is_cut_between_records(rows: list[list[str]], size: int) -> None:
    lines = [csv_line(row) for row in rows]
    data = b"".join(lines)
    boundaries = {0}
    for line in lines:
        boundaries.add(max(boundaries) + len(line))
    ends = record_ends(data, size, quotes=True)
    assert ends[-1] == len(data)
    assert ends == sorted(set(ends))
    assert set(ends) <= boundaries


@given(st.lists(st.binary(max_size=9).map(lambda b: b.replace(b"\n", b"") + b"\n")))
def test_lines_are_cut_between_lines(lines: list[bytes]) -> None:
    data = b"".join(lines)
    start = 0
    for end in record_ends(data, 5, quotes=False):
        assert end == len(data) or data[end - 1 : end] == b"\n"
        start = end
    assert start == len(data)


def test_scan_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(csv_line([str(i), "x\ny" * (i % 5), '"']) for i in range(400))
    whole = record_ends(data, 64, quotes=True)
    monkeypatch.setattr(splits, "SCAN_SIZE", 37)
    assert record_ends(data, 64, quotes=True) == whole
    assert len(whole) > 20


def test_odd_quotes_are_not_cut() -> None:
    data = b'a,5"\n' * 9
    assert record_ends(data, 5, quotes=True) == [len(data)]


def test_parquet_by_row_groups(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"a": list(range(1000))}), path, row_group_size=100)
    found = plan_splits([path], None, 2, split_size=1)
    assert [(s.start, s.stop, s.rows, s.first_row) for s in found][:2] == [
        (0, 1, 100, 0),
        (1, 2, 100, 100),
    ]
    assert sum(s.rows or 0 for s in found) == 1000
    assert len(plan_splits([path], None, 2)) == 1


def test_arrow_files_and_streams(tmp_path: Path) -> None:
    table = pa.table({"a": list(range(50))})
    with (
        pa.OSFile(str(tmp_path / "f.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as w,
    ):
        w.write_table(table, max_chunksize=10)
    with (
        pa.OSFile(str(tmp_path / "s.arrows"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as w,
    ):
        w.write_table(table, max_chunksize=10)
    found = plan_splits([str(tmp_path / "f.arrow")], None, 2, split_size=300)
    assert found[0].start == 0
    assert found[-1].stop == 5
    assert all(a.stop == b.start for a, b in pairwise(found))
    assert [s.stop for s in plan_splits([str(tmp_path / "s.arrows")], None, 2)] == [None]


def test_compressed_text_stays_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"a\n1\n2\n"))
    assert plan_splits([str(path)], None, 8, split_size=1) == [
        Split(str(path), "csv", 0, None, path.stat().st_size)
    ]


def test_find_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS", ".a.csv.crc", "sub/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x\n")
    names = [Path(p).name for p in find_files(tmp_path)]
    assert names == ["a.csv", "b.csv", "c.csv"]
    assert len(find_files(str(tmp_path / "*.csv"))) == 2
    with pytest.raises(InputError, match="no such file"):
        find_files(tmp_path / "missing.csv")
    with pytest.raises(InputError, match="no files"):
        find_files(str(tmp_path / "*.parquet"))


def test_formats() -> None:
    assert file_format("/a/b.CSV.GZ") == "csv"
    assert file_format("x.feather") == "arrow"
    with pytest.raises(InputError, match="unknown"):
        file_format("x.xlsx")


def test_not_what_it_says(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    path.write_text("no parquet")
    with pytest.raises(InputError, match="cannot be read as parquet"):
        plan_splits([str(path)], None, 2)
