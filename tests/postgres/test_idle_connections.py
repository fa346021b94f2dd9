"""Two thousand connections that rest: each costs a member little memory, and all are served."""

from __future__ import annotations

import resource
import socket
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_fuzz_member import resident
from test_login import startup

CONNECTIONS = 2_000
EACH_MAX = 64 << 10
"""Bytes of the member's memory."""
READY = b"Z\0\0\0\5I"


def answered(connection):
    received = b""
    while not received.endswith(READY):
        data = connection.recv(1 << 16)
        assert data, received
        received += data
    return received


def opened(door):
    connection = socket.create_connection((door["host"], door["port"]), timeout=60)
    connection.sendall(startup(user="bob", database="shop"))
    answered(connection)
    return connection


@pytest.mark.soak
def test_idle_connections_cost_little(cluster, door, connection):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < CONNECTIONS + 500:
        pytest.skip(f"this process may open {hard} files only")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CONNECTIONS + 500), hard))
    pid = cluster.pids[0]
    first = [opened(door) for _ in range(100)]
    before = resident(pid)
    rest = [opened(door) for _ in range(CONNECTIONS - len(first))]
    each = (resident(pid) - before) / len(rest)
    query = struct.pack("!ci", b"Q", 13) + b"SELECT 1\0"
    for idle in (first + rest)[::50]:
        idle.sendall(query)
        assert b"\0\0\0\x011" in answered(idle)
    count = "SELECT count(*) FROM pg_stat_activity"
    assert connection.execute(count).fetchone()[0] >= CONNECTIONS
    for idle in first + rest:
        idle.close()
    assert each < EACH_MAX, f"{each:.0f} bytes for each connection"
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
