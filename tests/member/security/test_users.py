"""Users of a cluster: passwords, and who is there, on every member."""

from __future__ import annotations

import asyncio
import os

import pytest
from users_of_cluster import (
    NOBODY,
    OWNER,
    PASSWORD,
    READER,
    ROOT,
    WRITE,
    known_users,
    people,
    prepared,
    refused,
)

from remuda.catalog.passwords import ITERATIONS_MIN, hashed
from remuda.catalog.users import encode_users
from remuda.client.network.login import Security
from remuda.config import MemberConfig
from remuda.errors import (
    AuthenticationFailed,
    InputError,
    WrongPassword,
)
from remuda.member.member import Member
from remuda.member.security.users_file import UsersFile
from remuda.rpc import codec
from remuda.rpc.connection import ChannelKind
from remuda.rpc.frame import REQUEST, FrameReader, encode_head
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.rpc.transport import connect
from remuda.world import system_world


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


class TestWhoIsThere:
    def test_right_and_wrong_passwords(self, in_cluster, settings):
        async def scenario(cluster):
            client = await cluster.client(1, ROOT)
            assert await client.sql("SELECT current_user, session_user, user") == [
                ("root", "root", "root")
            ]
            named = await client.run("SELECT current_user, session_user")
            assert named.columns == ["current_user", "session_user"]
            reader = await cluster.client(1, READER)  # the plan is cached, the user is not
            assert await reader.sql("SELECT current_user, session_user, user") == [
                ("reader", "reader", "reader")
            ]
            for who in (Security("root", "wrong"), Security("eve", PASSWORD), Security("root", "")):
                with pytest.raises(WrongPassword, match="do not belong together") as caught:
                    await cluster.client(1, who)
                assert caught.value.sqlstate == "28P01"
            with pytest.raises(AuthenticationFailed, match="asks for user and password"):
                await cluster.client(1)

        in_cluster(scenario, 1, **settings)

    def test_the_user_in_defaults_and_views(self, in_cluster, settings):
        async def scenario(cluster):
            root = await cluster.client(1, ROOT)
            await root.sql(
                "CREATE TABLE t (k BIGINT PRIMARY KEY, who TEXT DEFAULT current_user, "
                "CHECK (k > 0 OR who = 'nobody'))"
            )
            await root.sql("CREATE VIEW mine AS SELECT k FROM t WHERE who = user")
            owner = await cluster.client(2, OWNER)
            for number, client in enumerate((root, owner), 1):
                await client.sql(f"INSERT INTO t (k) VALUES ({number})")
                await client.sql("INSERT INTO t (k) SELECT ?::BIGINT", number + 10)
                await client.sql(f"INSERT INTO t VALUES ({number + 20}, DEFAULT)")
            rows = await root.sql("SELECT who, count(*) FROM t GROUP BY who ORDER BY who")
            assert rows == [("owner", 3), ("root", 3)]
            text = "SELECT k FROM mine ORDER BY k"
            assert await root.sql(text) == [(1,), (11,), (21,)]
            assert await owner.sql(text) == [(2,), (12,), (22,)]
            text = "SELECT count(*) FROM t WHERE who = current_user AND k = 1"
            assert (await root.sql(text), await owner.sql(text)) == ([(1,)], [(0,)])

        in_cluster(scenario, 2, **settings)

    def test_nothing_goes_before_the_password(self, in_cluster, settings):
        async def scenario(cluster):
            info = cluster.member(1).info
            reader, writer = await asyncio.open_connection(info.host, info.user_port)
            hello = user_pb2.UserToBitHandshake(
                channel=user_pb2.USER, rpc_version=5, sasl_support=1
            )
            hello.credentials.user_name = "root"
            query = user_pb2.RunQuery(type=user_pb2.SQL, plan="SELECT 1")
            writer.write(encode_head(REQUEST, 1, 0, hello.SerializeToString()))
            writer.write(encode_head(REQUEST, 2, 3, query.SerializeToString()))
            data = await reader.read()
            writer.close()
            frames = FrameReader()
            frames.room[: len(data)] = data
            welcome, failure = frames.received(len(data))
            answer = user_pb2.BitToUserHandshake.FromString(welcome.pbody)
            assert answer.status == user_pb2.AUTH_REQUIRED
            assert list(answer.authenticationMechanisms) == ["PLAIN"]
            error = codec.decode_error(user_pb2.PBError.FromString(failure.pbody))
            assert isinstance(error, AuthenticationFailed)
            assert cluster.member(1).gauges()["clients"] == 0

        in_cluster(scenario, 1, **settings)

    def test_clients_that_do_not_know_sasl(self, in_cluster, settings):
        async def scenario(cluster):
            info = cluster.member(1).info

            async def attempt(user, password):
                hello = user_pb2.UserToBitHandshake(channel=user_pb2.USER)
                hello.properties.properties.add(key="remuda.results", value="arrow")
                if user:
                    hello.credentials.user_name = user
                if password:
                    hello.properties.properties.add(key="password", value=password)
                return await connect(info.host, info.user_port, ChannelKind.USER, hello)

            channel = await attempt("root", PASSWORD)
            assert channel.handshake.status == user_pb2.SUCCESS
            await channel.request(RpcType.MEMBER_STATE, user_pb2.Empty())
            channel.close()
            for user, password in (("root", "wrong"), ("eve", PASSWORD)):
                with pytest.raises(WrongPassword):
                    await attempt(user, password)
            for user, password in (("root", ""), ("", PASSWORD), ("", "")):
                with pytest.raises(AuthenticationFailed, match="asks for user and password"):
                    await attempt(user, password)

        in_cluster(scenario, 1, **settings)

    def test_guessing_is_slow_and_others_get_in(self, in_cluster, settings, monkeypatch):
        async def scenario(cluster):
            known = await cluster.client(1, ROOT)
            monkeypatch.setattr("remuda.rpc.connection.AUTHENTICATION_PENALTY", 0.2)
            monkeypatch.setattr("remuda.member.base.passwords.AUTHENTICATION_PENALTY", 5.0)
            guesses = [cluster.client(1, Security("root", f"guess {n}")) for n in range(12)]
            outcomes = await asyncio.gather(*guesses, return_exceptions=True)
            assert all(isinstance(error, AuthenticationFailed) for error in outcomes)
            many = [e for e in outcomes if "too many wrong passwords" in e.message]
            assert len(many) >= 1
            # Who has been right before is let in all the same; the loop was never held.
            again = await cluster.client(1, ROOT)
            assert await again.sql("SELECT 1") == await known.sql("SELECT 1")

        in_cluster(scenario, 1, **settings)

    def test_a_file_with_a_wrong_setting_is_refused(self, tmp_path):
        path = tmp_path / "users.json"
        path.write_bytes(encode_users(people().configured("root", "default_isolation", "x")))
        with pytest.raises(InputError, match=r'users\.json, user "root": unrecognized config'):
            UsersFile(str(path), system_world())

    def test_the_file_is_read_again(self, in_cluster, settings, monkeypatch):
        monkeypatch.setattr("remuda.member.base.access.REREAD_INTERVAL", 0.005)
        path = settings["users_file"]

        def write(users):
            with open(path + ".new", "wb") as file:
                file.write(users if isinstance(users, bytes) else encode_users(users))
            os.replace(path + ".new", path)

        async def until(cluster, generation):
            while cluster.member(1).core.access._file.generation != generation:
                await asyncio.sleep(0.002)

        async def scenario(cluster):
            _, reader, _, _, nobody = await prepared(cluster)
            with refused("reader.*role write on map .t."):
                await reader.sql("DELETE FROM t WHERE k = 1")
            write(people().granted("reader", WRITE, "t").removed("nobody"))
            await until(cluster, 1)
            await reader.sql("DELETE FROM t WHERE k = 1")
            with refused('user "nobody" does not exist any more'):
                await nobody.sql("SELECT 1")
            with pytest.raises(WrongPassword):
                await cluster.client(1, NOBODY)
            write(b"{ half a file")  # keeps what was there
            other = hashed("another password", bytes(16), ITERATIONS_MIN)
            assert await reader.sql("SELECT count(*) FROM t") == [(49,)]
            write(people().added("reader", other, replace_it=True))
            await until(cluster, 2)
            with pytest.raises(WrongPassword):
                await cluster.client(1, READER)
            await cluster.client(1, Security("reader", "another password"))

        in_cluster(scenario, 1, **settings)

    def test_a_member_does_not_start_without_its_users(self, settings, tmp_path):
        async def start(**changed):
            member = Member(MemberConfig(**{**settings, **changed}), system_world())
            try:
                await member.start()
            finally:
                await member.stop()

        with pytest.raises(Exception, match="cannot read"):
            asyncio.run(start(users_file=str(tmp_path / "none.json")))
        bad = tmp_path / "bad.json"
        bad.write_text("[]")
        with pytest.raises(InputError, match='must hold one object, "users"'):
            asyncio.run(start(users_file=str(bad)))
        with pytest.raises(InputError, match="users_file needs secret_file"):
            MemberConfig(users_file="x")


def test_without_users_everybody_is_remuda(in_cluster):
    async def scenario(cluster):
        client = await cluster.client(1, Security("somebody", "whatever"))
        assert await client.sql("SELECT current_user") == [("remuda",)]
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")

    in_cluster(scenario, 1)
