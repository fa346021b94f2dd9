"""Member processes, connections and a table for the tests of PEP 249's module."""

from __future__ import annotations

import pytest

import remuda
import remuda.dbapi


@pytest.fixture(scope="module")
def cluster(three_members):
    return three_members


@pytest.fixture
def connection(cluster):
    with remuda.dbapi.connect(cluster.addresses) as found:
        yield found


@pytest.fixture
def cursor(connection):
    with connection.cursor() as found:
        found.execute("DROP TABLE IF EXISTS t")
        found.execute(
            "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2))"
        )
        yield found
