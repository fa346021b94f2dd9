"""Real members under faults, while clients work: see ``rounds``.

A failure prints the seed, what was done when, and the shortest evidence.
``python tests/faults/rounds.py --help`` runs a round alone.
"""

from __future__ import annotations

import pytest
from namespaces import Namespaces
from rounds import Round

pytestmark = pytest.mark.cluster


def judge(made: Round) -> None:
    made.run()
    if made.found:
        pytest.fail(made.report(), pytrace=False)


SMALL = ("register", "register", "append", "bump", "number")
"""Few maps are repaired sooner."""


def test_without_backups_a_loss_is_told_and_nothing_hangs() -> None:
    judge(Round(1, backups=0, works=SMALL, faults=["kill"], most_faults=1, replaces=False))


def test_a_member_that_is_killed_takes_nothing_with_it() -> None:
    judge(Round(2, works=SMALL, faults=["kill"], most_faults=1, replaces=False))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("members", "backups", "faults"),
    [
        (3, 1, ["kill"]),
        (3, 1, ["freeze"]),
        (3, 1, ["add", "stop"]),
        (4, 2, ["kill", "freeze", "add", "stop"]),
        (3, 0, ["kill"]),
    ],
)
def test_long_rounds(seed: int, members: int, backups: int, faults: list[str]) -> None:
    judge(Round(seed=seed, members=members, backups=backups, faults=faults, seconds=60.0))


@pytest.mark.soak
@pytest.mark.timeout(5400)
@pytest.mark.parametrize(("seed", "backups"), [(0, 1), (1, 2)])
def test_no_number_is_given_out_twice_while_a_hundred_members_are_killed(
    seed: int, backups: int
) -> None:
    """One after the other: each time the owners of sequences may be gone, with their backups
    left."""
    made = Round(
        seed=seed,
        members=backups + 2,
        backups=backups,
        faults=["kill"],
        works=("number",) * 3,
        quiet=0.2,
        most_faults=100,
        seconds=5000.0,
    )
    judge(made)
    kills = sum(" kill " in line for line in made.timeline)
    assert kills == 100
    assert made.journal.done["number nextval"] > 1000, made.journal.done


needs_networks = pytest.mark.skipif(
    not Namespaces.available(),
    reason="no right to make network namespaces (they need root, and the command ip)",
)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@needs_networks
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("members", "fault"), [(3, "split"), (5, "one-way"), (5, "flap")])
def test_networks_that_fail(seed: int, members: int, fault: str) -> None:
    judge(Round(seed=seed, members=members, faults=[fault], seconds=60.0))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@needs_networks
@pytest.mark.parametrize("seed", range(3))
def test_a_member_whose_connections_are_reset_for_a_moment_stays(seed: int) -> None:
    """With the heartbeats of a production cluster, whose lease is 3 s."""
    beats = {"heartbeat_interval": 1.0, "heartbeat_timeout": 10.0}
    judge(Round(seed=seed, members=3, faults=["reset"], seconds=60.0, **beats))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@needs_networks
@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("seconds", [3.8, 9.0])
@pytest.mark.parametrize("seed", range(3))
def test_two_of_five_that_were_cut_off_give_back_what_only_they_have(
    seed: int, seconds: float, logs: bool
) -> None:
    """Longer than it takes to be voted out. Nothing is lost, and the donors end. ``logs``: members
    have logs, and speak TLS."""
    made = Round(
        seed=seed,
        members=5,
        faults=["split"],
        seconds=60.0,
        split_seconds=[seconds],
        durable=logs,
        protected=logs,
    )
    judge(made)
    assert made.donated, "no partition was unreachable: the split was too short"
