"""Seconds that each test file takes: long files start first, and a near run stays within seconds.

``./run test --costs`` writes ``costs.txt`` anew from the run. Nobody has to keep the list complete:
a file that is missing there is new. It starts early, in case it is long, for a long file that
starts last keeps one process busy after the others have ended. A near run takes it for a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

COSTS = Path(__file__).with_name("costs.txt")
SHORT = 0.3
"""Seconds of a new file in a near run."""
LONG = 10.0
"""Seconds of a new file in the order of a run."""


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
    listed = sorted(((cost, name) for name, cost in costs.items()), reverse=True)
    COSTS.write_text("".join(f"{cost:7.1f} {name}\n" for cost, name in listed), encoding="utf-8")
