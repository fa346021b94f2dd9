"""Cursors that SQL has declared, used by the messages of the extended protocol. The answers are
those of PostgreSQL 15 to the same messages."""

from __future__ import annotations

import socket
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_login import startup

SYNC = b"S\0\0\0\4"
QUOTED = '"My ""c"'


def message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def query(text):
    return message(b"Q", text.encode() + b"\0")


def execute(name, limit=0):
    return message(b"E", name + b"\0" + struct.pack("!i", limit))


def describe(name):
    return message(b"D", b"P" + name + b"\0")


def close(name):
    return message(b"C", b"P" + name + b"\0")


def bound(name, text):
    parse = message(b"P", b"\0" + text.encode() + b"\0\0\0")
    return parse + message(b"B", name + b"\0\0" + struct.pack("!hhh", 0, 0, 0))


class Wire:
    def __init__(self, address):
        self._socket = socket.create_connection(address, timeout=60)
        self._socket.sendall(startup(user="bob", database="shop"))
        self._received = b""
        self.answer()

    def ask(self, *messages):
        self._socket.sendall(b"".join(messages))
        return self.answer()

    def _taken(self, size):
        while len(self._received) < size:
            self._received += self._socket.recv(1 << 16)
        found, self._received = self._received[:size], self._received[size:]
        return found

    def answer(self):
        """The messages up to ReadyForQuery, those with a text shown with it."""
        told = []
        while True:
            kind, size = struct.unpack("!ci", self._taken(5))
            body = self._taken(size - 4)
            if kind == b"Z":
                return " ".join([*told, body.decode()])
            if kind == b"D":
                (length,) = struct.unpack_from("!i", body, 2)
                told.append("row " + body[6 : 6 + length].hex())
            elif kind == b"C":
                told.append(body[:-1].decode())
            elif kind == b"E":
                fields = {part[:1]: part[1:] for part in body.split(b"\0") if part}
                told.append(f"{fields[b'C'].decode()}: {fields[b'M'].decode()}")
            elif kind != b"S":
                told.append(kind.decode())

    def close(self):
        self._socket.close()


@pytest.fixture
def wire(door):
    made = Wire((door["host"], door["port"]))
    yield made
    made.close()


def test_messages_use_a_cursor_that_sql_declared(wire):
    assert wire.ask(query("BEGIN")) == "BEGIN T"
    declare = "DECLARE c CURSOR FOR SELECT x FROM generate_series(1, 5) t(x)"
    assert wire.ask(query(declare)) == "DECLARE CURSOR T"
    rows = "row 31 row 32"
    assert wire.ask(describe(b"c"), execute(b"c", 2), SYNC) == f"T {rows} s T"
    assert wire.ask(query("FETCH c")) == "T row 33 FETCH 1 T"
    assert wire.ask(execute(b"c", 3), SYNC) == "row 34 row 35 SELECT 2 T"
    assert wire.ask(execute(b"c"), SYNC) == "SELECT 0 T"
    assert wire.ask(close(b"c"), SYNC) == "3 T"
    assert wire.ask(query("SELECT count(*) FROM pg_cursors")) == "T row 30 SELECT 1 T"
    assert wire.ask(close(b"c"), SYNC) == "3 T"
    assert wire.ask(execute(b"c"), SYNC) == '34000: portal "c" does not exist E'


def test_a_binary_cursor_whose_name_is_quoted(wire):
    """FETCH gives binary rows, Execute the form that a Bind has asked for: text, without one."""
    wire.ask(query("BEGIN"))
    wire.ask(query(f"DECLARE {QUOTED} BINARY CURSOR FOR VALUES (7), (8)"))
    name = b'My "c'
    assert wire.ask(query(f"FETCH {QUOTED}")) == "T row 00000007 FETCH 1 T"
    assert wire.ask(execute(name), SYNC) == "row 38 SELECT 1 T"


def test_a_cursor_with_hold_outlives_its_transaction(wire):
    declare = "DECLARE h CURSOR WITH HOLD FOR SELECT x FROM generate_series(1, 3) t(x)"
    assert wire.ask(query(declare)) == "DECLARE CURSOR I"
    assert wire.ask(execute(b"h", 1), SYNC) == "row 31 s I"
    assert wire.ask(execute(b"h", 1), execute(b"h", 2), SYNC) == "row 32 s row 33 SELECT 1 I"
    assert wire.ask(close(b"h"), SYNC) == "3 I"
    assert wire.ask(describe(b"h"), SYNC) == '34000: portal "h" does not exist I'


def test_sql_uses_a_portal_of_messages(wire):
    wire.ask(query("BEGIN"))
    series = bound(b"p", "SELECT x FROM generate_series(1, 4) t(x)")
    assert wire.ask(series, execute(b"p", 1), SYNC) == "1 2 row 31 s T"
    assert wire.ask(query("FETCH 2 FROM p")) == "T row 32 row 33 FETCH 2 T"
    assert wire.ask(execute(b"p"), SYNC) == "row 34 SELECT 1 T"
    assert wire.ask(query("CLOSE p")) == "CLOSE CURSOR T"
    assert wire.ask(describe(b"p"), SYNC) == '34000: portal "p" does not exist E'
