"""The counts of the operating system for this process, under the names that every exporter uses."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from remuda.member.metrics.families import Family, counter, gauge

_STARTED = time.time()


def families() -> Iterator[Family]:
    """Memory and files are read from /proc, and left out where there is none."""
    used = os.times()
    yield counter(
        "process_cpu_seconds_total", "Processor time in seconds.", used.user + used.system
    )
    yield gauge("process_start_time_seconds", "Start of the process since 1970.", _STARTED)
    statm, descriptors = Path("/proc/self/statm"), Path("/proc/self/fd")
    if statm.exists():
        size, resident = (int(word) for word in statm.read_text().split()[:2])
        page = os.sysconf("SC_PAGESIZE")
        yield gauge("process_virtual_memory_bytes", "Virtual memory.", size * page)
        yield gauge("process_resident_memory_bytes", "Resident memory.", resident * page)
    if descriptors.is_dir():
        count = sum(1 for _ in descriptors.iterdir())
        yield gauge("process_open_fds", "Open file descriptors.", count)
