"""psycopg's connections to the members' doors for PostgreSQL's clients."""

from __future__ import annotations

import fcntl
import subprocess
import venv
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "requirements/programs.txt"
PROGRAMS = ROOT / ".cache/programs"


@pytest.fixture(scope="module")
def cluster(three_members):
    return three_members


@pytest.fixture
def connect(cluster):
    """Connections to member 1 (or ``member``), which are closed with the test."""
    opened = []

    def open_one(member=0, **options):
        host, port = cluster.members[member].postgres.split(":")
        given = {"host": host, "port": port, "user": "bob", "dbname": "shop", "autocommit": True}
        connection = psycopg.connect(**given | options)
        opened.append(connection)
        return connection

    yield open_one
    for connection in opened:
        connection.close()


@pytest.fixture
def connection(connect):
    return connect()


@pytest.fixture(scope="module")
def numbers(cluster):
    """A table of 3,000 numbers and their names."""
    client = cluster.connect()
    client.sql("CREATE TABLE numbers (id BIGINT PRIMARY KEY, name VARCHAR, half DOUBLE PRECISION)")
    client.sql("INSERT INTO numbers SELECT x, 'n' || x, x / 2.0 FROM generate_series(1, 3000) t(x)")
    client.close()
    return "numbers"


@pytest.fixture(scope="module")
def items(cluster):
    """A table with an index and a view on it."""
    with cluster.connect() as client:
        client.sql(
            "CREATE TABLE items (id BIGINT PRIMARY KEY, name VARCHAR(20) NOT NULL,"
            " price DECIMAL(10,2), born TIMESTAMPTZ)"
        )
        client.sql("CREATE INDEX items_name ON items (name)")
        client.sql("CREATE VIEW cheap AS SELECT * FROM items WHERE price < 1")
        client.sql(
            "INSERT INTO items VALUES (1, 'saw', 19.50, TIMESTAMPTZ '2024-01-31 12:00:00+00'),"
            " (2, 'nail', 0.10, NULL)"
        )
    return "items"


@pytest.fixture(scope="module")
def door(cluster):
    """Where member 1 serves PostgreSQL's clients, as most drivers want it."""
    host, port = cluster.members[0].postgres.split(":")
    return {"host": host, "port": int(port), "user": "bob", "database": "shop"}


@pytest.fixture(scope="session")
def python_of_programs():
    """The interpreter of an environment with dbt, which pins what it needs. The first run makes
    it."""
    found, stamp = PROGRAMS / "bin/python", PROGRAMS / "installed.txt"
    PROGRAMS.parent.mkdir(exist_ok=True)
    with (PROGRAMS.parent / "programs.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # processes of one run
        if stamp.exists() and stamp.read_text() == REQUIREMENTS.read_text():
            return found
        venv.create(PROGRAMS, clear=True, with_pip=True)
        command = [
            str(found), "-m", "pip", "install", "--disable-pip-version-check", "--no-input",
            "--quiet", "--require-hashes", "--no-deps", "--requirement", str(REQUIREMENTS),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines()
            pytest.skip(f"{REQUIREMENTS.name} cannot be installed: {said[-1:]}")
        stamp.write_text(REQUIREMENTS.read_text())
        return found
