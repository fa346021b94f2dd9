"""A scrape of /metrics: processor time of the member that answers it.

``python benchmarks/scrape.py [maps]``, 20 unless told. The member's own counter is read before and
after many scrapes, and what it takes idle in that time is subtracted.
"""

from __future__ import annotations

import re
import sys
import time
import urllib.request

import remuda

SCRAPES = 200
IDLE = 5.0
INTERVAL = 5.0
"""Seconds between two scrapes of a usual Prometheus."""
_PROCESSOR = re.compile(rb"^process_cpu_seconds_total (\S+)", re.MULTILINE)


def page(address: str) -> bytes:
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        content: bytes = answer.read()
        return content


def _processor(address: str) -> float:
    found = _PROCESSOR.search(page(address))
    assert found is not None
    return float(found[1])


def cost(address: str) -> str:
    """Of a scrape of an idle member, as a line for people."""
    before = _processor(address)
    time.sleep(IDLE)
    idle = (_processor(address) - before) / IDLE
    began, before = time.monotonic(), _processor(address)
    for _ in range(SCRAPES):
        page(address)
    used = _processor(address) - before - idle * (time.monotonic() - began)
    each = used / SCRAPES
    return (
        f"{len(page(address)):,} bytes, {each * 1e3:.1f} ms a scrape, {each / INTERVAL:.3%} of a "
        f"core with one every {INTERVAL:g} s; idle {idle:.1%} of a core"
    )


def main() -> None:
    maps = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with remuda.start(members=3) as cluster, cluster.connect() as client:
        for number in range(maps):
            client.sql(f"CREATE TABLE m{number} (k BIGINT PRIMARY KEY)").close()
            client.sql(f"INSERT INTO m{number} SELECT g FROM generate_series(1, 100) g(g)").close()
        print(f"{maps} maps: {cost(cluster.members[0].metrics)}")


if __name__ == "__main__":
    main()
