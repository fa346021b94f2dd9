"""Restored rows go to their owners in slices that fit into frames."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.snapshot.rows import STAGED_ROWS, STAGED_SIZE, RestoredRows

ENDS = np.arange(STAGED_ROWS + 7, dtype=np.int64)


def test_a_chunk_is_one_slice() -> None:
    rows = RestoredRows(pa.record_batch({"k": ENDS[:STAGED_ROWS]}))
    assert list(rows.slices()) == [rows]


def test_more_rows_are_cut_and_keep_their_ends() -> None:
    first, second = RestoredRows(pa.record_batch({"k": ENDS}), ENDS).slices()
    assert (first.rows, second.rows) == (STAGED_ROWS, 7)
    assert second.ends is not None
    assert second.batch.column(0).to_pylist() == second.ends.tolist()


def test_wide_rows_are_cut_by_their_size() -> None:
    texts = ["x" * 20_000] * 1_000 + ["y" * 20_000]
    found = list(RestoredRows(pa.record_batch({"t": texts})).slices())
    assert len(found) == 2
    assert sum(each.rows for each in found) == len(texts)
    assert all(each.batch.nbytes <= STAGED_SIZE for each in found)


def test_no_rows() -> None:
    [none] = RestoredRows(pa.record_batch({"k": ENDS[:0]})).slices()
    assert not none.rows
