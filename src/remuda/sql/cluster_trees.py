"""The form in which a statement about the cluster itself comes from the parser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AcceptLossTree:
    """Partitions whose every copy is lost begin again without a row."""

    reads_only: Literal[False] = False
