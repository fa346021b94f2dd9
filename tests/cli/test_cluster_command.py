"""``remuda cluster accept-loss``: it asks before it does anything, and says what it has done."""

from __future__ import annotations

from collections import deque

import pytest

from remuda.cli import cluster_command
from remuda.cli.main import main


class Answer:
    def __init__(self, rows, rowcount=0):
        self.rows, self.rowcount = rows, rowcount

    def fetchall(self):
        return self.rows


class Cluster:
    """Answers in order; what was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = deque(answers), []

    def sql(self, text):
        self.asked.append(text)
        return self.answers.popleft()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize(
    ("words", "lost", "status", "said"),
    [
        ((), 0, 0, "no partition is lost"),
        (("--yes",), 0, 0, "no partition is lost"),
        ((), 90, 1, "90 of 271 partitions are lost"),
        (("--yes",), 90, 0, "90 of 271 partitions have begun again without entries"),
    ],
)
def test_accept_loss(monkeypatch, capsys, words, lost, status, said):
    cluster = Cluster(Answer([(lost, 0, None, 271)]), Answer([], lost))
    monkeypatch.setattr(cluster_command, "client_of", lambda *_: cluster)
    assert main(["cluster", "accept-loss", *words]) == status
    printed = capsys.readouterr()
    assert said in printed.out + printed.err
    assert (cluster_command.ACCEPT in cluster.asked) == (lost > 0 and bool(words))
