"""Rolling upgrades of a cluster of processes from one release to another and back, under the mixed
loads of ``rolling``, ``pooled`` and ``counted``. No request may fail."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from counted import Counted
from pooled import Pooled
from releases import Release
from rolling import Fleet, Load, Restart, report

import remuda

SETTINGS: Final = {"leave_timeout": 30, "data_dir": "data", "return_within": 120}
RELEASES: Final = "SELECT DISTINCT release, cluster_version FROM sys.members ORDER BY 1"
CLIENT: Final = Path(__file__).with_name("client_of_a_release.py")


class Upgrades:
    """Of one fleet under load."""

    def __init__(self, fleet: Fleet, load: Load, before: Release, after: Release) -> None:
        self.fleet = fleet
        self.load = load
        self.before = before
        self.after = after
        self.restarts: list[Restart] = []

    def roll(self, release: Release, places: Iterator[int] | range | None = None) -> None:
        """Restart the members with ``release``, one after the other."""
        for place in range(len(self.fleet.addresses)) if places is None else places:
            found = self.fleet.restart(place, release.member)
            self.restarts.append(found)
            assert found.status == 0, f"member {place + 1} ended with status {found.status}"

    def releases(self) -> list[tuple[str, int]]:
        """Of the members, each with the version of the cluster."""
        with self.load.connect() as client:
            return [tuple(row) for row in client.sql(RELEASES).fetchall()]

    def check(self) -> None:
        """Raises AssertionError with all failures of the load, if any."""
        assert not self.load.failures, report(self.load, self.restarts)


@contextmanager
def upgrading(folder: Path, members: int, before: Release, after: Release) -> Iterator[Upgrades]:
    """A fleet of the release ``before`` under load. The load ends, and is checked, at the end."""
    with (
        Fleet(folder, members, SETTINGS, before.member) as fleet,
        under_load(fleet, before, after) as found,
    ):
        yield found


@contextmanager
def under_load(
    fleet: Fleet, before: Release, after: Release, pause: float = 0.0
) -> Iterator[Upgrades]:
    """``pause``: seconds, at least, between two requests of a worker."""
    load = Load(fleet.addresses, pause)
    load.begin()
    try:
        with Pooled(load, fleet.doors), Counted(load, fleet.doors):
            found = Upgrades(fleet, load, before, after)
            yield found
    finally:
        load.end()
    found.check()


def use(release: Release, addresses: list[str]) -> str:
    """Put, get, ask, commit and follow changes with the clients of a release, and write and read as
    Spark's processes do (``client_of_a_release``); its version."""
    done = subprocess.run(
        [*release.client, str(CLIENT), *addresses],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **release.member.environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def connected(addresses: list[str]) -> remuda.Client:
    return remuda.connect(addresses, request_timeout=60)
