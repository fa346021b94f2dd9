"""The listening side of connections on asyncio: a server makes a ``Channel`` for each client."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from remuda.errors import RemudaError
from remuda.limits import STRANGERS_MAX
from remuda.rpc.connection import Answer, ChannelKind
from remuda.rpc.frame import RESPONSE, encode_head
from remuda.rpc.handshake import HANDSHAKE_TYPE, PROTOCOLS, refusal
from remuda.rpc.strangers import Guard, Strangers
from remuda.rpc.tls import tls_needed
from remuda.rpc.tls_transport import TlsLayer
from remuda.rpc.transport import Channel, Handler


class Server:
    """A listening socket. ``address`` is (host, port); ``channels`` the open ones."""

    def __init__(
        self, server: asyncio.Server, channels: dict[Channel, None], strangers: Strangers
    ) -> None:
        self._server = server
        self.channels = channels
        self.strangers = strangers
        name = server.sockets[0].getsockname()
        self.address: tuple[str, int] = (name[0], name[1])

    async def close(self, error: RemudaError | None = None) -> None:
        """Stop listening and close every channel."""
        self._server.close()
        for channel in list(self.channels):
            channel.close(error)
        self.strangers.close(error)
        await self._server.wait_closed()


async def listen(
    sock: socket.socket,
    kind: ChannelKind,
    answer: Answer,
    handler: Handler,
    on_connect: Callable[[Channel], None] | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    guard: Guard | None = None,
    strangers_max: int = STRANGERS_MAX,
) -> Server:
    """Serve on a bound socket.

    ``answer(hello) -> welcome`` runs after the version check, for the messages of
    ``handshake.PROTOCOLS[kind]``; a RemudaError raised in it is sent as the typed refusal. Version
    and status fields are filled in here. ``handler(request)`` runs on the loop and must not block;
    a RemudaError raised in it is the answer. ``on_connect(channel)`` runs once hands are shaken.
    With ``tls`` nobody else is spoken to; with a ``guard`` clients show who they are first
    (``channel.user``), and members get their ``answer`` after that.
    """
    channels: dict[Channel, None] = {}  # in order, so that a simulation replays
    strangers = Strangers(strangers_max)
    no = refusal(PROTOCOLS[kind], tls_needed(kind.value))
    to_strangers = encode_head(RESPONSE, 1, HANDSHAKE_TYPE, no.SerializeToString())

    def on_open(channel: Channel) -> None:
        strangers.let_go(channel)
        channels[channel] = None
        channel.on_closed.append(lambda _: channels.pop(channel, None))
        if on_connect is not None:
            on_connect(channel)

    def accept() -> Channel | TlsLayer:
        channel = Channel(kind, "", handler, on_open, answer=answer, guard=guard)
        layer = None if tls is None else TlsLayer(channel, tls, "", to_strangers=to_strangers)
        strangers.add(channel, layer)
        return channel if layer is None else layer

    loop = asyncio.get_running_loop()
    return Server(await loop.create_server(accept, sock=sock), channels, strangers)
