"""The messages of authentication, on either side of a connection whose hands are shaken. Pure."""

from __future__ import annotations

from google.protobuf.message import DecodeError

from remuda.errors import AuthenticationFailed, ProtocolError, RemudaError
from remuda.rpc.codec import decode_error, encode_error
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import SaslMessage
from remuda.rpc.sasl import (
    DATA_SIZE_MAX,
    Challenge,
    ClientExchange,
    Credentials,
    ServerExchange,
    Shown,
)


def parse(pbody: bytes) -> SaslMessage:
    try:
        message = SaslMessage.FromString(pbody)
    except DecodeError as cause:
        raise ProtocolError("a SaslMessage that cannot be parsed") from cause
    if len(message.data) > DATA_SIZE_MAX:
        raise ProtocolError(f"a SaslMessage with more than {DATA_SIZE_MAX} bytes of data")
    return message


def failed(error: RemudaError) -> SaslMessage:
    return SaslMessage(status=user_pb2.SASL_FAILED, refusal=encode_error(error))


class Asking:
    """The accepting side: it asks who is there."""

    def __init__(self, exchange: ServerExchange) -> None:
        self.exchange = exchange
        self._started = False

    def receive(self, pbody: bytes) -> Challenge | Shown | Credentials:
        """Raises ProtocolError and AuthenticationFailed."""
        message = parse(pbody)
        expected = user_pb2.SASL_IN_PROGRESS if self._started else user_pb2.SASL_START
        if message.status != expected:
            raise ProtocolError(
                f"expected {user_pb2.SaslStatus.Name(expected)}, "
                f"found {user_pb2.SaslStatus.Name(message.status)}"
            )
        if not self._started and message.mechanism != self.exchange.mechanism:
            raise AuthenticationFailed(
                f'there is no mechanism "{message.mechanism}" here',
                hint=f"This channel has {self.exchange.mechanism}.",
            )
        self._started = True
        return self.exchange.step(message.data)


class Showing:
    """The connecting side: it shows who it is."""

    def __init__(self, exchange: ClientExchange) -> None:
        self._exchange = exchange

    def start(self) -> SaslMessage:
        return SaslMessage(
            mechanism=self._exchange.mechanism,
            data=self._exchange.first(),
            status=user_pb2.SASL_START,
        )

    def receive(self, pbody: bytes) -> SaslMessage | None:
        """The next message; None: it is through. Raises the server's refusal."""
        message = parse(pbody)
        if message.status == user_pb2.SASL_FAILED:
            if message.HasField("refusal"):
                raise decode_error(message.refusal)
            raise AuthenticationFailed("the server does not accept user and password")
        if message.status == user_pb2.SASL_SUCCESS:
            self._exchange.last(message.data)
            return None
        if message.status != user_pb2.SASL_IN_PROGRESS:
            raise ProtocolError("an answer that is no step of an authentication")
        data = self._exchange.next(message.data)
        return SaslMessage(data=data, status=user_pb2.SASL_IN_PROGRESS)


def showing(login: ClientExchange | None, wanted: list[str], peer: str) -> Showing | None:
    """The proof that a server's welcome asks for; None: nothing. Raises AuthenticationFailed when
    this side has nothing of the kind, or knows that the right server would have asked."""
    if not wanted:
        if login is not None and login.mutual:
            raise AuthenticationFailed(
                f"{peer} does not ask for the secret of this cluster",
                hint="Give every member the same secret file.",
            )
        return None
    if login is None or login.mechanism not in wanted:
        what = "user and password" if "PLAIN" in wanted else "the secret of its cluster"
        raise AuthenticationFailed(f"{peer} asks for {what}", hint=_HINTS.get(wanted[0], ""))
    return Showing(login)


_HINTS = {
    "PLAIN": "Connect with user and password.",
    "REMUDA-SECRET-SHA-256": "Give every member the same secret file.",
}
