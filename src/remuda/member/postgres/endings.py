"""The errors with which a member ends the sessions of PostgreSQL's clients."""

from __future__ import annotations

from remuda.errors import MemberLeaving, RemudaError


def leaving(number: int, lost: RemudaError | None = None) -> MemberLeaving:
    """The end of a session of a member that leaves. ``lost``: why an open transaction was rolled
    back."""
    detail = f"member {number} is leaving the cluster"
    return MemberLeaving(
        "terminating connection due to administrator command",
        detail=detail if lost is None else lost.message,
        hint="Connect to another member."
        if lost is None
        else "Connect to another member, and run the transaction again from the start.",
    )
