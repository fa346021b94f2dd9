"""Requests that fail in rolling upgrades, there and back: ``./run bench upgrade``.

Three member processes with folders, one backup, and the mixed load of ``tests/faults``: entries,
statements, transactions, scans, cursors, listeners by the Python client, psycopg's pool, and
increments that several kinds of clients count and a stream of changes follows. The members run the
release before, built from its commit; each in turn is restarted with the release after it, and
then, in the same way, with the release before. Shown for each upgrade: its seconds, and the
requests that were done and failed until then; at the end: the requests of each kind and the longest
one. An increment that was carried out twice, or not at all, ends the run with an error.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1] / "tests"
sys.path[:0] = [str(TESTS / "faults"), str(TESTS / "upgrade")]
from releases import after, before, missing  # noqa: E402
from upgrades import Upgrades, upgrading  # noqa: E402


def rolled(upgrades: Upgrades, number: int, rounds: int, *, back: bool) -> float:
    """Restart all members with the other release; the seconds."""
    began = time.monotonic()
    release = upgrades.before if back else upgrades.after
    upgrades.roll(release)
    seconds = time.monotonic() - began
    load = upgrades.load
    found = ", ".join(f"{name} in version {version}" for name, version in upgrades.releases())
    print(
        f"upgrade {number} of {rounds}{', back' if back else ''}: {seconds:.1f} s, {found}; "
        f"{sum(load.done.values())} requests, {len(load.failures)} failed",
        flush=True,
    )
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument(
        "--minutes", type=float, default=8.0, help="no further round begins after so many minutes"
    )
    given = parser.parse_args()
    if missing():
        sys.exit(missing())
    with tempfile.TemporaryDirectory(prefix="upgrade-") as name:
        folder = Path(name)
        old, new = before(folder / "before"), after()
        print(f"from {old.name} to {new.name} and back, {given.members} members", flush=True)
        with upgrading(folder, given.members, old, new) as upgrades:
            end = time.monotonic() + 60 * given.minutes
            seconds: list[float] = []
            for number in range(1, given.rounds + 1):
                if time.monotonic() > end:
                    print(f"{given.minutes:g} minutes are over: {number - 1} rounds", flush=True)
                    break
                ways = (False, True)
                seconds += [rolled(upgrades, number, given.rounds, back=back) for back in ways]
            load = upgrades.load
        for kind in sorted(load.done):
            print(f"{kind}: {load.done[kind]} requests, longest {load.longest[kind]:.2f} s")
        kind, slowest = max(load.longest.items(), key=lambda it: it[1])
        leaving = statistics.mean(one.leaving for one in upgrades.restarts)
        joining = statistics.mean(one.joining for one in upgrades.restarts)
        print(
            f"{len(seconds)} upgrades, {len(upgrades.restarts)} restarts: "
            f"{sum(load.done.values())} requests, {len(load.failures)} failed, longest "
            f"{slowest:.2f} s ({kind}); a member left in {leaving:.1f} s and served after "
            f"{joining:.1f} s; an upgrade took {statistics.mean(seconds):.1f} s"
        )


if __name__ == "__main__":
    main()
