"""Open transactions of a member's clients: their parts, wired together."""

from __future__ import annotations

from collections.abc import Callable

from remuda.member.core import Core
from remuda.member.map_changes import MapChanges
from remuda.member.maps import Maps
from remuda.member.membership import Membership
from remuda.member.peers import Peers
from remuda.member.transaction_keys import KeyReader
from remuda.member.transaction_maps import TransactionMaps
from remuda.member.transaction_openings import Openings
from remuda.member.transaction_pins import TransactionPins
from remuda.member.transaction_requests import TransactionRequests
from remuda.member.transaction_session import Committing, TransactionSessions
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import Request


class TransactionService:
    def __init__(
        self,
        core: Core,
        peers: Peers,
        *,
        membership: Membership,
        maps: Maps,
        changes: MapChanges,
        committing: Committing,
    ) -> None:
        self.keys = KeyReader(maps)
        self.sessions = TransactionSessions(core, membership, committing, self.keys)
        self.pins = TransactionPins(core, peers, self.sessions)
        openings = Openings(core, self.sessions)
        served = TransactionMaps(core, maps, self.sessions, self.keys, openings)
        self._requests = TransactionRequests(core, self.sessions, openings, served)
        maps.transactional = changes.transactional = served

    def requests(self) -> dict[int, Callable[[Request], None]]:
        """What the user channel serves."""
        return {
            RpcType.TRANSACTION_BEGIN: self._requests.on_begin,
            RpcType.TRANSACTION_END: self._requests.on_end,
            RpcType.TRANSACTION_SAVEPOINT: self._requests.on_savepoint,
            RpcType.TRANSACTION_SUSPEND: self._requests.on_suspend,
        }

    def gauges(self) -> dict[str, int]:
        return {"transactions": len(self.sessions)}

    def close(self) -> None:
        self.pins.close()
        self.sessions.close()
