"""The effects that ``query.registry`` asks its shell to perform."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.errors import RemudaError
from remuda.query.ids import QueryId, instance_text


@dataclass(frozen=True, slots=True)
class StartFragments:
    """Build and schedule the fragments that run here; an error comes back as QueryFailed."""

    query: QueryId
    start: object

    def __str__(self) -> str:
        return f"start fragments {self.query}"


@dataclass(frozen=True, slots=True)
class DeliverBatch:
    query: QueryId
    batch: object

    def __str__(self) -> str:
        return f"deliver batch {self.query} {self.batch}"


@dataclass(frozen=True, slots=True)
class DeliverFlowControl:
    query: QueryId
    flow: object

    def __str__(self) -> str:
        return f"deliver flow control {self.query} {self.flow}"


@dataclass(frozen=True, slots=True)
class CancelFragments:
    """Stop the fragments that run here and free what they hold."""

    query: QueryId
    error: RemudaError

    def __str__(self) -> str:
        return f"cancel fragments {self.query}: {_text(self.error)}"


@dataclass(frozen=True, slots=True)
class SendStart:
    to: int
    query: QueryId
    start: object

    def __str__(self) -> str:
        return f"send start {self.query} to {self.to}"


@dataclass(frozen=True, slots=True)
class SendCancel:
    to: int
    query: QueryId
    cancel_initiator: int
    error: RemudaError

    def __str__(self) -> str:
        who = f"by {self.cancel_initiator}"
        return f"send cancel {self.query} to {self.to} {who}: {_text(self.error)}"


@dataclass(frozen=True, slots=True)
class SendCheck:
    to: int
    suspected: tuple[QueryId, ...]

    def __str__(self) -> str:
        return f"send check {_ids(self.suspected)} to {self.to}"


@dataclass(frozen=True, slots=True)
class SendCheckResponse:
    to: int
    inactive: tuple[QueryId, ...]
    ended: tuple[tuple[QueryId, int, int, int], ...] = ()
    """(query, member, fragment, instance): known ends of instances whose queries go on."""

    def __str__(self) -> str:
        ended = ", ".join(f"{query} {f}.{i} of {member}" for query, member, f, i in self.ended)
        also = f" ended [{ended}]" if ended else ""
        return f"send check_response {_ids(self.inactive)}{also} to {self.to}"


@dataclass(frozen=True, slots=True)
class SendFragmentDone:
    to: int
    query: QueryId
    fragment: int
    profile: object
    instance: int = 0

    def __str__(self) -> str:
        which = instance_text(self.fragment, self.instance)
        return f"send fragment_done {self.query} fragment {which} to {self.to}"


@dataclass(frozen=True, slots=True)
class ReportProfile:
    """On the initiator: a fragment's profile, of this member or another, for EXPLAIN ANALYZE."""

    query: QueryId
    member: int
    fragment: int
    profile: object
    instance: int = 0

    def __str__(self) -> str:
        which = instance_text(self.fragment, self.instance)
        return f"profile {self.query} fragment {which} of {self.member}"


@dataclass(frozen=True, slots=True)
class CompleteQuery:
    """On the initiator: tell the user that the query has ended well."""

    query: QueryId

    def __str__(self) -> str:
        return f"complete {self.query}"


@dataclass(frozen=True, slots=True)
class FailQuery:
    """On the initiator: tell the user. ``cancel_initiator`` is the member where it began."""

    query: QueryId
    cancel_initiator: int
    error: RemudaError

    def __str__(self) -> str:
        return f"fail {self.query} by {self.cancel_initiator}: {_text(self.error)}"


@dataclass(frozen=True, slots=True)
class Discard:
    """Nothing to do but count or log: a message was dropped, or held batches were freed."""

    query: QueryId
    what: str
    size: int = 0

    def __str__(self) -> str:
        return f"discard {self.query} {self.what}" + (f" ({self.size} bytes)" if self.size else "")


@dataclass(frozen=True, slots=True)
class Forget:
    """The query has no state here any more; the shell drops its own."""

    query: QueryId

    def __str__(self) -> str:
        return f"forget {self.query}"


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send ``Expired`` at this time, unless the query is forgotten before."""

    time: float
    query: QueryId

    def __str__(self) -> str:
        return f"wake {self.query} at {self.time:g}"


Effect = (
    StartFragments
    | DeliverBatch
    | DeliverFlowControl
    | CancelFragments
    | SendStart
    | SendCancel
    | SendCheck
    | SendCheckResponse
    | SendFragmentDone
    | ReportProfile
    | CompleteQuery
    | FailQuery
    | Discard
    | Forget
    | WakeAt
)


def _text(error: RemudaError) -> str:
    where = f" [member {error.member}]" if error.member else ""
    return f"{type(error).__name__} {error.message}{where}"


def _ids(queries: tuple[QueryId, ...]) -> str:
    return "[" + ", ".join(str(query) for query in queries) + "]"
