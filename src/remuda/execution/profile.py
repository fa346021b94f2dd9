"""The work of one operator in figures: those of EXPLAIN ANALYZE, of ``sys.operators`` and of
profiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class OperatorProfile:
    """``operator`` is the plan node's class name, ``index`` its place in pre-order in its fragment.

    ``rows``, ``batches`` and ``bytes`` count what it put out; for Send the bytes are encoded bytes
    that left this member, else an estimate from some of the batches unless the query is analyzed.
    ``seconds`` excludes the operator's inputs, ``wait`` and ``waits`` too: the seconds
    that it waited by itself, and how often. Receive waits for batches, Send for credit (its
    ``waits`` are the credit stalls), Root for its client, a scan for writes that are undecided, a
    spool's reader for the spool. ``memory`` is the most that it held, ``spilled`` the compressed
    bytes that it put on disk, in ``files`` files. ``first`` and ``last`` are the times of its first
    and last activity: seconds since 1970 by its member's clock, 0 for never.
    """

    index: int
    operator: str
    rows: int = 0
    batches: int = 0
    bytes: int = 0
    seconds: float = 0.0
    wait: float = 0.0
    waits: int = 0
    memory: int = 0
    spilled: int = 0
    files: int = 0
    first: float = 0.0
    last: float = 0.0
