"""BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, RELEASE, and the modes of SET
TRANSACTION."""

from __future__ import annotations

from typing import Final

from remuda.errors import Position
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.trees.transaction import (
    BeginTree,
    CommitTree,
    ReleaseTree,
    RollbackToTree,
    RollbackTree,
    SavepointTree,
    SetTransactionTree,
    TransactionTree,
)
from remuda.transaction.isolation import Isolation, Modes

WORDS: Final = ("begin", "start", "commit", "rollback", "end", "abort", "savepoint", "release")
_LEVELS: Final = {
    ("serializable",): Isolation.SERIALIZABLE,
    ("repeatable", "read"): Isolation.REPEATABLE_READ,
    ("read", "committed"): Isolation.READ_COMMITTED,
    ("read", "uncommitted"): Isolation.READ_UNCOMMITTED,
}


class TransactionParser(TokenReader):
    """Reads from the first word on."""

    def statement(self) -> TransactionTree:
        position = self.position()
        word = self.word()
        self.index += 1
        match word:
            case "begin":
                self._block()
                return BeginTree(self._modes(), "BEGIN", position)
            case "start":
                self.expect("transaction")
                return BeginTree(self._modes(), "START TRANSACTION", position)
            case "commit" | "end":
                if word == "commit" and self.accept("prepared"):
                    self._prepared()
                self._block()
                return CommitTree(self._chain(), position)
            case "rollback" | "abort":
                return self._rollback(position, to=word == "rollback")
            case "savepoint":
                name = self.name()
                self.end()
                return SavepointTree(name.text, name.position)
            case _:
                self.accept("savepoint")
                name = self.name()
                self.end()
                return ReleaseTree(name.text, name.position)

    def set_transaction(self, *, session: bool) -> SetTransactionTree:
        """The modes behind SET TRANSACTION, or SET SESSION CHARACTERISTICS AS TRANSACTION."""
        position = self.position()
        if not session and self.accept("snapshot"):
            self.unsupported(
                "SET TRANSACTION SNAPSHOT", "an ISOLATION LEVEL, READ ONLY, READ WRITE"
            )
        modes = self._modes(needed=True)
        return SetTransactionTree(modes, session, position)

    def _rollback(self, position: Position, *, to: bool) -> TransactionTree:
        if to and self.accept("prepared"):
            self._prepared()
        self._block()
        if to and self.accept("to"):
            self.accept("savepoint")
            name = self.name()
            self.end()
            return RollbackToTree(name.text, name.position)
        return RollbackTree(self._chain(), position)

    def _block(self) -> None:
        if not self.accept("work"):
            self.accept("transaction")

    def _chain(self) -> bool:
        chain = False
        if self.accept("and"):
            chain = not self.accept("no")
            self.expect("chain")
        self.end()
        return chain

    def _modes(self, *, needed: bool = False) -> Modes:
        modes = Modes()
        first = True
        while self.index < len(self.tokens) or (needed and first):
            if not first:
                self.accept(",")
            first = False
            modes = self._mode().over(modes)
        return modes

    def _mode(self) -> Modes:
        if self.accept("isolation"):
            self.expect("level")
            for words, level in _LEVELS.items():
                if self.accept(*words):
                    return Modes(isolation=level)
            self.fail(
                "The levels are SERIALIZABLE, REPEATABLE READ, READ COMMITTED, READ UNCOMMITTED."
            )
        if self.accept("read", "only"):
            return Modes(read_only=True)
        if self.accept("read", "write"):
            return Modes(read_only=False)
        if self.accept("pessimistic"):
            return Modes(pessimistic=True)
        if self.accept("optimistic"):
            return Modes(pessimistic=False)
        if self.accept("not", "deferrable"):
            return Modes(deferrable=False)
        if self.accept("deferrable"):
            return Modes(deferrable=True)
        return self.fail(
            "Expected: ISOLATION LEVEL, READ ONLY, READ WRITE, PESSIMISTIC, OPTIMISTIC."
        )

    def _prepared(self) -> None:
        self.unsupported("two-phase commit by the client", "COMMIT and ROLLBACK")
