"""The order of hashes is that of a stable sort, however close they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from remuda.storage.chunks.hash_order import DIRECT_ROWS, hash_order

COUNT = 2 * DIRECT_ROWS + 3


def _spread(random: np.random.Generator) -> np.ndarray:
    return random.integers(0, 2**64, COUNT, dtype=np.uint64)


def _close(random: np.random.Generator) -> np.ndarray:
    """They differ in their lowest bits only, which the positions take the place of."""
    return np.uint64(2**63) + random.integers(0, 2**10, COUNT, dtype=np.uint64)


def _repeated(random: np.random.Generator) -> np.ndarray:
    return np.repeat(_spread(random), 3)[:COUNT]


def _one_pair(random: np.random.Generator) -> np.ndarray:
    hashes = _spread(random)
    hashes[100], hashes[5000] = 2**40 + 1, 2**40
    return hashes


def _equal(_random: np.random.Generator) -> np.ndarray:
    return np.full(COUNT, 2**64 - 1, dtype=np.uint64)


@pytest.mark.parametrize("made", [_spread, _close, _repeated, _one_pair, _equal])
def test_order_is_that_of_a_stable_sort(
    made: Callable[[np.random.Generator], np.ndarray],
) -> None:
    hashes = made(np.random.default_rng(5))
    before = hashes.copy()
    assert hash_order(hashes).tolist() == np.argsort(hashes, kind="stable").tolist()
    assert (hashes == before).all()


@pytest.mark.parametrize("count", [0, 1, 2, DIRECT_ROWS - 1, DIRECT_ROWS, DIRECT_ROWS + 1])
def test_any_number_of_hashes(count: int) -> None:
    hashes = np.random.default_rng(count).integers(0, 2**64, count, dtype=np.uint64)
    assert hash_order(hashes).tolist() == np.argsort(hashes, kind="stable").tolist()
