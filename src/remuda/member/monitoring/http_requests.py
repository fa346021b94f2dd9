"""The metrics server's side of HTTP/1.1, without a socket: bytes in, bytes out.

h11 reads the requests. Only GET and HEAD without a body exist here, so one connection costs at most
``HEAD_SIZE_MAX`` bytes, whatever a client sends.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import h11

from remuda.limits import KIB

HEAD_SIZE_MAX: Final = 16 * KIB


@dataclass(frozen=True, slots=True)
class Asked:
    """One request. ``credentials`` are user and password of HTTP's Basic scheme, if it has any."""

    path: str
    credentials: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """One answer."""

    status: int
    content: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Sequence[tuple[str, str]] = field(default=())


def text(status: int, words: str, headers: Sequence[tuple[str, str]] = ()) -> Page:
    """A page of one line."""
    return Page(status, f"{words}\n".encode(), headers=headers)


class HttpConnection:
    """One connection. The shell calls ``receive`` with what came, then ``answer`` once for every
    request that ``receive`` returned, and closes the connection when ``closed`` is True."""

    def __init__(self) -> None:
        self._state = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_SIZE_MAX)
        self._head_only = False
        self._waiting = False
        self.closed = False

    def receive(self, data: bytes, send: Callable[[bytes], None]) -> Asked | None:
        """The next request, if it is complete and nothing waits for its answer. ``data`` b"" after
        an answer looks for one that has come meanwhile; the shell calls ``ended`` for the end of
        the connection. Requests that are refused here are answered through ``send``."""
        try:
            if data:
                self._state.receive_data(data)
            return None if self._waiting else self._next(send)
        except h11.RemoteProtocolError as error:
            self._refuse(text(error.error_status_hint, "this is not a request of HTTP/1.1"), send)
            return None

    def _next(self, send: Callable[[bytes], None]) -> Asked | None:
        asked: Asked | None = None
        while not self.closed:
            event = self._state.next_event()
            if isinstance(event, h11.Request):
                self._head_only = event.method == b"HEAD"
                if event.method not in (b"GET", b"HEAD"):
                    page = text(405, "only GET and HEAD are served here", [("Allow", "GET, HEAD")])
                    self._refuse(page, send)
                    return None
                asked = _asked(event)
            elif isinstance(event, h11.Data):
                self._refuse(text(413, "requests have no body here"), send)
                return None
            elif isinstance(event, h11.EndOfMessage):
                self._waiting = True
                return asked
            else:  # h11.NEED_DATA, h11.PAUSED, h11.ConnectionClosed
                return None
        return None

    def answer(self, page: Page, send: Callable[[bytes], None]) -> None:
        """Answer the request that ``receive`` has returned."""
        self._waiting = False
        self._send(page, send)
        if self._state.our_state is h11.MUST_CLOSE:
            self.closed = True
        elif not self.closed:
            self._state.start_next_cycle()

    def _refuse(self, page: Page, send: Callable[[bytes], None]) -> None:
        """The connection ends with it: later requests on it cannot be told apart from a body."""
        if self._state.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(page, send, close=True)
        self.closed = True

    def _send(self, page: Page, send: Callable[[bytes], None], *, close: bool = False) -> None:
        headers = [
            ("Content-Type", page.content_type),
            ("Content-Length", str(len(page.content))),
            ("Cache-Control", "no-store"),
            *page.headers,
        ]
        if close:
            headers.append(("Connection", "close"))
        pieces = [self._state.send(h11.Response(status_code=page.status, headers=headers))]
        if not self._head_only:
            pieces.append(self._state.send(h11.Data(data=page.content)))
        pieces.append(self._state.send(h11.EndOfMessage()))
        send(b"".join(piece for piece in pieces if piece))


def _asked(request: h11.Request) -> Asked:
    path = request.target.decode("ascii", "replace").partition("?")[0]
    for name, value in request.headers:
        if name == b"authorization":
            return Asked(path, _basic(value))
    return Asked(path)


def _basic(value: bytes) -> tuple[str, str] | None:
    scheme, _, encoded = value.partition(b" ")
    if scheme.lower() != b"basic":
        return None
    try:
        user, colon, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        return None
    return (user, password) if colon else None
