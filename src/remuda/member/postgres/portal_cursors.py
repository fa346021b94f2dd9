"""Portals that have a name, as FETCH, MOVE, CLOSE and pg_cursors see them: cursors that only scan
forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from remuda.datatypes.schema import Column
from remuda.errors import CursorScansForward
from remuda.member.cursors.named_cursor import About, Take
from remuda.member.cursors.portals import NamedStatement
from remuda.member.postgres.portals import ResultRun
from remuda.member.postgres.preparing import Bound
from remuda.member.sessions.statement import Statement
from remuda.postgres.effects import Portal
from remuda.postgres.prepared import Prepared
from remuda.session.shape import ResultShape
from remuda.sql.trees.cursors import Direction


class RunningPortal:
    """The shell's part of a portal. ``created``: microseconds since 1970; 0: it has no name."""

    __slots__ = ("bound", "created", "run", "statement")

    def __init__(self, bound: Bound, created: int) -> None:
        self.bound = bound
        self.created = created
        self.run: ResultRun | None = None
        self.statement: Statement | None = None


class Opened(Protocol):
    """The portals of a session machine."""

    def named(self) -> Sequence[Portal]: ...

    def named_statements(self) -> Sequence[tuple[str, Prepared]]: ...

    def begun(self, name: str) -> Portal:
        """The portal, which runs from now on."""


class PortalCursor:
    def __init__(self, shape: ResultShape, run: Callable[[], ResultRun]) -> None:
        """``run`` gives the rows that the client has not asked for yet by messages."""
        self.shape = shape
        self._run = run

    async def fetch(self, direction: Direction, count: int | None, take: Take | None) -> int:
        """Rows that come next. Raises CursorScansForward, and the errors of the query."""
        if direction is Direction.BACKWARD and count is not None:
            direction, count = Direction.FORWARD, -count
        onward = direction is Direction.FORWARD or (direction is Direction.RELATIVE and count)
        if not onward or (count is not None and count < 0):
            raise CursorScansForward(
                "cursor can only scan forward",
                hint="Declare it with SCROLL option to enable backward scan.",
            )
        if direction is Direction.RELATIVE and count is not None:
            passed = await self._pass(count - 1, None)
            return await self._pass(1, take) if passed == count - 1 else 0
        return await self._pass(count, take)

    async def _pass(self, count: int | None, take: Take | None) -> int:
        run, taken = self._run(), 0
        while count is None or taken < count:
            piece = await run.pull(None if count is None else count - taken)
            if piece is None:
                break
            taken += piece.num_rows
            if take is not None:
                await take(piece)
        return taken


class PortalCursors:
    """Those of one client."""

    def __init__(
        self,
        opened: Opened,
        run: Callable[[Portal], ResultRun],
        drop: Callable[[Sequence[str]], None],
    ) -> None:
        """``run`` begins a portal that has not begun, ``drop`` closes portals."""
        self._opened = opened
        self._run = run
        self._drop = drop

    def _find(self, name: str) -> Portal | None:
        return next((portal for portal in self._opened.named() if portal.name == name), None)

    def get(self, name: str) -> PortalCursor | None:
        columns = self.columns(name)
        if columns is None:
            return None

        def run() -> ResultRun:
            return self._run(self._opened.begun(name))

        return PortalCursor(ResultShape(columns), run)

    def columns(self, name: str) -> Sequence[Column] | None:
        found = self._find(name)
        return None if found is None else _running(found).bound.planning.columns

    def close(self, name: str) -> bool:
        if self._find(name) is None:
            return False
        self._drop([name])
        return True

    def close_all(self) -> None:
        self._drop([portal.name for portal in self._opened.named()])

    def about(self) -> Iterator[About]:
        for portal in self._opened.named():
            yield About(
                portal.name,
                portal.prepared.text,
                _running(portal).created,
                hold=False,
                binary=any(portal.formats),
                scroll=False,
            )

    def prepared(self) -> Iterator[NamedStatement]:
        for name, found in self._opened.named_statements():
            yield NamedStatement(name, found.text, found.created, found.types)


def _running(portal: Portal) -> RunningPortal:
    found = portal.token
    assert isinstance(found, RunningPortal)
    return found
