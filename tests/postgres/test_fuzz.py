"""Mutated messages before and after the login: the machines answer each with an error or an end,
never with an exception, and keep no more than a message."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from random import Random

import pytest

from remuda.catalog.passwords import hashed
from remuda.errors import ProtocolError
from remuda.postgres import login as pl
from remuda.postgres.login import Login
from remuda.postgres.reader import UNAUTHENTICATED_SIZE_MAX, Reader
from remuda.postgres.scram import NONCE_SIZE

sys.path.insert(0, str(Path(__file__).parent))
from test_login import first, packet, password, startup
from test_session import DESCRIBE, SYNC, Shell, bind, execute, message, parse, query, read

ROUNDS = int(os.environ.get("REMUDA_FUZZ_POSTGRES", "3000"))
SOAK_ROUNDS = 1_000_000
KEYS = hashed("pencil", bytes(16), 4096)
STRANGERS = (
    startup(user="bob", database="shop", options="-c a=b"),
    packet(pl.SSL_REQUEST),
    packet(pl.CANCEL_REQUEST, bytes(8)),
    first(b"n,,n=,r=abc"),
    password(b"c=biws,r=abc,p=AAAA"),
    password(b"pencil\0"),
)
FRIENDS = (
    query("SELECT 1;INSERT 2"),
    parse("SELECT $", b"s", (23,)),
    parse("INSERT"),
    bind(b"p", b"s", [b"1"], [1], [1]),
    bind(),
    execute(b"p", 3),
    execute(),
    read(b"s", [b"1"], DESCRIBE),
    read(b"", [], limit=1),
    message(b"D", b"Ss\0"),
    message(b"D", b"P\0"),
    message(b"C", b"Ss\0"),
    message(b"H"),
    message(b"F"),
    message(b"d", b"1\t2\n"),
    SYNC,
)


def mutated(random: Random, data: bytes) -> bytes:
    """``data`` with a few bytes changed, cut out, repeated or put in."""
    found = bytearray(data)
    for _ in range(random.choice((0, 1, 1, 2, 5))):
        place = random.randrange(len(found) + 1)
        match random.randrange(4):
            case 0 if place < len(found):
                found[place] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
            case 1:
                del found[place : place + random.randrange(5)]
            case 2:
                found[place:place] = found[place : place + random.randrange(9)]
            case _:
                found[place:place] = random.randbytes(random.randrange(5))
    return bytes(found)


def attack_login(random: Random) -> None:
    login, reader = Login(tls=random.random() < 0.3), Reader()
    for _ in range(random.randrange(1, 5)):
        try:
            reader.feed(mutated(random, random.choice(STRANGERS)))
            while (effects := login.step(reader)) is not None:
                perform(random, login, effects)
        except ProtocolError:
            return  # the shell closes the connection
        assert len(reader) <= UNAUTHENTICATED_SIZE_MAX


def perform(random: Random, login: Login, effects: list[pl.Effect]) -> None:
    for effect in effects:
        match effect:
            case pl.Identify():
                known = pl.Known(KEYS, bytes(NONCE_SIZE), random.random() < 0.3)
                perform(random, login, login.identified(known))
            case pl.Encrypt():
                login.encrypted()
            case pl.Open():
                raise AssertionError("let in without a password")


def attack_session(random: Random) -> None:
    shell = Shell(random.choice(("take", "decline")))
    for _ in range(random.randrange(1, 6)):
        shell.send(mutated(random, random.choice(FRIENDS)))
    if shell.asked and shell.asked[-1].startswith("end "):
        return
    waits = len(shell.reader)
    shell.send(SYNC)
    if len(shell.reader) == 0 and waits == 0:  # no length was changed: the session goes on
        assert struct.unpack_from("!c", shell.told[-6:])[0] == b"Z", shell.told


def attack(rounds: int) -> None:
    for seed in range(rounds):
        random = Random(seed)
        (attack_login if seed % 2 else attack_session)(random)


def test_mutated_messages_do_no_harm() -> None:
    attack(ROUNDS)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_mutated_messages_do_no_harm() -> None:
    attack(SOAK_ROUNDS)
