"""The disk of a simulated member that keeps a log: that of ``tests/storage`` (a loss of power keeps
any part of what is not synced, in bytes, sectors or pages) with the spill files of ``sim_world``.
It outlives processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from sim_world import SimulatedDisk

sys.path.append(str(Path(__file__).parent.parent / "storage"))
import sim_disk


class LogDisk(sim_disk.SimulatedDisk, SimulatedDisk):
    """``on_cut`` is told when the power goes in the middle of an operation (``power_cut`` counts
    down to it); from then on, and after ``turn_off``, every operation ends with PowerCut."""

    def __init__(self, random: Random, files: Mapping[Path, bytes]) -> None:
        SimulatedDisk.__init__(self, random, {})
        grain = Random(f"grain {random.getstate()[1][:3]}").choice(sim_disk.GRAINS)
        sim_disk.SimulatedDisk.__init__(self, random, grain)
        for path, content in files.items():
            self.names_now[path] = file = sim_disk.File(bytearray(content))
            file.sync()
        self.names_stored = dict(self.names_now)
        self.is_off = False
        self.on_cut: Callable[[], None] = lambda: None

    def _operation(self) -> None:
        if self.is_off:
            raise sim_disk.PowerCut
        try:
            super()._operation()
        except sim_disk.PowerCut:
            self.is_off = True
            self.on_cut()
            raise

    def turn_off(self) -> None:
        self.is_off = True

    def turn_on(self, *, lost_power: bool) -> None:
        """For the next process. One that was killed leaves everything that it has written."""
        if lost_power:
            self.lose_power()
        self.power_cut = None
        self.locked.clear()
        self.scratches.clear()
        self.is_off = False
