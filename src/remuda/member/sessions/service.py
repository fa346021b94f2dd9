"""Open transactions of a member's clients: their parts, wired together."""

from __future__ import annotations

from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.wing import Requests, Routes, Wing
from remuda.member.maps.changes import MapChanges
from remuda.member.maps.maps import Maps
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.sessions.committing import Committing
from remuda.member.sessions.keys import KeyReader
from remuda.member.sessions.maps import TransactionMaps
from remuda.member.sessions.openings import Openings
from remuda.member.sessions.pins import TransactionPins
from remuda.member.sessions.requests import TransactionRequests
from remuda.member.sessions.session import TransactionSessions
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType


class TransactionService(Wing):
    def __init__(
        self,
        core: Core,
        peers: Peers,
        *,
        membership: Membership,
        maps: Maps,
        changes: MapChanges,
        committing: Committing,
        catalog: CatalogService,
    ) -> None:
        self.keys = KeyReader(maps)
        self.sessions = TransactionSessions(core, membership, committing, self.keys, catalog)
        self.pins = TransactionPins(core, peers, self.sessions)
        openings = Openings(core, self.sessions)
        served = TransactionMaps(core, maps, self.sessions, self.keys, openings)
        self._requests = TransactionRequests(core, self.sessions, openings, served)
        maps.serve_transactions(served)
        changes.serve_transactions(served)

    def routes(self) -> Routes:
        user: Requests = {
            RpcType.TRANSACTION_BEGIN: self._requests.on_begin,
            RpcType.TRANSACTION_END: self._requests.on_end,
            RpcType.TRANSACTION_SAVEPOINT: self._requests.on_savepoint,
            RpcType.TRANSACTION_SUSPEND: self._requests.on_suspend,
        }
        return Routes(user=user, control={ControlType.TRANSACTION_PIN: self.pins.on_pin})

    def start(self) -> None:
        self.pins.start()
        self.sessions.definitions.begin()

    def gauges(self) -> dict[str, int]:
        return {"transactions": len(self.sessions)}

    def close(self) -> None:
        self.sessions.close()
