"""``has_table_privilege`` and its kind answer by the users' file, as GRANT compares with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from users_of_cluster import known_users, people, prepared

from remuda.catalog.users import Role, encode_users
from remuda.errors import RemudaError

PREPARED = (
    "CREATE SEQUENCE s",
    "CREATE SCHEMA sales",
    "CREATE TABLE sales.t (k BIGINT PRIMARY KEY)",
)
TRUE = (
    "has_table_privilege('reader', 't', 'SELECT')",
    "has_table_privilege('reader', 't', ' insert , select ')",
    "has_table_privilege('reader', 'public.t', 'SELECT')",
    "has_table_privilege('reader', 't'::regclass, 'SELECT')",
    "has_table_privilege('reader', 't', 'REFERENCES')",
    "has_table_privilege('reader', 'pg_class', 'SELECT')",
    "has_table_privilege('reader', 'one_map', 'SELECT')",
    "has_table_privilege('writer', 't', 'TRUNCATE')",
    "has_table_privilege('owner', 't', 'SELECT')",
    "has_table_privilege('root', 'u', 'DELETE WITH GRANT OPTION')",
    "has_table_privilege('root', 'i', 'SELECT')",
    "has_table_privilege('remuda', 'u', 'DELETE')",
    "has_any_column_privilege('reader', 't', 'SELECT, UPDATE')",
    "has_column_privilege('reader', 't', 'v', 'SELECT')",
    "has_column_privilege('reader', 't', 2::smallint, 'SELECT')",
    "has_sequence_privilege('root', 's', 'USAGE')",
    "has_table_privilege('root', 's', 'SELECT')",
    "has_schema_privilege('nobody', 'public', 'USAGE')",
    "has_schema_privilege('root', 'sales', 'CREATE')",
    "has_database_privilege('nobody', current_database(), 'CONNECT, CREATE')",
    "has_database_privilege('root', 'remuda', 'CREATE')",
    "has_function_privilege('nobody', 'lower(text)', 'EXECUTE')",
    "has_type_privilege('nobody', 'integer', 'USAGE')",
    "has_language_privilege('nobody', 'internal', 'USAGE')",
    "has_tablespace_privilege('root', 'pg_default', 'CREATE')",
    "pg_has_role('reader', 'reader', 'MEMBER')",
    "pg_has_role('root', 'reader', 'MEMBER WITH ADMIN OPTION')",
    "pg_has_role('root', 'USAGE')",
    "has_table_privilege('u', 'SELECT')",
)
FALSE = (
    "has_table_privilege('reader', 't', 'INSERT')",
    "has_table_privilege('reader', 't', 'SELECT WITH GRANT OPTION')",
    "has_table_privilege('owner', 't', 'SELECT WITH GRANT OPTION')",
    "has_table_privilege('reader', 'u', 'SELECT')",
    "has_table_privilege('reader', 'both_maps', 'SELECT')",
    "has_table_privilege('reader', 'pg_class', 'INSERT')",
    "has_table_privilege('reader', 'i', 'SELECT')",
    "has_table_privilege('public', 't', 'SELECT')",
    "has_table_privilege(99999::oid, 't', 'SELECT')",
    "has_table_privilege('root', 't', 'RULE')",
    "has_any_column_privilege('reader', 'u', 'SELECT')",
    "has_column_privilege('reader', 't', 'v', 'UPDATE')",
    "has_sequence_privilege('reader', 's', 'SELECT')",
    "has_schema_privilege('owner', 'public', 'CREATE')",
    "has_schema_privilege('reader', 'pg_catalog', 'CREATE')",
    "has_database_privilege('reader', current_database(), 'CREATE')",
    "has_function_privilege('reader', 'lower(text)', 'EXECUTE WITH GRANT OPTION')",
    "has_tablespace_privilege('reader', 'pg_default', 'CREATE')",
    "pg_has_role('reader', 'root', 'MEMBER')",
    "pg_has_role('reader', 'reader', 'USAGE WITH GRANT OPTION')",
)
NEITHER = (
    "has_table_privilege('reader', 't', NULL)",
    "has_table_privilege(NULL, 't', 'SELECT')",
    "has_table_privilege('nix', NULL)",
    "has_table_privilege(99999::oid, 'SELECT')",
    "has_column_privilege('t', 9::smallint, 'SELECT')",
    "has_column_privilege('t', 0::smallint, 'SELECT')",
    "has_column_privilege(99999::oid, 'v', 'SELECT')",
    "has_schema_privilege(99999::oid, 'USAGE')",
    "has_database_privilege(99999::oid, 'CONNECT')",
    "has_sequence_privilege(99999::oid, 'USAGE')",
    "pg_has_role('reader', NULL)",
)
WRONG = {
    "has_table_privilege('nix', 'SELECT')": ("42P01", 'relation "nix" does not exist'),
    "has_table_privilege('nix.t', 'SELECT')": ("3F000", 'schema "nix" does not exist'),
    "has_table_privilege('nix', 't', 'SELECT')": ("42704", 'role "nix" does not exist'),
    "has_table_privilege('t', 'FOO')": ("22023", 'unrecognized privilege type: "FOO"'),
    "has_table_privilege('t', 'SELECT,')": ("22023", 'unrecognized privilege type: ""'),
    "has_table_privilege('t')": ("42883", "function has_table_privilege(unknown) does not exist"),
    "has_table_privilege(true, 'SELECT')": (
        "42883",
        "function has_table_privilege(boolean, unknown) does not exist",
    ),
    "has_column_privilege('t', 'nix', 'SELECT')": (
        "42703",
        'column "nix" of relation "t" does not exist',
    ),
    "has_column_privilege('t', 'v', 'DELETE')": (
        "22023",
        'unrecognized privilege type: "DELETE"',
    ),
    "has_sequence_privilege('t', 'USAGE')": ("42809", '"t" is not a sequence'),
    "has_sequence_privilege('s', 'INSERT')": ("22023", 'unrecognized privilege type: "INSERT"'),
    "has_schema_privilege('nix', 'USAGE')": ("3F000", 'schema "nix" does not exist'),
    "has_schema_privilege('\"public\"', 'USAGE')": ("3F000", 'schema ""public"" does not exist'),
    "has_database_privilege('nix', 'CONNECT')": ("3D000", 'database "nix" does not exist'),
    "has_function_privilege('nix(int)', 'EXECUTE')": (
        "42883",
        'function "nix(int)" does not exist',
    ),
    "has_function_privilege('lower', 'EXECUTE')": ("22P02", "expected a left parenthesis"),
    "has_type_privilege('nix', 'USAGE')": ("42704", 'type "nix" does not exist'),
    "has_language_privilege('nix', 'USAGE')": ("42704", 'language "nix" does not exist'),
    "has_tablespace_privilege('nix', 'CREATE')": ("42704", 'tablespace "nix" does not exist'),
    "has_server_privilege('nix', 'USAGE')": ("42704", 'server "nix" does not exist'),
    "has_foreign_data_wrapper_privilege('nix', 'USAGE')": (
        "42704",
        'foreign-data wrapper "nix" does not exist',
    ),
    "pg_has_role('public', 'USAGE')": ("42704", 'role "public" does not exist'),
    "pg_has_role('reader', 'SET')": ("22023", 'unrecognized privilege type: "SET"'),
}
"""SQLSTATEs and messages of PostgreSQL 15."""


@pytest.fixture
def settings(tmp_path, monkeypatch):
    return known_users(tmp_path, monkeypatch)


@pytest.mark.parametrize("members", [1])
def test_privileges_of_known_users(in_cluster, settings, members):
    async def scenario(cluster):
        root, *_ = await prepared(cluster)
        for text in PREPARED:
            await root.sql(text)
        for wanted, questions in ((True, TRUE), (False, FALSE), (None, NEITHER)):
            for question in questions:
                assert await answer(root, question) is wanted, question
        for question, (state, message) in WRONG.items():
            with pytest.raises(RemudaError) as caught:
                await answer(root, question)
            assert (caught.value.sqlstate, caught.value.message) == (state, message), question

    in_cluster(scenario, members, **settings)


@pytest.mark.parametrize("members", [1])
def test_privileges_of_the_user_that_asks(in_cluster, settings, members):
    async def scenario(cluster):
        root, reader, _, owner, nobody = await prepared(cluster)
        question = "has_table_privilege('t', 'SELECT')"
        answers = [await answer(each, question) for each in (root, reader, owner, nobody)]
        assert answers == [True, True, True, False]
        # One may ask about what one may not see, and not about other users.
        assert await answer(reader, "has_table_privilege('u', 'SELECT')") is False
        assert await answer(reader, "has_table_privilege(current_user, 't', 'SELECT')") is True
        with pytest.raises(RemudaError, match='role "root" does not exist'):
            await answer(reader, "has_table_privilege('root', 't', 'SELECT')")
        text = (
            "SELECT string_agg(relname, ',' ORDER BY relname) FROM pg_class "
            "WHERE relkind IN ('r', 'v') AND relnamespace = 2200 "
            "AND has_table_privilege(oid, 'SELECT')"
        )
        assert [await value(each, text) for each in (root, reader, nobody)] == [
            "both_maps,one_map,t,u", "one_map,t", None,
        ]  # fmt: skip
        text = (
            "SELECT string_agg(rolname, ',' ORDER BY rolname) FROM pg_roles "
            "WHERE has_table_privilege(rolname, 't', 'UPDATE') AND pg_has_role(rolname, 'MEMBER')"
        )
        assert await value(root, text) == "owner,remuda,root,writer"
        assert await value(root, "SELECT pg_get_userbyid('reader'::regrole::oid)") == "reader"

    in_cluster(scenario, members, **settings)


@pytest.mark.parametrize("members", [1])
def test_no_plan_keeps_what_the_file_has_said(in_cluster, settings, members):
    async def scenario(cluster):
        _, reader, *_ = await prepared(cluster)
        question = "has_table_privilege('u', 'SELECT')"
        assert await answer(reader, question) is False
        file = Path(settings["users_file"])
        file.write_bytes(encode_users(people().granted("reader", Role.READ, "u")))
        cluster.member(1).core.access._file.look()
        assert await answer(reader, question) is True

    in_cluster(scenario, members, **settings)


@pytest.mark.parametrize("members", [1])
def test_without_users_everybody_may_do_everything(in_cluster, members):
    async def scenario(cluster):
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        for question in (
            "has_table_privilege('t', 'DELETE WITH GRANT OPTION')",
            "has_schema_privilege(current_user, 'public', 'CREATE')",
            "has_database_privilege(current_database(), 'CREATE')",
            "pg_has_role('remuda', 'USAGE')",
        ):
            assert await answer(client, question) is True, question
        with pytest.raises(RemudaError, match='role "nix" does not exist'):
            await answer(client, "pg_has_role('nix', 'USAGE')")

    in_cluster(scenario, members)


async def value(client, text):
    (row,) = await client.sql(text)
    return row[0]


async def answer(client, question):
    return await value(client, f"SELECT {question}")
