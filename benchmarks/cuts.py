"""What a cut costs a cluster that has nothing to do: messages and bytes between its members.

``./run bench cuts``. Clusters of several sizes, of member processes that keep logs. The kernel
counts what every connection between two members has sent (``ss -ti``): data segments, of which a
small message is one, and bytes. A window without cuts (heartbeats, clocks) takes turns with one of
the same length with ``CUTS`` cuts (``CREATE SNAPSHOT ... INCREMENT``); the difference of medians is
what the cuts have cost. It is O(members) when a cut costs about as much for each further member.
"""

from __future__ import annotations

import argparse
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import remuda

CUTS = 5
WINDOW = 4.0
SETTLE = 2.0
SOCKET = re.compile(r"^\d+\s+\d+\s+(\S+)\s+(\S+)\s+users:\(\(.*?pid=(\d+),")


@dataclass(frozen=True)
class Sent:
    segments: float
    sent: float
    """Bytes."""

    def __sub__(self, other: Sent) -> Sent:
        return Sent(self.segments - other.segments, self.sent - other.sent)


def between(pids: tuple[int, ...]) -> Sent:
    """All that members have sent to members since their connections were made."""
    command = ["ss", "-tinHpO", "state", "established"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    lines = {}
    for line in text.splitlines():
        found = SOCKET.match(line)
        if found is not None and int(found[3]) in pids:
            lines[found[1], found[2]] = line
    own = [line for (here, there), line in lines.items() if (there, here) in lines]
    return Sent(sum(_value("data_segs_out", line) for line in own),
                sum(_value("bytes_sent", line) for line in own))  # fmt: skip


def _value(name: str, line: str) -> int:
    found = re.search(rf"\b{name}:(\d+)", line)
    return 0 if found is None else int(found[1])  # the kernel leaves out what is zero


def measure(members: int, rounds: int) -> tuple[Sent, Sent, float]:
    """Of one cut; of a second without one; the milliseconds of a cut."""
    with tempfile.TemporaryDirectory() as place:
        settings = {"snapshot_store": f"{place}/store", "data_dir": f"{place}/data"}
        with remuda.start(members, settings=settings) as cluster, cluster.connect() as client:
            client.map("entries").put_all({key: {"v": key} for key in range(1000)})
            client.snapshots.create("cuts")
            time.sleep(SETTLE)
            took: list[float] = []

            def window(cuts: int) -> Sent:
                before, end = between(cluster.pids), time.perf_counter() + WINDOW
                for _ in range(cuts):
                    began = time.perf_counter()
                    made = client.snapshots.create("cuts", increment=True)
                    took.append(time.perf_counter() - began)
                    assert made.kind == "increment", made
                time.sleep(max(end - time.perf_counter(), 0.0))
                return between(cluster.pids) - before

            turns = [(window(0), window(CUTS)) for _ in range(rounds)]
    idle, busy = (
        Sent(
            statistics.median(turn[place].segments for turn in turns),
            statistics.median(turn[place].sent for turn in turns),
        )
        for place in (0, 1)
    )
    more = busy - idle
    each = Sent(more.segments / CUTS, more.sent / CUTS)
    return each, Sent(idle.segments / WINDOW, idle.sent / WINDOW), statistics.median(took) * 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--members", type=int, nargs="+", default=[2, 3, 5])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("ss") is None:
        print("(ss of iproute2 is not installed: not measured)")
        return 0
    print("| members | messages of a cut | bytes of a cut | of each, without the coordinator"
          " | ms | idle: messages/s | bytes/s |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for members in options.members:
        cut, idle, took = measure(members, options.rounds)
        others = max(members - 1, 1)
        each = f"{cut.segments / others:.1f}, {cut.sent / others:,.0f} bytes"
        print(
            f"| {members} | {cut.segments:.1f} | {cut.sent:,.0f} | {each} | {took:.0f}"
            f" | {idle.segments:.1f} | {idle.sent:,.0f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
