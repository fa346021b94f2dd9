"""Where a client learns the view: from any member that answers soon."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from remuda.client.core.tries import LOST
from remuda.client.network.address import Address, format_address
from remuda.client.network.deadline import NEVER, Deadline
from remuda.client.network.ports import Ports, Settings
from remuda.client.requests import requests
from remuda.client.requests.requests import Clock, ClusterInfo
from remuda.datatypes.view import View
from remuda.errors import MemberUnavailable, NotServed, RemudaError

PATIENCE = 2.0
"""Seconds that one member has to answer, while there are others to ask."""
NOBODY_THERE = "Check the address, and that a cluster runs there: remuda start starts one here."
_WITNESSES = 2
"""One member that knows nothing newer may itself be cut off."""


async def first_contact(
    addresses: Sequence[Address], ports: Ports, settings: Settings, clock: Clock
) -> ClusterInfo:
    """The answer of the first of ``addresses`` that gives one. MemberUnavailable."""
    errors: list[RemudaError] = []
    for address in addresses:
        found = await _ask(address, ports, settings, clock)
        if isinstance(found, ClusterInfo):
            return found
        errors.append(found)
    if len(errors) == 1:
        if isinstance(errors[0], NotServed):
            errors[0].hint = errors[0].hint or NOBODY_THERE
        raise errors[0]
    tried = ", ".join(format_address(*address) for address in addresses)
    raise MemberUnavailable(
        f"no member answers at {tried}",
        detail="; ".join(error.message for error in errors),
        hint=NOBODY_THERE,
    )


async def newest_view(  # noqa: PLR0917 (what a client knows)
    view: View,
    addresses: Sequence[Address],
    ports: Ports,
    settings: Settings,
    clock: Clock,
    deadline: Deadline = NEVER,
) -> ClusterInfo:
    """The answer of a member of the newest view that this client has heard of.

    The members of ``view`` are asked first, then ``addresses``, where a cluster that was started
    again may be. MemberUnavailable when nobody answers before the deadline.
    """
    known = [(member.host, member.user_port) for member in view.members]
    best: ClusterInfo | None = None
    answered = 0
    errors: list[RemudaError] = []
    for address in _unique((*known, *addresses)):
        if deadline.passed:
            break
        hasty = replace(
            settings,
            connect_timeout=deadline.left(min(PATIENCE, settings.connect_timeout)),
            request_timeout=deadline.left(min(PATIENCE, settings.request_timeout)),
        )
        found = await _ask(address, ports, hasty, clock)
        if not isinstance(found, ClusterInfo):
            errors.append(found)
            continue
        if best is None or found.view.number > best.view.number:
            best = found
        answered += 1
        number = best.view.number
        if number >= clock.view and (number > view.number or answered >= _WITNESSES):
            break
    if best is None:
        tried = ", ".join(format_address(*address) for address in _unique((*known, *addresses)))
        raise MemberUnavailable(
            f"no member answers at {tried}", detail="; ".join(error.message for error in errors)
        )
    return best


def is_news(old: View, new: View) -> bool:
    """Whether ``new`` takes the place of ``old``: it is not an older one, or is another cluster's,
    started at the same addresses."""
    if new.number >= old.number:
        return True
    known = {member.uuid for member in old.members}
    return not any(member.uuid in known for member in new.members)


async def _ask(
    address: Address, ports: Ports, settings: Settings, clock: Clock
) -> ClusterInfo | RemudaError:
    """Over a connection of its own: those of requests may hang."""
    host, port = address
    contact = ports.member(None, host, port, settings)
    try:
        return await contact.call(requests.cluster_info(clock))
    except LOST as error:
        return error
    finally:
        contact.close()


def _unique(addresses: Iterable[Address]) -> list[Address]:
    return list(dict.fromkeys(addresses))
