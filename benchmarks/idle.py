"""Members with nothing to do: ``./run bench idle``.

Three member processes hold maps that nobody uses. Shown: their processor time and the voluntary
switches of all their threads per second, as the kernel counts them. ``./run bench calls`` counts
the Python calls of the same, which do not depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import remuda

SETTLED = 12.0
"""Seconds until nothing that was written is young any more: versions are kept for ten."""
MAPS = 4


def _used(pid: int) -> tuple[float, int]:
    """Seconds of processor time of a process, and voluntary switches of its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks, switches = int(fields[11]) + int(fields[12]), 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for line in (thread / "status").read_text(encoding="ascii").splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                switches += int(line.split()[1])
    return ticks / os.sysconf("SC_CLK_TCK"), switches


def processes(seconds: float) -> tuple[float, float]:
    """Processor time and switches of three idle members, both per second."""
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        for number in range(MAPS):
            client.map(f"m{number}").put_all({key: {"v": key} for key in range(1000)})
        time.sleep(SETTLED)
        before = [_used(pid) for pid in cluster.pids]
        time.sleep(seconds)
        pairs = list(zip(before, [_used(pid) for pid in cluster.pids], strict=True))
    used = sum(after[0] - before[0] for before, after in pairs)
    switches = sum(after[1] - before[1] for before, after in pairs)
    return used / seconds, switches / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    used, switches = processes(parser.parse_args().seconds)
    print(f"{used * 1e3:.1f} ms of processor time and {switches:.0f} switches a second")


if __name__ == "__main__":
    main()
