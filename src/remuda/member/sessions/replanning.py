"""When a statement is planned and run again, at a new timestamp, by the member that runs it: as
long as it has changed nothing, and its client knows nothing of a result."""

from __future__ import annotations

from dataclasses import replace

from remuda.catalog.own.definitions import as_named
from remuda.datatypes.schema import MADE_MARK, PG_TEMP
from remuda.errors import (
    JobAborted,
    MemberGivenUp,
    MemberLeaving,
    MemberSuspected,
    MemberUnavailable,
    NotServed,
    OutcomeUnknown,
    PartitionsLost,
    PartitionsUnreachable,
    RemudaError,
    SchemaChanged,
    TransientError,
    ViewChanged,
)
from remuda.member.base.core import SUSPICION_PATIENCE, SUSPICION_PAUSE
from remuda.member.sessions.statement import Statement

PLANNED_AGAIN = (SchemaChanged, ViewChanged, MemberSuspected)
"""Errors of statements that have done nothing, unless the error says that others may have completed
the commit that it ended."""
_LOST = (MemberUnavailable, JobAborted)
"""Errors of statements that needed a member when it left or was lost."""
_FOR_CLIENTS = (NotServed, MemberGivenUp, PartitionsLost, PartitionsUnreachable)
"""Of these: another member may serve the statement, or no member can."""
PATIENCE = 5.0
"""Seconds after the first time in which it is run again: by then all members should have the same
view and the same catalog, and one of a stream of changes should have left a gap."""
UNAIDED_PATIENCE = 30.0
"""The same for clients that do not ask again by themselves."""
OWNERS_ATTEMPTS = 20
"""So often at most where the client has named the partitions: it knows better who has them now."""
_PAUSE = 0.002
"""Seconds before the first time, then four times as long, nine times, ..."""
_LONGEST_PAUSE = 0.1


def pause_before_next(statement: Statement, error: RemudaError, now: float) -> float | None:
    """Seconds to wait before ``statement``, which has met ``error``, is planned again; None: it is
    not. ``now`` are monotonic seconds. Each call counts."""
    refused = statement.unaided and _refused(error)
    replans = isinstance(error, PLANNED_AGAIN) and not error.may_have_run
    if not (refused or replans or _wrote_nothing(statement, error)):
        return None
    progress = statement.progress
    if statement.error is not None or progress.set_sequence or progress.told:
        return None
    progress.tries += 1
    if isinstance(error, MemberSuspected):
        if not progress.suspicion_until:
            patience = statement.timeout or SUSPICION_PATIENCE
            progress.suspicion_until = now + min(patience, SUSPICION_PATIENCE)
        progress.queued += SUSPICION_PAUSE
        return SUSPICION_PAUSE if now < progress.suspicion_until else None
    if not progress.again_until:
        progress.again_until = now + (UNAIDED_PATIENCE if statement.unaided else PATIENCE)
    owned = isinstance(error, ViewChanged) and statement.partitions is not None
    again = progress.tries < OWNERS_ATTEMPTS if owned else now < progress.again_until
    return min(_PAUSE * progress.tries**2, _LONGEST_PAUSE) if again else None


def half_done(error: RemudaError) -> OutcomeUnknown:
    """In place of an error that would have a client run again a statement that has set a
    sequence."""
    return OutcomeUnknown(
        f"the statement has set a sequence, or may have, and then failed: {error.message}",
        hint="Read last_value of the sequence before you run the statement again.",
        member=error.member,
    )


def _refused(error: RemudaError) -> bool:
    """Whether a member has refused the statement for now, before anything was done. One that leaves
    refuses it for good."""
    return (
        isinstance(error, NotServed)
        and not isinstance(error, MemberLeaving)
        and not error.may_have_run
    )


def _wrote_nothing(statement: Statement, error: RemudaError) -> bool:
    """Whether a write has lost a member that it needed, and has changed nothing. A read that is
    lost with a member fails: ``retry_reads`` of its client says how often it is run."""
    if not isinstance(error, _LOST) or isinstance(error, _FOR_CLIENTS):
        return False
    progress = statement.progress
    return progress.alone and (progress.undone or not error.may_have_run)


def told(statement: Statement, error: RemudaError) -> RemudaError:
    """The error that the client of a statement is told when it ends with ``error``."""
    if not isinstance(error, OutcomeUnknown):
        in_doubt = error.may_have_run and not statement.progress.undone
        cause = statement.error or error
        error = cause.knowing(may_have_run=True) if in_doubt else cause
        if statement.progress.set_sequence and isinstance(error, TransientError):
            error = half_done(error)
    if statement.progress.undone:
        error = error.knowing(may_have_run=False)
    if error.subject is not None and error.subject.namespace == PG_TEMP:
        listed = statement.temporary_schema()
        error = error.about(replace(error.subject, namespace=listed))
    return error.saying(as_named(error.message)) if MADE_MARK in error.message else error
