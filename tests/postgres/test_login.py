"""The login, packet by packet, without a socket."""

from __future__ import annotations

import base64
import hashlib
import hmac
import struct

import pytest

from remuda.catalog.passwords import hashed
from remuda.errors import FrameTooLarge, ProtocolError, RemudaError, WrongPassword
from remuda.postgres import login as pl
from remuda.postgres.login import Login, command_line_settings
from remuda.postgres.reader import UNAUTHENTICATED_SIZE_MAX, Reader
from remuda.postgres.scram import NONCE_SIZE, ScramExchange, nobody

KEYS = hashed("pencil", bytes(range(16)), 4096)
NONCE = bytes(NONCE_SIZE)


def packet(code, body=b""):
    return struct.pack("!ii", len(body) + 8, code) + body


def startup(minor=0, **settings):
    words = "".join(f"{name}\0{value}\0" for name, value in settings.items())
    return packet(3 << 16 | minor, words.encode() + b"\0")


def password(body):
    return b"p" + struct.pack("!i", len(body) + 4) + body


def first(message, mechanism=b"SCRAM-SHA-256"):
    return password(mechanism + b"\0" + struct.pack("!i", len(message)) + message)


def feed(login, reader, data):
    reader.feed(data)
    found = []
    while (effects := login.step(reader)) is not None:
        found += effects
    return found


def begin(*, tls=False):
    return Login(tls=tls), Reader()


def fields(data):
    """Of an ErrorResponse."""
    assert data[:1] == b"E", data
    return {part[:1].decode(): part[1:].decode() for part in data[5:].split(b"\0") if part}


def proof_of(secret, first_bare, server_first, final_bare):
    """A client's proof by RFC 5802, written anew."""
    parts = dict(part.split("=", 1) for part in server_first.split(","))
    salted = hashlib.pbkdf2_hmac(
        "sha256", secret.encode(), base64.b64decode(parts["s"]), int(parts["i"])
    )
    client = hmac.digest(salted, b"Client Key", "sha256")
    text = f"{first_bare},{server_first},{final_bare}".encode()
    signature = hmac.digest(hashlib.sha256(client).digest(), text, "sha256")
    proof = bytes(a ^ b for a, b in zip(client, signature, strict=True))
    server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), text, "sha256")
    return base64.b64encode(proof).decode(), base64.b64encode(server).decode()


def test_without_users_a_client_is_let_in_at_once():
    login, reader = begin()
    data = startup(user="bob", database="shop", application_name="a b", options="-c jit=off")
    assert feed(login, reader, data) == [pl.Identify("bob")]
    (opened,) = login.identified(None)
    assert opened.user == ""
    assert opened.startup.database == "shop"
    assert opened.startup.settings == (("application_name", "a b"), ("jit", "off"))


def scram(secret, keys=KEYS):
    login, reader = begin()
    feed(login, reader, startup(user="bob"))
    (asks,) = login.identified(pl.Known(keys, NONCE))
    assert b"SCRAM-SHA-256" in asks.data
    (challenge,) = feed(login, reader, first(b"n,,n=,r=abc"))
    server_first = challenge.data[9:].decode()
    nonce = server_first.split(",")[0][2:]
    bare = f"c=biws,r={nonce}"
    proof, server = proof_of(secret, "n=,r=abc", server_first, bare)
    return login, feed(login, reader, password(f"{bare},p={proof}".encode())), server


def test_a_right_password_opens_and_the_server_shows_that_it_knows_it():
    login, effects, server = scram("pencil")
    written, opened = effects
    assert written.data[9:] == f"v={server}".encode()
    assert (opened.user, opened.startup.database) == ("bob", "bob")
    assert isinstance(login.state, pl.Opening)


def test_a_wrong_password_is_answered_late():
    login, effects, _ = scram("pen")
    (delay,) = effects
    assert isinstance(delay.error, WrongPassword)
    assert delay.seconds > 0
    told, hang = login.refused(delay.error)
    assert fields(told.data)["C"] == "28P01"
    assert fields(told.data)["S"] == "FATAL"
    assert isinstance(hang, pl.Hang)


def test_a_user_that_does_not_exist_looks_like_a_wrong_password():
    keys = nobody("bob", b"key")
    assert keys == nobody("bob", b"key")
    assert keys.salt != nobody("eve", b"key").salt
    _, effects, _ = scram("pencil", keys)
    assert isinstance(effects[0], pl.Delay)


def test_the_exchange_of_rfc_7677():
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    exchange = ScramExchange("user", hashed("pencil", salt, 4096), NONCE)
    exchange._own_nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    server_first = exchange.first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").decode()
    assert server_first == (
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    last = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.last(last) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_encryption_is_refused_where_there_is_none_and_asked_for_where_there_is():
    login, reader = begin()
    assert feed(login, reader, packet(pl.SSL_REQUEST)) == [pl.Write(b"N")]
    assert feed(login, reader, packet(pl.GSSENC_REQUEST)) == [pl.Write(b"N")]
    login, reader = begin(tls=True)
    assert feed(login, reader, packet(pl.SSL_REQUEST)) == [pl.Write(b"S"), pl.Encrypt()]
    assert login.step(reader) is None
    login.encrypted()
    assert feed(login, reader, startup(user="bob")) == [pl.Identify("bob")]


def test_nobody_is_served_in_clear_where_there_is_tls():
    login, reader = begin(tls=True)
    told, _ = feed(login, reader, startup(user="bob"))
    assert "encrypted" in fields(told.data)["M"]


def test_bytes_behind_a_request_for_encryption_are_no_part_of_it():
    """A man in the middle may have put them there."""
    login, reader = begin(tls=True)
    told, _ = feed(login, reader, packet(pl.SSL_REQUEST) + startup(user="bob"))
    assert fields(told.data)["C"] == "08P01"


def test_a_later_version_is_talked_down():
    login, reader = begin()
    effects = feed(login, reader, startup(minor=2, user="bob", **{"_pq_.new": "1"}))
    expected = struct.pack("!iii", 21, 3 << 16, 1) + b"_pq_.new\0"
    assert effects == [pl.Write(b"v" + expected), pl.Identify("bob")]


def test_a_request_to_cancel_is_passed_on():
    login, reader = begin()
    data = packet(pl.CANCEL_REQUEST, struct.pack("!II", 65537, 2**32 - 1))
    effects = feed(login, reader, data)
    assert effects == [pl.CancelWork(65537, 2**32 - 1), pl.Hang(None)]


@pytest.mark.parametrize(
    "data",
    [
        packet(2 << 16, b"\0"),
        packet(3 << 16, b"user\0bob"),
        packet(3 << 16, b"user\0bob\0odd\0\0"),
        packet(3 << 16, b"user\0\xff\0\0"),
        packet(3 << 16, b"database\0x\0\0"),
        startup(user="bob", replication="database"),
        startup(user="bob", options="-Z"),
        packet(pl.CANCEL_REQUEST, b"x"),
    ],
)
def test_a_wrong_packet_is_told_and_ends_the_connection(data):
    login, reader = begin()
    told, hang = feed(login, reader, data)
    assert fields(told.data)["S"] == "FATAL"
    assert isinstance(hang, pl.Hang)
    assert login.step(reader) is None


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"p=tls-server-end-point,,n=,r=abc",
        b"n,,n=,r=",
        b"y,,x",
        b"\xff",
    ],
)
def test_a_wrong_first_message_of_scram_is_refused(message):
    login, reader = begin()
    feed(login, reader, startup(user="bob"))
    login.identified(pl.Known(KEYS, NONCE))
    told, _ = feed(login, reader, first(message))
    assert fields(told.data)["S"] == "FATAL"


def test_a_password_in_clear_wants_encryption():
    login, reader = begin()
    feed(login, reader, startup(user="bob"))
    told, _ = login.identified(pl.Known(KEYS, NONCE, clear=True))
    assert fields(told.data)["C"] == "28000"
    login, reader = begin(tls=True)
    feed(login, reader, packet(pl.SSL_REQUEST))
    login.encrypted()
    feed(login, reader, startup(user="bob"))
    login.identified(pl.Known(KEYS, NONCE, clear=True))
    (verify,) = feed(login, reader, password(b"pencil\0"))
    assert (verify.credentials.user, verify.credentials.password) == ("bob", "pencil")
    (opened,) = login.checked("bob")
    assert opened.user == "bob"


def test_a_stranger_may_not_send_much():
    reader = Reader()
    with pytest.raises(FrameTooLarge):
        reader.feed(bytes(UNAUTHENTICATED_SIZE_MAX + 1))
    reader = Reader()
    reader.feed(struct.pack("!i", 1 << 30) + bytes(8))
    with pytest.raises(ProtocolError):
        reader.take_startup()


def test_settings_of_the_command_line():
    assert command_line_settings(r"-c a=b\ c --d-e=f -cg=h") == [
        ("a", "b c"),
        ("d_e", "f"),
        ("g", "h"),
    ]
    with pytest.raises(RemudaError):
        command_line_settings("-c a")
