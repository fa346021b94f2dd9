"""Clients and members say which version of Remuda's own messages they speak on the user channel."""

from __future__ import annotations

import pytest

from remuda.errors import VersionMismatch
from remuda.release import Versions, __version__
from remuda.rpc import handshake
from remuda.rpc.handshake import NATIVE, PROTOCOLS, ChannelKind, native_version
from remuda.rpc.messages import common_pb2, control_pb2, user_pb2


@pytest.mark.parametrize(("lowest", "highest"), [(1, 2), (NATIVE.highest + 1, NATIVE.highest + 2)])
def test_another_version_is_refused_in_words(lowest, highest) -> None:
    protocol = PROTOCOLS[ChannelKind.USER]
    hello = handshake.complete_hello(protocol, user_pb2.UserToBitHandshake())
    welcome = handshake.welcome(protocol, hello, lambda _: user_pb2.BitToUserHandshake())
    for message in (hello, welcome):
        assert (
            message.native_version_min,
            message.native_version,
        ) == (NATIVE.lowest, NATIVE.highest)
        message.native_version_min, message.native_version = lowest, highest
    hello.client_infos.version = "9.8.7"
    words = f"{Versions(lowest, highest)} of Remuda's own messages for clients, this side"
    told = rf"the client \(release 9.8.7\) speaks {words} \(release {__version__}\) {NATIVE}"
    with pytest.raises(VersionMismatch, match=told):
        handshake.read_hello(protocol, hello.SerializeToString())
    with pytest.raises(VersionMismatch, match=f"the server speaks {words}"):
        handshake.read_welcome(protocol, welcome.SerializeToString())
    for message in (hello, welcome):  # as Drill's clients and servers do
        message.ClearField("native_version")
        message.ClearField("native_version_min")
    handshake.read_hello(protocol, hello.SerializeToString())
    handshake.read_welcome(protocol, welcome.SerializeToString())


def test_a_member_says_the_version_of_its_cluster_to_clients() -> None:
    """It may pass on what they send to members that know nothing later."""
    protocol = PROTOCOLS[ChannelKind.USER]
    hello = handshake.complete_hello(protocol, user_pb2.UserToBitHandshake())
    for version, said in ((1, native_version(1)), (77, NATIVE.highest)):
        given = user_pb2.BitToUserHandshake(native_version=native_version(version))
        welcome = handshake.welcome(protocol, hello, lambda _, given=given: given)
        assert welcome.native_version == said


def test_a_member_of_another_release_is_refused_by_its_name() -> None:
    protocol = PROTOCOLS[ChannelKind.CONTROL]
    member = common_pb2.Member(number=0, uuid="u", host="h", release="9.8.7")
    hello = handshake.complete_hello(protocol, control_pb2.ControlHandshake(member=member))
    hello.rpc_version_min = hello.rpc_version = protocol.versions.highest + 1
    with pytest.raises(VersionMismatch, match=r"the client \(release 9.8.7\) speaks") as caught:
        handshake.read_hello(protocol, hello.SerializeToString())
    assert "neighbouring releases" in caught.value.hint
