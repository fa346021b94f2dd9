"""Mutated messages over real sockets to a real member: it stays, answers others, and its memory
does not grow with them."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path
from random import Random

import psycopg
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_fuzz import FRIENDS, STRANGERS, mutated
from test_login import startup
from test_session import SYNC

CONNECTIONS = 4_000
GROWTH_MAX = 64 << 20
"""Bytes between the first quarter of the attack and its end."""


def resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1])
    return pages * 4096


def attack(random: Random, address: tuple[str, int]) -> None:
    """One connection: before its login or, by turns, behind it."""
    # The member may hang up at any message; a silent one is a TimeoutError, which fails the test.
    with (
        socket.create_connection(address, timeout=60) as attacker,
        contextlib.suppress(ConnectionError),
    ):
        kinds = STRANGERS
        if random.random() < 0.7:
            attacker.sendall(startup(user="bob", database="shop"))
            kinds = FRIENDS
        for _ in range(random.randrange(1, 12)):
            attacker.sendall(mutated(random, random.choice(kinds)))
        attacker.sendall(SYNC)
        with contextlib.suppress(OSError):  # it is closed already
            attacker.shutdown(socket.SHUT_WR)
        while attacker.recv(1 << 16):
            pass


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_member_outlives_mutated_messages(cluster, connection):
    member = cluster.members[0]
    host, port = member.postgres.split(":")
    pid = cluster.pids[0]
    random, before = Random(7), 0
    for index in range(CONNECTIONS):
        if index == CONNECTIONS // 4:
            before = resident(pid)
        attack(random, (host, int(port)))
    assert connection.execute("SELECT 6 * 7").fetchone() == (42,)
    assert resident(pid) - before < GROWTH_MAX
    with psycopg.connect(host=host, port=port, user="bob", dbname="shop") as fresh:
        errors = fresh.execute("SELECT sum(internal_errors) FROM sys.members").fetchone()
    assert errors == (0,)
