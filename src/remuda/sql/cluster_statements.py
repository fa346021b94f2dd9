"""Statements about the cluster itself, and about the work of others::

ALTER CLUSTER ACCEPT LOST PARTITIONS
ALTER CLUSTER DRAIN MEMBER number
CANCEL QUERY 'id'  |  CANCEL TRANSACTION 'id'
"""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

from remuda.sql.cluster_trees import AcceptLossTree, CancelTree, ClusterTree, DrainTree
from remuda.sql.token_reader import TokenReader

TAG: Final = "ALTER CLUSTER"
CANCEL: Final = "cancel"
_ALTERATIONS: Final = "ALTER CLUSTER ACCEPT LOST PARTITIONS, ALTER CLUSTER DRAIN MEMBER number"
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
        if not self.accept("accept", "lost", "partitions"):
            self.unsupported(f"ALTER CLUSTER {self.word().upper()}".rstrip(), _ALTERATIONS)
        self.end()
        return AcceptLossTree()

    def _drain(self) -> DrainTree:
        position, token = self.position(), self.peek()
        if token is None or token.token_type is not TokenType.NUMBER or not token.text.isdecimal():
            self.fail(_NUMBER_HINT)
        self.index += 1
        self.end()
        return DrainTree(int(token.text), position)


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
