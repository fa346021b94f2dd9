"""LookupJoinOperator over rows that are found in a dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from remuda.datatypes import sql
from remuda.execution.batch import Batch
from remuda.execution.contract import Operator, Progress
from remuda.execution.operators import lookup_join
from remuda.execution.operators.lookup_join import Find, LookupJoinOperator
from remuda.plan.logical import JoinKind

INNER = {key: key * 10 for key in range(0, 100, 2)}
PIECES = ([1, 2, None, 4, 2, 300], [], [7, 8])


class Source(Operator):
    def __init__(self, pieces: Sequence[Sequence[int | None]]) -> None:
        self._batches = [Batch([pa.array(list(p), pa.int64())], len(p)) for p in pieces]
        self._next = 0

    def advance(self) -> Progress:
        self._next += 1
        done = self._next == len(self._batches)
        return Progress.FETCHED_DONE if done else Progress.FETCHED

    def current_batch(self) -> Batch:
        return self._batches[self._next - 1]


def finder(matches: int) -> Find:
    """Each key of ``INNER`` has so many rows."""

    def find(columns: Sequence[pa.Array]) -> tuple[pa.RecordBatch, np.ndarray] | None:
        (keys,) = (column.to_pylist() for column in columns)
        assert None not in keys
        hits = [(n, key) for n, key in enumerate(keys) if key in INNER for _ in range(matches)]
        if not hits:
            return None
        hits.reverse()  # in any order
        arrays = [pa.array([key for _, key in hits]), pa.array([INNER[key] for _, key in hits])]
        return pa.RecordBatch.from_arrays(arrays, names=["a", "b"]), np.array([n for n, _ in hits])

    return find


def joined(
    kind: JoinKind, pieces: Sequence[Sequence[int | None]] = PIECES, matches: int = 2
) -> list[tuple[object, ...]]:
    one_sided = kind in (JoinKind.SEMI, JoinKind.ANTI)
    operator = LookupJoinOperator(
        kind=kind,
        left=Source(pieces),
        keys=[0],
        key_types=[sql.BIGINT],
        inner_types=[pa.int64(), pa.int64()],
        find=finder(matches),
        ready=lambda: True,
        residual=None,
        output=[0] if one_sided else [0, 2],
    )
    found: list[tuple[object, ...]] = []
    while True:
        progress = operator.advance()
        batch = operator.current_batch()
        if batch.rows:
            found += zip(*[column.to_pylist() for column in batch.columns()], strict=True)
        if progress is Progress.FETCHED_DONE:
            operator.close()
            return found


def test_each_kind() -> None:
    pairs = [(2, 20), (2, 20), (4, 40), (4, 40), (2, 20), (2, 20), (8, 80), (8, 80)]
    assert joined(JoinKind.INNER) == pairs
    alone: list[tuple[object, ...]] = [(1, None), (None, None), (300, None), (7, None)]
    assert sorted(joined(JoinKind.LEFT), key=repr) == sorted([*pairs, *alone], key=repr)
    assert joined(JoinKind.SEMI) == [(2,), (4,), (2,), (8,)]
    assert joined(JoinKind.ANTI) == [(1,), (None,), (300,), (7,)]


@pytest.mark.parametrize("kind", [JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI])
def test_many_matches_make_small_pieces(kind: JoinKind) -> None:
    pieces = [[key % 100 for key in range(500)]]
    expected = sorted(joined(kind, pieces, matches=5), key=repr)
    with (
        mock.patch.object(lookup_join, "ROWS_MAX", 64),
        mock.patch.object(lookup_join, "BATCH_ROWS", 20),
    ):
        assert sorted(joined(kind, pieces, matches=5), key=repr) == expected


def test_it_waits_for_the_map() -> None:
    operator = LookupJoinOperator(
        kind=JoinKind.INNER,
        left=Source(PIECES),
        keys=[0],
        key_types=[sql.BIGINT],
        inner_types=[pa.int64()],
        find=finder(1),
        ready=lambda: False,
        residual=None,
        output=[0],
    )
    assert operator.advance() is Progress.WAIT
