"""The sync client's channel against an asyncio server in a thread, and against odd servers."""

from __future__ import annotations

import asyncio
import socket
import threading
from contextlib import contextmanager

import pytest

from remuda.errors import (
    ConnectionBroken,
    ConnectionRefused,
    FrameTooLarge,
    NotServed,
    ProtocolError,
    QueryTimeout,
    UndefinedMap,
)
from remuda.limits import FRAME_SIZE_MAX
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.connection import ChannelKind
from remuda.rpc.frame import REQUEST, RESPONSE, encode_head
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.server import listen

ACK = common_pb2.Ack(ok=True)
HELLO = user_pb2.UserToBitHandshake(support_timeout=True)
ECHO, FAIL, NEVER, PAGES, DIE, ACKED = 100, 102, 104, 105, 106, 107


class Server:
    """An echo server with a few special requests, on a loop in a thread of its own."""

    def __init__(self) -> None:
        self.acknowledged = 0
        ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.main(ready)))
        self.thread.start()
        ready.wait()

    async def main(self, ready: threading.Event) -> None:
        self.loop = asyncio.get_running_loop()
        self.stopping = asyncio.Event()
        sock = socket.socket()
        sock.bind(("127.0.0.1", 0))
        self.server = await listen(
            sock, ChannelKind.USER, lambda _: user_pb2.BitToUserHandshake(member=7), self.handle
        )
        self.port = self.server.address[1]
        ready.set()
        await self.stopping.wait()
        await self.server.close()

    def stop(self) -> None:
        if self.thread.is_alive():
            self.loop.call_soon_threadsafe(self.stopping.set)
            self.thread.join()

    def acked(self, _: object) -> None:
        self.acknowledged += 1

    def handle(self, request) -> None:
        if request.rpc_type == ECHO:
            request.reply(ECHO, common_pb2.Ack.FromString(request.pbody), (request.dbody,))
        elif request.rpc_type == FAIL:
            raise UndefinedMap("map x does not exist")
        elif request.rpc_type == PAGES:  # three pages in front of the answer, one behind
            for number in range(3):
                page = user_pb2.QueryData(row_count=number)
                request.channel.request_nowait(6, page, (b"page",), self.acked)
            request.reply(7, ACK)
            request.channel.request_nowait(10, ACK, (), self.acked)
        elif request.rpc_type == ACKED:
            request.reply(ACKED, user_pb2.Count(count=self.acknowledged))
        elif request.rpc_type == DIE:
            request.channel.close()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def channel(server):
    with BlockingChannel("127.0.0.1", server.port, HELLO) as channel:
        yield channel


def test_requests_of_all_sizes(channel):
    assert channel.handshake.member == 7
    for size in (0, 10, 70_000, 5_000_000):
        body = bytes(size)
        pieces = (body[: size // 2], memoryview(body)[size // 2 :])
        reply = channel.request(ECHO, ACK, pieces)
        assert reply.pbody == b"\x08\x01"
        assert reply.dbody == body
    assert channel.request(ECHO, ACK, [b"x"] * 3000).dbody == b"x" * 3000


def test_errors_are_typed_and_the_channel_goes_on(channel):
    with pytest.raises(UndefinedMap, match="map x"):
        channel.request(FAIL, ACK)
    with pytest.raises(FrameTooLarge):
        channel.request(ECHO, ACK, (memoryview(bytearray(FRAME_SIZE_MAX)),))
    assert channel.request(ECHO, ACK).rpc_type == ECHO


def test_pipelined_requests_are_received_in_the_order_of_arrival(channel):
    sent = [channel.send_request(ECHO, ACK, (b"%d" % i,)) for i in range(300)]
    sent.append(channel.send_request(FAIL, ACK))
    got = [channel.receive(timeout=10) for _ in sent]
    assert [incoming.coordination_id for incoming in got] == sent
    assert [bytes(incoming.dbody) for incoming in got[:300]] == [b"%d" % i for i in range(300)]
    assert isinstance(got[-1].error, UndefinedMap)


def test_a_request_overtakes_answers_that_others_wait_for(channel):
    first = channel.send_request(ECHO, ACK, (b"first",))
    assert channel.request(ECHO, ACK, (b"second",)).dbody == b"second"
    incoming = channel.receive(timeout=10)
    assert (incoming.coordination_id, bytes(incoming.dbody)) == (first, b"first")


def test_requests_of_the_server_wait_and_are_acknowledged(channel):
    assert channel.request(PAGES, ACK).rpc_type == 7
    pages = [channel.receive(timeout=10) for _ in range(4)]
    assert [page.rpc_type for page in pages] == [6, 6, 6, 10]
    rows = [user_pb2.QueryData.FromString(page.pbody).row_count for page in pages[:3]]
    assert rows == [0, 1, 2]
    assert not any(page.is_reply for page in pages)
    for page in pages:
        channel.acknowledge(page)
    assert user_pb2.Count.FromString(channel.request(ACKED, ACK).pbody).count == 4


def test_timeouts_leave_the_channel_usable(channel):
    with pytest.raises(QueryTimeout, match=r"127.0.0.1:\d+ did not answer within 0.02 s"):
        channel.request(NEVER, ACK, timeout=0.02)
    with pytest.raises(QueryTimeout, match="sent nothing"):
        channel.receive(timeout=0.02)
    assert channel.request(ECHO, ACK, timeout=30).rpc_type == ECHO


def test_a_server_that_dies_is_named(channel, server):
    with pytest.raises(ConnectionBroken, match=f"127.0.0.1:{server.port}"):
        channel.request(DIE, ACK)
    assert channel.closed
    for call in (channel.request, channel.send_request):
        with pytest.raises(ConnectionBroken, match=f"127.0.0.1:{server.port}"):
            call(ECHO, ACK)
    with pytest.raises(ConnectionBroken):
        channel.receive()
    channel.close()


def test_a_server_that_stopped_while_nobody_listened(server):
    channel = BlockingChannel("127.0.0.1", server.port, HELLO)
    server.stop()
    with pytest.raises(ConnectionBroken, match=f"127.0.0.1:{server.port}"):
        channel.request(ECHO, ACK)


@pytest.mark.parametrize("host", ["x" * 300, "a..b"])
def test_what_cannot_be_the_name_of_a_host_is_refused(host):
    with pytest.raises(ConnectionRefused, match="is no name of a host"):
        BlockingChannel(host, 1, HELLO)


def test_connecting_to_nobody_says_what_to_do():
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    sock.close()
    with pytest.raises(ConnectionRefused, match=str(port)) as raised:
        BlockingChannel("127.0.0.1", port, HELLO)
    assert "Check that the member is running" in raised.value.hint


@contextmanager
def scripted(*answers: bytes):
    """A server that reads something and then says ``answers``, one per read."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        sock, _ = listener.accept()
        with sock:
            for answer in answers:
                sock.recv(65536)
                sock.sendall(answer)
            while sock.recv(65536):
                pass

    thread = threading.Thread(target=serve)
    thread.start()
    yield listener.getsockname()
    thread.join()
    listener.close()


def welcome(**fields) -> bytes:
    message = user_pb2.BitToUserHandshake(rpc_version=5, status=user_pb2.SUCCESS, **fields)
    return encode_head(RESPONSE, 1, 0, message.SerializeToString())


def test_a_listener_that_says_nothing_is_refused():
    with scripted() as address, pytest.raises(ConnectionRefused, match="did not shake hands"):
        BlockingChannel(*address, HELLO, timeout=0.05)


def test_a_server_of_another_protocol():
    with (
        scripted(b"HTTP/1.1 400 Bad Request\r\n\r\n") as address,
        pytest.raises(ProtocolError, match="not a frame"),
    ):
        BlockingChannel(*address, HELLO)


def test_garbage_behind_a_handshake_breaks_the_channel():
    with scripted(welcome(), b"\x00\x00") as address:
        channel = BlockingChannel(*address, HELLO)
        with pytest.raises(ProtocolError, match="length 0"):
            channel.request(ECHO, ACK)
        assert channel.closed


def test_pings_of_the_server_are_answered_on_the_way():
    ping = bytes.fromhex("0c0a0608031000180012020801")
    answer = encode_head(RESPONSE, 2, ECHO, b"\x08\x01")
    with scripted(welcome(), ping + answer) as address, BlockingChannel(*address, HELLO) as channel:
        assert channel.request(ECHO, ACK).rpc_type == ECHO


def test_a_server_that_falls_silent_is_given_up():
    with (
        scripted(welcome()) as address,
        BlockingChannel(*address, HELLO, silence=0.05) as channel,
    ):
        with pytest.raises(ConnectionBroken, match=r"was silent for 0\.05 s"):
            channel.request(ECHO, ACK)
        assert channel.closed


def test_one_way_requests_of_the_server_need_no_answer():
    push = encode_head(REQUEST, 0, 6, b"\x08\x01")
    with scripted(welcome() + push) as address, BlockingChannel(*address, HELLO) as channel:
        incoming = channel.receive(timeout=10)
        assert (incoming.coordination_id, incoming.rpc_type) == (0, 6)
        channel.acknowledge(incoming)


def test_an_answer_counts_that_came_together_with_a_goodbye():
    """Otherwise a write that was carried out would be sent to another member as well."""
    answer = encode_head(RESPONSE, 2, ECHO, b"\x08\x01")
    goodbye = encode_head(REQUEST, 0, user_pb2.GOODBYE, b"")
    with scripted(welcome(), answer + goodbye) as address:
        assert BlockingChannel(*address, HELLO).request(ECHO, ACK).rpc_type == ECHO
    with scripted(welcome(), answer + goodbye) as address:
        channel = BlockingChannel(*address, HELLO)
        assert channel.send_request(ECHO, ACK) == 2
        assert channel.receive(timeout=10).coordination_id == 2
        with pytest.raises(NotServed, match="had not received the request"):
            channel.receive(timeout=10)


def test_requests_that_came_together_with_a_goodbye_can_be_acknowledged():
    """They count: nobody is told otherwise because the member does not hear that."""
    end = encode_head(REQUEST, 3, 10, b"\x08\x01")
    goodbye = encode_head(REQUEST, 0, user_pb2.GOODBYE, b"")
    with scripted(welcome(), end + goodbye) as address:
        channel = BlockingChannel(*address, HELLO)
        channel.send_request(ECHO, ACK)
        incoming = channel.receive(timeout=10)
        assert (incoming.rpc_type, channel.closed) == (10, True)
        channel.acknowledge(incoming)
        channel.flush()
        with pytest.raises(NotServed):
            channel.receive(timeout=10)
