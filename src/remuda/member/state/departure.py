"""How far this member is on its way out: the first thing that a request meets."""

from __future__ import annotations

from collections.abc import Callable

from remuda.errors import MemberLeaving, ViewChanged


class Departure:
    """``number`` is that of the member, for errors."""

    def __init__(self, number: Callable[[], int]) -> None:
        self._number = number
        self.dismissing = False
        """No session of a client that does not retry begins here any more, and those that are open
        are closed when they rest."""
        self.refusing = False
        """Nothing begins here any more; open work goes on."""
        self.closed = False
        """No client is served here any more."""
        self.gone = False
        """Nor are the other members, who have a view without this one."""
        self.on_drain: list[Callable[[], None]] = []
        """Called when an operator has this member leave: the process lets it leave, and ends."""
        self.donating = False
        """Views have dropped it, and it keeps its copies until nobody wants them."""

    def drain(self) -> None:
        for listener in self.on_drain:
            listener()

    def donate(self) -> None:
        self.donating = True

    def dismiss(self) -> None:
        self.dismissing = True

    def refuse(self) -> None:
        self.dismissing = self.refusing = True

    def close(self) -> None:
        self.dismissing = self.refusing = self.closed = True

    def leave(self) -> None:
        self.dismissing = self.refusing = self.closed = self.gone = True

    def require_staying(self) -> None:
        """Before something begins that outlives its request. Raises MemberLeaving: nothing was
        done, and clients ask another member."""
        if self.refusing:
            raise self._refusal("is leaving the cluster and begins nothing new")

    def require_here(self) -> None:
        """Before a request of a client is served at all. Raises MemberLeaving."""
        if self.closed:
            raise self._refusal("has left the cluster")

    def require_view(self) -> None:
        """Before a message of another member is served that relies on the view. Raises ViewChanged:
        the sender asks again in the view without this member."""
        if self.gone:
            raise ViewChanged(f"member {self._number()} has left the cluster")

    def _refusal(self, what: str) -> MemberLeaving:
        number = self._number()
        return MemberLeaving(f"member {number} {what}", member=str(number))
