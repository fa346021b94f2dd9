"""The pure connection: handshakes, pending requests, heartbeats, with a clock of our own."""

from __future__ import annotations

import pytest

from remuda.errors import (
    AuthenticationFailed,
    ConnectionBroken,
    ConnectionRefused,
    FrameTooLarge,
    InternalError,
    LimitExceeded,
    ProtocolError,
    UndefinedMap,
    VersionMismatch,
)
from remuda.limits import HANDSHAKE_TIMEOUT, USER_HEARTBEAT_TIMEOUT
from remuda.rpc import connection as machine
from remuda.rpc.connection import ChannelKind, Close, Connection, Deliver, Opened, Resolve, Write
from remuda.rpc.frame import PING, PONG, REQUEST, RESPONSE, Frame, FrameReader
from remuda.rpc.messages import common_pb2, control_pb2, data_pb2, user_pb2

HELLOS = {
    ChannelKind.USER: user_pb2.UserToBitHandshake(support_timeout=True),
    ChannelKind.CONTROL: control_pb2.ControlHandshake(member=common_pb2.Member(number=2)),
    ChannelKind.DATA: data_pb2.BitClientHandshake(),
}
WELCOMES = {
    ChannelKind.USER: user_pb2.BitToUserHandshake(member=1),
    ChannelKind.CONTROL: control_pb2.ControlHandshake(member=common_pb2.Member(number=1)),
    ChannelKind.DATA: data_pb2.BitServerHandshake(),
}


def frames(effects):
    """The frames in the writes among ``effects``."""
    out = []
    for effect in effects:
        if isinstance(effect, Write):
            data = b"".join(map(bytes, effect.data))
            reader = FrameReader()
            reader.room[: len(data)] = data
            out += reader.received(len(data))
    return out


def pair(kind=ChannelKind.USER, *, hello=None, answer=None, now=0.0):
    client = Connection(kind, "server:1", now, hello=hello or HELLOS[kind])
    server = Connection(kind, "client:2", now, answer=answer or (lambda _: WELCOMES[kind]))
    return client, server


def shake(client, server):
    (hello,) = frames(client.start())
    answer = server.receive(hello)
    (welcome,) = frames(answer)
    return answer, client.receive(welcome)


def opened(kind=ChannelKind.USER, **options):
    client, server = pair(kind, **options)
    shake(client, server)
    return client, server


@pytest.mark.parametrize("kind", ChannelKind)
def test_handshake_of_every_channel(kind):
    client, server = pair(kind)
    at_server, at_client = shake(client, server)
    assert isinstance(at_server[-1], Opened)
    assert isinstance(at_client[-1], Opened)
    assert server.handshake.rpc_version == client.protocol.versions.highest
    if kind is ChannelKind.CONTROL:
        assert server.handshake.member.number == 2
        assert client.handshake.member.number == 1


def test_a_stock_drill_client_shakes_hands_with_equal_versions():
    _, server = pair()
    hello = user_pb2.UserToBitHandshake(
        channel=user_pb2.USER, support_listening=True, rpc_version=5
    ).SerializeToString()
    effects = server.receive(Frame(REQUEST, 1, 0, hello))
    (answer,) = frames(effects)
    welcome = user_pb2.BitToUserHandshake.FromString(answer.pbody)
    assert (welcome.status, welcome.rpc_version) == (user_pb2.SUCCESS, 5)


@pytest.mark.parametrize(
    ("lowest", "highest", "fits"),
    [(None, 5, True), (3, 7, True), (5, 9, True), (None, 4, False), (6, 9, False), (1, 4, False)],
)
def test_version_ranges(lowest, highest, fits):
    _, server = pair()
    hello = user_pb2.UserToBitHandshake(rpc_version=highest, rpc_version_min=lowest)
    effects = server.receive(Frame(REQUEST, 1, 0, hello.SerializeToString()))
    welcome = user_pb2.BitToUserHandshake.FromString(frames(effects)[0].pbody)
    if fits:
        assert isinstance(effects[-1], Opened)
        return
    assert welcome.status == user_pb2.RPC_VERSION_MISMATCH
    assert "version 5" in welcome.errorMessage
    assert isinstance(effects[-1], Close)
    assert effects[-1].linger, "the client must be able to read why"


@pytest.mark.parametrize("kind", [ChannelKind.CONTROL, ChannelKind.DATA])
def test_members_refuse_other_versions_by_type(kind):
    _, server = pair(kind)
    hello = type(HELLOS[kind])(rpc_version=4)
    effects = server.receive(Frame(REQUEST, 1, 0, hello.SerializeToString()))
    client, _ = pair(kind)
    client.start()
    closing = client.receive(frames(effects)[0])[-1]
    assert isinstance(closing.error, VersionMismatch)
    assert "version 4" in closing.error.message


@pytest.mark.parametrize("error", [AuthenticationFailed("no"), UndefinedMap("odd", hint="try x")])
@pytest.mark.parametrize("kind", ChannelKind)
def test_a_refusal_reaches_the_client_as_its_class(kind, error):
    def answer(_):
        raise error

    client, server = pair(kind, answer=answer)
    _, at_client = shake(client, server)
    assert at_client[-1].error.to_report() == error.to_report()
    assert client.error is at_client[-1].error


def test_a_drill_servers_refusal_is_typed_by_its_status():
    client, _ = pair()
    client.start()
    no = user_pb2.BitToUserHandshake(
        status=user_pb2.AUTH_FAILED, errorMessage="bad password", rpc_version=5
    )
    (closing,) = client.receive(Frame(RESPONSE, 1, 0, no.SerializeToString()))
    assert isinstance(closing.error, AuthenticationFailed)


def test_the_wrong_port_is_named():
    client, _ = pair(ChannelKind.DATA)
    _, server = pair(ChannelKind.CONTROL)
    effects = server.receive(frames(client.start())[0])
    assert "this is the control channel" in effects[-1].error.message


def test_anything_but_a_handshake_first_is_a_protocol_error():
    for frame in (Frame(REQUEST, 1, 3), Frame(RESPONSE, 1, 0), Frame(REQUEST, 1, 0, b"\xff")):
        _, server = pair()
        closing = server.receive(frame)[-1]
        assert isinstance(closing, Close)
        assert isinstance(closing.error, ProtocolError)


def test_requests_and_replies_meet_by_coordination_id():
    client, _ = opened()
    ids = [client.request(110, b"", 0, token)[0] for token in "abc"]
    assert len(set(ids)) == 3
    (b,) = client.receive(Frame(RESPONSE, ids[1], 110, b"B"))
    assert (b.token, b.outcome.pbody) == ("b", b"B")
    failure = machine.Connection.failure(ids[0], UndefinedMap("no map x"))
    (a,) = client.receive(frames([Write((failure,))])[0])
    assert a.token == "a"
    assert isinstance(a.outcome, UndefinedMap)
    (lost,) = client.lost(ConnectionBroken("server:1 is gone"))
    assert lost.token == "c"
    assert "server:1" in lost.outcome.message
    with pytest.raises(ConnectionBroken, match="server:1 is gone"):
        client.request(110, b"", 0, "d")
    assert client.receive(Frame(RESPONSE, ids[2], 110)) == []


def test_both_sides_ask():
    client, server = opened()
    frame = frames([Write((server.request(6, b"page", 0, None)[1],))])[0]
    (deliver,) = client.receive(frame)
    assert isinstance(deliver, Deliver)
    assert deliver.frame.pbody == b"page"


def test_an_answer_nobody_waits_for_is_dropped_and_one_never_asked_for_closes():
    client, _ = opened()
    identifier, _ = client.request(110, b"", 0, "a")
    client.abandon(identifier)
    assert client.receive(Frame(RESPONSE, identifier, 110)) == []
    waiting, _ = client.request(110, b"", 0, "b")
    resolve, closing = client.receive(Frame(RESPONSE, 999, 110))
    assert isinstance(resolve, Resolve)
    assert isinstance(closing.error, ProtocolError)
    assert waiting not in client.pending


def test_coordination_ids_come_round_and_skip_those_in_use():
    client, _ = opened()
    keep, _ = client.request(110, b"", 0, "keep")
    seen = set()
    for _ in range(40_000):
        identifier, _ = client.request(110, b"", 0, "x")
        assert identifier not in (0, keep)
        seen.add(identifier)
        client.receive(Frame(RESPONSE, identifier, 110))
    assert max(seen) < 2**14


def test_pending_requests_are_bounded(monkeypatch):
    monkeypatch.setattr(machine, "_PENDING_MAX", 3)
    client, _ = opened()
    for _ in range(3):
        client.request(110, b"", 0, "x")
    with pytest.raises(LimitExceeded, match="owes 3 answers"):
        client.request(110, b"", 0, "x")


def test_ping_is_answered_at_any_time_whatever_its_type():
    for connection in (*pair(), *opened()):
        answer = frames(connection.receive(Frame(PING, 9, 1, b"\x08\x01")))
        assert answer == [Frame(PONG, 0, 0, b"\x08\x01")]
        assert connection.receive(Frame(PONG, 0, 0, b"\x08\x01")) == []


def test_the_client_pings_after_half_the_timeout_and_gives_up_after_the_whole():
    client, _ = opened()
    half = USER_HEARTBEAT_TIMEOUT / 2
    assert client.deadline() == half
    assert client.tick(half - 1) == []
    assert frames(client.tick(half)) == [Frame(PING, 0, 0, b"\x08\x01")]
    assert client.deadline() == 2 * half
    assert client.tick(half + 1) == []
    client.last_heard = half + 2  # the PONG
    assert client.deadline() == half + 2 + half
    assert client.tick(2 * half) == []
    client.tick(client.deadline())
    (closing,) = client.tick(client.deadline())
    assert isinstance(closing.error, ConnectionBroken)
    assert "server:1 was silent for 30 s" in closing.error.message


def test_the_server_only_times_out_clients_that_say_they_ping():
    _, server = opened()
    assert server.deadline() == USER_HEARTBEAT_TIMEOUT
    (closing,) = server.tick(USER_HEARTBEAT_TIMEOUT)
    assert isinstance(closing, Close)
    _, server = opened(hello=user_pb2.UserToBitHandshake())
    assert server.deadline() is None
    _, server = opened(ChannelKind.CONTROL)
    assert server.deadline() == 300


def test_handshakes_time_out_on_both_sides():
    client, server = pair(now=100.0)
    client.start()
    assert client.deadline() == server.deadline() == 100 + HANDSHAKE_TIMEOUT
    assert isinstance(client.tick(client.deadline())[-1].error, ConnectionRefused)
    assert isinstance(server.tick(server.deadline())[-1].error, ProtocolError)


def test_an_oversized_request_is_answered_before_the_close():
    _, server = opened()
    error = FrameTooLarge("too large")
    effects = server.malformed(error, 7)
    (answer,) = frames(effects)
    assert (answer.mode, answer.coordination_id, answer.rpc_type) == (2, 7, 0)
    assert user_pb2.PBError.FromString(answer.pbody).kind == "FrameTooLarge"
    assert effects[-1] == Close(error, linger=True)
    assert server.malformed(error, 7) == []


def test_a_failure_that_cannot_be_parsed_is_still_a_failure():
    client, _ = opened()
    identifier, _ = client.request(110, b"", 0, "a")
    (resolve,) = client.receive(Frame(2, identifier, 0, b"\xff\xff"))
    assert isinstance(resolve.outcome, ProtocolError)


def test_unexpected_errors_are_internal_errors():
    error = machine.unexpected(ZeroDivisionError("division by zero"))
    assert isinstance(error, InternalError)
    assert "ZeroDivisionError" in error.message
