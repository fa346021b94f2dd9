"""psycopg's connections to the members' doors for PostgreSQL's clients."""

from __future__ import annotations

import psycopg
import pytest


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
