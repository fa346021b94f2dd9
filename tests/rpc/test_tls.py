"""TLS below channels: asyncio, uvloop, the blocking channel, and everything that can be wrong."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import socket
import ssl
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme
import uvloop
from cryptography.hazmat.primitives import serialization as s

from remuda.errors import ConnectionBroken, ConnectionRefused, InputError, TlsFailed
from remuda.limits import FRAME_SIZE_MAX
from remuda.rpc import tls_transport
from remuda.rpc.blocking import BlockingChannel
from remuda.rpc.connection import ChannelKind
from remuda.rpc.frame import REQUEST, FrameReader, encode_head
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.server import listen
from remuda.rpc.tls import NOT_HERE, ClientTls, TlsFiles, TlsSession, client_context, server_context
from remuda.rpc.transport import connect

ACK = common_pb2.Ack(ok=True)
HELLO = user_pb2.UserToBitHandshake(support_timeout=True)
ECHO = 100


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request):
    return request.param


@pytest.fixture(scope="module")
def files(certificates):
    certificate, key = certificates.issue("server", "127.0.0.1", "localhost")
    return TlsFiles(ca=certificates.ca, certificate=certificate, key=key)


@asynccontextmanager
async def serving(context, **options):
    sock = socket.socket()
    sock.bind(("127.0.0.1", 0))

    def handle(request):
        request.reply(ECHO, ACK, (request.dbody,))

    server = await listen(
        sock,
        ChannelKind.USER,
        lambda _: user_pb2.BitToUserHandshake(member=7),
        handle,
        tls=context,
        **options,
    )
    try:
        yield server
    finally:
        await server.close()


def trusting(certificates, **more):
    return ClientTls(client_context(TlsFiles(ca=certificates.ca, **more)))


def failing(run, context, tls, error=TlsFailed, host="127.0.0.1"):
    """What both kinds of client get from a server; and nothing may be left on it."""

    async def main():
        async with serving(context) as server:
            with pytest.raises(error) as first:
                await connect(host, server.address[1], ChannelKind.USER, HELLO, tls=tls)

            def block():
                BlockingChannel(host, server.address[1], HELLO, tls=tls, timeout=5)

            with pytest.raises(error) as second:
                await asyncio.to_thread(block)
            while len(server.strangers) or server.channels:
                await asyncio.sleep(0.001)
            assert type(first.value) is type(second.value)
            assert first.value.message == second.value.message
            return first.value

    return run(main())


def test_requests_of_all_sizes(run, files, certificates):
    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            tls = trusting(certificates)
            channel = await connect(*server.address, ChannelKind.USER, HELLO, tls=tls)
            for size in (0, 1, 70_000, 5_000_000):
                reply = await channel.request(ECHO, ACK, (bytes(size),))
                assert bytes(reply.dbody) == bytes(size)
            many = [channel.request(ECHO, ACK, (b"x" * n,)) for n in range(200)]
            assert [len(r.dbody) for r in await asyncio.gather(*many)] == list(range(200))

            def block():
                with BlockingChannel(*server.address, HELLO, tls=tls) as blocking:
                    for size in (0, 1, 70_000, 5_000_000):
                        parts = (b"a" * size, b"b")
                        assert len(blocking.request(ECHO, ACK, parts).dbody) == size + 1

            await asyncio.to_thread(block)
            closed = asyncio.get_running_loop().create_future()
            (there,) = [c for c in server.channels if not c.closed][:1]
            there.on_closed.append(closed.set_result)
            channel.close()
            assert isinstance(await closed, ConnectionBroken)

    run(main())


def test_a_forked_process_leaves_the_connection_alone(run, files, certificates):
    def block(address):
        with BlockingChannel(*address, HELLO, tls=trusting(certificates)) as channel:
            channel.request(ECHO, ACK)
            child = os.fork()
            if child == 0:
                channel.close()
                os._exit(0)
            os.waitpid(child, 0)
            for _ in range(3):
                channel.request(ECHO, ACK, (bytes(100_000),))

    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            await asyncio.to_thread(block, server.address)

    run(main())


def test_a_version_below_is_refused(run, files, certificates):
    old = client_context(TlsFiles(ca=certificates.ca, minimum="1.2"))
    only_old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    only_old.load_verify_locations(certificates.ca)
    only_old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert old.minimum_version is ssl.TLSVersion.TLSv1_2
    error = failing(run, server_context(files, client_certificates=False), ClientTls(only_old))
    assert "no TLS version in common" in error.message


def test_mutual(run, files, certificates):
    certificate, key = certificates.issue("client", "client@example.org")

    async def main():
        async with serving(server_context(files, client_certificates=True)) as server:
            tls = trusting(certificates, certificate=certificate, key=key)
            channel = await connect(*server.address, ChannelKind.USER, HELLO, tls=tls)
            await channel.request(ECHO, ACK)
            channel.close()

    run(main())


def test_a_client_without_the_certificate_that_is_wanted(run, files, certificates):
    context = server_context(files, client_certificates=True)
    error = failing(run, context, trusting(certificates))
    assert "it wants a certificate of this side" in error.message
    assert "Give a certificate" in error.hint


def test_a_client_certificate_of_another_authority(run, files, certificates):
    other = trustme.CA()
    certificate, key = certificates.issue("foreign", authority=other)
    context = server_context(files, client_certificates=True)
    tls = trusting(certificates, certificate=certificate, key=key)
    error = failing(run, context, tls)
    assert "does not trust the CA" in error.message


def test_a_server_of_another_authority(run, certificates):
    certificate, key = certificates.issue("stranger", authority=trustme.CA())
    context = server_context(TlsFiles("", certificate, key), client_certificates=False)
    error = failing(run, context, trusting(certificates))
    assert "is not accepted: unable to get local issuer certificate" in error.message
    assert "Name the CA" in error.hint


def test_an_expired_certificate(run, certificates):
    past = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
    certificate, key = certificates.issue(
        "old", not_before=past - dt.timedelta(days=9), not_after=past
    )
    context = server_context(TlsFiles("", certificate, key), client_certificates=False)
    error = failing(run, context, trusting(certificates))
    assert "certificate has expired" in error.message


def test_a_wrong_host_name(run, files, certificates):
    certificate, key = certificates.issue("elsewhere", "elsewhere.example.org")
    context = server_context(TlsFiles("", certificate, key), client_certificates=False)
    error = failing(run, context, trusting(certificates))
    assert "not valid for '127.0.0.1'" in error.message
    assert "server name" in error.hint

    async def main():
        async with serving(context) as server:
            tls = ClientTls(trusting(certificates).context, "elsewhere.example.org")
            channel = await connect(*server.address, ChannelKind.USER, HELLO, tls=tls)
            channel.close()

    run(main())


def test_a_client_without_tls(run, files):
    error = failing(run, server_context(files, client_certificates=False), None)
    assert "speaks TLS only" in error.message
    assert "Connect with TLS" in error.hint


def test_a_client_with_tls_on_a_port_without(run, certificates):
    error = failing(run, None, trusting(certificates))
    assert "does not speak TLS on this port" in error.message


def test_a_port_that_is_something_else(run, certificates):
    async def main():
        gone = asyncio.Event()

        async def greet(_, writer):
            writer.write(b"220 mail.example.org ready\r\n")
            writer.close()
            await writer.wait_closed()
            gone.set()

        server = await asyncio.start_server(greet, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TlsFailed, match="does not speak TLS"):
            await connect(
                "127.0.0.1", port, ChannelKind.USER, HELLO, tls=trusting(certificates), timeout=5
            )
        await gone.wait()
        server.close()

    run(main())


def test_strangers_who_say_nothing_are_cut_off(run, files, monkeypatch):
    monkeypatch.setattr(tls_transport, "HANDSHAKE_TIMEOUT", 0.01)

    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            writer.write(b"\x16")
            assert await reader.read() == b""
            writer.close()
            while len(server.strangers):
                await asyncio.sleep(0.001)

    run(main())


def test_a_client_gives_up_on_a_server_that_says_nothing(run, certificates):
    async def main():
        ended = asyncio.Event()

        async def silent(reader, writer):
            while await reader.read(1000):
                pass
            ended.set()
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        tls = trusting(certificates)
        with pytest.raises(ConnectionRefused, match=r"within 0\.01 s"):
            await connect("127.0.0.1", port, ChannelKind.USER, HELLO, tls=tls, timeout=0.01)
        await ended.wait()
        ended.clear()

        def block():
            BlockingChannel("127.0.0.1", port, HELLO, tls=tls, timeout=0.01)

        with pytest.raises(ConnectionRefused, match=r"within 0\.01 s"):
            await asyncio.to_thread(block)
        await ended.wait()
        server.close()

    run(main())


def test_a_stop_ends_connections_whose_handshake_is_under_way(run, files):
    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            reader, writer = await asyncio.open_connection(*server.address)
            while not len(server.strangers):
                await asyncio.sleep(0.001)
            await server.close()
            with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                await reader.readexactly(1)
            assert not len(server.strangers)
            writer.close()

    run(main())


def test_too_many_strangers(run, files):
    async def main():
        context = server_context(files, client_certificates=False)
        for tls in (context, None):
            async with serving(tls, strangers_max=3) as server:
                writers = []
                for number in range(4):
                    reader, writer = await asyncio.open_connection(*server.address)
                    writers.append((reader, writer))
                    while len(server.strangers) < min(number + 1, 3):
                        await asyncio.sleep(0.001)
                with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                    await writers[0][0].readexactly(1)
                assert len(server.strangers) == 3
                for _, writer in writers:
                    writer.close()

    run(main())


def test_a_stranger_may_send_tiny_frames_only(run, files, certificates):
    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            context = trusting(certificates).context
            reader, writer = await asyncio.open_connection(*server.address, ssl=context)
            large = user_pb2.UserToBitHandshake(channel=user_pb2.USER, rpc_version=5)
            large.properties.properties.add(key="x", value="y" * 20_000)
            writer.write(encode_head(REQUEST, 1, 0, large.SerializeToString()))
            reader_ = FrameReader()
            data = await reader.read()
            reader_.room[: len(data)] = data
            (answer,) = reader_.received(len(data))
            assert b"FrameTooLarge" in answer.pbody
            writer.close()

    run(main())


def test_the_session_split_at_every_byte(files, certificates):
    """TLS is a stream: nothing may depend on how it is cut."""
    context = trusting(certificates).context
    client = TlsSession(context, "server", server_name="127.0.0.1")
    server = TlsSession(server_context(files, client_certificates=False), "client")
    sides = [(client, server), (server, client)]
    while not (client.established and server.established):
        for here, there in sides:
            if not here.established:
                here.shake()
            for byte in here.outgoing():
                there.feed(bytes([byte]))
                if not there.established:
                    there.shake()
    client.write(b"hello" * 1000)
    found = bytearray()
    room = memoryview(bytearray(777))
    for byte in client.outgoing():
        server.feed(bytes([byte]))
        while count := server.read_into(room):
            found += room[:count]
    assert bytes(found) == b"hello" * 1000
    client.finish()
    server.feed(client.outgoing())
    assert server.read_into(room) == 0


def test_the_alert_of_a_port_without_tls(certificates):
    client = TlsSession(trusting(certificates).context, "m:1", server_name="m")
    client.shake()
    client.feed(NOT_HERE)
    with pytest.raises(TlsFailed, match="m:1 does not speak TLS on this port"):
        client.shake()


class TestFiles:
    def test_missing(self, certificates):
        with pytest.raises(
            InputError, match=r"TLS CA file /nowhere/ca.pem cannot be read: No such"
        ):
            client_context(TlsFiles(ca="/nowhere/ca.pem"))
        with pytest.raises(InputError, match=r"TLS certificate file /nowhere/c\.pem cannot"):
            server_context(TlsFiles(certificate="/nowhere/c.pem"), client_certificates=False)

    def test_no_certificate_in_it(self, tmp_path, certificates):
        nothing = tmp_path / "nothing.pem"
        nothing.write_text("hello")
        with pytest.raises(InputError, match="holds no certificate"):
            client_context(TlsFiles(ca=str(nothing)))
        with pytest.raises(InputError, match="do not serve"):
            server_context(TlsFiles(certificate=str(nothing)), client_certificates=False)

    def test_the_key_of_another_certificate(self, files, certificates):
        _, key = certificates.issue("another")
        with pytest.raises(InputError, match="key values mismatch"):
            server_context(TlsFiles("", files.certificate, key), client_certificates=False)

    def test_an_encrypted_key(self, files, tmp_path):
        key = s.load_pem_private_key(Path(files.key).read_bytes(), None)
        locked = tmp_path / "locked.key"
        locked.write_bytes(
            key.private_bytes(
                s.Encoding.PEM, s.PrivateFormat.PKCS8, s.BestAvailableEncryption(b"secret")
            )
        )
        with pytest.raises(InputError, match="is encrypted"):
            server_context(TlsFiles("", files.certificate, str(locked)), client_certificates=False)

    def test_a_key_without_certificate_and_odd_versions(self):
        with pytest.raises(InputError, match="without its certificate"):
            client_context(TlsFiles(key="x"))
        with pytest.raises(InputError, match=r"1\.2 or 1\.3"):
            client_context(TlsFiles(minimum="1.1"))


def test_large_frames_keep_their_bound(run, files, certificates):
    async def main():
        async with serving(server_context(files, client_certificates=False)) as server:
            tls = trusting(certificates)
            channel = await connect(*server.address, ChannelKind.USER, HELLO, tls=tls)
            with pytest.raises(Exception, match="larger than the limit"):
                await channel.request(ECHO, ACK, (bytes(FRAME_SIZE_MAX),))
            await channel.request(ECHO, ACK)
            channel.close()

    run(main())
