"""Rolling restarts under mixed load: no request fails (see ``rolling``)."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from rolling import Fleet, Load, Restart, report

pytestmark = pytest.mark.cluster

LEAVE_TIMEOUT = 30
"""Seconds; the transactions of the load take far less than a quarter of it."""


def rolling(folder: Path, members: int, restarts: int, pause: float, **settings: object) -> str:
    """Restart one member after the other. The figures; fails if any request has failed."""
    found: list[Restart] = []
    with Fleet(folder, members, {"leave_timeout": LEAVE_TIMEOUT, **settings}) as fleet:
        load = Load(fleet.addresses)
        load.begin()
        for place in range(restarts):
            time.sleep(pause)
            found.append(fleet.restart(place % members))
        load.end()
    text = report(load, found)
    assert not load.failures, text
    assert not any(one.status for one in found), text
    return text


def test_a_restart_of_one_of_three_members_fails_no_request(tmp_path: Path) -> None:
    rolling(tmp_path, members=3, restarts=1, pause=0.1, heartbeat_interval=0.25)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("members", [3, 5])
def test_twenty_rolling_restarts(
    tmp_path: Path, members: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """Prints what each restart took, and the bytes that were moved for it."""
    text = rolling(tmp_path, members, restarts=20, pause=1.0)
    with capsys.disabled():
        print(f"\n{members} members, 20 restarts\n{text}")


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("members", [3, 5])
def test_members_that_return_fail_no_request(
    tmp_path: Path, members: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """With folders: nothing is copied elsewhere when they leave, and little when they return."""
    text = rolling(tmp_path, members, restarts=6, pause=1.0, data_dir="data", return_within=60)
    with capsys.disabled():
        print(f"\n{members} members that return, 6 restarts\n{text}")


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_that_leave_at_once_fail_no_request(tmp_path: Path) -> None:
    with Fleet(tmp_path, 5, {"leave_timeout": LEAVE_TIMEOUT}) as fleet:
        load = Load(fleet.addresses)
        load.begin()
        for pair in ([0, 1], [3, 4], [2, 0]):
            time.sleep(1.0)
            assert fleet.leave(pair) == [0, 0]
            for place in pair:
                fleet.start(place, through=next(p for p in range(5) if p not in pair))
            fleet.until_complete()
        load.end()
    assert not load.failures, report(load, [])


@pytest.mark.soak
def test_members_that_all_leave_just_end(tmp_path: Path) -> None:
    """Nobody waits for a handover that is impossible."""
    with Fleet(tmp_path, 3, {"leave_timeout": LEAVE_TIMEOUT}) as fleet:
        began = time.monotonic()
        assert fleet.leave([0, 1, 2]) == [0, 0, 0]
        assert time.monotonic() - began < LEAVE_TIMEOUT / 2
