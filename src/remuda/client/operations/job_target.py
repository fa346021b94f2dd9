"""``Target``: where the rows of a staged job go."""

from __future__ import annotations

from dataclasses import dataclass

from remuda.client.network.address import Address
from remuda.client.network.login import NO_SECURITY, Security
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View


@dataclass(frozen=True, slots=True)
class Target:
    """Where a job's rows go. Small and picklable.

    ``view`` is that of when the job began. Writers begin with it, and learn what has become of its
    members; ``addresses`` are asked as well when none of these answers. ``timeout``: seconds that
    each call of a writer may take, as ``with_timeout`` of the client that began the job says; None:
    as long as its rows need.
    """

    job: str
    schema: MapSchema
    view: View
    security: Security = NO_SECURITY
    addresses: tuple[Address, ...] = ()
    timeout: float | None = None
