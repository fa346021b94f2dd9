"""Runs of a log over crashes, from a seed, and what must hold after each: everything that was
acknowledged is there, in order, once, and nothing that was never written."""

from __future__ import annotations

from pathlib import Path
from random import Random
from unittest import mock

from log_records import commit
from sim_disk import BYTES, Grain, PowerCut, SimulatedDisk

from remuda.errors import DiskFull, ResourceError
from remuda.storage.format.records import Closed, Record
from remuda.storage.format.segment import Identity
from remuda.storage.log import zeros_ahead as ahead
from remuda.storage.log.files import LogFiles, OpenedLog, open_log
from remuda.storage.log.writer import Flush, SyncMode

FOLDER = Path("/data/log")
IDENTITY = Identity(b"c" * 16, b"m" * 16)
SEGMENT_SIZE = 700


class Violation(AssertionError):
    """A promise was broken."""


class Run:
    """``mode`` decides what a crash is: with ``os`` and ``none`` mostly only the process dies."""

    def __init__(self, seed: int, mode: SyncMode = SyncMode.FSYNC, grain: Grain = BYTES) -> None:
        self.random = Random(seed)
        self.mode = mode
        self.segment_size = SEGMENT_SIZE * (1 if grain is BYTES else 8)
        self.longest = 60 if grain is BYTES else 700
        self.zeros = mode is SyncMode.FSYNC
        self.extended = 0
        """Stretches of zeros that were written ahead."""
        self.into_zeros = 0
        """Crashes of a log whose last segment had some."""
        self.disk = SimulatedDisk(Random(f"disk {seed}"), grain)
        self.history: list[Record] = []
        self.acknowledged = 0
        self.durable = 0
        self.number = 0
        self.crashes = 0
        self.torn = 0

    # what mutations replace
    def open(self) -> OpenedLog:
        return open_log(self.disk, FOLDER, IDENTITY, self.mode, segment_size=self.segment_size)

    def carry_out(self, files: LogFiles, flush: Flush) -> None:
        files.carry_out(flush)

    def zero_ahead(self, files: LogFiles) -> None:
        """Now and then the disk has no room for the zeros; the log goes on without."""
        self.extended += files.zeros_wanted() > 0
        self.disk.capacity = self.disk.used + 20 if self.random.random() < 0.1 else None
        files.zero_ahead()
        self.disk.capacity = None

    def run(self, rounds: int = 6) -> None:
        with (
            mock.patch.object(ahead, "STRETCH_MIN", 20),
            mock.patch.object(ahead, "BLOCK", self.disk.grain.piece),
            mock.patch.object(ahead, "GROUPS_MIN", 1),
        ):
            self._run(rounds)

    def _run(self, rounds: int) -> None:
        for _ in range(rounds):
            power = self.mode is not SyncMode.NONE and self.random.random() < 0.7
            self.disk.power_cut = self.random.randrange(60) if power else None
            try:
                self.live(self.recover())
            except PowerCut:
                files = [file.content for file in self.disk.names_now.values()]
                self.into_zeros += any(content.endswith(bytes(50)) for content in files)
                self.disk.lose_power()
                self.acknowledged = min(self.acknowledged, self.promised())
                self.crashes += 1
        self.disk.power_cut = None
        self.recover()

    def promised(self) -> int:
        return self.acknowledged if self.mode is SyncMode.FSYNC else self.durable

    def recover(self) -> OpenedLog:
        opened = self.open()
        self.torn += opened.tail.lost > 0
        found = list(opened.reader.entries(tail=opened.tail))
        numbers = [entry.sequence for entry in found]
        if numbers != list(range(1, len(found) + 1)):
            raise Violation(f"records {numbers}")
        if len(found) < self.acknowledged:
            raise Violation(f"{self.acknowledged} were acknowledged, {len(found)} are there")
        if [entry.record for entry in found] != self.history[: len(found)]:
            raise Violation("other records than were written")
        if opened.writer.last != len(found):
            raise Violation("the writer goes on elsewhere")
        del self.history[len(found) :]
        self.acknowledged = self.durable = len(found)
        return opened

    def live(self, opened: OpenedLog) -> None:
        """Records gather while a flush is out; the disk may be full, a sync may fail."""
        writer, files, out = opened.writer, opened.files, None
        for _ in range(self.random.randrange(60)):
            match self.random.randrange(8):
                case 0 | 1 | 2 | 3:
                    self.number += 1
                    record = commit(self.number, self.random, self.longest)
                    sequence = writer.append(record, sync=self.random.random() < 0.1)
                    self.history.append(record)
                    assert sequence == len(self.history)
                case 4 | 5 if out is None:
                    out = writer.step()
                case 6 if out is None and self.random.random() < 0.3:
                    writer.roll()
                case 6 if out is None:
                    if writer.idle_mark(0) is not None:
                        self.history.append(Closed(0))
                case _ if out is not None:
                    self.disk.failing_syncs = int(self.random.random() < 0.02)
                    full = self.random.random() < 0.02
                    self.disk.capacity = self.disk.used + 20 if full else None
                    try:
                        self.carry_out(files, out)
                    except (DiskFull, ResourceError) as problem:
                        writer.on_failed(problem)
                        break
                    finally:
                        self.disk.capacity, self.disk.failing_syncs = None, 0
                    out = None
                    writer.on_flushed()
                    self.acknowledged = writer.acknowledged
                    self.durable = writer.durable
                    if self.zeros and self.random.random() < 0.7:
                        self.zero_ahead(files)
        files.close()
