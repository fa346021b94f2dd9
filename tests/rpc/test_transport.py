"""Channels over real sockets on loopback, on asyncio's loop and on uvloop."""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import uvloop

from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    FrameTooLarge,
    InternalError,
    MemberUnavailable,
    ProtocolError,
    QueryTimeout,
    UndefinedMap,
)
from remuda.limits import FRAME_SIZE_MAX
from remuda.rpc import handshake, transport
from remuda.rpc.frame import PING, REQUEST, Frame, FrameReader, encode, encode_head, varint
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2
from remuda.rpc.server import listen
from remuda.rpc.transport import ChannelKind, connect

ACK = common_pb2.Ack(ok=True)
HELLO = user_pb2.UserToBitHandshake(support_timeout=True)
ECHO, SLOW, FAIL, BUG, NEVER = 100, 101, 102, 103, 104


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request):
    return request.param


def bound() -> socket.socket:
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    return sock


class Handler:
    def __init__(self) -> None:
        self.kept = []
        self.one_way = asyncio.Queue()

    def __call__(self, request) -> None:
        if request.one_way:
            self.one_way.put_nowait((request.rpc_type, request.pbody, bytes(request.dbody)))
        elif request.rpc_type == ECHO:
            request.reply(ECHO, common_pb2.Ack.FromString(request.pbody), (request.dbody,))
        elif request.rpc_type == FAIL:
            raise UndefinedMap("map x does not exist", hint="create it", member="2")
        elif request.rpc_type == BUG:
            raise ZeroDivisionError("oops")
        else:
            self.kept.append(request)


@asynccontextmanager
async def serving(kind=ChannelKind.USER, *, answer=None, handler=None, on_connect=None):
    handler = handler or Handler()
    answer = answer or (lambda _: user_pb2.BitToUserHandshake(member=7))
    server = await listen(bound(), kind, answer, handler, on_connect)
    try:
        yield server, handler
    finally:
        await server.close()


@asynccontextmanager
async def connected(**options):
    async with serving(**options) as (server, handler):
        channel = await connect(*server.address, ChannelKind.USER, HELLO)
        yield channel, server, handler
        channel.close()


def test_requests_are_answered_and_handshakes_kept(run):
    async def main():
        async with connected() as (channel, server, _):
            assert channel.handshake.member == 7
            assert channel.peer == f"127.0.0.1:{server.address[1]}"
            reply = await channel.request(ECHO, ACK, (b"abc", memoryview(b"def")))
            assert (reply.rpc_type, reply.pbody, bytes(reply.dbody)) == (
                ECHO,
                b"\x08\x01",
                b"abcdef",
            )
            (accepted,) = server.channels
            assert accepted.handshake.support_timeout

    run(main())


def test_the_kernels_of_both_ends_look_after_a_silent_peer(run):
    """A blocking client that nobody waits for sends no heartbeats, and one that lost its power no
    goodbye: only probes find out."""

    async def main():
        async with connected() as (channel, server, _):
            await channel.request(ECHO, ACK)
            for end in (channel, *server.channels):
                sock = end._transport.get_extra_info("socket")
                assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
                assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) < 60

    run(main())


def test_many_pipelined_requests_and_large_bodies(run):
    async def main():
        async with connected() as (channel, _, _):
            big = memoryview(bytes(range(256)) * 16384)
            bodies = [big if i % 50 == 0 else b"%d" % i for i in range(500)]
            replies = await asyncio.gather(*[channel.request(ECHO, ACK, (b,)) for b in bodies])
            for body, reply in zip(bodies, replies, strict=True):
                assert reply.dbody == body

    run(main())


def test_errors_are_raised_as_their_class_and_the_channel_goes_on(run, caplog):
    async def main():
        async with connected() as (channel, _, _):
            with pytest.raises(UndefinedMap, match="map x does not exist") as raised:
                await channel.request(FAIL, ACK)
            assert (raised.value.hint, raised.value.member) == ("create it", "2")
            with pytest.raises(InternalError, match="ZeroDivisionError: oops"):
                await channel.request(BUG, ACK)
            assert "Traceback" in caplog.text
            assert (await channel.request(ECHO, ACK)).pbody == b"\x08\x01"

    run(main())


def test_answers_may_come_later_and_out_of_order(run):
    async def main():
        async with connected() as (channel, _, handler):
            slow = [asyncio.ensure_future(channel.request(SLOW, ACK)) for _ in range(3)]
            await channel.request(ECHO, ACK)
            for number, request in reversed(list(enumerate(handler.kept))):
                request.reply(SLOW, user_pb2.Count(count=number))
            counts = [user_pb2.Count.FromString((await task).pbody).count for task in slow]
            assert counts == [0, 1, 2]

    run(main())


def test_a_request_is_answered_only_once(run):
    async def main():
        async with connected() as (channel, _, handler):
            task = asyncio.ensure_future(channel.request(SLOW, ACK))
            await channel.request(ECHO, ACK)
            (request,) = handler.kept
            request.reply(SLOW, ACK)
            with pytest.raises(AssertionError, match="answered once"):
                request.fail(UndefinedMap("late"))
            await task

    run(main())


def test_one_way_messages_and_requests_of_the_server(run):
    async def main():
        served = []

        def on_connect(channel):
            served.append(channel)

        async with serving(on_connect=on_connect) as (server, handler):
            got = []

            def at_client(request):
                got.append(request.pbody)
                request.reply(1, ACK)

            channel = await connect(*server.address, ChannelKind.USER, HELLO, at_client)
            channel.send(6, ACK, (b"xyz",))
            assert await handler.one_way.get() == (6, b"\x08\x01", b"xyz")
            await channel.request(ECHO, ACK)
            assert (await served[0].request(6, ACK)).rpc_type == 1
            served[0].send(6, ACK)
            await served[0].request(6, ACK)
            assert got == [b"\x08\x01"] * 3
            channel.close()

    run(main())


def test_timeouts_and_late_answers(run):
    async def main():
        async with connected() as (channel, _, handler):
            with pytest.raises(QueryTimeout, match=r"127.0.0.1:\d+ did not answer within 0.01 s"):
                await channel.request(NEVER, ACK, timeout=0.01)
            task = asyncio.ensure_future(channel.request(NEVER, ACK))
            await channel.request(ECHO, ACK)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            for request in handler.kept:
                request.reply(NEVER, ACK)
            await channel.request(ECHO, ACK)
            assert not channel.closed

    run(main())


def test_members_time_out_as_unavailable(run):
    async def main():
        handler = Handler()
        hello = control_pb2.ControlHandshake()
        async with serving(kind=ChannelKind.CONTROL, answer=lambda _: hello, handler=handler) as (
            server,
            _,
        ):
            channel = await connect(*server.address, ChannelKind.CONTROL, hello)
            with pytest.raises(MemberUnavailable, match="did not answer"):
                await channel.request(NEVER, ACK, timeout=0.01)
            channel.close()

    run(main())


def test_a_close_fails_everything_pending_and_tells_once(run):
    async def main():
        async with connected() as (channel, server, _):
            tasks = [asyncio.ensure_future(channel.request(NEVER, ACK)) for _ in range(3)]
            await channel.request(ECHO, ACK)
            reasons = []
            channel.on_closed.append(reasons.append)
            (accepted,) = server.channels
            accepted.close()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(result, ConnectionBroken) for result in results)
            assert channel.peer in results[0].message
            assert len(reasons) == 1
            assert not server.channels
            with pytest.raises(ConnectionBroken, match=channel.peer):
                await channel.request(ECHO, ACK)
            outcome = asyncio.get_running_loop().create_future()
            channel.request_nowait(ECHO, ACK, (), outcome.set_result)
            assert isinstance(await outcome, ConnectionBroken)
            channel.send(ECHO, ACK)

    run(main())


@pytest.mark.parametrize("host", ["x" * 300, "a..b"])
def test_what_cannot_be_the_name_of_a_host_is_refused(run, host):
    with pytest.raises(ConnectionRefused, match="is no name of a host"):
        run(connect(host, 1, ChannelKind.USER, HELLO))


def test_connecting_to_nobody_names_the_address(run):
    async def main():
        sock = bound()
        port = sock.getsockname()[1]
        sock.close()
        with pytest.raises(ConnectionRefused, match=str(port)) as raised:
            await connect("127.0.0.1", port, ChannelKind.USER, HELLO)
        assert "member is running" in raised.value.hint

    run(main())


def test_a_listener_that_never_answers_is_refused(run):
    async def main():
        sock = bound()
        sock.listen()
        address = sock.getsockname()
        with pytest.raises(ConnectionRefused, match="did not answer within"):
            await connect(*address, ChannelKind.USER, HELLO, timeout=0.05)
        sock.close()

    run(main())


def test_refusals_and_a_server_that_hangs_up(run):
    async def main():
        def answer(_):
            raise UndefinedMap("no such thing")

        async with serving(answer=answer) as (server, _):
            with pytest.raises(UndefinedMap, match="no such thing"):
                await connect(*server.address, ChannelKind.USER, HELLO)
        async with serving(kind=ChannelKind.CONTROL) as (server, _):
            with pytest.raises(ProtocolError, match="did not answer as a user channel") as raised:
                await connect(*server.address, ChannelKind.USER, HELLO)
            assert "ports of their own" in raised.value.hint

    run(main())


async def raw_exchange(server, data: bytes) -> list[Frame]:
    """What the server says to ``data`` after a good handshake, until it closes."""
    stream, writer = await asyncio.open_connection(*server.address)
    hello = user_pb2.UserToBitHandshake(rpc_version=5).SerializeToString()
    writer.write(encode_head(REQUEST, 1, 0, hello))
    first = await stream.readexactly(1)
    writer.write(data)
    answer = first + await stream.read()
    writer.close()
    reader = FrameReader()
    reader.room[: len(answer)] = answer
    return reader.received(len(answer))


def test_garbage_closes_the_connection_with_a_logged_reason(run, caplog):
    caplog.set_level(logging.WARNING, "remuda.rpc.transport")

    async def main():
        async with serving() as (server, _):
            await raw_exchange(server, b"GET / HTTP/1.1\r\n\r\n")
            assert "not a frame" in caplog.text
            channel = await connect(*server.address, ChannelKind.USER, HELLO)
            await channel.request(ECHO, ACK)
            channel.close()

    run(main())


def test_an_oversized_frame_is_refused_with_its_reason_even_while_it_is_being_sent(run):
    async def main():
        async with serving() as (server, _):
            head = encode_head(REQUEST, 5, ECHO, b"", FRAME_SIZE_MAX - 100)
            oversized = varint(FRAME_SIZE_MAX + 1000) + head[4:] + bytes(3_000_000)
            welcome, refusal = await raw_exchange(server, oversized)
            assert (welcome.mode, welcome.rpc_type) == (1, 0)
            assert (refusal.mode, refusal.coordination_id) == (2, 5)
            assert user_pb2.PBError.FromString(refusal.pbody).kind == "FrameTooLarge"

    run(main())


def test_a_stranger_may_not_send_more_than_a_handshake(run):
    async def main():
        async with serving() as (server, _):
            stream, writer = await asyncio.open_connection(*server.address)
            head = encode_head(REQUEST, 5, ECHO, b"", 1_000_000)
            writer.write(head + bytes(100_000))  # and no more: the refusal does not wait for it
            answer = await stream.read()
            reader = FrameReader()
            reader.room[: len(answer)] = answer
            (refusal,) = reader.received(len(answer))
            assert (refusal.mode, refusal.coordination_id) == (2, 5)
            assert user_pb2.PBError.FromString(refusal.pbody).kind == "FrameTooLarge"
            writer.close()
            channel = await connect(*server.address, ChannelKind.USER, HELLO)
            reply = await channel.request(ECHO, ACK, (bytes(1_000_000),))
            assert len(reply.dbody) == 1_000_000
            channel.close()

    run(main())


def test_our_own_side_refuses_to_send_an_oversized_frame(run):
    async def main():
        async with connected() as (channel, _, _):
            huge = memoryview(bytearray(FRAME_SIZE_MAX))
            with pytest.raises(FrameTooLarge, match="limit of"):
                await channel.request(ECHO, ACK, (huge,))
            await channel.request(ECHO, ACK)

    run(main())


def test_an_answer_that_is_too_large_fails_the_request(run):
    async def main():
        def handler(request):
            request.reply(ECHO, ACK, (memoryview(bytearray(FRAME_SIZE_MAX)),))

        async with connected(handler=handler) as (channel, _, _):
            with pytest.raises(FrameTooLarge):
                await channel.request(ECHO, ACK)

    run(main())


def test_ping_is_answered_by_the_connection_itself(run):
    async def main():
        async with serving() as (server, _):
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(encode(Frame(PING, 0, 1, b"\x08\x01")))
            assert (await reader.readexactly(13)).hex() == "0c0a0608041000180012020801"
            writer.close()

    run(main())


def test_writes_push_back_and_resume(run):
    async def main():
        async with connected() as (channel, _, handler):
            piece = memoryview(bytearray(4 << 20))
            resumed = asyncio.get_running_loop().create_future()
            channel.on_writable.append(lambda: resumed.done() or resumed.set_result(None))
            sent = 0
            while channel.writable:
                channel.send(6, ACK, (piece,))
                sent += 1
            assert sent < 50
            await resumed
            assert channel.writable
            for _ in range(sent):
                assert len((await handler.one_way.get())[2]) == len(piece)

    run(main())


def test_a_client_that_reads_nothing_is_cut_off(run, monkeypatch):
    monkeypatch.setattr(transport, "CLIENT_WRITE_BUFFER_MAX", 16 << 20)

    async def main():
        served = []
        async with serving(on_connect=served.append) as (server, _):
            reader, writer = await asyncio.open_connection(*server.address)
            hello = user_pb2.UserToBitHandshake(rpc_version=5).SerializeToString()
            writer.write(encode_head(REQUEST, 1, 0, hello))
            await reader.readexactly(1)
            writer.transport.pause_reading()
            piece = memoryview(bytearray(4 << 20))
            for _ in range(100):
                served[0].send(6, ACK, (piece,))
                if served[0].closed:
                    break
            assert served[0].closed
            writer.close()

    run(main())


def test_a_bug_in_a_callback_does_not_end_the_channel(run, caplog):
    async def main():
        async with connected() as (channel, _, _):
            channel.request_nowait(ECHO, ACK, (), lambda _: 1 / 0)
            await channel.request(ECHO, ACK)
            assert "ZeroDivisionError" in caplog.text

    run(main())


def test_a_connect_callback_sees_an_open_channel(run):
    async def main():
        seen = []

        async with serving(on_connect=lambda c: seen.append(c.handshake)) as (server, _):
            channel = await connect(*server.address, ChannelKind.USER, HELLO)
            assert seen[0].rpc_version == 5
            channel.close()

    run(main())


def test_a_cancelled_connect_leaves_no_connection_behind(run):
    async def main():
        sock = bound()
        sock.listen()
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(connect(*sock.getsockname(), ChannelKind.USER, HELLO))
        sock.setblocking(False)
        accepted, _ = await loop.sock_accept(sock)
        await loop.sock_recv(accepted, 1)  # the hello: it is connected and waits
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        while await loop.sock_recv(accepted, 65536):
            pass
        accepted.close()
        sock.close()

    run(main())


def test_closing_a_server_closes_connections_that_still_shake_hands(run):
    async def main():
        async with serving() as (server, _):
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(encode(Frame(PING, 0, 0, b"\x08\x01")))
            await reader.readexactly(13)
            await server.close()
            assert await reader.read() == b""
            writer.close()

    run(main())


def test_the_channel_pings_when_idle_and_the_server_answers(run, monkeypatch):
    kind = ChannelKind.USER
    impatient = replace(handshake.PROTOCOLS[kind], heartbeat_timeout=0.04)
    monkeypatch.setitem(handshake.PROTOCOLS, kind, impatient)

    async def main():
        pinged = asyncio.get_running_loop().create_future()
        sock = bound()
        sock.listen()
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(connect(*sock.getsockname(), kind, HELLO))
        accepted, _ = await loop.sock_accept(sock)
        await loop.sock_recv(accepted, 65536)
        welcome = user_pb2.BitToUserHandshake(rpc_version=5, status=user_pb2.SUCCESS)
        await loop.sock_sendall(accepted, encode_head(1, 1, 0, welcome.SerializeToString()))
        channel = await task
        assert (await loop.sock_recv(accepted, 65536)).hex() == "0c0a0608031000180012020801"
        channel.on_closed.append(pinged.set_result)
        error = await pinged  # nobody answers
        assert "was silent" in error.message
        accepted.close()
        sock.close()

    run(main())
