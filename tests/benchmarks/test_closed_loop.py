"""The clients of benchmarks: an answer counts in the round that asked for it."""

from __future__ import annotations

import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from closed_loop import Clients, Done


def _clients() -> tuple[Clients, list[Connection]]:
    """Two processes, whose part is played here."""
    pairs = [Pipe() for _ in range(2)]
    return Clients([ours for ours, _ in pairs]), [theirs for _, theirs in pairs]


def _took(seconds: float) -> Done:
    return Done([seconds], 0, seconds)


def test_a_failed_round_leaves_no_answer_for_the_next_one() -> None:
    clients, (first, second) = _clients()
    first.send((1, "ValueError: no"))
    second.send((1, _took(1.0)))
    with pytest.raises(RuntimeError, match="ValueError: no"):
        clients.run("get", 2, 0.1)
    first.send((2, _took(2.0)))
    second.send((2, _took(3.0)))
    assert clients.run("get", 2, 0.1).times == [2.0, 3.0]
    assert [first.recv()[0], first.recv()[0]] == [1, 2]


def test_an_answer_to_an_interrupted_round_is_dropped() -> None:
    clients, (first, _) = _clients()
    first.send((0, _took(9.0)))
    first.send((1, _took(4.0)))
    assert clients.run("get", 1, 0.1).times == [4.0]
