"""The events of the queries of a member: the input of ``query.registry``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from remuda.errors import RemudaError
from remuda.query.ids import QueryId


@dataclass(frozen=True, slots=True)
class Begin:
    """This member initiates a query: registered before anything is sent (design rule 1).

    ``start`` is what the shell needs to start fragments here and to send QUERY_START; the registry
    does not look into it. ``participants`` are the members that run fragments, with or without
    this one. ``fragments`` are the fragments that run here, ``root`` the one whose end completes
    the query. ``timeout`` in seconds, None = none. ``profiled``: complete only when every
    participant has reported its fragments (EXPLAIN ANALYZE).
    """

    query: QueryId
    participants: tuple[int, ...]
    fragments: tuple[int, ...]
    root: int
    start: object
    timeout: float | None = None
    profiled: bool = False
    owed: Mapping[int, int] = field(default_factory=dict)
    """How many FRAGMENT_DONE each other participant will send, where it is not one."""
    instances: Mapping[int, int] = field(default_factory=dict)
    """How many instances of a fragment run here, where it is not one."""


@dataclass(frozen=True, slots=True)
class StartReceived:
    """QUERY_START. ``fragments``: those that run here. ``view``: the sender's view number."""

    query: QueryId
    sender: int
    view: int
    participants: tuple[int, ...]
    fragments: tuple[int, ...]
    start: object
    instances: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchReceived:
    """REQ_RECORD_BATCH; ``size`` is what it holds in memory, in bytes."""

    query: QueryId
    sender: int
    size: int
    batch: object


@dataclass(frozen=True, slots=True)
class FlowControlReceived:
    query: QueryId
    sender: int
    flow: object


@dataclass(frozen=True, slots=True)
class CancelReceived:
    """QUERY_CANCEL: from a participant to the initiator, or the initiator's broadcast."""

    query: QueryId
    sender: int
    cancel_initiator: int
    error: RemudaError


@dataclass(frozen=True, slots=True)
class CheckReceived:
    sender: int
    suspected: tuple[QueryId, ...]


@dataclass(frozen=True, slots=True)
class CheckResponseReceived:
    sender: int
    inactive: tuple[QueryId, ...]


@dataclass(frozen=True, slots=True)
class FragmentFinished:
    """An instance of a fragment has ended well here; ``profile`` goes to the initiator."""

    query: QueryId
    fragment: int
    profile: object = None
    instance: int = 0


@dataclass(frozen=True, slots=True)
class FragmentDoneReceived:
    """FRAGMENT_DONE of another member (only the initiator gets these)."""

    query: QueryId
    sender: int
    fragment: int
    profile: object = None
    instance: int = 0


@dataclass(frozen=True, slots=True)
class QueryFailed:
    """Something on this member ends the query badly: a fragment raised, a stream broke or lost an
    ordinal, a message could not be sent, the user cancels, the client is gone."""

    query: QueryId
    error: RemudaError


@dataclass(frozen=True, slots=True)
class Progressed:
    """A fragment of the query has moved; it is not suspect for a while."""

    query: QueryId


@dataclass(frozen=True, slots=True)
class MemberLeft:
    """A member is gone; queries that need it end, naming it and ``error``'s cause."""

    member: int
    error: RemudaError


@dataclass(frozen=True, slots=True)
class ViewInstalled:
    """The current view. Members missing from it have left."""

    view: int
    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Expired:
    """The time of a ``WakeAt`` has come."""

    query: QueryId


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; sent every limits.QUERY_CHECK_INTERVAL."""


Event = (
    Begin
    | StartReceived
    | BatchReceived
    | FlowControlReceived
    | CancelReceived
    | CheckReceived
    | CheckResponseReceived
    | FragmentFinished
    | FragmentDoneReceived
    | QueryFailed
    | Progressed
    | MemberLeft
    | ViewInstalled
    | Expired
    | Tick
)
