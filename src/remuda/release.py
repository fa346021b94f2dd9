"""Which release of Remuda this process runs, and with which other releases it works.

A constant rather than the metadata of an installed package: a member that runs from sources has no
metadata, and an operator must see its release too. The package's own version is read from here.

A *version of the cluster* is a number for everything that members, and clients, send each other and
keep: messages, plans, logs, snapshots, the catalog. Each release that changes any of it has a
version of its own and still works in the one before (decision 0112, ``docs/upgrade.md``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__version__: Final = "0.2.0"


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included."""

    lowest: int
    highest: int

    def __str__(self) -> str:
        if self.lowest == self.highest:
            return f"version {self.highest}"
        return f"versions {self.lowest} to {self.highest}"

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def meets(self, other: Versions) -> bool:
        """Whether there is a version that both have."""
        return self.lowest <= other.highest and other.lowest <= self.highest


VERSIONS: Final = Versions(2, 2)
"""The versions of the cluster in which this release works: its own, and that of the release before.
Release 0.2.0 is the first with a version, so it works in no other one."""
