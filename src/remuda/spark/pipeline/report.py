"""The report of a run, during the run and at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Takes one line about what has happened."""


def rows_text(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class ViewReport:
    """Rows of a view with expectations. ``broken``: expectation -> rows that broke it; a row may
    break several."""

    name: str
    rows: int
    dropped: int
    quarantined: int
    broken: Mapping[str, int]

    @property
    def kept(self) -> int:
        return self.rows - self.dropped - self.quarantined

    def __str__(self) -> str:
        text = f"{self.name}: {rows_text(self.rows)}, {self.kept:,} as expected"
        reasons = ", ".join(f"{count:,} x {name}" for name, count in self.broken.items() if count)
        aside = [(self.dropped, "dropped"), (self.quarantined, "put aside")]
        told = [f"{count:,} {what}" for count, what in aside if count]
        return f"{text}, {', '.join(told)} ({reasons})" if told else text


@dataclass(frozen=True, slots=True)
class TargetReport:
    """``rows`` are in the target since this run; ``seconds`` is how long their write took, with
    everything that was computed for it."""

    label: str
    rows: int
    seconds: float

    def __str__(self) -> str:
        rate = int(self.rows / self.seconds) if self.seconds else 0
        return f"{self.label}: {rows_text(self.rows)} in {self.seconds:.1f} s, {rate:,} rows/s"


@dataclass(frozen=True, slots=True)
class RunReport:
    """A whole run. ``run`` is its id."""

    pipeline: str
    run: str
    views: tuple[ViewReport, ...] = ()
    targets: tuple[TargetReport, ...] = ()
    quarantined: int = 0
    quarantine: str = ""
    seconds: float = 0.0
    batches: int = 0
    """Of a stream: how many had rows, over all its targets."""
    created: tuple[str, ...] = field(default=())
    """Maps that the run made."""

    def target(self, label: str) -> TargetReport:
        """The target called ``map NAME`` or ``parquet PATH``."""
        return next(target for target in self.targets if target.label == label)

    def view(self, name: str) -> ViewReport:
        return next(view for view in self.views if view.name == name)
