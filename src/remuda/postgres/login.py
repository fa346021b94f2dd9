"""From the first packet of a connection to its open session: a pure state machine.

::

    Starting ── SSLRequest ──► Encrypting ── TLS is on ──► Starting
       │ StartupMessage
       ▼
    Identifying (the shell looks the user up) ── no users ──► Opening
       │ a user
       ├── ScramFirst ──► ScramFinal ──┐
       └── AwaitingPassword ─► Checking┤
                                       ▼
                                    Opening (the shell opens the session) ──► done
    any state ── refusal ──► Refused

Each state holds what that state knows, and nothing else. ``step`` takes one packet from the reader;
the answers of the shell come back by ``encrypted``, ``identified``, ``checked`` and ``refused``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, TypeAlias

from remuda.catalog.passwords import PasswordHash
from remuda.errors import (
    AuthenticationFailed,
    ProtocolError,
    RemudaError,
    TlsFailed,
    UnsupportedProtocol,
    WrongPassword,
)
from remuda.limits import AUTHENTICATION_PENALTY
from remuda.postgres import messages as m
from remuda.postgres.reader import Reader
from remuda.postgres.reports import error_message
from remuda.postgres.scram import MECHANISM, ScramExchange, wrong_password
from remuda.rpc.sasl import Credentials

SSL_REQUEST: Final = 80877103
GSSENC_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
MAJOR: Final = 3
MINOR: Final = 0
"""The newest version of the protocol that this server speaks."""
_PASSWORD: Final = ord("p")
_OPTION_PREFIX: Final = "_pq_."

# --- what a connection is told to be ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Startup:
    """``settings`` are those of the packet and of its ``options``, in order."""

    user: str
    database: str
    settings: tuple[tuple[str, str], ...]


# --- states ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Starting:
    encrypted: bool


@dataclass(frozen=True, slots=True)
class Encrypting:
    """The client was told to begin TLS."""


@dataclass(frozen=True, slots=True)
class Identifying:
    startup: Startup
    encrypted: bool


@dataclass(frozen=True, slots=True)
class ScramFirst:
    startup: Startup
    exchange: ScramExchange


@dataclass(frozen=True, slots=True)
class ScramFinal:
    startup: Startup
    exchange: ScramExchange


@dataclass(frozen=True, slots=True)
class AwaitingPassword:
    startup: Startup


@dataclass(frozen=True, slots=True)
class Checking:
    startup: Startup


@dataclass(frozen=True, slots=True)
class Opening:
    startup: Startup


@dataclass(frozen=True, slots=True)
class Refused:
    error: RemudaError


State: TypeAlias = (
    Starting
    | Encrypting
    | Identifying
    | ScramFirst
    | ScramFinal
    | AwaitingPassword
    | Checking
    | Opening
    | Refused
)

# --- effects -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Write:
    data: bytes


@dataclass(frozen=True, slots=True)
class Encrypt:
    """Begin TLS on this connection, then call ``encrypted``."""


@dataclass(frozen=True, slots=True)
class Identify:
    """Look the user up, then call ``identified``."""

    user: str


@dataclass(frozen=True, slots=True)
class Verify:
    """Check a password, then call ``checked``."""

    credentials: Credentials


@dataclass(frozen=True, slots=True)
class Open:
    """The client is let in. ``user`` is "" where nobody had to show who they are."""

    startup: Startup
    user: str


@dataclass(frozen=True, slots=True)
class CancelWork:
    """Cancel what the session ``pid`` runs if ``secret`` is its secret; close this connection."""

    pid: int
    secret: int


@dataclass(frozen=True, slots=True)
class Delay:
    """Call ``refused`` with this error after so many seconds. ``counted``: the check of a
    ``Verify`` has noted the failure already."""

    seconds: float
    error: RemudaError
    counted: bool


@dataclass(frozen=True, slots=True)
class Hang:
    """Send all that was written, and close the connection."""

    error: RemudaError | None


Effect: TypeAlias = Write | Encrypt | Identify | Verify | Open | CancelWork | Delay | Hang


@dataclass(frozen=True, slots=True)
class Known:
    """The answer of the shell to ``Identify``: the keys of a user. ``exists``: whether they are
    those of a user. ``clear``: the user's password is asked for as it is, over TLS."""

    password: PasswordHash
    nonce: bytes
    clear: bool = False


class Login:
    """One connection until its session is open."""

    def __init__(self, *, tls: bool) -> None:
        """``tls``: the server has a certificate, and serves nobody without encryption."""
        self._tls = tls
        self.state: State = Starting(encrypted=False)
        self.user = ""
        """The name that the client has given."""

    def step(self, reader: Reader) -> list[Effect] | None:
        """Take one packet from the reader; None: nothing can be done before more bytes come, or
        before the shell has answered."""
        match self.state:
            case Starting(encrypted=encrypted):
                packet = reader.take_startup()
                return None if packet is None else self._start(*packet, encrypted, reader)
            case ScramFirst() | ScramFinal() | AwaitingPassword():
                found = reader.take()
                return None if found is None else self._answered(*found)
            case _:
                return None

    # --- the first packets --------------------------------------------------------------------

    def _start(self, code: int, body: bytes, encrypted: bool, reader: Reader) -> list[Effect]:
        if code == SSL_REQUEST and not encrypted:
            return self._asked_for_tls(reader)
        if code == GSSENC_REQUEST:
            return [Write(m.NO_ENCRYPTION)]
        if code == CANCEL_REQUEST:
            return self._asked_to_cancel(body)
        try:
            return self._greeted(code, body, encrypted)
        except RemudaError as error:
            return self.refused(error)

    def _asked_for_tls(self, reader: Reader) -> list[Effect]:
        if not self._tls:
            return [Write(m.NO_ENCRYPTION)]
        if len(reader):
            # A man in the middle could have put these bytes there, to be read as encrypted ones.
            return self.refused(ProtocolError("received unencrypted data after SSL request"))
        self.state = Encrypting()
        return [Write(m.ENCRYPTION), Encrypt()]

    def encrypted(self) -> None:
        """TLS is on."""
        self.state = Starting(encrypted=True)

    def _asked_to_cancel(self, body: bytes) -> list[Effect]:
        if len(body) != 8:
            return self.refused(ProtocolError("invalid length of a cancel request"))
        pid, secret = struct.unpack("!II", body)
        return [CancelWork(pid, secret), self._hang(None)]

    def _greeted(self, code: int, body: bytes, encrypted: bool) -> list[Effect]:
        major, minor = code >> 16, code & 0xFFFF
        if major != MAJOR:
            raise UnsupportedProtocol(
                f"unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{MINOR}",
                hint="Update the client.",
            )
        if self._tls and not encrypted:
            raise TlsFailed(
                "this server serves encrypted connections only",
                hint="Connect with sslmode=require, or better sslmode=verify-full.",
            )
        startup, options = read_startup(body)
        effects: list[Effect] = []
        if minor > MINOR or options:
            effects.append(Write(m.negotiate_version(MINOR, options)))
        self.state, self.user = Identifying(startup, encrypted), startup.user
        return [*effects, Identify(startup.user)]

    # --- who is there -------------------------------------------------------------------------

    def identified(self, known: Known | None) -> list[Effect]:
        """None: this server knows no users, and lets everybody in."""
        state = self.state
        if not isinstance(state, Identifying):
            return []
        if known is None:
            self.state = Opening(state.startup)
            return [Open(state.startup, "")]
        if known.clear:
            if not state.encrypted:
                return self.refused(
                    AuthenticationFailed("a password is asked for over encrypted connections only")
                )
            self.state = AwaitingPassword(state.startup)
            return [Write(m.AUTHENTICATION_CLEARTEXT)]
        exchange = ScramExchange(state.startup.user, known.password, known.nonce)
        self.state = ScramFirst(state.startup, exchange)
        return [Write(m.authentication_sasl([MECHANISM]))]

    def _answered(self, kind: int, body: bytes) -> list[Effect]:
        try:
            if kind != _PASSWORD:
                raise ProtocolError(f"expected a password, got message type {kind}")
            match self.state:
                case ScramFirst(startup, exchange):
                    answer = exchange.first(_initial_response(body))
                    self.state = ScramFinal(startup, exchange)
                    return [Write(m.authentication_continue(answer))]
                case ScramFinal(startup, exchange):
                    last = exchange.last(body)
                    self.state = Opening(startup)
                    return [Write(m.authentication_final(last)), Open(startup, startup.user)]
                case AwaitingPassword(startup):
                    self.state = Checking(startup)
                    return [Verify(Credentials(startup.user, _password(body)))]
                case _:
                    raise AssertionError("nothing is asked for in this state")
        except WrongPassword as error:
            return self._penalty(error, counted=False)
        except RemudaError as error:
            return self.refused(error)

    def checked(self, outcome: str | RemudaError) -> list[Effect]:
        """The credentials of a ``Verify`` are those of this user, or why they are not."""
        state = self.state
        if not isinstance(state, Checking):
            return []
        if isinstance(outcome, WrongPassword):
            outcome = wrong_password(state.startup.user)
        if isinstance(outcome, RemudaError):
            return self._penalty(outcome, counted=True)
        self.state = Opening(state.startup)
        return [Open(state.startup, outcome)]

    def _penalty(self, error: RemudaError, *, counted: bool) -> list[Effect]:
        """The answer is held back: guessing must be slow."""
        self.state = Refused(error)
        return [Delay(AUTHENTICATION_PENALTY, error, counted)]

    # --- ends ---------------------------------------------------------------------------------

    def refused(self, error: RemudaError) -> list[Effect]:
        """Tell the client that it is not let in, and why."""
        return [Write(error_message(error, fatal=True)), self._hang(error)]

    def _hang(self, error: RemudaError | None) -> Hang:
        self.state = Refused(error or ProtocolError("the connection was only to cancel"))
        return Hang(error)


def read_startup(body: bytes) -> tuple[Startup, list[str]]:
    """The content of the packet, and the names of protocol options that it asks for. Raises
    ProtocolError."""
    if not body.endswith(b"\0\0") and body != b"\0":
        raise ProtocolError("invalid startup packet layout: expected terminator as last byte")
    try:
        words = body[:-1].decode().split("\0")[:-1]
    except UnicodeDecodeError:
        raise ProtocolError("the startup packet is not valid UTF-8") from None
    if len(words) % 2 or "" in words[::2]:
        raise ProtocolError("invalid startup packet layout: names and values do not pair up")
    user = database = ""
    settings: list[tuple[str, str]] = []
    unknown: list[str] = []
    for name, value in zip(words[::2], words[1::2], strict=True):
        if name == "user":
            user = value
        elif name == "database":
            database = value
        elif name == "options":
            settings += command_line_settings(value)
        elif name == "replication":
            if value.lower() not in ("", "false", "off", "no", "0"):
                raise ProtocolError("replication connections are not supported")
        elif name.startswith(_OPTION_PREFIX):
            unknown.append(name)
        else:
            settings.append((name, value))
    if not user:
        raise AuthenticationFailed("no PostgreSQL user name specified in startup packet")
    return Startup(user, database or user, tuple(settings)), unknown


def command_line_settings(options: str) -> list[tuple[str, str]]:
    """``-c name=value --name=value``, with backslashes in front of blanks that belong to a value.
    Raises ProtocolError."""
    words = _words(options)
    found: list[tuple[str, str]] = []
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        elif word.startswith("--") or (word.startswith("-c") and len(word) > 2):
            word = word[2:]
        else:
            raise ProtocolError(f'invalid command-line argument for server process: "{word}"')
        name, equals, value = word.partition("=")
        if not name or not equals:
            raise ProtocolError(f'-c needs name=value, not "{word}"')
        found.append((name.replace("-", "_"), value))
    return found


def _words(options: str) -> list[str]:
    words: list[str] = []
    word = ""
    inside = escaped = False
    for character in options:
        if escaped:
            word += character
            escaped = False
        elif character == "\\":
            inside = escaped = True
        elif character.isspace():
            if inside:
                words.append(word)
            word, inside = "", False
        else:
            word += character
            inside = True
    return [*words, word] if inside else words


def _initial_response(body: bytes) -> bytes:
    name, zero, rest = body.partition(b"\0")
    if not zero or len(rest) < 4:
        raise ProtocolError("malformed SASLInitialResponse")
    if name != MECHANISM.encode():
        raise AuthenticationFailed(
            "the client selected an invalid SASL authentication mechanism",
            hint=f"This server has {MECHANISM}.",
        )
    (size,) = struct.unpack_from("!i", rest)
    if size != len(rest) - 4:
        raise ProtocolError("malformed SASLInitialResponse")
    return rest[4:]


def _password(body: bytes) -> str:
    if not body.endswith(b"\0") or b"\0" in body[:-1]:
        raise ProtocolError("malformed PasswordMessage")
    try:
        return body[:-1].decode()
    except UnicodeDecodeError:
        raise ProtocolError("the password is not valid UTF-8") from None
