"""Statements about the cluster itself::

ALTER CLUSTER ACCEPT LOST PARTITIONS
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from remuda.sql.cluster_trees import AcceptLossTree
from remuda.sql.token_reader import TokenReader

TAG = "ALTER CLUSTER"


def is_cluster_statement(tokens: list[Token]) -> bool:
    """By its first two words."""
    return [token.text.lower() for token in tokens[:2]] == ["alter", "cluster"]


class ClusterParser(TokenReader):
    def statement(self) -> AcceptLossTree:
        """From its first word on."""
        self.expect("alter")
        self.expect("cluster")
        if not self.accept("accept", "lost", "partitions"):
            self.unsupported(
                f"ALTER CLUSTER {self.word().upper()}".rstrip(),
                "ALTER CLUSTER ACCEPT LOST PARTITIONS",
            )
        self.end()
        return AcceptLossTree()
