"""The messages of a client while a COPY FROM reads from it."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.errors import ProtocolError, QueryCanceled, RemudaError
from remuda.postgres import messages as m
from remuda.postgres.reader import Reader


@dataclass(frozen=True, slots=True)
class CopyRows:
    """Bytes that a COPY FROM reads."""

    data: bytes


@dataclass(frozen=True, slots=True)
class CopyEnd:
    """They are all there; ``error``: the client gives up, or has sent something else."""

    error: RemudaError | None


def copied(kind: int, body: bytes, reader: Reader) -> CopyRows | CopyEnd | None:
    """The meaning of a message that was taken from ``reader``, with all CopyData behind it. None:
    it says nothing of the rows."""
    if kind == m.COPY_DATA:
        return CopyRows(reader.take_copied(body))
    if kind in (m.SYNC_TYPE, m.FLUSH_TYPE):  # libpq has sent Sync behind Execute
        return None
    if kind == m.COPY_DONE:
        return CopyEnd(None)
    if kind == m.COPY_FAIL:
        why = body.partition(b"\0")[0].decode("utf-8", "replace")
        return CopyEnd(QueryCanceled(f"COPY from stdin failed: {why}"))
    return CopyEnd(ProtocolError(f"unexpected message type 0x{kind:02X} during COPY from stdin"))
