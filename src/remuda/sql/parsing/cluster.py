"""Statements about the cluster itself, and about the work of others::

ALTER CLUSTER ACCEPT LOST PARTITIONS
ALTER CLUSTER DRAIN MEMBER number
ALTER CLUSTER RESET STATEMENT STATISTICS
ALTER CLUSTER SET LOG LEVEL level [FOR part] [ON MEMBER number]
CANCEL QUERY 'id'  |  CANCEL TRANSACTION 'id'
"""

from __future__ import annotations

from typing import Final

from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.trees.cluster import (
    AcceptLossTree,
    CancelTree,
    ClusterTree,
    DrainTree,
    LogLevelTree,
    ResetStatementsTree,
)

TAG: Final = "ALTER CLUSTER"
CANCEL: Final = "cancel"
_ALTERATIONS: Final = (
    "ALTER CLUSTER ACCEPT LOST PARTITIONS, ALTER CLUSTER DRAIN MEMBER number, "
    "ALTER CLUSTER RESET STATEMENT STATISTICS, ALTER CLUSTER SET LOG LEVEL level"
)
_LEVEL_HINT: Final = (
    "ALTER CLUSTER SET LOG LEVEL level [FOR part] [ON MEMBER number]: the levels "
    "are debug, info, warning, error, and default."
)
_PART_HINT: Final = "A part is named as JSON lines of the log have it: 'member.membership'."
LEVELS: Final = ("debug", "info", "warning", "error", "default")
"""``default``: a part has the level of the part around it, the whole log that of ``log_level``."""
_NUMBER_HINT: Final = "The member is named by its number, as sys.members shows it."


def is_cluster_statement(tokens: list[Token]) -> bool:
    """By its first two words."""
    return [token.text.lower() for token in tokens[:2]] == ["alter", "cluster"]


class ClusterParser(TokenReader):
    def statement(self) -> ClusterTree:
        """From its first word on."""
        self.expect("alter")
        self.expect("cluster")
        if self.accept("drain", "member"):
            return self._drain()
        if self.accept("reset", "statement", "statistics"):
            self.end()
            return ResetStatementsTree()
        if self.accept("set", "log", "level"):
            return self._log_level()
        if not self.accept("accept", "lost", "partitions"):
            self.unsupported(f"ALTER CLUSTER {self.word().upper()}".rstrip(), _ALTERATIONS)
        self.end()
        return AcceptLossTree()

    def _drain(self) -> DrainTree:
        position, number = self.position(), self._number()
        self.end()
        return DrainTree(number, position)

    def _number(self) -> int:
        token = self.peek()
        if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            self.fail(_NUMBER_HINT)
        self.index += 1
        return int(token.text)

    def _log_level(self) -> LogLevelTree:
        level = self._text(_LEVEL_HINT).lower()
        if level not in LEVELS:
            self.index -= 1
            self.fail(_LEVEL_HINT)
        part, member, position = "", None, self.position()
        if self.accept("for"):
            position = self.position()
            part = self._text(_PART_HINT)
            while self.accept("."):
                part += "." + self._text(_PART_HINT)
        if self.accept("on", "member"):
            position, member = self.position(), self._number()
        self.end()
        return LogLevelTree(part, level, member, position)

    def _text(self, hint: str) -> str:
        """A word, or a string."""
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            self.index += 1
            return token.text
        return self.name(hint).text


class CancelParser(TokenReader):
    def statement(self) -> CancelTree:
        """From its first word on."""
        self.expect(CANCEL)
        transaction = self.accept("transaction")
        if not transaction:
            self.expect("query", hint="CANCEL QUERY 'id', or CANCEL TRANSACTION 'id'.")
        shown = "sys.transactions" if transaction else "sys.queries"
        position = self.position()
        name = self.string(f"The id stands in quotes, as {shown} shows it.").text
        self.end()
        return CancelTree(name, transaction, position)
