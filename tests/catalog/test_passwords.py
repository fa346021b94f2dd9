"""What is kept of passwords."""

from __future__ import annotations

import base64
import hmac

import pytest

from remuda.catalog.passwords import ITERATIONS_MIN, hashed, parse_hash
from remuda.errors import InputError

# RFC 7677, section 3: user "user", password "pencil"; its client proof was made from these keys.
RFC_SALT = b"\x5b\x6d\x99\x68\x9d\x12\x35\x8e\xec\xa0\x4b\x14\x12\x36\xfa\x81"


def test_the_keys_are_those_of_the_rfc():
    """The server's signature of the RFC's example follows from the server key."""
    kept = hashed("pencil", RFC_SALT, 4096)
    message = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,"
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,"
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(kept.server_key, message.encode(), "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_text_and_back():
    kept = hashed("secret", bytes(range(16)), ITERATIONS_MIN)
    again = parse_hash(kept.text())
    assert again == kept
    assert again.matches("secret")
    assert not again.matches("Secret")
    assert not again.matches("")
    assert "secret" not in kept.text() + repr(kept)


def test_a_password_is_the_same_however_it_is_composed():
    kept = hashed("caf\u00e9 \u2460", bytes(16), ITERATIONS_MIN)
    assert kept.matches("cafe\u0301 1")


@pytest.mark.parametrize(
    "password",
    ["", "x" * 1025, "a\nb", "a\0b", "\udc80"],
    ids=["empty", "long", "line", "nul", "no"],
)
def test_what_is_no_password(password):
    with pytest.raises(InputError, match="password"):
        hashed(password, bytes(16), ITERATIONS_MIN)


GOOD = hashed("x", bytes(16), ITERATIONS_MIN).text()


@pytest.mark.parametrize(
    "text",
    [
        "", "secret", "md5abc", GOOD.replace("SHA-256", "SHA-1"), GOOD + "$", GOOD[:-8],
        GOOD.replace("4096", "1"), GOOD.replace("4096", "99999999"), GOOD.replace("4096", "x"),
        GOOD.replace("=", "!"), "SCRAM-SHA-256$4096:$" + GOOD.split("$")[2],
    ],
)  # fmt: skip
def test_what_is_no_hash(text):
    with pytest.raises(InputError, match="hash"):
        parse_hash(text)
