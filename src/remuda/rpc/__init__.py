"""Frames, connections and messages: the wire protocol.

``frame`` encodes frames and ``connection`` is one connection as a pure state machine; both are
pure. ``transport`` is the asyncio shell, ``blocking`` the one over plain sockets. ``messages`` has
the protobuf messages, ``codec`` and ``packing`` the forms of values and rows.
``TlsSocket`` is imported when it is first used: by a client that connects with TLS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remuda.first_use import on_first_use

if TYPE_CHECKING:
    from remuda.rpc.tls_socket import TlsSocket

__all__ = ["TlsSocket"]

__getattr__ = on_first_use(globals(), {"TlsSocket": "remuda.rpc.tls_socket"})
