"""The handshakes of the three channels: versions, typed refusals. Pure.

The first message on a connection is the client's hello (REQUEST, type 0); the server answers with
a welcome (RESPONSE, type 0) that either opens the channel or carries a refusal, and then closes.
Each side names the range of protocol versions it speaks (``rpc_version_min`` .. ``rpc_version``;
without the former only ``rpc_version``); the ranges must overlap. On the user channel that is the
version of Drill's protocol, which Drill's clients fix; Remuda's own messages there have a range of
versions of their own (``native_version``), which Drill's clients do not send.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from google.protobuf.message import DecodeError, Message

from remuda.errors import (
    AuthenticationFailed,
    ConnectionRefused,
    ProtocolError,
    RemudaError,
    VersionMismatch,
)
from remuda.limits import MEMBER_HEARTBEAT_TIMEOUT, USER_HEARTBEAT_TIMEOUT
from remuda.release import VERSIONS, Versions, __version__
from remuda.rpc.codec import decode_error, encode_error
from remuda.rpc.messages import control_pb2, data_pb2, user_pb2

_PORT_HINT = "Check the port: user, control and data channels have ports of their own."
_RELEASES_HINT = (
    "A release works together with the one before it and the one after it (docs/upgrade.md): run"
    " neighbouring releases on both sides."
)
_OF_USERS = (user_pb2.UserToBitHandshake, user_pb2.BitToUserHandshake)
HANDSHAKE_TYPE = 0
ACK_TYPE = 1
Answer: TypeAlias = Callable[[Message], Message]
"""The server's welcome for a client's hello; a RemudaError raised in it is the refusal."""


class ChannelKind(Enum):
    """The three channels; Drill's names for the last two are control and data too."""

    USER = "user"
    CONTROL = "control"
    DATA = "data"

    __hash__ = object.__hash__
    """By identity, as they are compared: every message between members looks its channel up."""


@dataclass(frozen=True, slots=True)
class ChannelProtocol:
    """The differences of the channels on the wire."""

    kind: ChannelKind
    number: int
    """Of Drill's RpcChannel, in the hello."""
    versions: Versions
    hello: type[Message]
    welcome: type[Message]
    heartbeat_timeout: float


BEFORE_VERSIONS = 105
"""The protocol version of members, and of Remuda's own messages for clients, is the version of the
cluster and this number: the channels of members had numbers up to 106 before there was one. Drill's
are 3 and 4, so that neither takes the other in."""


def _on_the_wire(versions: Versions) -> Versions:
    return Versions(versions.lowest + BEFORE_VERSIONS, versions.highest + BEFORE_VERSIONS)


PROTOCOLS = {
    # Drill's clients send version 5 and require it back.
    ChannelKind.USER: ChannelProtocol(
        ChannelKind.USER,
        user_pb2.USER,
        Versions(5, 5),
        user_pb2.UserToBitHandshake,
        user_pb2.BitToUserHandshake,
        USER_HEARTBEAT_TIMEOUT,
    ),
    ChannelKind.CONTROL: ChannelProtocol(
        ChannelKind.CONTROL,
        user_pb2.BIT_CONTROL,
        _on_the_wire(VERSIONS),
        control_pb2.ControlHandshake,
        control_pb2.ControlHandshake,
        MEMBER_HEARTBEAT_TIMEOUT,
    ),
    ChannelKind.DATA: ChannelProtocol(
        ChannelKind.DATA,
        user_pb2.BIT_DATA,
        _on_the_wire(VERSIONS),
        data_pb2.BitClientHandshake,
        data_pb2.BitServerHandshake,
        MEMBER_HEARTBEAT_TIMEOUT,
    ),
}

NATIVE = _on_the_wire(VERSIONS)
"""Of Remuda's own messages on the user channel."""

_STATUS_ERRORS: dict[int, type[RemudaError]] = {
    user_pb2.RPC_VERSION_MISMATCH: VersionMismatch,
    user_pb2.AUTH_FAILED: AuthenticationFailed,
    user_pb2.AUTH_REQUIRED: AuthenticationFailed,
}


def complete_hello(protocol: ChannelProtocol, hello: Message) -> Message:
    """A copy of the client's handshake with channel and versions filled in."""
    if not isinstance(hello, protocol.hello):
        raise TypeError(
            f"the {protocol.kind.value} channel's hello is {protocol.hello.__name__},"
            f" not {type(hello).__name__}"
        )
    message = protocol.hello()
    message.CopyFrom(hello)
    message.channel = protocol.number  # type: ignore[attr-defined]
    _set_versions(protocol, message)
    return message


def read_hello(protocol: ChannelProtocol, pbody: bytes) -> Message:
    """The client's handshake. Raises ProtocolError or VersionMismatch: the refusal."""
    hello = parse(protocol.hello, pbody)
    channel = hello.channel  # type: ignore[attr-defined]
    if channel != protocol.number:
        wanted = user_pb2.RpcChannel.Name(channel)
        raise ProtocolError(
            f"this is the {protocol.kind.value} channel; the client asked for {wanted}",
            hint=_PORT_HINT,
        )
    _check_versions(protocol, hello, "the client")
    return hello


def welcome(protocol: ChannelProtocol, hello: Message, answer: Answer) -> Message:
    """The server's handshake for an accepted hello. Raises what ``answer`` raises: the refusal."""
    given = answer(hello)
    if not isinstance(given, protocol.welcome):
        raise TypeError(
            f"the {protocol.kind.value} channel's welcome is {protocol.welcome.__name__},"
            f" not {type(given).__name__}"
        )
    message = protocol.welcome()
    message.CopyFrom(given)
    _set_versions(protocol, message)
    if isinstance(message, user_pb2.BitToUserHandshake):
        message.status = user_pb2.SUCCESS
    return message


def refusal(protocol: ChannelProtocol, error: RemudaError) -> Message:
    """The welcome that says no, in a form that Drill's clients understand on the user channel."""
    message = protocol.welcome()
    _set_versions(protocol, message)
    message.refusal.CopyFrom(encode_error(error))  # type: ignore[attr-defined]
    if isinstance(message, user_pb2.BitToUserHandshake):
        message.errorMessage = str(error)
        message.errorId = type(error).__name__
        if isinstance(error, VersionMismatch):
            message.status = user_pb2.RPC_VERSION_MISMATCH
        elif isinstance(error, AuthenticationFailed):
            message.status = user_pb2.AUTH_FAILED
        else:
            message.status = user_pb2.UNKNOWN_FAILURE
    return message


def read_welcome(protocol: ChannelProtocol, pbody: bytes) -> Message:
    """The server's handshake. Raises the server's refusal, or VersionMismatch."""
    message = parse(protocol.welcome, pbody)
    if message.HasField("refusal"):
        raise decode_error(message.refusal)  # type: ignore[attr-defined]
    opens = (user_pb2.SUCCESS, user_pb2.AUTH_REQUIRED)
    if isinstance(message, user_pb2.BitToUserHandshake) and message.status not in opens:
        if message.status == user_pb2.UNKNOWN_STATUS:
            raise ProtocolError("the server did not answer as a user channel does", hint=_PORT_HINT)
        kind = _STATUS_ERRORS.get(message.status, ConnectionRefused)
        raise kind(message.errorMessage or "the server refused the handshake without a reason")
    _check_versions(protocol, message, "the server")
    return message


def guarded_welcome(protocol: ChannelProtocol, message: Message, mechanism: str) -> Message:
    """``message``, saying that the client must show itself first."""
    found = protocol.welcome()
    found.CopyFrom(message)
    _set_versions(protocol, found)
    found.authenticationMechanisms.append(mechanism)  # type: ignore[attr-defined]
    if isinstance(found, user_pb2.BitToUserHandshake):
        found.status = user_pb2.AUTH_REQUIRED
    return found


def mechanisms(message: Message) -> list[str]:
    """By which the server of this welcome wants to be shown who is there; [] for none."""
    if isinstance(message, user_pb2.BitToUserHandshake) and message.status == user_pb2.SUCCESS:
        return []
    return list(message.authenticationMechanisms)  # type: ignore[attr-defined]


def heartbeat_timeout(protocol: ChannelProtocol, hello: Message) -> float | None:
    """After how many seconds without a byte the server closes, or None: never.

    A user's client is only timed out when it says that it sends heartbeats (``support_timeout``).
    """
    if isinstance(hello, user_pb2.UserToBitHandshake) and not hello.support_timeout:
        return None
    return protocol.heartbeat_timeout


def parse(kind: type[Message], pbody: bytes) -> Message:
    message = kind()
    try:
        message.ParseFromString(pbody)
    except DecodeError as cause:
        raise ProtocolError(f"a {kind.__name__} that cannot be parsed") from cause
    return message


def _set_versions(protocol: ChannelProtocol, message: Message) -> None:
    message.rpc_version = protocol.versions.highest  # type: ignore[attr-defined]
    message.rpc_version_min = protocol.versions.lowest  # type: ignore[attr-defined]
    if isinstance(message, _OF_USERS):
        given = message.native_version or NATIVE.highest  # a member's: that of its cluster
        message.native_version = min(given, NATIVE.highest)
        message.native_version_min = NATIVE.lowest


def native_version(version: int) -> int:
    """The version of Remuda's own messages that a member of such a cluster tells clients: it may
    pass their requests on to members that know nothing later."""
    return version + BEFORE_VERSIONS


def _check_versions(protocol: ChannelProtocol, message: Message, who: str) -> None:
    highest = message.rpc_version  # type: ignore[attr-defined]
    named = message.HasField("rpc_version_min")
    lowest = message.rpc_version_min if named else highest  # type: ignore[attr-defined]
    theirs, ours = Versions(lowest, highest), protocol.versions
    if not theirs.meets(ours):
        raise VersionMismatch(
            f"{who}{_release_of(message)} speaks {theirs} of the {protocol.kind.value} protocol,"
            f" this side (release {__version__}) {ours}",
            hint=f"{_RELEASES_HINT} Clients, members and data have a port each (31010, 31011,"
            " 31012): it may also be the wrong one.",
        )
    if isinstance(message, _OF_USERS) and message.HasField("native_version"):
        lowest = message.native_version_min or message.native_version
        native = Versions(lowest, message.native_version)
        if not native.meets(NATIVE):
            raise VersionMismatch(
                f"{who}{_release_of(message)} speaks {native} of Remuda's own messages for clients,"
                f" this side (release {__version__}) {NATIVE}",
                hint=_RELEASES_HINT,
            )


def _release_of(message: Message) -> str:
    if isinstance(message, control_pb2.ControlHandshake):
        release = message.member.release
    elif isinstance(message, user_pb2.UserToBitHandshake):
        release = message.client_infos.version
    elif isinstance(message, user_pb2.BitToUserHandshake):
        release = message.server_infos.application.removeprefix("Remuda ")
    else:
        release = ""
    return f" (release {release[:40]})" if release else ""


def application_of(hello: Message) -> str:
    """The name that a client gives itself; "" for members."""
    if not isinstance(hello, user_pb2.UserToBitHandshake):
        return ""
    return hello.client_infos.application or hello.client_infos.name
