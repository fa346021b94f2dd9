"""The metrics server's HTTP without sockets, in one piece, in single bytes, and broken."""

from __future__ import annotations

import base64

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remuda.member.monitoring.http_requests import HEAD_SIZE_MAX, Asked, HttpConnection, text

GET = b"GET /metrics?name=x HTTP/1.1\r\nHost: a\r\n\r\n"


class Peer:
    """A connection, what it has sent, and what was asked on it."""

    def __init__(self, *pieces: bytes) -> None:
        self.connection = HttpConnection()
        self.sent = bytearray()
        self.asked: list[Asked] = []
        for piece in pieces:
            self.receive(piece)

    def receive(self, data: bytes) -> None:
        asked = self.connection.receive(data, self.sent.extend)
        while asked is not None:
            self.asked.append(asked)
            self.connection.answer(text(200, "ok"), self.sent.extend)
            asked = (
                None if self.connection.closed else self.connection.receive(b"", self.sent.extend)
            )

    def answers(self, *methods: str) -> list[tuple[int, bytes]]:
        """Status and content of each answer to these methods."""
        client, found = h11.Connection(h11.CLIENT), []
        client.receive_data(bytes(self.sent))
        for method in methods:
            client.send(h11.Request(method=method, target="/", headers=[("Host", "a")]))
            client.send(h11.EndOfMessage())
            status, content = 0, b""
            while not isinstance(event := client.next_event(), h11.EndOfMessage):
                if isinstance(event, h11.Response):
                    status = event.status_code
                elif isinstance(event, h11.Data):
                    content += bytes(event.data)
            found.append((status, content))
            if client.our_state is h11.DONE and client.their_state is h11.DONE:
                client.start_next_cycle()
        return found


def test_a_request_in_one_piece_and_in_bytes():
    for peer in (Peer(GET), Peer(*(bytes([byte]) for byte in GET))):
        assert peer.asked == [Asked("/metrics")]
        assert peer.answers("GET") == [(200, b"ok\n")]
        assert not peer.connection.closed


def test_several_requests_of_one_piece_are_answered_in_order():
    peer = Peer(GET + GET.replace(b"/metrics?name=x", b"/health"))
    assert [asked.path for asked in peer.asked] == ["/metrics", "/health"]
    assert peer.answers("GET", "GET") == [(200, b"ok\n")] * 2


def test_head_has_no_content():
    peer = Peer(GET.replace(b"GET", b"HEAD"), GET)
    assert peer.answers("HEAD", "GET") == [(200, b""), (200, b"ok\n")]


def test_an_old_client_is_told_and_the_connection_ends():
    peer = Peer(b"GET / HTTP/1.0\r\n\r\n")
    assert peer.answers("GET") == [(200, b"ok\n")]
    assert peer.connection.closed


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 405),
        (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc", 413),
        (b"nonsense\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),  # without a Host
        (b"GET /" + b"x" * (HEAD_SIZE_MAX + 1), 431),
    ],
)
def test_what_is_refused(data, status):
    peer = Peer(data)
    assert peer.asked == []
    assert peer.connection.closed
    assert peer.answers("GET")[0][0] == status


def basic(value: bytes) -> tuple[str, str] | None:
    peer = Peer(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: " + value + b"\r\n\r\n")
    return peer.asked[0].credentials


def test_credentials():
    assert basic(b"Basic " + base64.b64encode("jo:a:ö".encode())) == ("jo", "a:ö")
    for wrong in (b"Bearer abc", b"Basic", b"Basic ***", b"Basic " + base64.b64encode(b"jo")):
        assert basic(wrong) is None


@given(st.lists(st.binary(max_size=40)))
@example([GET[:10], b"\xff\x00", GET])
def test_no_bytes_break_it(pieces):
    connection = HttpConnection()
    sent = bytearray()
    for piece in pieces:
        if connection.closed:
            break
        if connection.receive(piece, sent.extend) is not None:
            connection.answer(text(200, "ok"), sent.extend)
