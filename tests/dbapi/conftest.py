"""Two member processes for all tests of PEP 249's module."""

from __future__ import annotations

import pytest

import remuda
import remuda.dbapi


@pytest.fixture(scope="package")
def cluster():
    with remuda.start(members=2) as found:
        yield found


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
