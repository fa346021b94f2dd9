"""Python's garbage collections of this process: they stop everything else."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from typing import Any, Final

from remuda.member.metrics.families import Family, Histogram

_GENERATIONS: Final = ("0", "1", "2")


class Collections:
    """``start`` begins to watch, ``close`` ends it; in between, each collection is timed. It reads
    the processor's clock itself: it measures this process, also below a simulated clock."""

    def __init__(self) -> None:
        self._pauses = tuple(Histogram() for _ in _GENERATIONS)
        self._began = 0.0

    def start(self) -> None:
        gc.callbacks.append(self._called)

    def close(self) -> None:
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)

    def _called(self, phase: str, details: dict[str, Any]) -> None:
        if phase == "start":
            self._began = time.perf_counter()
        elif self._began:
            self._pauses[details["generation"]].observe(time.perf_counter() - self._began)

    def families(self) -> Iterator[Family]:
        yield Family(
            "remuda_gc_pause_seconds",
            "histogram",
            "Pauses of this process by Python's garbage collector, by generation.",
            [
                sample
                for name, pauses in zip(_GENERATIONS, self._pauses, strict=True)
                for sample in pauses.samples({"generation": name})
            ],
        )
