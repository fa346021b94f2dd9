"""The one face of every wing of a member: its requests and figures, and how it starts and ends.

``Member.wings`` has all of them, from the lowest floor to the highest. The member starts, stops and
closes them in this order, collects their messages, and sums up what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeAlias

from remuda.errors import RemudaError
from remuda.member.base.call import Call
from remuda.rpc.transport import Request

CallHandler: TypeAlias = Callable[[Call], None]
RequestHandler: TypeAlias = Callable[[Request], None]
Calls: TypeAlias = Mapping[int, CallHandler]
Requests: TypeAlias = Mapping[int, RequestHandler]


@dataclass(frozen=True)
class Routes:
    """The messages that are served, by channel and number."""

    forming: Requests = field(default_factory=dict)
    """Of the control channel: those that form a cluster, served before the first view."""
    control: Requests = field(default_factory=dict)
    data: Requests = field(default_factory=dict)
    user: Requests = field(default_factory=dict)
    """Requests of clients that need the connection of the client."""
    calls: Calls = field(default_factory=dict)
    """Requests of clients that any member may pass on to another one."""


class Wing:
    """A wing derives from it, and replaces the methods for which it has work."""

    def routes(self) -> Routes:
        """The messages that it serves."""
        return Routes()

    def gauges(self) -> Mapping[str, int]:
        """The number of things that it holds now, by name; zero when it is idle."""
        return {}

    def start(self) -> None:
        """Begin to work: the first view is there, so this member has its number."""

    def stop(self, error: RemudaError) -> None:
        """End what clients wait for with ``error``, while other members still hear of it."""

    def close(self) -> None:
        """Work no more: from now on the member sends nothing."""

    def free(self) -> None:
        """Give back threads and files: no task of the member runs any more."""


def all_routes(wings: Iterable[Wing]) -> Routes:
    """The messages of all of them. Two wings never serve the same one (AssertionError)."""
    found: dict[str, dict[int, Callable[..., None]]] = {each.name: {} for each in fields(Routes)}
    for wing in wings:
        routes = wing.routes()
        for channel, known in found.items():
            for number, handler in getattr(routes, channel).items():
                assert number not in known, (wing, channel, number)
                known[number] = handler
    return Routes(**found)
