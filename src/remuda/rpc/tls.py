"""TLS: contexts from files, one encrypted connection without its socket, and errors that say what
to do.

``TlsSession`` turns received bytes into clear ones and the other way round; the shells
(``tls_transport`` on asyncio, ``blocking`` on a plain socket) move the bytes. It refuses what is
older than TLS 1.2, or 1.3 unless told so.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, cast

from remuda.errors import ConnectionBroken, InputError, RemudaError, TlsFailed

_VERSIONS: Final = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
HELLO_MARK: Final = b"\x16\x03"
"""How a TLS connection begins; no frame does: after its length comes 0x0A."""
NOT_HERE: Final = b"\x15\x03\x03\x00\x02\x02\x0a"
"""The alert (fatal, unexpected message) with which a port without TLS answers such a beginning."""
PIECE: Final = 128 * 1024
"""Bytes that are encrypted at a time: a copy of these is still in the processor's cache."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. ``certificate`` and ``key`` are what this side shows (the key may be in the
    certificate's file), ``ca`` what it trusts; "" for none: then a client trusts the system's."""

    ca: str = ""
    certificate: str = ""
    key: str = ""
    server_name: str = ""
    """The name that the certificate of the other side must have, if not the host that was
    dialled."""
    minimum: str = "1.3"


@dataclass(frozen=True, slots=True)
class ClientTls:
    """How to connect with TLS. ``server_name``: the name in the certificate; "" = the host."""

    context: ssl.SSLContext
    server_name: str = ""


def server_context(files: TlsFiles, *, client_certificates: bool) -> ssl.SSLContext:
    """For the accepting side. Raises InputError naming the file that does not serve."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _version(files.minimum)
    _load_certificate(context, files)
    if client_certificates:
        _load_ca(context, files.ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@lru_cache(maxsize=64)
def client_context(files: TlsFiles) -> ssl.SSLContext:
    """For the connecting side; it always checks certificate and name. Raises InputError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = _version(files.minimum)
    if files.ca:
        _load_ca(context, files.ca)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if files.certificate:
        _load_certificate(context, files)
    elif files.key:
        raise InputError("a TLS key without its certificate", hint="Give the certificate as well.")
    return context


def _version(text: str) -> ssl.TLSVersion:
    if text not in _VERSIONS:
        raise InputError(f"the least TLS version must be 1.2 or 1.3, not {text!r}")
    return _VERSIONS[text]


def _load_certificate(context: ssl.SSLContext, files: TlsFiles) -> None:
    _readable(files.certificate, "certificate")
    if files.key:
        _readable(files.key, "key")

    def password() -> str:
        raise InputError(
            f"the TLS key {files.key or files.certificate} is encrypted",
            hint="Decrypt it, and let nobody but the member's user read the file.",
        )

    try:
        context.load_cert_chain(files.certificate, files.key or None, password)
    except ssl.SSLError as problem:
        raise InputError(
            f"TLS certificate {files.certificate} and key {files.key or files.certificate} "
            f"do not serve: {_reason(problem)}",
            hint="Both must be PEM, and the key that of the certificate.",
        ) from None


def _load_ca(context: ssl.SSLContext, path: str) -> None:
    _readable(path, "CA")
    try:
        context.load_verify_locations(path)
    except ssl.SSLError as problem:
        raise InputError(
            f"the TLS CA file {path} holds no certificate: {_reason(problem)}",
            hint="It must be PEM: the certificates that sign those of the other side.",
        ) from None


def _readable(path: str, what: str) -> None:
    try:
        with Path(path).open("rb"):
            return
    except OSError as problem:
        raise InputError(f"the TLS {what} file {path} cannot be read: {problem.strerror}") from None


def _reason(problem: ssl.SSLError) -> str:
    return (problem.reason or str(problem)).lower().replace("_", " ")


# --- one connection ----------------------------------------------------------------------------


class TlsSession:
    """One side of one connection. Raises TlsFailed, or ConnectionBroken where the other side just
    ended; after that, ``outgoing`` still has what it must be told."""

    def __init__(
        self, context: ssl.SSLContext, peer: str, *, server_name: str | None = None
    ) -> None:
        """``server_name``: that of the side that was dialled; None on the accepting side."""
        self.peer = peer
        self.established = False
        self._accepting = server_name is None
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=self._accepting,
            server_hostname=server_name,
        )

    def feed(self, data: bytes | memoryview) -> None:
        """Bytes from the wire."""
        self._incoming.write(data)

    def outgoing(self) -> bytes:
        """Bytes for the wire; b"" if there are none."""
        return self._outgoing.read()

    def shake(self) -> bool:
        """Go on with the handshake; whether it is through."""
        try:
            self._object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError as problem:
            raise self._failed(problem) from None
        self.established = True
        return True

    def read_into(self, buffer: memoryview) -> int:
        """Clear bytes into ``buffer``: how many; 0 when nothing complete is here, or the other side
        has said that it sends no more (its end of the connection follows)."""
        try:
            return cast("int", self._object.read(len(buffer), buffer))
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            return 0
        except ssl.SSLError as problem:
            raise self._failed(problem) from None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt; ``outgoing`` has it then."""
        view = memoryview(data).cast("B")
        try:
            while len(view):
                view = view[self._object.write(view[:PIECE]) :]
        except ssl.SSLError as problem:
            raise self._failed(problem) from None

    def finish(self) -> None:
        """Say that nothing more comes."""
        try:
            self._object.unwrap()
        except ssl.SSLError:  # it waits for the other side's word, which nobody needs
            return

    def _failed(self, problem: ssl.SSLError) -> RemudaError:
        return failure(problem, self.peer, accepting=self._accepting)

    def ended(self) -> RemudaError:
        """The connection ended during the handshake: why, as far as this side can tell."""
        return ConnectionBroken(
            f"{self.peer} closed the connection during the TLS handshake",
            hint="Does it speak TLS on this port?",
        )


_VERIFY_HINTS: Final = {
    9: "It is not valid yet: compare the clocks of both machines.",
    10: "It has expired: make a new one.",
    18: "It signs itself: name it as the CA to trust it.",
    19: "Name the CA that signed it.",
    20: "Name the CA that signed it.",
    62: "Connect by a name that the certificate has, or name that one as the server name.",
    64: "Connect by an address that the certificate has, or name a server name that it has.",
}
"""By OpenSSL's number of what is wrong with a certificate."""
_ALERTS: Final = {
    "CERTIFICATE_REQUIRED": "it wants a certificate of this side",
    "UNKNOWN_CA": "it does not trust the CA that signed the certificate of this side",
    "CERTIFICATE_EXPIRED": "the certificate of this side has expired",
    "BAD_CERTIFICATE": "it does not accept the certificate of this side",
    "PROTOCOL_VERSION": "the sides have no TLS version in common",
    "HANDSHAKE_FAILURE": "the sides have no cipher in common, or it wants a certificate",
}


def failure(problem: ssl.SSLError, peer: str, *, accepting: bool) -> RemudaError:
    """The meaning of an error of OpenSSL to the user."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return TlsFailed(
            f"the certificate of {peer} is not accepted: {problem.verify_message}",
            hint=_VERIFY_HINTS.get(problem.verify_code, ""),
        )
    if isinstance(problem, ssl.SSLEOFError):
        return ConnectionBroken(f"{peer} ended the connection in the middle of TLS")
    reason = problem.reason or ""
    if not accepting and reason in (
        "WRONG_VERSION_NUMBER",
        "SSLV3_ALERT_UNEXPECTED_MESSAGE",
        "HTTP_REQUEST",
    ):
        return TlsFailed(
            f"{peer} does not speak TLS on this port", hint="Connect without TLS, or elsewhere."
        )
    for name, meaning in _ALERTS.items():
        if reason.endswith("ALERT_" + name):
            return TlsFailed(
                f"{peer} refused the TLS connection: {meaning}",
                hint="Give a certificate and its key that its CA has signed."
                if "certificate" in meaning
                else "",
            )
    return TlsFailed(f"TLS with {peer} failed: {_reason(problem)}")


def tls_needed(kind: str) -> TlsFailed:
    """The answer to a client without TLS on a port that has it."""
    return TlsFailed(
        f"the {kind} channel of this member speaks TLS only", hint="Connect with TLS switched on."
    )
