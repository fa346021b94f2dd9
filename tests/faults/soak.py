"""``./run soak faults``: rounds of faults on real members, one kind after the other.

    ./run soak faults [--rounds N] [--seconds S] [--seed N] [--only kill,split]

What this machine cannot do is skipped, with the reason. The exit status is 1 when anything was
found. A round that found something prints its seed, what was done when, and the evidence.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "transaction"))

import sparking
from namespaces import Namespaces
from rounds import WORKS, Round


def _anywhere() -> str:
    return ""


def _networks() -> str:
    if Namespaces.available():
        return ""
    return "no right to make network namespaces here (they need root, and the command ip)"


@dataclass(frozen=True)
class Kind:
    """``settings`` are those of a ``Round``; ``missing`` tells why it cannot run here."""

    what: str
    settings: dict[str, Any]
    missing: Callable[[], str] = _anywhere
    seconds_min: float = 0.0


_CHANGES = ["kill", "add", "stop", "freeze"]
KINDS = {
    "kill": Kind("one member after the other is killed", {"faults": ["kill"]}),
    "freeze": Kind("members stand still for up to their timeout and more", {"faults": ["freeze"]}),
    "leave": Kind("members join and leave", {"faults": ["add", "stop"]}),
    "all": Kind("all of these, two backups", {"faults": _CHANGES, "members": 4, "backups": 2}),
    "no-backups": Kind("members are killed, and rows with them", {"backups": 0}),
    "split": Kind("networks are split", {"faults": ["split"]}, _networks),
    "donors": Kind(
        "two of five members are cut off, and give back the partitions that only they have",
        {"faults": ["split"], "members": 5, "split_seconds": (3.8, 9.0)},
        _networks,
    ),
    "donors-logs": Kind(
        "the same, of members with logs that speak TLS",
        {
            "faults": ["split"],
            "members": 5,
            "split_seconds": (3.8, 9.0),
            "durable": True,
            "protected": True,
        },
        _networks,
    ),
    "one-way": Kind(
        "what one side of five members sends does not arrive",
        {"faults": ["one-way"], "members": 5},
        _networks,
    ),
    "flap": Kind(
        "a network is split and whole by turns, each for 0.5 s",
        {"faults": ["flap"], "members": 5},
        _networks,
    ),
    "reset": Kind(
        "the connections of a member are reset and refused for up to 0.5 s",
        {"faults": ["reset"], "heartbeat_interval": 1.0, "heartbeat_timeout": 10.0},
        _networks,
    ),
    "numbers": Kind(
        "sequences give out numbers while members are killed, 100 at most",
        {"faults": ["kill"], "works": ("number",) * 3, "most_faults": 100, "quiet": 0.2},
    ),
    "snapshots": Kind(
        "snapshots are made and restored while members come and go",
        {
            "faults": _CHANGES,
            "works": ("bank", "snapshot", "snapshot", "register", "register", "batch"),
            "durable": True,
        },
    ),
    "spark": Kind(
        "Spark jobs write and read while members come and go",
        {"faults": _CHANGES, "works": ("bank", "spark", "register")},
        sparking.missing,
        seconds_min=120.0,  # a job that meets a fault takes half a minute
    ),
}


def made(kind: str, seed: int, seconds: float, **more: Any) -> Round:
    settings: dict[str, Any] = {"works": WORKS, **KINDS[kind].settings, **more}
    return Round(seed=seed, seconds=max(seconds, KINDS[kind].seconds_min), **settings)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./run soak faults",
        description="Rounds of faults on real members while clients work.",
        epilog="kinds: " + "; ".join(f"{name}: {kind.what}" for name, kind in KINDS.items()),
    )
    parser.add_argument("--rounds", type=int, default=1, help="of each kind (1)")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="of each round (60; spark: 120 at least)"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--only", default=",".join(KINDS), help="kinds, with commas between them")
    given = parser.parse_args(arguments)
    chosen = [name for name in given.only.split(",") if name]
    for name in chosen:
        if name not in KINDS:
            parser.error(f"there is no kind of round {name!r}; there are {', '.join(KINDS)}")
    failed = 0
    for name in chosen:
        if reason := KINDS[name].missing():
            print(f"{name}: skipped: {reason}", flush=True)
            continue
        for seed in range(given.seed, given.seed + given.rounds):
            failed += bool(_played(name, seed, given.seconds))
    print(f"{failed} rounds with findings" if failed else "nothing was found", flush=True)
    return min(failed, 1)


def _played(name: str, seed: int, seconds: float) -> list[str]:
    """What was found."""
    played = made(name, seed, seconds).run()
    if played.found:
        print(f"{name}:\n{played.report()}", flush=True)
        return played.found
    journal = played.journal
    print(
        f"{name}: seed {seed}: {sum(journal.done.values())} requests done,"
        f" {sum(journal.errors.values())} failed as they may, {len(played.timeline)} lines of"
        f" faults, slowest request {journal.slowest[0]:.1f} s, longest outage"
        f" {journal.outage():.1f} s",
        flush=True,
    )
    print("  " + ", ".join(f"{n} {what}" for what, n in sorted(journal.done.items())), flush=True)
    return []


if __name__ == "__main__":
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _frame: sys.exit(128 + number))  # members end, too
    sys.exit(main(sys.argv[1:]))
