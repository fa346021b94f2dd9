"""The clients that are connected to this member, and the statements that each has running."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.catalog.temporary import bytes_of
from remuda.errors import OutOfMemory
from remuda.execution.memory import MemoryAccount, Reservation
from remuda.member.base.core import Core
from remuda.member.sessions.statement import Client, Statement
from remuda.member.state.clients import Pids
from remuda.query.ids import QueryId
from remuda.rpc.client_channel import ClientChannel
from remuda.session.client_session import NO_SESSION, ClientSession


class TemporaryMemory(MemoryAccount):
    """Of the temporary tables of one session."""

    def __init__(self, core: Core) -> None:
        super().__init__(core.config.temporary_memory, None, core.memory)

    def _beyond_statement(self, size: int, what: str, limit: int) -> OutOfMemory:
        return OutOfMemory(
            f"the temporary tables of the session need more than {limit} bytes",
            detail=f"{what} asked for {size} bytes more while {self.held} were held.",
            hint="Drop temporary tables, use an ordinary table, or raise temporary_memory of the "
            "members.",
        )


class ClientTable:
    def __init__(self, core: Core) -> None:
        self._core = core
        self._pids = Pids(lambda: core.number)
        self._clients: dict[ClientChannel, Client] = {}

    def add(
        self,
        channel: ClientChannel,
        *,
        stock: bool = False,
        kept: bool = False,
        session: ClientSession = NO_SESSION,
    ) -> Client:
        made = self._clients[channel] = Client(
            stock=stock,
            kept=kept,
            session=session,
            pid=self._pids.take(),
            room=Reservation(TemporaryMemory(self._core), "a temporary table") if kept else None,
            since=self._core.world.clock.wall_micros(),
        )
        return made

    def remove(self, channel: ClientChannel) -> Client:
        client = self._clients.pop(channel, Client())
        self._pids.give_back(client.pid)
        if client.room is not None:
            client.room.clear()
        return client

    def get(self, channel: ClientChannel) -> Client | None:
        return self._clients.get(channel)

    def begun(self, statement: Statement) -> bool:
        """Whether its client is still there, which has it running from now on."""
        client = self._clients.get(statement.channel)
        if client is None:
            return False
        client.statements[statement.query] = statement
        client.changed = statement.started
        return True

    def ended(self, statement: Statement) -> None:
        client = self._clients.get(statement.channel)
        if client is not None:
            client.changed = self._core.world.clock.wall_micros()
            client.statements.pop(statement.query, None)
            client.cursors.pop(statement.query, None)
            if client.room is not None and client.room.size:
                own = statement.transaction
                kept = [each for _, each in own.kept] if own is not None else []
                client.room.resize(bytes_of([client.session.temporary, *kept]))

    def keep(self, statement: Statement, session: ClientSession | None) -> bytes | None:
        """The session that the client of a statement has from now on, as it sends it along; None:
        it is as it was."""
        self.keep_here(statement, session)
        return None if session is None else session.encode()

    def keep_here(self, statement: Statement, session: ClientSession | None) -> bool:
        """``keep``, for a client whose session is here. False: its session travels with it."""
        client = self._clients.get(statement.channel)
        if client is None or not client.kept:
            return False
        if session is not None:
            client.session = session
        return True

    def all(self) -> list[tuple[ClientChannel, Client]]:
        return list(self._clients.items())

    def pid_of(self, channel: ClientChannel) -> int:
        """0: it is not connected here."""
        client = self._clients.get(channel)
        return 0 if client is None else client.pid

    def find(self, query: QueryId) -> tuple[Client, Statement] | None:
        """A statement that runs here."""
        for client in self._clients.values():
            statement = client.statements.get(query)
            if statement is not None:
                return client, statement
        return None

    def running(self) -> Iterator[tuple[Statement, int, int]]:
        """The statements of clients, with the rows and bytes that were sent so far."""
        for client in self._clients.values():
            for query, statement in client.statements.items():
                cursor = client.cursors.get(query)
                sent = (0, 0) if cursor is None else (cursor.results.rows, cursor.results.bytes)
                yield statement, *sent

    def gauges(self) -> dict[str, int]:
        return {
            "clients": len(self._clients),
            "statements": sum(len(client.statements) for client in self._clients.values()),
            "cursors": sum(len(client.cursors) for client in self._clients.values()),
        }
