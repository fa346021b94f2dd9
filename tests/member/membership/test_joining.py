"""Requests to join from processes that are not there, on real sockets: while a cluster is founded,
while it starts again from its logs, and while it runs. More in tests/simulation/test_joining.py.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.member.conftest import FAST
from tests.member.logged import logged_cluster, memory_disk, on_disk, picture
from tests.member.test_processes import ready, spawn

import remuda
from remuda.config import MemberConfig
from remuda.errors import InvalidDefinition, MemberUnavailable
from remuda.member.member import Member
from remuda.member.membership.forming import Forming
from remuda.rpc.connection import ChannelKind
from remuda.rpc.messages import common_pb2, control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import connect
from remuda.world import system_world


async def until(condition: Any) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0.002)


async def ask(address: str, message: control_pb2.Join) -> control_pb2.Join:
    """One request, from a process that is no member."""
    host, port = address.rsplit(":", 1)
    hello = control_pb2.ControlHandshake(member=common_pb2.Member(uuid="s", host="nowhere"))
    channel = await connect(host, int(port), ChannelKind.CONTROL, hello)
    try:
        reply = await channel.request(RpcType.JOIN, message, timeout=20.0)
    finally:
        channel.close()
    return control_pb2.Join.FromString(reply.pbody)


def phantom(address: str, uuid: str = "phantom", **more: Any) -> control_pb2.Join:
    """The request of a process that says it is at an address."""
    host, port = address.rsplit(":", 1)
    member = common_pb2.Member(
        uuid=uuid, host=host, user_port=1, control_port=int(port), data_port=2
    )
    return control_pb2.Join(member=member, cluster="remuda", **more)


async def ask_all(controls: list[str], claimed: list[str], number: int) -> int:
    """How many requests were refused, of one to each member for each address."""
    requests = [
        ask(control, phantom(address, f"phantom-{number}-{address}"))
        for control in controls
        for address in claimed
    ]
    answers = await asyncio.gather(*requests, return_exceptions=True)
    return sum(isinstance(answer, MemberUnavailable) for answer in answers)


@pytest.fixture
def nobody() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"127.0.0.1:{free.getsockname()[1]}"


@asynccontextmanager
async def starting(*members: Member) -> AsyncIterator[list[asyncio.Future[None]]]:
    """Members that begin to start one after the other: each one listens before the next begins."""
    starts: list[asyncio.Future[None]] = []
    try:
        for member in members:
            starts.append(asyncio.ensure_future(member.start()))
            await until(lambda: ChannelKind.DATA in member._servers)  # noqa: B023 (awaited here)
        yield starts
    finally:
        for member in reversed(members):
            await member.stop()
        for start in starts:
            start.cancel()
        await asyncio.gather(*starts, return_exceptions=True)


def founder(size: int) -> Member:
    return Member(MemberConfig(cluster_size=size, **FAST), system_world())


def joining(first: Member) -> Member:
    config = MemberConfig(cluster_size=3, join=first.addresses()["control"], **FAST)
    return Member(config, system_world())


def test_nobody_gets_a_place_at_the_founding_who_is_not_there(nobody: str) -> None:
    async def scenario() -> None:
        first = founder(2)
        async with starting(first) as begun:
            address = first.addresses()["control"]
            for claimed in (nobody, address):
                with pytest.raises(MemberUnavailable, match="does not find the process"):
                    await ask(address, phantom(claimed))
            second = joining(first)
            async with starting(second) as last:
                await asyncio.gather(*begun, *last)
                assert {m.uuid for m in first.core.view.members} == {
                    first.core.uuid, second.core.uuid,
                }  # fmt: skip

    asyncio.run(scenario())


def test_the_first_view_does_not_name_a_process_that_has_ended() -> None:
    """Its place goes to another one."""

    async def scenario() -> None:
        first = founder(3)
        async with starting(first) as begun:
            founding = first.membership.forming._founding
            assert founding is not None
            ended, second, third = joining(first), joining(first), joining(first)
            async with starting(ended):
                await until(lambda: len(founding.members) == 2)
            async with starting(second, third) as last:
                await asyncio.gather(*begun, *last)
                view = first.core.view
                assert set(view.by_number) == {1, 2, 3}
                assert {member.uuid for member in view.members} == {
                    each.core.uuid for each in (first, second, third)
                }

    asyncio.run(scenario())


def test_nobody_is_back_who_is_not_there(monkeypatch: pytest.MonkeyPatch, nobody: str) -> None:
    """A cluster starts again from its logs. Requests that repeat what a folder says, from another
    address or process, are refused, as is a second process with a copy of a folder."""
    asked: list[control_pb2.Join] = []
    answer = Forming.answer_join

    async def heard(forming: Forming, message: Any, *rest: Any) -> Any:
        if message.HasField("log") and message.log.member == 2:
            asked.append(message)
        return await answer(forming, message, *rest)

    async def scenario() -> None:
        disk, folders = memory_disk(), [Path(f"/{name}") for name in "abc"]
        async with logged_cluster(folders, on_disk(disk), backups=1) as cluster:
            client = await cluster.client()
            await client.sql("CREATE TABLE t (id INT PRIMARY KEY)")
            await client.sql("INSERT INTO t VALUES (1), (2), (3)")
            killed = picture(disk)
        copy = picture(killed)
        monkeypatch.setattr(Forming, "answer_join", heard)
        world, made = on_disk(killed), {**FAST, "cluster_size": 3}
        first = Member(MemberConfig(data_dir="/a", **made), world)
        async with starting(first) as begun:
            address = first.addresses()["control"]
            others = [
                Member(MemberConfig(data_dir=f"/{name}", join=address, **made), world)
                for name in "bc"
            ]
            forming = first.membership.forming
            await until(lambda: forming._gathering is not None)
            gathering = forming._gathering
            assert gathering is not None
            async with starting(others[0]) as back:
                await until(lambda: 2 in gathering.here)
                for number in (1, 2, 3):
                    for claimed in (nobody, address):
                        request = phantom(claimed, logs=True, log=asked[0].log)
                        request.log.member = number
                        with pytest.raises(MemberUnavailable, match="does not find the process"):
                            await ask(address, request)
                twin = Member(MemberConfig(data_dir="/b", join=address, **made), on_disk(copy))
                with pytest.raises(InvalidDefinition, match="member 2 is back already"):
                    await twin.start()
                await twin.stop()
                async with starting(others[1]) as last:
                    await asyncio.gather(*begun, *back, *last)
                    real = {member.core.uuid for member in (first, *others)}
                    assert {m.uuid for m in first.core.view.members} == real

    asyncio.run(scenario())


def crash(client: Any, processes: list[Any], members: list[Any]) -> None:
    """Kill a member that the client is not connected to: statements that begin when the others
    miss it wait until they have taken over."""
    behind = "SELECT count(*) FROM sys.partitions WHERE state <> 'complete'"
    wait_for(lambda: client.sql(behind).fetchall() == [(0,)])
    processes[[member["member"] for member in members].index(3)].kill()
    wait_for(lambda: alive(client) == 3)
    client.sql("UPDATE t SET v = v + 1")
    client.sql("INSERT INTO t SELECT id + 10, 0 FROM t")
    assert client.sql("SELECT count(*), sum(v) FROM t").fetchall() == [(12, 12)]


def alive(client: Any) -> int:
    """How many members are heard; 0: the question was under way when one was lost."""
    try:
        text = "SELECT count(*) FROM sys.members WHERE state = 'alive'"
        (count,) = client.sql(text).fetchone()
    except MemberUnavailable:
        return 0
    return int(count)


def wait_for(condition: Callable[[], bool]) -> None:
    """The suite's timeout bounds it."""
    while not condition():
        time.sleep(0.02)


@pytest.mark.soak
@pytest.mark.cluster
def test_processes_go_on_after_requests_of_others_that_are_not_there(nobody: str) -> None:
    """Three members as processes of their own hear many such requests; then a fourth one joins, and
    one is killed."""
    processes: list[subprocess.Popen[str]] = []
    # As the launcher does it: the first member's control socket exists before any process.
    with socket.create_server(("127.0.0.1", 0)) as seed:
        fd, address = seed.fileno(), f"127.0.0.1:{seed.getsockname()[1]}"
        try:
            three = ("--cluster-size", "3", "--heartbeat-interval", "0.3")
            processes.append(spawn(*three, "--control-fd", str(fd), pass_fds=(fd,)))
            processes += [spawn(*three, "--join", address) for _ in range(2)]
            members = [ready(process) for process in processes]
            assert sorted(member["member"] for member in members) == [1, 2, 3]
            staying = [member["user"] for member in members if member["member"] != 3]
            with remuda.connect(staying) as client:
                client.sql("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
                for number in range(5):
                    client.sql("INSERT INTO t VALUES (?, 0)", number)
                    controls = [member["control"] for member in members]
                    refused = asyncio.run(ask_all(controls, [nobody, *controls], number))
                    assert refused == 3 * 4
                processes.append(spawn(*three, "--join", address))
                assert ready(processes[-1])["member"] == 4
                client.sql("INSERT INTO t VALUES (5, 0)")
                client.sql("UPDATE t SET v = v + 1")
                assert client.sql("SELECT sum(v) FROM t").fetchall() == [(6,)]
                found = client.sql("SELECT member, state FROM sys.members ORDER BY 1").fetchall()
                assert found == [(number, "alive") for number in (1, 2, 3, 4)]
                crash(client, processes, members)
        finally:
            for process in processes:
                process.kill()
                process.communicate()
