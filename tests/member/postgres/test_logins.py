"""Logins of PostgreSQL's clients on real sockets: TLS, passwords, refusals, and the limits of
strangers."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import struct

import psycopg
import pytest
import trustme
from users_of_cluster import PASSWORD, known_users

from remuda.catalog.users import decode_users, encode_users
from remuda.config import MemberConfig, check_exposure
from remuda.errors import InputError, MemberNotReady
from remuda.member.postgres.wing import PostgresWing
from remuda.postgres.login import SSL_REQUEST
from remuda.postgres.reader import UNAUTHENTICATED_SIZE_MAX
from remuda.session.user_settings import user_setting

GUESS = "a wrong guess"


@pytest.fixture
def users(tmp_path, monkeypatch):
    """Members that know the users of ``users_of_cluster``, and keep an audit log."""
    monkeypatch.setattr("remuda.postgres.login.AUTHENTICATION_PENALTY", 0.01)
    monkeypatch.setattr("remuda.member.postgres.wing.AUTHENTICATION_PENALTY", 0.01)
    return known_users(tmp_path, monkeypatch)


@pytest.fixture(scope="module")
def tls(certificates):
    certificate, key = certificates.issue("door", "127.0.0.1", "localhost")
    return {"tls_certificate": certificate, "tls_key": key, "tls_ca": certificates.ca}


def place(cluster, member=1):
    host, port = cluster.member(member).postgres.address.split(":")
    return host, int(port)


async def connect(cluster, user="root", member=1, **options):
    host, port = place(cluster, member)
    given = {"host": host, "port": port, "user": user, "dbname": "shop", "autocommit": True}
    return await psycopg.AsyncConnection.connect(**given | options)


async def refusal(cluster, **options):
    with pytest.raises(psycopg.OperationalError) as caught:
        await connect(cluster, **options)
    return caught.value


async def psql(cluster, text, *, password=PASSWORD, user="root", **options):
    """Its exit code and all that it printed."""
    host, port = place(cluster)
    words = {"host": host, "port": port, "user": user, "dbname": "shop", **options}
    process = await asyncio.create_subprocess_exec(
        "psql", " ".join(f"{name}={value}" for name, value in words.items()), "-X", "-A", "-t",
        "-c", text, env={**os.environ, "PGPASSWORD": password, "PGCONNECT_TIMEOUT": "30"},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed, _ = await process.communicate()
    return process.returncode, printed.decode()


def test_a_session_begins_with_the_settings_of_its_user(in_cluster, users, tmp_path):
    """A setting of the startup packet comes first, then that of the user's entry. RESET and DISCARD
    ALL, which pools send, go back to these."""
    file = tmp_path / "users.json"
    found = decode_users(file.read_bytes(), "")
    level = user_setting("Default_Transaction_Isolation", "READ COMMITTED")
    file.write_bytes(encode_users(found.configured("root", *level)))

    async def scenario(cluster):
        async def told(connection, name="default_transaction_isolation"):
            return (await (await connection.execute(f"SHOW {name}")).fetchone())[0]

        async with await connect(cluster, password=PASSWORD) as connection:
            assert await told(connection) == "read committed"
            await connection.execute("BEGIN")
            assert await told(connection, "transaction_isolation") == "read committed"
            await connection.execute("COMMIT")
            await connection.execute("SET default_transaction_isolation = serializable")
            assert await told(connection) == "serializable"
            for text in ("RESET default_transaction_isolation", "RESET ALL", "DISCARD ALL"):
                await connection.execute("SET default_transaction_isolation = 'repeatable read'")
                await connection.execute(text)
                assert await told(connection) == "read committed"
            listed = await connection.execute(
                "SELECT rolname, rolconfig, setdatabase, setconfig, useconfig"
                " FROM pg_roles r JOIN pg_db_role_setting s ON s.setrole = r.oid"
                " JOIN pg_user u ON usename = rolname"
            )
            config = ["default_transaction_isolation=read committed"]
            assert await listed.fetchall() == [("root", config, 0, config, config)]
            if shutil.which("psql"):
                _, printed = await psql(cluster, "\\drds")
                assert printed == "root||default_transaction_isolation=read committed\n"
        options = "-c default_transaction_isolation=repeatable\\ read"
        async with await connect(cluster, password=PASSWORD, options=options) as connection:
            await connection.execute("SET default_transaction_isolation = serializable")
            await connection.execute("RESET ALL")
            assert await told(connection) == "repeatable read"
            await connection.execute("SET default_transaction_isolation = DEFAULT")
            assert await told(connection) == "repeatable read"
        async with await connect(cluster, user="reader", password=PASSWORD) as connection:
            assert await told(connection) == "serializable"
            with pytest.raises(psycopg.errors.FeatureNotSupported) as caught:
                await connection.execute("ALTER ROLE reader SET work_mem = '1MB'")
            assert "remuda user set" in caught.value.diag.message_hint

    in_cluster(scenario, **users)


def test_scram_over_tls(in_cluster, users, tls, certificates):
    async def scenario(cluster):
        for options in (
            {"sslmode": "require"},
            {"sslmode": "verify-full", "sslrootcert": certificates.ca},
        ):
            async with await connect(cluster, password=PASSWORD, **options) as connection:
                assert connection.pgconn.ssl_in_use
                row = await (await connection.execute("SELECT current_user")).fetchone()
                assert row == ("root",)
                large = await connection.execute(
                    "SELECT x, repeat('é', 200) FROM generate_series(1, 20000) t(x)"
                )
                rows = await large.fetchall()
                assert [x for x, _ in rows] == list(range(1, 20001))
                sent = "s" * 3_000_000
                back = await connection.execute("SELECT length(%s::text)", (sent,))
                assert await back.fetchone() == (len(sent),)
            if shutil.which("psql"):
                code, printed = await psql(cluster, "SELECT 6 * 7", **options)
                assert (code, printed) == (0, "42\n")
        bare = await refusal(cluster, password=PASSWORD, sslmode="disable")
        assert "encrypted connections only" in str(bare)
        other = certificates.folder / "stranger.pem"
        trustme.CA().cert_pem.write_to_path(other)
        stranger = await refusal(
            cluster, password=PASSWORD, sslmode="verify-full", sslrootcert=str(other)
        )
        assert "certificate verify failed" in str(stranger)

    in_cluster(scenario, 1, **users, **tls)


def test_passwords_in_clear_over_tls(in_cluster, users, tls):
    async def scenario(cluster):
        connection = await connect(cluster, password=PASSWORD, sslmode="require")
        assert await (await connection.execute("SELECT 1")).fetchone() == (1,)
        await connection.close()
        if shutil.which("psql"):
            code, printed = await psql(cluster, "SELECT current_user", sslmode="require")
            assert (code, printed) == (0, "root\n")
        wrong = await refusal(cluster, password=GUESS, sslmode="require")
        unknown = await refusal(cluster, user="mallory", password=GUESS, sslmode="require")
        assert "password authentication failed" in str(wrong)
        assert str(wrong).replace("root", "mallory") == str(unknown)

    in_cluster(scenario, 1, **users, **tls, postgres_authentication="password")


def test_wrong_passwords(in_cluster, users, tmp_path, caplog):
    """An unknown user gets the answer of a wrong password. Each failure is noted once."""
    audit = tmp_path / "audit.jsonl"

    async def scenario(cluster):
        wrong = await refusal(cluster, password=GUESS)
        unknown = await refusal(cluster, user="mallory", password=GUESS)
        assert 'password authentication failed for user "root"' in str(wrong)
        assert str(wrong).replace("root", "mallory") == str(unknown)
        assert (
            await raw_refusal(cluster, "root") == await raw_refusal(cluster, "mallory") == "28P01"
        )
        connection = await connect(cluster, password=PASSWORD)
        await connection.close()

    with caplog.at_level("WARNING"):
        in_cluster(scenario, 1, **users, audit_file=str(audit))
    noted = [json.loads(line) for line in audit.read_text().splitlines()]
    logins = [(line["user"], line["outcome"]) for line in noted if line["event"] == "login"]
    failed = [(user, "28P01") for user in ("root", "mallory", "root", "mallory")]
    assert logins == [*failed, ("root", "ok")]
    warnings = [record for record in caplog.records if record.getMessage() == "wrong password"]
    assert len(warnings) == 4


def test_passwords_in_clear_are_noted_once(in_cluster, users, tls, tmp_path):
    audit = tmp_path / "audit.jsonl"

    async def scenario(cluster):
        await refusal(cluster, password=GUESS, sslmode="require")
        connection = await connect(cluster, password=PASSWORD, sslmode="require")
        await connection.close()

    settings = {**users, **tls, "audit_file": str(audit), "postgres_authentication": "password"}
    in_cluster(scenario, 1, **settings)
    noted = [json.loads(line) for line in audit.read_text().splitlines()]
    assert [line["outcome"] for line in noted if line["event"] == "login"] == ["28P01", "ok"]


async def raw_refusal(cluster, user):
    """The SQLSTATE of the FATAL answer to a wrong proof, byte by byte."""
    reader, writer = await asyncio.open_connection(*place(cluster))
    body = struct.pack("!i", 3 << 16) + f"user\0{user}\0\0".encode()
    writer.write(struct.pack("!i", len(body) + 4) + body)
    await message(reader)
    nonce = "rOprNGfwEbeRWgbNEkqO"
    send(writer, sasl_first(f"n,,n=,r={nonce}".encode()))
    _, asked = await message(reader)
    server_nonce = asked[4:].decode().split(",")[0]
    assert server_nonce.startswith(f"r={nonce}")
    send(writer, f"c=biws,{server_nonce},p={'A' * 43}=".encode())
    kind, body = await message(reader)
    assert kind == b"E"
    assert await reader.read() == b""
    writer.close()
    return next(part[1:].decode() for part in body.split(b"\0") if part[:1] == b"C")


async def message(reader):
    kind, size = struct.unpack("!ci", await reader.readexactly(5))
    return kind, await reader.readexactly(size - 4)


def sasl_first(first):
    return b"SCRAM-SHA-256\0" + struct.pack("!i", len(first)) + first


def send(writer, body):
    writer.write(b"p" + struct.pack("!i", len(body) + 4) + body)


def test_too_many_guesses_are_refused_unseen(in_cluster, users, monkeypatch):
    """While eight wrong passwords of an address are held back, further ones are not looked at."""
    monkeypatch.setattr("remuda.postgres.login.AUTHENTICATION_PENALTY", 0.0)
    monkeypatch.setattr("remuda.member.postgres.wing.AUTHENTICATION_PENALTY", 600.0)

    async def scenario(cluster):
        for _ in range(8):
            assert "password authentication failed" in str(await refusal(cluster, password=GUESS))
        for user, password in (("root", PASSWORD), ("mallory", GUESS)):
            refused = await refusal(cluster, user=user, password=password)
            assert "too many wrong passwords from 127.0.0.1" in str(refused)

    in_cluster(scenario, 1, **users)


def test_a_wrong_password_is_answered_late(in_cluster, users, monkeypatch):
    monkeypatch.setattr("remuda.postgres.login.AUTHENTICATION_PENALTY", 600.0)

    async def scenario(cluster):
        guess = asyncio.create_task(connect(cluster, password=GUESS))
        door = cluster.member(1).postgres
        while not door.wrong_passwords:
            await asyncio.sleep(0)
        connection = await connect(cluster, password=PASSWORD)
        await connection.close()
        assert not guess.done()
        guess.cancel()
        with pytest.raises((asyncio.CancelledError, psycopg.OperationalError)):
            await guess
        while door.strangers:
            await asyncio.sleep(0)

    in_cluster(scenario, 1, **users)


def test_a_door_that_others_reach_needs_users():
    with pytest.raises(InputError, match="needs protection"):
        check_exposure(MemberConfig(cluster_size=1, host="0.0.0.0"))


def test_what_strangers_may_send(in_cluster, users):
    """Before the login at most 64 KiB, and a start that PostgreSQL's protocol knows."""
    begun = struct.pack("!iiB", UNAUTHENTICATED_SIZE_MAX, 3 << 16, 0)
    password = b"p" + struct.pack("!i", UNAUTHENTICATED_SIZE_MAX * 2)

    async def scenario(cluster):
        body = struct.pack("!i", 3 << 16) + b"user\0root\0\0"
        start = struct.pack("!i", len(body) + 4) + body
        for sent, told in (
            (begun, b"invalid length of startup packet"),
            (b"GET / HTTP/1.1\r\n\r\n", b"invalid length of startup packet"),
            (start + password, b"longer than"),
            (start + b"p\0\1\0\0" + bytes(UNAUTHENTICATED_SIZE_MAX + 1), b"bytes before the auth"),
        ):
            reader, writer = await asyncio.open_connection(*place(cluster))
            writer.write(sent)
            assert told in await reader.read()
            writer.close()
        while cluster.member(1).postgres.strangers:
            await asyncio.sleep(0)

    in_cluster(scenario, 1, **users)


def test_bytes_behind_an_ssl_request_are_refused(in_cluster, users, tls):
    async def scenario(cluster):
        reader, writer = await asyncio.open_connection(*place(cluster))
        writer.write(struct.pack("!ii", 8, SSL_REQUEST) + b"injected")
        assert b"received unencrypted data after SSL request" in await reader.read()
        writer.close()

    in_cluster(scenario, 1, **users, **tls)


def test_strangers_that_send_nothing_are_let_go(in_cluster, tls, users, monkeypatch):
    monkeypatch.setattr("remuda.member.postgres.connection.HANDSHAKE_TIMEOUT", 0.05)

    async def scenario(cluster):
        reader, writer = await asyncio.open_connection(*place(cluster))
        assert b"did not log in within" in await reader.read()
        writer.close()
        reader, writer = await asyncio.open_connection(*place(cluster))
        writer.write(struct.pack("!ii", 8, SSL_REQUEST))  # and no TLS behind it
        assert (await reader.read())[:1] == b"S"
        writer.close()

    in_cluster(scenario, 1, **users, **tls)


def test_a_member_that_starts_says_so(in_cluster):
    async def scenario(cluster):
        member = cluster.member(1)
        door = PostgresWing(
            member.core, member.peers, member.statements, member.queries, member.plans
        )
        await door.listen(None, None, None)
        reader, writer = await asyncio.open_connection(*door.address.split(":"))
        body = struct.pack("!i", 3 << 16) + b"user\0root\0\0"
        writer.write(struct.pack("!i", len(body) + 4) + body)
        _, told = await message(reader)
        assert b"C57P03\0Mthe database system is starting up" in told
        writer.close()
        door.disconnect(MemberNotReady("this test is over"))
        await (await connect(cluster)).close()

    in_cluster(scenario, 1)
