"""GRANT and REVOKE: they compare the users' file with what they ask for, and change nothing."""

from __future__ import annotations

import re

import pytest
from users_of_cluster import known_users, prepared

from remuda.errors import InputError, NotSupported, RemudaError
from remuda.sql.parsing.parser import parse
from remuda.sql.trees.privileges import PrivilegeTree

TRUE = (
    "GRANT SELECT ON t TO reader",
    "GRANT SELECT ON TABLE public.t TO reader, reader GRANTED BY root",
    "GRANT INSERT, UPDATE, DELETE, TRUNCATE ON t TO writer",
    "GRANT SELECT ON one_map TO reader",
    "GRANT ALL ON t TO owner",
    "GRANT ALL PRIVILEGES ON ALL TABLES IN SCHEMA public TO root",
    "GRANT ALL ON DATABASE remuda TO root",
    "GRANT CONNECT, TEMP ON DATABASE remuda TO nobody, PUBLIC",
    "GRANT USAGE ON SCHEMA public TO PUBLIC",
    "GRANT ALL ON SCHEMA public TO current_user",
    "GRANT REFERENCES, TRIGGER ON t TO nobody",
    "REVOKE ALL ON t FROM PUBLIC CASCADE",
    "REVOKE ALL ON t FROM nobody RESTRICT",
    "REVOKE CREATE ON SCHEMA public FROM reader",
)
"""Of the users that ``prepared`` makes."""
FALSE = {
    "GRANT SELECT ON u TO reader": (
        "lacks the role read",
        "remuda user grant reader read --map 'u'",
    ),
    "GRANT SELECT, INSERT ON t TO reader": ("lacks the role write", "reader write --map 't'"),
    "GRANT SELECT ON both_maps TO reader": ("lacks the role read", "--map 'u'"),
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader": (
        'lacks the role read on all maps of schema "public"',
        "--map 'public.*'",
    ),
    "GRANT CREATE ON SCHEMA public TO owner": ("lacks the role admin", "--map 'public.*'"),
    "GRANT CREATE ON DATABASE d TO owner": ("lacks the role admin on all maps", "--all"),
    "REVOKE SELECT ON t FROM reader": ("has the role read", "remuda user revoke reader read --map"),
    "REVOKE INSERT ON u FROM root": ("has the role write", "A role may come from"),
    "GRANT SELECT ON t TO PUBLIC": ("PUBLIC has no roles", "Name the users."),
}
REFUSED = {
    "GRANT SELECT ON t TO reader WITH GRANT OPTION": "to grant privileges are not supported",
    "REVOKE GRANT OPTION FOR SELECT ON t FROM reader": "to grant privileges are not supported",
    "GRANT SELECT (v) ON t TO reader": "privileges on columns are not supported",
    "GRANT staff TO reader": "roles that have members are not supported",
    "REVOKE staff FROM reader": "roles that have members are not supported",
    "GRANT EXECUTE ON FUNCTION f TO reader": "GRANT and REVOKE on FUNCTION is not supported",
}
WRONG = {
    "GRANT SELECT ON nix TO reader": "42P01",
    "GRANT USAGE ON SCHEMA nix TO reader": "3F000",
    "GRANT USAGE ON SEQUENCE t TO reader": "42809",
    "GRANT SELECT ON t TO nix": "42704",
    "GRANT foo ON t TO reader": "42601",
    "GRANT USAGE ON t TO reader": "0LP01",
    "GRANT SELECT ON SCHEMA public TO reader": "0LP01",
    "REVOKE INSERT ON DATABASE d FROM reader": "0LP01",
    "GRANT SELECT ON t": "42601",
    "GRANT SELECT ON t FROM reader": "42601",
    "GRANT SELECT ON t TO reader nonsense": "42601",
}


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


@pytest.mark.parametrize("members", [1])
def test_grants_of_known_users(in_cluster, settings, members):
    async def scenario(cluster):
        root, reader, *_ = await prepared(cluster)
        for text in TRUE:
            await root.sql(text)
        for text, (said, hint) in FALSE.items():
            with pytest.raises(NotSupported, match=re.escape(said)) as caught:
                await root.sql(text)
            assert hint in caught.value.hint, text
        for text, state in WRONG.items():
            with pytest.raises(RemudaError) as caught:
                await root.sql(text)
            assert caught.value.sqlstate == state, text
        for text in ("GRANT SELECT ON t TO reader", "REVOKE ALL ON t FROM nobody"):
            with pytest.raises(RemudaError, match="lacks the role admin on all maps"):
                await reader.sql(text)
        await cluster.idle()

    in_cluster(scenario, members, **settings)


@pytest.mark.parametrize("text", REFUSED)
def test_what_roles_cannot_say(text):
    with pytest.raises(NotSupported, match=re.escape(REFUSED[text])) as caught:
        parse(text)
    assert caught.value.hint


def test_names_that_are_words_of_the_statement():
    tree = parse('GRANT SELECT ON "table", schema, sequence TO "public"').tree
    assert isinstance(tree, PrivilegeTree)
    assert [name.text for name in tree.objects] == ["table", "schema", "sequence"]


class TestWithoutUsers:
    @pytest.mark.parametrize("members", [1])
    def test_everybody_may_do_everything(self, in_cluster, members):
        async def scenario(cluster):
            client = await cluster.client()
            await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
            await client.sql("GRANT ALL ON TABLE t TO anybody")
            await client.sql("GRANT SELECT ON t TO PUBLIC")
            with pytest.raises(NotSupported, match="no effect without users"):
                await client.sql("REVOKE SELECT ON t FROM anybody")
            with pytest.raises(RemudaError, match="nix"):
                await client.sql("GRANT SELECT ON nix TO anybody")
            await cluster.idle()

        in_cluster(scenario, members)


@pytest.mark.parametrize(
    ("text", "said", "command"),
    [
        ("CREATE ROLE app LOGIN", "CREATE ROLE", "remuda user add NAME"),
        ("CREATE USER app WITH PASSWORD 'x'", "CREATE USER", "remuda user add NAME"),
        ("DROP ROLE IF EXISTS app", "DROP ROLE", "remuda user remove NAME"),
        ("DROP OWNED BY app CASCADE", "DROP OWNED", "remuda user revoke NAME ROLE"),
        ("REASSIGN OWNED BY app TO other", "REASSIGN OWNED", "remuda user revoke NAME ROLE"),
        ("ALTER USER app PASSWORD 'x'", "ALTER USER", "remuda user password NAME"),
        (
            "ALTER DEFAULT PRIVILEGES IN SCHEMA s GRANT SELECT ON TABLES TO app",
            "ALTER DEFAULT PRIVILEGES",
            "--map 'SCHEMA.*'",
        ),
    ],
)
def test_users_are_not_made_by_statements(text, said, command):
    with pytest.raises(NotSupported, match=f"^{said} is not supported") as caught:
        parse(text)
    assert command in caught.value.hint


@pytest.mark.parametrize(
    "text", ["SET ROLE {}", "SET SESSION AUTHORIZATION '{}'", "SET role TO {}"]
)
def test_a_session_stays_that_of_its_user(in_cluster, settings, text):
    async def scenario(cluster):
        root, reader, *_ = await prepared(cluster)
        await reader.sql(text.format("reader"))
        with pytest.raises(NotSupported, match="cannot become another user"):
            await reader.sql(text.format("root"))
        with pytest.raises(InputError, match='invalid value for parameter "role"'):
            await reader.sql("SELECT set_config('role', 'root', false)")
        await root.sql("CREATE SCHEMA AUTHORIZATION CURRENT_USER")
        assert await root.sql("SELECT nspname FROM pg_namespace WHERE nspname = 'root'") == [
            ("root",)
        ]
        await cluster.idle()

    in_cluster(scenario, 1, **settings)


@pytest.mark.parametrize("text", ["SET ROLE app", "SET SESSION AUTHORIZATION app"])
def test_without_users_every_session_is_everybody(in_cluster, text):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql(text)
        assert await client.sql("SHOW role") == [("none",)]
        await cluster.idle()

    in_cluster(scenario, 1)


@pytest.mark.parametrize("members", [1, 3])
def test_create_schema_makes_all_of_its_elements_or_nothing(in_cluster, settings, members):
    async def scenario(cluster):
        root, *_ = await prepared(cluster)
        elements = "CREATE TABLE made (id SERIAL PRIMARY KEY) GRANT SELECT ON made TO"
        for text, sqlstate in (
            (f"CREATE SCHEMA s {elements} reader", "0A000"),
            (f"CREATE SCHEMA s {elements} nix", "42704"),
            ("CREATE SCHEMA s AUTHORIZATION nix", "42704"),
            ("CREATE SCHEMA AUTHORIZATION nix", "42704"),
        ):
            with pytest.raises(RemudaError) as refused:
                await root.sql(text)
            assert refused.value.sqlstate == sqlstate, text
        listed = "SELECT nspname FROM pg_namespace WHERE oid >= 16384"
        assert await root.sql(listed) == []
        await root.sql(f"CREATE SCHEMA AUTHORIZATION reader {elements} root")
        await root.sql("CREATE SCHEMA s AUTHORIZATION reader")
        assert sorted(await root.sql(listed)) == [("reader",), ("s",)]
        assert await root.sql("SELECT nextval('reader.made_id_seq')") == [(1,)]

    in_cluster(scenario, members=members, **settings)
