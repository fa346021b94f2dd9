"""What completion shows of clients: the public names, and nothing of Remuda's inside."""

from __future__ import annotations

from remuda.client.asynchronous.client import Client as AsyncClient
from remuda.client.blocking.client import Client
from remuda.client.core.core import Core
from remuda.client.network.address import parse_addresses
from remuda.client.network.connections import BlockingPorts
from remuda.client.network.ports import checked_settings

PUBLIC = {
    "activity", "addresses", "cluster_info", "close", "create_map", "describe", "describe_map",
    "drop_map",
    "execute_many", "ids", "map", "prepare", "query", "run_transaction", "snapshots", "sql",
    "transaction", "transaction_state", "watch", "with_timeout",
    "abort_job", "begin_job", "commit_job",
    "copy_from",
    "copy_to",
}  # fmt: skip


def names_of(client: object) -> set[str]:
    return {name for name in dir(client) if not name.startswith("_")}


def test_clients_show_their_public_names_only() -> None:
    core = Core(
        parse_addresses("127.0.0.1:1"),
        checked_settings(
            application="test",
            retry_reads=0,
            connect_timeout=1.0,
            request_timeout=1.0,
            max_connections=None,
        ),
        BlockingPorts(),
    )
    assert names_of(Client(core)) == {"pipeline", *PUBLIC}  # asyncio.gather is the other face's
    assert names_of(AsyncClient(core)) == PUBLIC
