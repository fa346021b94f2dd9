"""Cursors that SQL has declared, as messages name them: they are portals, too."""

from __future__ import annotations

from collections.abc import Sequence

from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.schema import Column
from remuda.errors import UndefinedCursor
from remuda.member.sessions.statement import Client
from remuda.member.statements.statements import Statements
from remuda.rpc.client_channel import ClientChannel


class DeclaredCursors:
    """Those of one session."""

    def __init__(self, statements: Statements, client: Client, channel: ClientChannel) -> None:
        self._statements = statements
        self._client = client
        self._channel = channel

    def columns(self, name: str) -> Sequence[Column] | None:
        """None: there is no cursor, and no portal, of this name."""
        client, statements = self._client, self._statements
        transaction, _ = statements.transaction(
            client.transaction, self._channel, self._channel.user
        )
        return statements.cursors.columns(client, transaction, name)

    def known(self, name: str) -> Sequence[Column]:
        """Raises UndefinedCursor."""
        columns = self.columns(name)
        if columns is None:
            raise UndefinedCursor(f'portal "{name}" does not exist')
        return columns

    def close(self, name: str) -> None:
        """Nothing, if there is none of this name."""
        client, statements = self._client, self._statements
        transaction, _ = statements.transaction(
            client.transaction, self._channel, self._channel.user
        )
        statements.cursors.forget(client, transaction, name)


def fetching(name: str, limit: int) -> str:
    """The statement that an Execute of the cursor stands for; 0: all rows."""
    return f"FETCH {limit or 'ALL'} FROM {quoted_name(name)}"
