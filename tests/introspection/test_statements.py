"""Statements that PostgreSQL's clients send to know a schema, recorded on the wire.

``statements.json`` has who sends each, and the columns that PostgreSQL 15 answered for
``schema.sql``. ``rows`` are PostgreSQL's too, where all of them must be the grid's: sorted, with
names of relations in place of their OIDs, and one owner and one database. Elsewhere the catalogs
hold different objects of the system, and the columns count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import remuda

_HERE = Path(__file__).parent
RECORDED = json.loads((_HERE / "statements.json").read_text())
FIRST_OID = 16384

pytestmark = pytest.mark.cluster


class Shop:
    """A grid with the recorded schema."""

    def __init__(self, client: remuda.Client) -> None:
        self.client = client
        for statement in (_HERE / "schema.sql").read_text().split(";\n"):
            if statement.strip():
                client.sql(statement).close()
        found = self.run("SELECT relname, oid FROM pg_class")[1]
        self.oids = {str(name): oid for name, oid in found}
        self.names = {str(oid): name for name, oid in found if int(str(oid)) >= FIRST_OID}

    def run(self, statement: str) -> tuple[list[str], list[list[str | None]]]:
        with self.client.sql(statement) as cursor:
            return [c.name for c in cursor.columns], [[_text(v) for v in row] for row in cursor]


def _text(value: object) -> str | None:
    """As PostgreSQL writes it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, list | tuple):
        return "{" + ",".join("NULL" if v is None else str(_text(v)) for v in value) + "}"
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    with remuda.start(members=1) as cluster, cluster.connect() as client:
        yield Shop(client)


LONG = ("psql", "sqlalchemy", "django")
"""Clients that send many statements."""


@pytest.mark.parametrize(
    "client",
    [
        pytest.param(name, marks=[pytest.mark.soak] if name in LONG else [])
        for name in sorted({each["client"].split()[0] for each in RECORDED})
    ],
)
def test_a_client_gets_postgresqls_rows(client: str, shop: Shop) -> None:
    for each in RECORDED:
        if each["client"].split()[0] != client:
            continue
        filled = re.sub(
            r"\{oid:([^}]*)\}", lambda match: str(shop.oids[match[1]]), each["statement"]
        )
        columns, rows = shop.run(filled)
        assert columns == each["columns"], filled
        if "rows" in each:
            named = [[shop.names.get(v, v) if v else v for v in row] for row in rows]
            assert sorted(named, key=str) == each["rows"], filled


def test_most_rows_are_compared() -> None:
    assert sum("rows" in each for each in RECORDED) > len(RECORDED) * 2 / 3
