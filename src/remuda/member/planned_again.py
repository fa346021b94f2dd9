"""When a statement is planned and run again, at a new timestamp, by the member that runs it: as
long as it has changed nothing, and its client knows nothing of a result."""

from __future__ import annotations

from remuda.errors import RemudaError, SchemaChanged, ViewChanged
from remuda.member.statement import Statement

PLANNED_AGAIN = (SchemaChanged, ViewChanged)
SCHEMA_ATTEMPTS = 30
"""So often at most because the catalog changes under it."""
VIEW_PATIENCE = 5.0
"""Seconds after which all members should be in the same view: as long it is run again because they
are not. Where the client has named the partitions, it knows better who has them now."""
_PAUSE = 0.002
"""Seconds before the first time, then four times as long, nine times, ..."""
_LONGEST_PAUSE = 0.1


def pause_before_next(statement: Statement, error: RemudaError, now: float) -> float | None:
    """Seconds to wait before ``statement``, which has met ``error``, is planned again; None: it is
    not. ``now`` are monotonic seconds. Each call counts."""
    if not isinstance(error, PLANNED_AGAIN) or statement.error is not None:
        return None
    progress = statement.progress
    progress.tries += 1
    if isinstance(error, ViewChanged) and statement.partitions is None:
        if progress.view_changed_at is None:
            progress.view_changed_at = now
        again = now < progress.view_changed_at + VIEW_PATIENCE
    else:
        progress.outdated += 1
        again = progress.outdated < SCHEMA_ATTEMPTS
    return min(_PAUSE * progress.tries**2, _LONGEST_PAUSE) if again else None
