"""Reads that are limited to some partitions: a client asks each owner for its own."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.errors import InputError, ViewChanged
from remuda.limits import PARTITIONS
from remuda.member.base.core import Core


def own_partitions(core: Core, asked: Sequence[int]) -> frozenset[int] | None:
    """The partitions that a read is limited to; None for no limit. Raises ViewChanged for one that
    another member owns: its rows would silently be missing."""
    for partition in asked:
        if not 0 <= partition < PARTITIONS:
            raise InputError(
                f"there is no partition {partition}; they are numbered 0 to {PARTITIONS - 1}"
            )
        owner = core.view.owners[partition]
        if owner != core.number:
            raise ViewChanged(
                f"partition {partition} belongs to member {owner}, not to member {core.number}",
                hint="Ask for the cluster's view again and read from the owner.",
            )
    return frozenset(asked) if asked else None
