"""A real process that writes its log and is killed: what it had said to be safe is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from remuda.storage.format.records import CatalogChanged
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode
from remuda.world import SystemDisk

IDENTITY = Identity(b"c" * 16, b"m" * 16)
WRITER = """
import sys
from pathlib import Path
from remuda.storage.format.records import CatalogChanged
from remuda.storage.format.segment import Identity
from remuda.storage.log.files import open_log
from remuda.storage.log.writer import SyncMode
from remuda.world import SystemDisk

log = open_log(SystemDisk(), Path(sys.argv[1]), Identity(b"c" * 16, b"m" * 16),
               SyncMode(sys.argv[2]), segment_size=4096)
while True:
    for _ in range(3):
        number = log.writer.last + 1
        log.writer.append(CatalogChanged(number, number, b"x" * (number % 300), "written"))
    log.files.carry_out(log.writer.step())
    log.writer.on_flushed()
    print(log.writer.acknowledged, flush=True)
"""


@pytest.mark.cluster
@pytest.mark.parametrize("mode", ["fsync", "none"])
def test_what_was_acknowledged_survives_a_kill(tmp_path: Path, mode: str) -> None:
    safe = 0
    for _ in range(2):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "log"), mode]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(60):
                safe = int(process.stdout.readline())
            process.kill()
            safe = max([safe, *map(int, process.stdout.read().splitlines()[:-1])])
        opened = open_log(SystemDisk(), tmp_path / "log", IDENTITY, SyncMode(mode))
        records = [entry.record for entry in opened.reader.entries(tail=opened.tail)]
        assert len(records) >= safe
        assert records == [
            CatalogChanged(number, number, b"x" * (number % 300), "written")
            for number in range(1, len(records) + 1)
        ]
    assert len(opened.files.numbers()) > 3
