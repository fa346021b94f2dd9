"""Runs benchmarks by name, each in a process of its own: ``./run bench [tpc point spark ...]``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NAMES = (
    "point",
    "tpc",
    "spark",
    "offload",
    "streams",
    "memory",
    "storage",
    "indexes",
    "operators",
    "rpc",
    "planning",
    "spill",
    "exchange",
    "failover",
    "grid",
    "transactions",
    "migration",
    "snapshot",
    "log",
)


def main() -> int:
    names = sys.argv[1:] or list(NAMES)
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    status = 0
    for name in names:
        print(f"\n## {name}\n", flush=True)
        status |= subprocess.run([sys.executable, str(HERE / f"{name}.py")], check=False).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
