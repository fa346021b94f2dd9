"""Open cursors as statements see them, whoever has opened them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from remuda.datatypes.schema import Column
from remuda.member.cursors.named_cursor import About, Take
from remuda.session.shape import ResultShape
from remuda.sql.trees.cursors import Direction


class Fetched(Protocol):
    """An open cursor."""

    @property
    def shape(self) -> ResultShape: ...

    async def fetch(self, direction: Direction, count: int | None, take: Take | None) -> int: ...


class NamedStatement(NamedTuple):
    """A statement that a client has prepared by a message. ``created``: microseconds since 1970;
    ``types``: the OIDs of the types of its parameters."""

    name: str
    text: str
    created: int
    types: tuple[int, ...]


class Portals(Protocol):
    """The portals with names that a client has opened by messages."""

    def get(self, name: str) -> Fetched | None: ...

    def columns(self, name: str) -> Sequence[Column] | None:
        """None: there is none of this name."""

    def close(self, name: str) -> bool:
        """False: there is none of this name."""

    def close_all(self) -> None: ...

    def about(self) -> Iterable[About]: ...

    def prepared(self) -> Iterable[NamedStatement]: ...


class ClientPortals:
    """The portals of a client, which has none before ``serve``."""

    def __init__(self) -> None:
        self._portals: Portals | None = None

    def serve(self, portals: Portals) -> None:
        """The connection has begun to open portals."""
        self._portals = portals

    def get(self, name: str) -> Fetched | None:
        return None if self._portals is None else self._portals.get(name)

    def columns(self, name: str) -> Sequence[Column] | None:
        return None if self._portals is None else self._portals.columns(name)

    def close(self, name: str) -> bool:
        return self._portals is not None and self._portals.close(name)

    def close_all(self) -> None:
        if self._portals is not None:
            self._portals.close_all()

    def about(self) -> Iterable[About]:
        return () if self._portals is None else self._portals.about()

    def prepared(self) -> Iterable[NamedStatement]:
        return () if self._portals is None else self._portals.prepared()
