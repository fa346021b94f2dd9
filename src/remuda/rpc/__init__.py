"""Frames, connections and messages: the wire protocol.

``frame`` encodes frames and ``connection`` is one connection as a pure state machine; both are
pure. ``transport`` is the asyncio shell, ``blocking`` the one over plain sockets. ``messages`` has
the protobuf messages, ``codec`` and ``packing`` the forms of values and rows.
"""
