"""What one operator did: the figures of EXPLAIN ANALYZE."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class OperatorProfile:
    """``operator`` is the plan node's class name, ``index`` its place in pre-order in its fragment.

    ``rows``, ``batches`` and ``bytes`` count what it put out; for Send the bytes are encoded bytes
    that left this member. ``seconds`` excludes the operator's inputs.
    """

    index: int
    operator: str
    rows: int = 0
    batches: int = 0
    bytes: int = 0
    seconds: float = 0.0
