"""News that the wings of a member tell each other.

Each kind of news has one ``Announcement``. A wing that has news calls ``tell``, and knows none of
those that listen. Wings add their methods while the member is constructed: by themselves, or in
``remuda.member.rooms``, where the order matters in which several wings hear the same news.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVarTuple

from remuda.datatypes.view import View
from remuda.errors import MemberGivenUp, MemberUnavailable, RemudaError
from remuda.execution.context import FragmentProfile
from remuda.member.base.failures import bug
from remuda.query.ids import QueryId
from remuda.rpc.connection import ChannelKind
from remuda.storage.chunks.chunk import Times
from remuda.storage.maps.map_store import MapStore

News = TypeVarTuple("News")


class Announcement(Generic[*News]):
    """One kind of news. ``about`` names it in the log if a listener fails."""

    __slots__ = ("_about", "_later", "_listeners")

    def __init__(self, about: str) -> None:
        self._about = about
        self._listeners: list[Callable[[*News], object]] = []
        self._later: list[Callable[[*News], object]] = []

    def add(self, *listeners: Callable[[*News], object]) -> None:
        """They are told from now on, after those that were added before."""
        self._listeners += listeners

    def add_later(self, *listeners: Callable[[*News], object]) -> None:
        """They are told from ``begin`` on: when they start, they look at what is there."""
        self._later += listeners

    def begin(self) -> None:
        """The wings have started."""
        self._listeners += self._later
        self._later.clear()

    def tell(self, *news: *News) -> None:
        """An error of one listener is logged, and the others are told nevertheless."""
        for listener in self._listeners:
            try:
                listener(*news)
            except Exception as error:  # noqa: BLE001 (the boundary, see bug)
                bug(error, f"{self._about} {news}")


class Listeners:
    """The kinds of news that wings have for each other."""

    def __init__(self) -> None:
        self.view = Announcement[View, View]("view")
        """The view before and the one that ``core.view`` is now, in the step that installs it. The
        first view of a process is not told."""
        self.other_view = Announcement[int, int]("message of another view")
        """A message came from a member in another view: its number, its view's number."""
        self.lost = Announcement[int, MemberUnavailable]("lost member")
        """A member that is suspected, or was dropped: nothing waits for it any more."""
        self.heard = Announcement[int]("member heard again")
        """The number of a member whose suspicion has ended."""
        self.memory = Announcement[int, int, int]("memory of a member")
        """The number of a member, the bytes that its statements hold, and its limit."""
        self.leaving = Announcement[frozenset[int]]("members that leave")
        """The members that want to leave, when these change: they are to keep no copy."""
        self.broken = Announcement[int, ChannelKind, RemudaError]("broken connection")
        """A connection to a member broke or could not be made."""
        self.given_up = Announcement[MemberGivenUp]("this member given up")
        """A member answers that a view has dropped this one."""
        self.dropped = Announcement[int]("dropped map")
        """The id of a map that has gone, before its storage is freed."""
        self.altered = Announcement[int]("altered map")
        """The id of a map that has another schema now."""
        self.installed = Announcement[()]("installed catalog")
        """A catalog is here that this member did not have."""
        self.resolved = Announcement[int]("end of a bulk write")
        """The id of a map of which a bulk write has ended here, or has come to be in doubt."""
        self.query_ended = Announcement[QueryId]("end of a query")
        """A query that began here has ended."""
        self.late_report = Announcement[QueryId, FragmentProfile]("late report of a fragment")
        """The report of a fragment whose query has ended already."""
        self.placed = Announcement[()]("placed partitions")
        """The stores are as the view says."""
        self.moved = Announcement[MapStore, MapStore, frozenset[int], Times]("moved partitions")
        """Partitions go from a backup store to a primary one, where nothing of them begins before
        a cut (0: everything stays as it is). Told before that."""

    def begin(self) -> None:
        """The wings have started."""
        for announcement in vars(self).values():
            announcement.begin()
