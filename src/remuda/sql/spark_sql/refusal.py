"""Constructs that do not run on Spark with the same answer."""

from __future__ import annotations

from remuda.errors import NotOnSpark


def refused(construct: str) -> NotOnSpark:
    """``construct`` stands in a sentence: "... does not run on Spark"."""
    return NotOnSpark(
        f"{construct} does not run on Spark with the same answer",
        hint="SET engine = grid, or = auto, which asks Spark only for what it can answer.",
    )
