"""Authentication without a socket: the exchanges, the state machine, golden frames."""

from __future__ import annotations

import hmac

import pytest

from remuda.errors import (
    AuthenticationFailed,
    ConnectionRefused,
    MemberUnavailable,
    ProtocolError,
    WrongPassword,
)
from remuda.limits import AUTHENTICATION_PENALTY, HANDSHAKE_TIMEOUT
from remuda.rpc.connection import (
    ChannelKind,
    Close,
    Connection,
    Delay,
    Opened,
    State,
    Verify,
    Write,
)
from remuda.rpc.frame import PING, PONG, REQUEST, RESPONSE, RESPONSE_FAILURE, Frame, FrameReader
from remuda.rpc.messages import common_pb2, control_pb2, data_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import SaslMessage
from remuda.rpc.sasl import (
    MESSAGE_TYPES,
    NONCE_SIZE,
    SECRET,
    Challenge,
    Credentials,
    PlainClient,
    PlainServer,
    SecretClient,
    SecretServer,
    Shown,
    plain_credentials,
)

KEY = b"a secret of the cluster"
C, S = b"c" * NONCE_SIZE, b"s" * NONCE_SIZE
MEMBER_KINDS = (ChannelKind.CONTROL, ChannelKind.DATA)
HELLOS = {
    ChannelKind.USER: user_pb2.UserToBitHandshake(sasl_support=1),
    ChannelKind.CONTROL: control_pb2.ControlHandshake(member=common_pb2.Member(number=2)),
    ChannelKind.DATA: data_pb2.BitClientHandshake(),
}
WELCOMES = {
    ChannelKind.USER: user_pb2.BitToUserHandshake(member=1),
    ChannelKind.CONTROL: control_pb2.ControlHandshake(member=common_pb2.Member(number=1)),
    ChannelKind.DATA: data_pb2.BitServerHandshake(),
}


def raw(effects) -> bytes:
    return b"".join(bytes(part) for e in effects if isinstance(e, Write) for part in e.data)


def frames(effects):
    data = raw(effects)
    reader = FrameReader()
    reader.room[: len(data)] = data
    return reader.received(len(data))


def kinds(effects):
    return [type(effect) for effect in effects]


def sides(kind, *, guard, login, hello=None, answer=None):
    client = Connection(kind, "server:1", 0.0, hello=hello or HELLOS[kind], login=login)
    answer = answer or (lambda _: WELCOMES[kind])
    server = Connection(kind, "client:2", 0.0, answer=answer, guard=guard)
    return client, server


def converse(client, server, verdict="ann"):
    """Let both sides talk until nobody has anything to say; ``verdict``: of credentials."""
    to_server, log = frames(client.start()), []
    while to_server:
        effects = []
        for frame in to_server:
            effects += server.receive(frame)
        for effect in list(effects):
            if isinstance(effect, Verify):
                effects += server.verified(verdict)
        log += [e for e in effects if not isinstance(e, Write)]
        to_server = []
        for frame in frames(effects):
            answers = client.receive(frame)
            log += [e for e in answers if not isinstance(e, Write)]
            to_server += frames(answers)
    return log


class TestSecret:
    @pytest.mark.parametrize("kind", MEMBER_KINDS)
    def test_both_know_it(self, kind):
        guard, login = SecretServer(KEY, kind, S), SecretClient(KEY, kind, C)
        client, server = sides(kind, guard=guard, login=login)
        log = converse(client, server)
        assert kinds(log) == [Opened, Opened]
        assert client.state is server.state is State.OPEN
        assert server.handshake is not None

    @pytest.mark.parametrize(("guard_key", "login_key"), [(KEY, b"other"), (b"other", KEY)])
    def test_one_does_not(self, guard_key, login_key):
        kind = ChannelKind.CONTROL
        guard, login = SecretServer(guard_key, kind, S), SecretClient(login_key, kind, C)
        answered = []
        client, server = sides(
            kind, guard=guard, login=login, answer=lambda h: answered.append(h) or WELCOMES[kind]
        )
        (delay,) = converse(client, server)
        assert isinstance(delay, Delay)
        assert delay.seconds == AUTHENTICATION_PENALTY
        effects = server.refused(delay.error)
        (refusal,) = frames(effects)
        assert kinds(effects) == [Write, Close]
        assert SaslMessage.FromString(refusal.pbody).status == user_pb2.SASL_FAILED
        (closed,) = client.receive(refusal)
        assert isinstance(closed.error, AuthenticationFailed)
        assert "does not know the secret" in closed.error.message
        assert not answered  # what a stranger says is not looked at

    def test_the_server_must_know_it_too(self):
        kind = ChannelKind.CONTROL
        client, _ = sides(kind, guard=None, login=SecretClient(KEY, kind, C))
        frames(client.start())
        welcome = control_pb2.ControlHandshake(
            rpc_version=client.protocol.versions.highest, authenticationMechanisms=[SECRET]
        )
        client.receive(Frame(RESPONSE, 1, 0, welcome.SerializeToString(), b""))
        challenge = SaslMessage(data=S, status=user_pb2.SASL_IN_PROGRESS)
        client.receive(Frame(RESPONSE, 2, 19, challenge.SerializeToString(), b""))
        for data in (b"", b"x" * 32, hmac.digest(b"guessed", S, "sha256")):
            other = SecretClient(KEY, kind, C)
            other.next(S)
            with pytest.raises(AuthenticationFailed, match="other side does not know"):
                other.last(data)
        (closed,) = client.receive(
            Frame(
                RESPONSE, 3, 19, SaslMessage(status=user_pb2.SASL_SUCCESS).SerializeToString(), b""
            )
        )
        assert "does not know the secret" in closed.error.message

    def test_a_server_that_lets_everybody_in(self):
        kind = ChannelKind.DATA
        client, server = sides(kind, guard=None, login=SecretClient(KEY, kind, C))
        log = converse(client, server)
        assert [e.error.message for e in log if isinstance(e, Close)] == [
            "server:1 does not ask for the secret of this cluster"
        ]

    def test_success_before_the_challenge(self):
        with pytest.raises(AuthenticationFailed):
            SecretClient(KEY, ChannelKind.DATA, C).last(b"")

    def test_proofs_are_bound_to_channel_and_direction(self):
        proofs = set()
        for kind in MEMBER_KINDS:
            client, server = SecretClient(KEY, kind, C), SecretServer(KEY, kind, S)
            assert server.step(client.first()) == Challenge(S)
            proof = client.next(S)
            shown = server.step(proof)
            assert isinstance(shown, Shown)
            client.last(shown.data)
            proofs |= {proof, shown.data}
        assert len(proofs) == 4
        server = SecretServer(KEY, ChannelKind.DATA, S)
        server.step(C)
        for proof in proofs:
            if proof != proof_of_client(ChannelKind.DATA):
                with pytest.raises(AuthenticationFailed):
                    again = SecretServer(KEY, ChannelKind.DATA, S)
                    again.step(C)
                    again.step(proof)

    def test_a_member_does_not_talk_with_itself(self):
        mine = S[:8] + b"other part of the nonce!"
        assert len(mine) == NONCE_SIZE
        with pytest.raises(ProtocolError, match="no nonce"):
            SecretServer(KEY, ChannelKind.DATA, S).step(mine)
        with pytest.raises(ProtocolError, match="no nonce"):
            SecretClient(KEY, ChannelKind.DATA, S).next(mine)

    @pytest.mark.parametrize("nonce", [b"", b"short", b"x" * 33])
    def test_what_is_no_nonce(self, nonce):
        with pytest.raises(ProtocolError, match="no nonce"):
            SecretServer(KEY, ChannelKind.DATA, S).step(nonce)
        with pytest.raises(ProtocolError, match="no nonce"):
            SecretClient(KEY, ChannelKind.DATA, C).next(nonce)


def proof_of_client(kind):
    client = SecretClient(KEY, kind, C)
    return client.next(S)


class TestPlain:
    def test_the_message(self):
        assert PlainClient("ann", "s\u00e9cret").first() == b"ann\0ann\0s\xc3\xa9cret"
        assert plain_credentials(b"\0ann\0pw") == Credentials("ann", "pw")
        assert plain_credentials(b"ann\0ann\0") == Credentials("ann", "")
        assert "pw" not in repr(Credentials("ann", "pw"))

    @pytest.mark.parametrize(
        "data", [b"", b"ann", b"ann\0pw", b"\0\0pw", b"a\0b\0c\0d", b"\xff\0a\0b"]
    )
    def test_what_is_none(self, data):
        with pytest.raises(ProtocolError, match="PLAIN"):
            plain_credentials(data)

    def test_nobody_acts_as_another(self):
        with pytest.raises(AuthenticationFailed, match='"ann" cannot act as "root"'):
            plain_credentials(b"root\0ann\0pw")

    def test_let_in(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw")
        )
        log = converse(client, server)
        assert kinds(log) == [Verify, Opened, Opened]
        assert log[0].credentials == Credentials("ann", "pw")
        assert log[1].user == "ann"

    def test_a_wrong_password(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw")
        )
        log = converse(client, server, WrongPassword("no"))
        assert kinds(log) == [Verify, Delay]
        assert server.receive(Frame(PING, 0, 0, b"", b""))[0].data  # it lives meanwhile
        (closed,) = client.receive(frames(server.refused(log[1].error))[0])
        assert isinstance(closed.error, WrongPassword)
        assert server.state is State.CLOSED
        assert server.refused(log[1].error) == []
        assert server.verified("ann") == []

    def test_a_member_that_cannot_check_says_so_at_once(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw")
        )
        log = converse(client, server, MemberUnavailable("busy"))
        assert [type(e) for e in log] == [Verify, Close, Close]
        assert isinstance(log[-1].error, MemberUnavailable)

    def test_a_client_without_password(self):
        client, server = sides(ChannelKind.USER, guard=PlainServer(), login=None)
        (closed,) = converse(client, server)
        assert closed.error.message == "server:1 asks for user and password"
        assert closed.error.hint == "Connect with user and password."

    def test_a_password_that_nobody_asks_for_stays_here(self):
        client, server = sides(ChannelKind.USER, guard=None, login=PlainClient("ann", "pw"))
        said = raw(client.start())
        assert b"pw" not in said
        client, server = sides(ChannelKind.USER, guard=None, login=PlainClient("ann", "pw"))
        assert kinds(converse(client, server)) == [Opened, Opened]

    def test_time_runs_out(self):
        for step in range(2):
            client, server = sides(
                ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw")
            )
            (hello,) = frames(client.start())
            answer = server.receive(hello)
            if step:
                (sasl,) = frames(client.receive(frames(answer)[0]))
                assert kinds(server.receive(sasl)) == [Verify]
            assert server.deadline() == client.deadline() == HANDSHAKE_TIMEOUT
            (closed,) = server.tick(HANDSHAKE_TIMEOUT)
            assert isinstance(closed.error, ProtocolError)
            (closed,) = client.tick(HANDSHAKE_TIMEOUT)
            assert isinstance(closed.error, ConnectionRefused)


class TestStrangeClients:
    def waiting(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw")
        )
        (hello,) = frames(client.start())
        server.receive(hello)
        return server

    def sasl(self, **fields):
        return Frame(REQUEST, 7, 24, SaslMessage(**fields).SerializeToString(), b"")

    @pytest.mark.parametrize("rpc_type", [0, 1, 3, 110, 130])
    def test_any_other_request_first(self, rpc_type):
        server = self.waiting()
        effects = server.receive(Frame(REQUEST, 5, rpc_type, b"", b""))
        (failure,) = frames(effects)
        assert failure.mode == RESPONSE_FAILURE
        assert failure.coordination_id == 5
        assert kinds(effects) == [Write, Close]
        assert isinstance(effects[1].error, AuthenticationFailed)

    def test_answers_that_nobody_asked_for(self):
        for mode in (RESPONSE, RESPONSE_FAILURE):
            assert kinds(self.waiting().receive(Frame(mode, 5, 24, b"", b""))) == [Write, Close]
        server = self.waiting()
        assert server.receive(Frame(PONG, 0, 0, b"", b"")) == []

    def test_a_second_message_while_the_first_is_checked(self):
        server = self.waiting()
        start = self.sasl(mechanism="PLAIN", data=b"\0a\0b", status=user_pb2.SASL_START)
        assert kinds(server.receive(start)) == [Verify]
        assert kinds(server.receive(start)) == [Write, Close]
        assert server.verified("a") == []

    def test_one_guess_whatever_its_coordination_id(self):
        """Ids of 0 must not go on guessing while the answer to the first guess is held back."""
        server = self.waiting()
        start = SaslMessage(mechanism="PLAIN", data=b"\0a\0b", status=user_pb2.SASL_START)
        guess = SaslMessage(data=b"\0a\0c", status=user_pb2.SASL_IN_PROGRESS)
        for message, effects in ((start, [Verify]), (guess, [Write, Close])):
            pbody = message.SerializeToString()
            assert kinds(server.receive(Frame(REQUEST, 0, 24, pbody, b""))) == effects
        kind = ChannelKind.CONTROL
        client, server = sides(kind, guard=SecretServer(KEY, kind, S), login=None)
        server.receive(*frames(client.start()))
        sasl = MESSAGE_TYPES[kind]
        start = SaslMessage(mechanism=SECRET, data=C, status=user_pb2.SASL_START)
        server.receive(Frame(REQUEST, 0, sasl, start.SerializeToString(), b""))
        guess = SaslMessage(data=b"x" * 32, status=user_pb2.SASL_IN_PROGRESS).SerializeToString()
        assert kinds(server.receive(Frame(REQUEST, 0, sasl, guess, b""))) == [Delay]
        assert kinds(server.receive(Frame(REQUEST, 0, sasl, guess, b""))) == [Write, Close]

    def test_messages_that_are_none(self):
        for frame in (
            Frame(REQUEST, 7, 24, b"\xff", b""),
            self.sasl(mechanism="PLAIN", data=b"\0a\0b", status=user_pb2.SASL_IN_PROGRESS),
            self.sasl(mechanism="PLAIN", data=b"\0a\0b"),
            self.sasl(mechanism="PLAIN", data=b"x" * 5000, status=user_pb2.SASL_START),
            self.sasl(mechanism="PLAIN", status=user_pb2.SASL_START),
        ):
            effects = self.waiting().receive(frame)
            assert kinds(effects) == [Write, Close]
            assert isinstance(effects[1].error, ProtocolError)

    def test_an_unknown_mechanism(self):
        frame = self.sasl(mechanism="GSSAPI", data=b"x", status=user_pb2.SASL_START)
        (delay,) = self.waiting().receive(frame)
        assert delay.error.message == 'there is no mechanism "GSSAPI" here'
        assert delay.error.hint == "This channel has PLAIN."


class TestWithoutSasl:
    """Clients that put the password into the handshake."""

    def hello(self, user="ann", password="pw"):
        message = user_pb2.UserToBitHandshake()
        message.credentials.user_name = user
        if password:
            message.properties.properties.add(key="password", value=password)
        return message

    def test_let_in(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=None, hello=self.hello()
        )
        log = converse(client, server)
        assert kinds(log) == [Verify, Opened, Opened]
        assert client.handshake.status == user_pb2.SUCCESS

    def test_not_let_in(self):
        client, server = sides(
            ChannelKind.USER, guard=PlainServer(), login=None, hello=self.hello()
        )
        log = converse(client, server, WrongPassword("no"))
        assert kinds(log) == [Verify, Delay]
        (answer,) = frames(server.refused(log[1].error))
        welcome = user_pb2.BitToUserHandshake.FromString(answer.pbody)
        assert welcome.status == user_pb2.AUTH_FAILED
        (closed,) = client.receive(answer)
        assert isinstance(closed.error, WrongPassword)

    def test_without_a_password(self):
        for hello in (self.hello(password=""), user_pb2.UserToBitHandshake()):
            client, server = sides(ChannelKind.USER, guard=PlainServer(), login=None, hello=hello)
            log = converse(client, server)
            assert "asks for user and password" in log[-1].error.message


def test_golden_frames():
    """PLAIN as Drill's clients send it; bytes by hand from Drill's numbers."""
    client, server = sides(ChannelKind.USER, guard=PlainServer(), login=PlainClient("ann", "pw"))
    (hello,) = frames(client.start())
    welcome = frames(server.receive(hello))[0]
    start = raw(client.receive(welcome))
    # Header: mode 0, coordination id 2, type 24; SaslMessage: mechanism, data, status START.
    body = b"\x0a\x05PLAIN" + b"\x12\x0aann\0ann\0pw" + b"\x18\x01"
    assert (
        start
        == bytes([10 + len(body)])
        + b"\x0a\x06\x08\x00\x10\x02\x18\x18\x12"
        + bytes([len(body)])
        + body
    )
    (verify,) = server.receive(frames([Write((start,))])[0])
    assert verify.credentials == Credentials("ann", "pw")
    success = raw(server.verified("ann"))
    assert success == bytes.fromhex("0e0a06080110021818120412001803")
    assert {kind.value: number for kind, number in MESSAGE_TYPES.items()} == {
        "user": 24, "control": 19, "data": 4,
    }  # fmt: skip
