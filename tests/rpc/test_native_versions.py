"""Clients and members say which version of Remuda's own messages they speak on the user channel."""

from __future__ import annotations

import pytest

from remuda.errors import VersionMismatch
from remuda.rpc import handshake
from remuda.rpc.handshake import PROTOCOLS, ChannelKind, Versions
from remuda.rpc.messages import user_pb2


@pytest.mark.parametrize(("lowest", "highest"), [(1, 1), (3, 9)])
def test_another_version_is_refused_in_words(lowest, highest) -> None:
    protocol = PROTOCOLS[ChannelKind.USER]
    hello = handshake.complete_hello(protocol, user_pb2.UserToBitHandshake())
    welcome = handshake.welcome(protocol, hello, lambda _: user_pb2.BitToUserHandshake())
    for message in (hello, welcome):
        assert (message.native_version_min, message.native_version) == (2, 2)
        message.native_version_min, message.native_version = lowest, highest
    words = f"{Versions(lowest, highest)} of Remuda's own messages for clients, this side version 2"
    with pytest.raises(VersionMismatch, match=f"the client speaks {words}"):
        handshake.read_hello(protocol, hello.SerializeToString())
    with pytest.raises(VersionMismatch, match=f"the server speaks {words}"):
        handshake.read_welcome(protocol, welcome.SerializeToString())
    for message in (hello, welcome):  # as Drill's clients and servers do
        message.ClearField("native_version")
        message.ClearField("native_version_min")
    handshake.read_hello(protocol, hello.SerializeToString())
    handshake.read_welcome(protocol, welcome.SerializeToString())
