"""The short ways of SELECT: by key, and by a secondary index that finds few rows."""

from __future__ import annotations

from collections.abc import Callable

from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.maps.entry_reads import EntryReads
from remuda.member.maps.index_reads import IndexReads
from remuda.member.maps.maps import Maps
from remuda.member.maps.point_reads import PointReads
from remuda.member.transactions.transactions import Transactions
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request


class ShortReads:
    def __init__(self, core: Core, peers: Peers, maps: Maps, transactions: Transactions) -> None:
        self.entries = EntryReads(core, peers, maps)
        self.by_key = PointReads(core, maps, self.entries)
        self.by_index = IndexReads(core, peers, maps, transactions)

    def routes(self) -> dict[int, Callable[[Request], None]]:
        """Of the control channel."""
        return {
            RpcType.INDEX_READ: self.by_index.on_read,
            RpcType.ENTRY_READ: self.entries.on_read,
        }
