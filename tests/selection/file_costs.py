"""Seconds that each test file takes: long files start first, and a near run stays within seconds.

``costs.txt`` holds the files of a second and more. ``./run test --costs`` writes it anew from the
run; a file that is missing there counts as a short one, so nobody has to keep the list complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

COSTS = Path(__file__).with_name("costs.txt")
SHORT = 0.3
"""Seconds of a file that the list does not name."""
LISTED_FROM = 1.0


def file_of(nodeid: str) -> str:
    return nodeid.split("::", 1)[0]


def read_costs() -> dict[str, float]:
    lines = (line.split() for line in COSTS.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def write_costs(seconds: Mapping[str, float]) -> None:
    """Replace the costs of the files that have run; the others keep theirs."""
    root = COSTS.parents[2]
    costs = {name: cost for name, cost in read_costs().items() if (root / name).exists()}
    costs |= seconds
    listed = sorted(
        ((cost, name) for name, cost in costs.items() if cost >= LISTED_FROM), reverse=True
    )
    COSTS.write_text("".join(f"{cost:7.1f} {name}\n" for cost, name in listed), encoding="utf-8")
