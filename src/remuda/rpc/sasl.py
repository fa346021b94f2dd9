"""Proofs of identity: the exchanges by which a client shows its user and members show that they
belong to one cluster. Pure; random numbers come from outside.

Users (user channel): SASL's PLAIN, as Drill has it: ``authorize as\\0user\\0password``.

Members (control and data channel): both sides know the cluster's secret and show it to each other
without sending it. With the nonces C and S of the connecting and the accepting side::

    connecting                                    accepting
    START        C                          ->
                                            <-    IN_PROGRESS  S
    IN_PROGRESS  HMAC(secret, "c" channel C S) ->
                                            <-    SUCCESS      HMAC(secret, "s" channel C S)

The connecting side goes first, so that a stranger who only connects gets nothing to guess from. The
proofs name channel and direction, so that none serves in another place.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from remuda.errors import AuthenticationFailed, ProtocolError
from remuda.rpc.handshake import ChannelKind
from remuda.rpc.messages import control_pb2, data_pb2, user_pb2

PLAIN: Final = "PLAIN"
SECRET: Final = "REMUDA-SECRET-SHA-256"  # noqa: S105 (a name)
NONCE_SIZE: Final = 32
TAG_SIZE: Final = 8
"""The first bytes of a nonce are the same for all of one process: so it knows its own ones, and
takes no part in an exchange with itself that somebody passes to and fro."""
SECRET_SIZE_MIN: Final = 16
DATA_SIZE_MAX: Final = 4096
"""Of one message of an exchange."""
MESSAGE_TYPES: Final = {
    ChannelKind.USER: int(user_pb2.SASL_MESSAGE),
    ChannelKind.CONTROL: int(control_pb2.SASL_MESSAGE),
    ChannelKind.DATA: int(data_pb2.SASL_MESSAGE),
}
"""The number of SASL messages on each channel."""
SASL_SUPPORT: Final = 1
"""In a user's handshake: this client knows SASL."""
PASSWORD_PROPERTY: Final = "password"  # noqa: S105 (a name)
"""In a user's handshake, where clients that do not know SASL put it."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The name and password that a user has sent, still to be checked."""

    user: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Challenge:
    """The exchange goes on."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Shown:
    """The other side is who it says; ``data`` goes with SUCCESS."""

    user: str
    data: bytes = b""


Step: TypeAlias = Challenge | Shown | Credentials


class ServerExchange(Protocol):
    """The accepting side. Raises AuthenticationFailed and ProtocolError."""

    mechanism: str

    def step(self, data: bytes) -> Step: ...


class ClientExchange(Protocol):
    """The connecting side. Raises AuthenticationFailed and ProtocolError."""

    mechanism: str
    mutual: bool
    """The other side must show itself, too: it may not let this side in just so."""

    def first(self) -> bytes: ...
    def next(self, data: bytes) -> bytes: ...
    def last(self, data: bytes) -> None: ...


# --- users -------------------------------------------------------------------------------------


class PlainClient:
    mechanism = PLAIN
    mutual = False

    def __init__(self, user: str, password: str) -> None:
        self._message = f"{user}\0{user}\0{password}".encode()

    def first(self) -> bytes:
        return self._message

    def next(self, data: bytes) -> bytes:  # noqa: ARG002
        raise ProtocolError("the server goes on with PLAIN, which has one step")

    def last(self, data: bytes) -> None:
        """Nothing follows."""


class PlainServer:
    mechanism = PLAIN

    def step(self, data: bytes) -> Step:
        return plain_credentials(data)


def plain_credentials(data: bytes) -> Credentials:
    """Raises ProtocolError, and AuthenticationFailed for one who wants to act as another."""
    try:
        parts = data.decode().split("\0")
    except UnicodeDecodeError:
        raise ProtocolError("a PLAIN message that is not UTF-8") from None
    if len(parts) != 3 or not parts[1]:
        raise ProtocolError("a PLAIN message that is not: authorize as, NUL, user, NUL, password")
    authorized, user, password = parts
    if authorized not in ("", user):
        raise AuthenticationFailed(f'user "{user}" cannot act as "{authorized}"')
    return Credentials(user, password)


def hello_credentials(hello: user_pb2.UserToBitHandshake) -> Credentials | None:
    """User and password of a handshake that has both (clients that do not know SASL)."""
    user = hello.credentials.user_name
    for item in hello.properties.properties:
        if item.key == PASSWORD_PROPERTY and user:
            return Credentials(user, item.value)
    return None


# --- members -----------------------------------------------------------------------------------


def _proof(secret: bytes, side: str, kind: ChannelKind, client: bytes, server: bytes) -> bytes:
    text = f"remuda member {side} {kind.value}\0".encode()
    return hmac.digest(secret, text + client + server, "sha256")


def _foreign(nonce: bytes, mine: bytes) -> bool:
    return len(nonce) == NONCE_SIZE and nonce[:TAG_SIZE] != mine[:TAG_SIZE]


class SecretClient:
    mechanism = SECRET
    mutual = True

    def __init__(self, secret: bytes, kind: ChannelKind, nonce: bytes) -> None:
        self._secret, self._kind, self._mine = secret, kind, nonce
        self._theirs = b""

    def first(self) -> bytes:
        return self._mine

    def next(self, data: bytes) -> bytes:
        if self._theirs or not _foreign(data, self._mine):
            raise ProtocolError("the other member's challenge is no nonce of another one")
        self._theirs = data
        return _proof(self._secret, "connecting", self._kind, self._mine, data)

    def last(self, data: bytes) -> None:
        wanted = _proof(self._secret, "accepting", self._kind, self._mine, self._theirs)
        if not self._theirs or not hmac.compare_digest(data, wanted):
            raise AuthenticationFailed(
                "the other side does not know the secret of this cluster",
                hint="All members of a cluster need the same secret file.",
            )


class SecretServer:
    mechanism = SECRET

    def __init__(self, secret: bytes, kind: ChannelKind, nonce: bytes) -> None:
        self._secret, self._kind, self._mine = secret, kind, nonce
        self._theirs = b""

    def step(self, data: bytes) -> Step:
        if not self._theirs:
            if not _foreign(data, self._mine):
                raise ProtocolError("the first message of the exchange is no nonce")
            self._theirs = data
            return Challenge(self._mine)
        wanted = _proof(self._secret, "connecting", self._kind, self._theirs, self._mine)
        if not hmac.compare_digest(data, wanted):
            raise AuthenticationFailed(
                "the connecting side does not know the secret of this cluster",
                hint="All members of a cluster need the same secret file.",
            )
        return Shown("", _proof(self._secret, "accepting", self._kind, self._theirs, self._mine))
