"""Members in a control group with a memory limit: clients write until they are refused, and the
kernel kills nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

LIMIT = 1200 * 2**20
ROOT = Path("/sys/fs/cgroup")
SCRIPT = Path(__file__).with_name("memory_limit_run.py")


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
def test_no_member_is_killed_while_clients_write_until_they_are_refused() -> None:
    with memory_group(LIMIT) as (group, counts, outside):
        ran = subprocess.run(
            [sys.executable, str(SCRIPT), str(group), str(outside)],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        killed = dict(line.split() for line in counts.read_text(encoding="ascii").splitlines())
    assert ran.returncode == 0, ran.stderr
    assert int(killed.get("oom_kill", 0)) == 0
    found = json.loads(ran.stdout)
    limits = [limit for _, limit, _ in found["members"]]
    assert all(0 < limit < LIMIT // 2 for limit in limits)
    assert all(held <= limit for held, limit, _ in found["members"])
    assert sum(refused for _, _, refused in found["members"]) >= 4
    assert min(found["taken"]) >= 1
    assert min(found["others"]) >= 1  # indexes, and rounds of updates
    assert found["rows"] == found["taken"][1] * 40
