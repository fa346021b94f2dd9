"""Roles of users: over SQL, map operations and jobs, on every member."""

from __future__ import annotations

import pytest
from users_of_cluster import OWNER, READER, ROOT, known_users, prepared, refused

from remuda.errors import (
    InsufficientPrivilege,
    QueryCanceled,
    RemudaError,
)
from remuda.member.base.access import _NEEDS, CHECKED_ELSEWHERE
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


class TestStatements:
    READS = (
        "SELECT * FROM t",
        "SELECT v FROM t WHERE k = 7",
        "SELECT count(*) FROM one_map",
        "WITH x AS (SELECT k FROM t) SELECT * FROM x",
        "SELECT (SELECT max(v) FROM t)",
        "EXPLAIN SELECT * FROM t",
        "WITH RECURSIVE r(k) AS (SELECT min(k) FROM t UNION SELECT k + 1 FROM r) TABLE r LIMIT 3",
        "SHOW COLUMNS FROM t",
    )
    ALSO_U = (
        "SELECT * FROM u",
        "SELECT v FROM u WHERE k = 7",
        "SELECT * FROM both_maps",
        "SELECT * FROM t WHERE k IN (SELECT k FROM u)",
        "SELECT * FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k)",
        "WITH RECURSIVE r(k) AS (SELECT k FROM t UNION SELECT u.k FROM u JOIN r USING (k)) TABLE r",
        "EXPLAIN SELECT * FROM u",
        "SELECT 1 FROM u WHERE false",
        "SHOW COLUMNS FROM u",
        "DESCRIBE both_maps",
        "SELECT k FROM t UNION ALL SELECT k FROM u",
        "SELECT * FROM t, LATERAL (SELECT v FROM u WHERE u.k = t.k) x",
    )
    WRITES = (
        "INSERT INTO t VALUES (1001, 'x')",
        "UPDATE t SET v = v || '!' WHERE k = 3",
        "DELETE FROM t WHERE k = 4",
        "INSERT INTO t VALUES (3, 'y') ON CONFLICT (k) DO UPDATE SET v = 'z'",
        "SINK INTO t VALUES (5, 'five')",
        "MERGE INTO t USING (VALUES (5)) s(k) ON t.k = s.k WHEN MATCHED THEN DELETE",
        "ANALYZE t",
        "TRUNCATE t",
    )
    DEFINES = (
        "ALTER TABLE t ADD COLUMN extra INT",
        "CREATE INDEX j ON t (v)",
        "DROP INDEX i",
        "COMMENT ON TABLE t IS 'mine'",
    )
    CLUSTER = (
        "CREATE TABLE fresh (k BIGINT PRIMARY KEY)",
        "CREATE TABLE copied AS SELECT * FROM t",
        "CREATE VIEW seen AS SELECT * FROM t",
        "DROP VIEW both_maps",
        "DROP TABLE u CASCADE",
    )

    @pytest.mark.parametrize("members", [1, 3])
    def test_roles(self, in_cluster, settings, members):
        async def scenario(cluster):
            root, reader, writer, owner, nobody = await prepared(cluster)
            for text in self.READS:
                await reader.sql(text)
                await owner.sql(text)
                with refused('user "nobody" lacks the role read on map "t"'):
                    await nobody.sql(text)
            for text in self.ALSO_U:
                for who in (reader, owner, nobody):
                    with refused('lacks the role read on map "[tu]"'):
                        await who.sql(text)
                await root.sql(text)
            for text in self.WRITES:
                for who, name in ((reader, "reader"), (nobody, "nobody")):
                    with refused(f'user "{name}" lacks the role write on map "t"'):
                        await who.sql(text)
            for text in self.DEFINES + self.CLUSTER:
                for who in (reader, writer, nobody):
                    with refused("lacks the role admin on map"):
                        await who.sql(text)
            await root.sql("CREATE TABLE w (k BIGINT PRIMARY KEY)")
            for text in (*self.CLUSTER, "ALTER TABLE w RENAME TO w2"):
                with refused("lacks the role admin on map"):
                    await owner.sql(text)
            for text in self.WRITES:
                await writer.sql(text)
            for text in self.WRITES + self.DEFINES:
                await owner.sql(text)
            for text in self.CLUSTER:
                await root.sql(text)
            for who in (reader, writer, owner, nobody):
                with refused("lacks the role admin on all maps"):
                    await who.sql("ALTER CLUSTER ACCEPT LOST PARTITIONS")
            await root.sql("ALTER CLUSTER ACCEPT LOST PARTITIONS")
            await cluster.idle()

        in_cluster(scenario, members, **settings)

    def test_the_catalog_shows_users_to_administrators(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, *_ = await prepared(cluster)
            text = "SELECT rolname, rolsuper, oid FROM pg_roles ORDER BY rolname"
            shown = await root.sql(text)
            assert [(name, admin) for name, admin, _ in shown] == [
                ("nobody", False),
                ("owner", False),
                ("reader", False),
                ("remuda", True),
                ("root", True),
                ("writer", False),
            ]
            assert len({oid for _, _, oid in shown}) == 6
            assert await reader.sql(text) == [
                row for row in shown if row[0] in ("reader", "remuda")
            ]
            same = "SELECT usename, usesuper, usesysid FROM pg_user ORDER BY usename"
            assert await root.sql(same) == shown

        in_cluster(scenario, 1, **settings)

    def test_writers_read_nothing(self, in_cluster, settings):
        async def scenario(cluster):
            _, _, writer, _, _ = await prepared(cluster)
            for text in (
                "SELECT * FROM t",
                "INSERT INTO t VALUES (2001, 'x') RETURNING *",
                "UPDATE t SET v = 'x' WHERE k = 2 RETURNING v",
                "DELETE FROM t WHERE k = 2 RETURNING k",
            ):
                with refused("lacks the role read on map .t."):
                    await writer.sql(text)
            for text in (
                "INSERT INTO t SELECT k + 5000, v FROM u",
                "UPDATE t SET v = u.v FROM u WHERE u.k = t.k",
                "DELETE FROM t USING u WHERE u.k = t.k",
                "UPDATE t SET v = (SELECT max(v) FROM u)",
            ):
                with refused("lacks the role read on map .u."):
                    await writer.sql(text)

        in_cluster(scenario, 1, **settings)

    def test_prepared_statements(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, *_ = await prepared(cluster)
            for text, works in (("SELECT v FROM t WHERE k = ?", True), ("SELECT v FROM u", False)):
                request = user_pb2.CreatePreparedStatementReq(sql_query=text)
                answer = await reader.ask(
                    RpcType.CREATE_PREPARED_STATEMENT, request, user_pb2.CreatePreparedStatementResp
                )
                assert (answer.status == user_pb2.OK) == works
                if not works:
                    assert isinstance(codec.decode_error(answer.error), InsufficientPrivilege)
            made = await reader.run("PREPARE p AS SELECT v FROM u WHERE k = $1")
            if made.error is None:
                with refused("read on map .u."):
                    await reader.sql("EXECUTE p(1)", session=made.session)
            # A plan of somebody else's is cached: by key, and not.
            for text in ("SELECT v FROM u WHERE k = 9", "SELECT count(*) FROM u"):
                await root.sql(text)
                with refused("read on map .u."):
                    await reader.sql(text)

        in_cluster(scenario, 1, **settings)

    def test_what_is_shown(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, writer, owner, nobody = await prepared(cluster)
            seen = {"t", "one_map"}
            for text in (
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
                "SELECT relname FROM pg_class WHERE relnamespace = 2200 AND relkind IN ('r', 'v')",
            ):
                assert {n for (n,) in await root.sql(text)} == {"t", "u", "both_maps", "one_map"}
                assert {n for (n,) in await reader.sql(text)} == seen, text
                assert await nobody.sql(text) == []
            for column, relation in (("name", "maps"), ("name", "map_parts"), ("map", "columns")):
                text = f"SELECT DISTINCT {column} FROM sys.{relation}"
                assert await writer.sql(text) == [("t",)]
                assert await nobody.sql(text) == []
            assert [row[0] for row in await owner.sql("SHOW MAPS")] == ["t"]
            info = await reader.ask(RpcType.CLUSTER_INFO, user_pb2.Empty(), user_pb2.ClusterInfo)
            assert [schema.name for schema in info.maps] == ["t"]

        in_cluster(scenario, 2, **settings)

    def test_statements_of_others(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, writer, _, _ = await prepared(cluster)
            reader.hold = True
            endless = "SELECT a.k, 'mark' FROM t a, t b, t c, t d"
            running = await reader.start(endless)
            await running.first_page.wait()
            asked = "SELECT text FROM sys.queries"
            assert (endless,) in await root.sql(asked)
            texts = await writer.sql(asked)
            assert (endless,) not in texts
            assert ("<insufficient privilege>",) in texts
            assert (asked,) in texts
            activity = await writer.sql("SELECT usename, query FROM pg_stat_activity")
            assert ("reader", "<insufficient privilege>") in activity
            member_of = await cluster.client(reader_member(cluster), OWNER)
            with refused("lacks the role admin on all maps"):
                await member_of.cancel(running)
            mighty = await cluster.client(reader_member(cluster), ROOT)
            await mighty.cancel(running)
            reader.release()
            await running.done.wait()
            assert isinstance(running.error, QueryCanceled)
            again = await reader.start(endless)
            await reader.cancel(again)  # one's own
            await again.done.wait()

        in_cluster(scenario, 2, **settings)


def reader_member(cluster):
    """Where ``prepared`` has connected the reader."""
    return 1 + 1 % len(cluster.members)


class TestRequests:
    def test_map_operations(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, writer, owner, nobody = await prepared(cluster)
            t, u = await root.schema("t"), await root.schema("u")
            for who in (reader, owner):
                assert len(await who.get(t, *range(1, 9))) == 8  # of all members
                assert (
                    await who.ask(RpcType.MAP_SIZE, user_pb2.MapName(name="t"), user_pb2.Count)
                ).count == 50
                with refused("role read on map .u."):
                    await who.get(u, 1)
                await who.schema("t")
            for who in (writer, nobody):
                with refused("role read on map .t."):
                    await who.get(t, 1)
                with refused("role read on map .t."):
                    await who.ask(RpcType.MAP_SIZE, user_pb2.MapName(name="t"), user_pb2.Count)
            with refused("role read on map .u."):
                await reader.schema("u")
            for who in (reader, nobody):
                with refused("role write on map .t."):
                    await who.put(t, (1, "x"))
                with refused("role write on map .t."):
                    await who.remove(t, 1)
            with refused("role read on map .t."):
                await writer.put(t, (1, "x"))  # wants the old row
            with refused("role read on map .t."):
                await writer.remove(t, 1)
            message = writer.keys_request(t, 1)
            await writer.ask(RpcType.MAP_REMOVE, message, user_pb2.RowsResponse)
            for who in (reader, writer, owner):
                create = user_pb2.CreateMap(schema=codec.encode_schema(t))
                create.schema.name = "fresh"
                with refused("role admin on map .fresh."):
                    await who.ask(RpcType.CREATE_MAP, create, user_pb2.MapDescription)
                with refused("role admin on map .u."):
                    await who.ask(RpcType.DROP_MAP, user_pb2.MapName(name="u"), common_pb2.Ack)
                with refused("role admin on all maps"):
                    await who.ask(RpcType.MEMBER_STATE, user_pb2.Empty(), user_pb2.MemberState)
            await root.ask(RpcType.MEMBER_STATE, user_pb2.Empty(), user_pb2.MemberState)
            await root.sql("DROP VIEW both_maps, one_map")
            await owner.ask(RpcType.DROP_MAP, user_pb2.MapName(name="t"), common_pb2.Ack)

        in_cluster(scenario, 3, **settings)

    def test_changes_of_entries(self, in_cluster, settings):
        """Their answers tell what is there, so who may not read may not compute either."""

        async def scenario(cluster):
            _, reader, writer, owner, nobody = await prepared(cluster)
            schema = await owner.schema("t")
            about = {"map_id": schema.map_id, "schema_version": schema.version, "map": "t"}
            keys = owner.keys_request(schema, 1).keys
            compute = user_pb2.ComputeRequest(**about, keys=keys, assignments="v = v || '!'")
            remove = user_pb2.CheckedWrite(**about, keys=keys)
            guess = user_pb2.CheckedWrite(**about, keys=keys, expected=[b""])
            get = user_pb2.KeysRequest(**about, keys=keys)
            for rpc_type, message, role_of in (
                (RpcType.MAP_COMPUTE, compute, {"reader": "write", "writer": "read"}),
                (RpcType.MAP_CHECKED_WRITE, guess, {"reader": "write", "writer": "read"}),
                (RpcType.MAP_CHECKED_WRITE, remove, {"reader": "write"}),
                (RpcType.MAP_GET_VERSIONED, get, {"writer": "read", "nobody": "read"}),
            ):
                for who, name in ((reader, "reader"), (writer, "writer"), (nobody, "nobody")):
                    if name in role_of:
                        with refused(f'user "{name}" lacks the role {role_of[name]} on map "t"'):
                            await who.ask(rpc_type, message, user_pb2.RowsResponse)
            answer = await owner.ask(RpcType.MAP_COMPUTE, compute, user_pb2.RowsResponse)
            assert owner.decoded(schema, answer) == [(1, "v1!")]
            answer = await writer.ask(RpcType.MAP_CHECKED_WRITE, remove, user_pb2.RowsResponse)
            assert answer.rows[0].row == b""
            assert await owner.get(schema, 1) == [None]

        in_cluster(scenario, 3, **settings)

    def test_a_map_under_the_name_of_another(self, in_cluster, settings):
        """Requests are served by the id of the map, so that is what is checked."""

        async def scenario(cluster):
            root, reader, writer, *_ = await prepared(cluster)
            u = await root.schema("u")
            message = reader.keys_request(u, 1)
            message.map = "t"
            with refused("role read on map .u."):
                await reader.ask(RpcType.MAP_GET, message, user_pb2.RowsResponse)
            put = user_pb2.PutBatchRequest(map="t", map_id=u.map_id, schema_version=u.version)
            with refused("role write on map .u."):
                await writer.ask(RpcType.MAP_PUT_BATCH, put, user_pb2.Count)

        in_cluster(scenario, 1, **settings)

    def test_jobs(self, in_cluster, settings):
        async def scenario(cluster):
            root, reader, writer, owner, _ = await prepared(cluster)
            begin = user_pb2.JobBegin(map="t")
            with refused("role write on map .t."):
                await reader.ask(RpcType.JOB_BEGIN, begin, user_pb2.JobHandle)
            with refused("role write on map .u."):
                await writer.ask(RpcType.JOB_BEGIN, user_pb2.JobBegin(map="u"), user_pb2.JobHandle)
            job = (await writer.ask(RpcType.JOB_BEGIN, begin, user_pb2.JobHandle)).job
            for who in (reader, owner):  # on other members than the job's
                with refused("is not one of user"):
                    await who.ask(RpcType.JOB_COMMIT, user_pb2.JobCommit(job=job), user_pb2.Count)
                with refused("is not one of user"):
                    await who.ask(RpcType.JOB_ABORT, user_pb2.JobAbort(job=job), common_pb2.Ack)
                with refused("is not one of user"):
                    write = user_pb2.JobWrite(job=job, task="0:0", sequence=0)
                    await who.ask(RpcType.JOB_WRITE, write, user_pb2.Count)
            await writer.ask(RpcType.JOB_COMMIT, user_pb2.JobCommit(job=job), user_pb2.Count)
            job = (await writer.ask(RpcType.JOB_BEGIN, begin, user_pb2.JobHandle)).job
            await root.ask(RpcType.JOB_ABORT, user_pb2.JobAbort(job=job), common_pb2.Ack)

        in_cluster(scenario, 3, **settings)

    def test_every_request_is_checked_somewhere(self, in_cluster, settings):
        async def scenario(cluster):
            served = set(cluster.member(1)._user_routes.supported)
            assert served <= set(_NEEDS) | CHECKED_ELSEWHERE

        in_cluster(scenario, 1, **settings)


def test_names_of_unseen_maps_stay_unknown(in_cluster, settings):
    """Hints, functions of the catalog and LIKE tell of the maps that a user has a role on."""

    async def scenario(cluster):
        root = await cluster.client(1, ROOT)
        await prepared(cluster)
        await root.sql("CREATE TABLE hidden_one (k BIGINT PRIMARY KEY, salary BIGINT)")
        await root.sql("COMMENT ON TABLE hidden_one IS 'a secret'")
        await root.sql("CREATE VIEW hidden_view AS SELECT salary FROM hidden_one WHERE k < 77")
        oid = (await root.sql("SELECT 'hidden_one'::regclass + 0"))[0][0]
        view = (await root.sql("SELECT 'hidden_view'::regclass + 0"))[0][0]
        reader = await cluster.client(2, READER)
        for text in (
            "SELECT to_regclass('hidden_one')",
            "SELECT to_regclass(name) FROM (VALUES ('hidden_one'), ('hidden_view')) n(name)",
            f"SELECT {oid}::regclass::text WHERE {oid}::regclass::text LIKE 'hidden%'",
            f"SELECT obj_description({oid})",
            f"SELECT pg_get_viewdef({view})",
            f"SELECT pg_get_viewdef({view}, true)",
        ):
            for client, told in ((root, True), (reader, False), (root, True)):
                rows = await client.sql(text)
                assert any(value is not None for row in rows for value in row) is told, text
        for text in (
            "SELECT * FROM hidden_ones", "DROP TABLE hidden_ones", "SHOW CREATE hidden_ones",
            "SELECT 'hidden_ones'::regclass", "INSERT INTO hidden_ones VALUES (1, 2)",
        ):  # fmt: skip
            with pytest.raises(RemudaError) as caught:
                await reader.sql(text)
            told = f"{caught.value} {caught.value.hint} {caught.value.detail}"
            assert "hidden_one" not in told.replace("hidden_ones", ""), told
        owner = await cluster.client(1, OWNER)
        for text in (
            "SELECT salaries FROM hidden_one", "CREATE TABLE twin (LIKE hidden_one)",
            "SELECT salary FROM hidden_view", "UPDATE hidden_one SET salaries = 1",
            "CREATE TABLE hidden_one (k BIGINT PRIMARY KEY)",
        ):  # fmt: skip
            with refused("hidden_(one|view)"):
                await owner.sql(text)
        with refused("lacks the role write"):
            await owner.sql("INSERT INTO hidden_one VALUES (1, 2)")
        assert await root.sql("SELECT 'hidden_one'::regclass::text") == [("hidden_one",)]

    in_cluster(scenario, 2, **settings)


def test_where_secrets_lie_is_for_administrators(in_cluster, settings):
    async def scenario(cluster):
        root, reader = await cluster.client(1, ROOT), await cluster.client(2, READER)
        for relation in ("sys.settings", "pg_settings"):
            text = f"SELECT setting FROM {relation} WHERE name = ?"
            for name in ("secret_file", "users_file"):
                assert await root.sql(text, name) == [(settings[name],)]
                assert await reader.sql(text, name) == [("<insufficient privilege>",)]
            assert await reader.sql(text, "tls_key") == [("",)]
            assert await reader.sql(text, "cluster") == await root.sql(text, "cluster")

    in_cluster(scenario, 2, **settings)
