"""Three member processes with mutual TLS, a secret and users: everything over real sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pyarrow as pa
import pytest

import remuda
import remuda.aio
from remuda.catalog.passwords import ITERATIONS_MIN, hashed
from remuda.catalog.users import ALL, Role, Users, encode_users
from remuda.errors import (
    AuthenticationFailed,
    InsufficientPrivilege,
    PartitionsUnreachable,
    RemudaError,
    TlsFailed,
    WrongPassword,
)

pytestmark = pytest.mark.cluster

PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def protected(certificates, tmp_path_factory):
    """The settings of the members, and the options of their clients."""
    folder = tmp_path_factory.mktemp("protected")
    certificate, key = certificates.issue("cluster", "127.0.0.1")
    shown, shown_key = certificates.issue("application", "application@example.org")
    secret, users = folder / "secret", folder / "users.json"
    secret.write_text("a secret of the whole cluster")
    people = Users()
    for name, role in (("root", Role.ADMIN), ("reader", Role.READ)):
        kept = hashed(PASSWORD, name.encode().ljust(16), ITERATIONS_MIN)
        people = people.added(name, kept, replace_it=False).granted(name, role, ALL)
    users.write_bytes(encode_users(people))
    for path in (secret, users):
        path.chmod(0o600)
    settings = {
        "tls_certificate": certificate,
        "tls_key": key,
        "tls_ca": certificates.ca,
        "tls_client_certificates": "all",
        "secret_file": str(secret),
        "users_file": str(users),
    }
    client = {"ca": certificates.ca, "certificate": shown, "key": shown_key}
    return settings, client


@pytest.fixture(scope="module")
def cluster(protected):
    with remuda.start(members=3, settings=protected[0]) as found:
        yield found


def test_everything_works_as_without(cluster, protected):
    as_root = {"user": "root", "password": PASSWORD}
    with (
        cluster.connect(**as_root) as own,
        remuda.connect(cluster.addresses, **protected[1], **as_root) as client,
    ):
        numbers = client.map("numbers")
        numbers.put_all({n: {"text": f"n{n}", "half": n / 2} for n in range(3000)})
        assert own.sql("SELECT count(*), sum(half) FROM numbers").fetchone() == (3000, 2249250.0)
        assert numbers.get(77)["text"] == "n77"
        joined = "SELECT a.text FROM numbers a JOIN numbers b ON a.half = b.half"
        assert client.sql(joined).to_arrow().num_rows == 3000
        (key,) = client.describe("numbers").key
        more = pa.table({key: [9001, 9002], "text": ["late", "later"], "half": [1.5, 2.5]})
        numbers.put_all(more)  # as a job: each member gets its rows straight from the client
        assert numbers.get(9002)["text"] == "later"
        assert numbers.remove(77)["text"] == "n77"
        client.sql("UPDATE numbers SET half = 0 WHERE half > 1000").close()
        with cluster.connect(user="reader", password=PASSWORD) as reader:
            assert reader.map("numbers").get(1)["half"] == 0.5
            with pytest.raises(InsufficientPrivilege, match='the role write on map "numbers"'):
                reader.map("numbers").put(1, {"text": "x", "half": 0.0})
            with pytest.raises(InsufficientPrivilege):
                reader.sql("DROP TABLE numbers")
            (name,) = reader.sql("SELECT current_user").fetchone()
            assert name == "reader"


def test_the_client_for_asyncio(cluster, protected):
    async def main():
        as_reader = {**protected[1], "user": "reader", "password": PASSWORD}
        client = await remuda.aio.connect(cluster.addresses, **as_reader)
        cursor = await client.sql("SELECT current_user")
        assert await cursor.fetchone() == ("reader",)
        await client.close()
        with pytest.raises(WrongPassword):
            await remuda.aio.connect(cluster.address, **{**as_reader, "password": "wrong"})
        with pytest.raises(TlsFailed):
            await remuda.aio.connect(cluster.address)

    asyncio.run(main())


def test_who_is_not_let_in(cluster, protected):
    address, files = cluster.address, protected[1]
    for options, error in (
        ({}, TlsFailed),
        ({"ca": files["ca"]}, TlsFailed),
        (files, AuthenticationFailed),
        ({**files, "user": "root", "password": "wrong"}, WrongPassword),
        ({**files, "user": "eve", "password": PASSWORD}, WrongPassword),
    ):
        with pytest.raises(error):
            remuda.connect(address, **options)


def command(cluster, protected, *words, password=PASSWORD, **environment):
    files = protected[1]
    flags = ["--connect", cluster.address, "--tls-ca", files["ca"]]
    flags += ["--tls-certificate", files["certificate"], "--tls-key", files["key"]]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("REMUDA_")}
    return subprocess.run(
        [sys.executable, "-m", "remuda.cli.main", *words[:1], *flags, *words[1:]],
        env={**clean, "REMUDA_PASSWORD": password, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
    )


def test_the_command_line(cluster, protected, tmp_path):
    query = ("sql", "-c", "SELECT current_user AS who", "--format", "csv")
    found = command(cluster, protected, *query, "--user", "reader")
    assert (found.stdout, found.stderr, found.returncode) == ("who\nreader\n", "", 0)
    found = command(cluster, protected, *query, REMUDA_USER="root")
    assert found.stdout == "who\nroot\n"
    kept = tmp_path / "password"
    kept.write_text(PASSWORD + "\n")
    words = (*query, "--user", "root", "--password-file", str(kept))
    assert command(cluster, protected, *words, password="wrong").stdout == "who\nroot\n"
    found = command(cluster, protected, *query, "--user", "root", password="wrong")
    assert found.returncode == 1
    assert "do not belong together" in found.stderr
    assert "Traceback" not in found.stderr
    assert command(cluster, protected, "status", "--user", "reader").returncode == 0


def test_a_killed_member_is_noticed(protected):
    with (
        remuda.start(members=3, settings=protected[0] | {"backups": 0}) as cluster,
        cluster.connect(user="root", password=PASSWORD) as client,
    ):
        client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)").close()
        client.sql("INSERT INTO t SELECT g FROM generate_series(1, 1000) g(g)").close()
        os.kill(cluster.pids[2], signal.SIGKILL)
        with pytest.raises(RemudaError) as caught:
            while True:
                client.sql("SELECT count(*) FROM t").fetchone()
        assert caught.value.retryable
        with pytest.raises(PartitionsUnreachable) as unreachable:
            while True:
                try:
                    client.sql("SELECT count(*) FROM t").fetchone()
                except PartitionsUnreachable:
                    raise
                except RemudaError as error:
                    assert error.retryable
        assert "member 3" in (unreachable.value.detail or "")
        assert client.sql("SELECT 1").fetchone() == (1,)
