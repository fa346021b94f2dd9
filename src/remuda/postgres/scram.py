"""SCRAM-SHA-256 (RFC 5802, RFC 7677): the server's side. Pure; random numbers come from outside.

The users' file keeps the keys that SCRAM needs, in PostgreSQL's form, so nothing else is stored for
this protocol, and the password itself never crosses the network.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from typing import Final

from remuda.catalog.passwords import ITERATIONS, SALT_SIZE, PasswordHash
from remuda.errors import AuthenticationFailed, ProtocolError, WrongPassword

MECHANISM: Final = "SCRAM-SHA-256"
NONCE_SIZE: Final = 18
"""Bytes of the server's part of the nonce."""
_CLIENT_FIRST: Final = re.compile(
    r"(?P<header>(?P<binding>[ny]|p=[A-Za-z0-9.-]+),(?:a=[^,]*)?,)"
    r"(?P<bare>n=[^,]*,r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^,]*)*)"
)
_CLIENT_FINAL: Final = re.compile(
    r"(?P<bare>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?:,[A-Za-z]=[^,]*)*),p=(?P<proof>[A-Za-z0-9/+=]+)"
)


def nobody(user: str, key: bytes) -> PasswordHash:
    """The keys of a user that does not exist: always the same salt for a name, so nobody can tell
    from the exchange which users there are. No password matches them."""
    salt = hmac.digest(key, b"salt " + user.encode("utf-8", "replace"), "sha256")[:SALT_SIZE]
    stored = hmac.digest(key, b"stored " + salt, "sha256")
    return PasswordHash(ITERATIONS, salt, stored, hmac.digest(key, b"server " + salt, "sha256"))


class ScramExchange:
    """``first`` answers the client's first message, ``last`` its second one."""

    def __init__(self, user: str, password: PasswordHash, nonce: bytes) -> None:
        """``nonce``: ``NONCE_SIZE`` random bytes."""
        self._user = user
        self._password = password
        self._own_nonce = b64encode(nonce).decode()
        self._header = ""
        self._nonce = ""
        self._signed = ""

    def first(self, data: bytes) -> bytes:
        """Raises ProtocolError, and AuthenticationFailed for channel binding."""
        match = _CLIENT_FIRST.fullmatch(_text(data))
        if match is None:
            raise ProtocolError("malformed SCRAM message: not a client's first message")
        if match["binding"].startswith("p"):
            raise AuthenticationFailed(
                "this server does not support SCRAM channel binding",
                hint="Connect with channel_binding=prefer or channel_binding=disable.",
            )
        self._header = match["header"]
        self._nonce = match["nonce"] + self._own_nonce
        salt = b64encode(self._password.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._password.iterations}"
        self._signed = f"{match['bare']},{answer}"
        return answer.encode()

    def last(self, data: bytes) -> bytes:
        """The proof for the client that the server knows the user. Raises ProtocolError,
        WrongPassword."""
        match = _CLIENT_FINAL.fullmatch(_text(data))
        if match is None:
            raise ProtocolError("malformed SCRAM message: not a client's final message")
        if _decoded(match["binding"]) != self._header.encode():
            raise ProtocolError("SCRAM channel binding does not match the first message")
        if not hmac.compare_digest(match["nonce"], self._nonce):
            raise ProtocolError("SCRAM nonce does not match")
        signed = f"{self._signed},{match['bare']}".encode()
        proof = _decoded(match["proof"])
        signature = hmac.digest(self._password.stored_key, signed, "sha256")
        if len(proof) != len(signature):
            raise ProtocolError("malformed SCRAM message: the proof has a wrong length")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.sha256(client_key).digest(), self._password.stored_key):
            raise wrong_password(self._user)
        server = hmac.digest(self._password.server_key, signed, "sha256")
        return b"v=" + b64encode(server)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ProtocolError("malformed SCRAM message: not valid UTF-8") from None


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("malformed SCRAM message: not valid base64") from None


def wrong_password(user: str) -> WrongPassword:
    """In PostgreSQL's words, which programs look for."""
    return WrongPassword(f'password authentication failed for user "{user}"')
