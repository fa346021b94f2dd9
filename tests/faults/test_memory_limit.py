"""Clients write until members refuse, by every kind of write. Members in a control group with a
memory limit: the kernel kills nobody. Members anywhere: none is ever larger than its limits and the
factor of stored bytes allow, as the kernel's own high-water mark says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import memory_loads
import pytest
import sparking
from processes import Processes

from remuda.storage.maps.stored_memory import PROCESS_SIZE, RESIDENT_FACTOR

LIMIT = 1200 * 2**20
ROOT = Path("/sys/fs/cgroup")
SCRIPT = Path(__file__).with_name("memory_loads.py")
STORED = 64 * 2**20
STATEMENTS = 64 * 2**20
ALLOWED = PROCESS_SIZE + STATEMENTS + int(RESIDENT_FACTOR * STORED)
"""Bytes that a member may have in memory, with these limits."""


@contextmanager
def memory_group(limit: int) -> Iterator[tuple[Path, Path, Path]]:
    """A control group with this limit, of version 2 or 1, the file that counts what the kernel has
    killed in it, and the group of this process. Skips the test where the machine allows none."""
    name = f"remuda_test_{os.getpid()}"
    for base, setting, counts in (
        (ROOT, "memory.max", "memory.events"),
        (ROOT / "memory", "memory.limit_in_bytes", "memory.oom_control"),
    ):
        group = base / name
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / setting).exists():
                (group / setting).write_text(str(limit), encoding="ascii")
                yield group, group / counts, _own_group(base)
                return
        finally:
            for _ in range(50):
                with suppress(OSError):
                    group.rmdir()
                    break
                time.sleep(0.1)  # until the last process in it is gone
    pytest.skip("control groups cannot be made here: that takes root and a writable file system")


def _own_group(base: Path) -> Path:
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers == ("" if base == ROOT else "memory"):
            return base / place.lstrip("/")
    return base


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_member_is_killed_while_clients_write_until_they_are_refused(tmp_path: Path) -> None:
    with memory_group(LIMIT) as (group, counts, outside):
        ran = subprocess.run(
            [sys.executable, str(SCRIPT), str(group), str(outside), str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=3000,
            check=False,
        )
        killed = dict(line.split() for line in counts.read_text(encoding="ascii").splitlines())
    assert ran.returncode == 0, ran.stderr
    assert int(killed.get("oom_kill", 0)) == 0
    assert_all_took_and_refused(json.loads(ran.stdout))


@contextmanager
def watched(cluster: Processes) -> Iterator[dict[int, int]]:
    """The highest resident memory of each member so far, of those that have left as well."""
    peaks: dict[int, int] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.05):
            for member in list(cluster.members):
                with suppress(OSError):  # it has ended
                    status = Path(f"/proc/{member.child.pid}/status").read_text(encoding="ascii")
                    for line in status.splitlines():
                        if line.startswith("VmHWM:"):
                            peaks[member.place] = int(line.split()[1]) * 1024

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_member_grows_beyond_its_limits_while_clients_write_until_they_are_refused(
    tmp_path: Path,
) -> None:
    """With Spark, where it is installed."""
    settings = {
        "backups": 1,
        "snapshot_store": str(tmp_path / "snapshots"),
        "storage_memory": STORED,
        "member_memory": STATEMENTS,
    }
    with (
        Processes(tmp_path, memory_loads.MEMBERS, settings) as cluster,
        watched(cluster) as peaks,
    ):
        larger: dict[str, list[int]] = {}
        found = memory_loads.run(
            cluster,
            spark=not sparking.missing(),
            after=lambda load: larger.update({load: list(peaks.values())}),
        )
    print(f"of {ALLOWED}: {peaks}; {found}; {larger}")
    assert len(peaks) == memory_loads.MEMBERS + 1
    assert max(peaks.values()) <= ALLOWED, larger
    assert_all_took_and_refused(found)


def assert_all_took_and_refused(found: dict[str, int]) -> None:
    assert min(found.values()) >= 1
    assert found["refused"] >= 4
