"""Enums as PostgreSQL's clients use them: their OIDs, forms and catalogs."""

from __future__ import annotations

import asyncio
import enum

import asyncpg
import psycopg
import pytest
from psycopg.types.enum import EnumInfo, register_enum
from sqlalchemy import Column, Enum, Integer, MetaData, Table, create_engine, insert, select


class Shade(enum.Enum):
    DARK = "dark"
    PALE = "pale"


@pytest.fixture
def shade(connection):
    connection.execute("DROP TYPE IF EXISTS shade CASCADE")
    connection.execute("CREATE TYPE shade AS ENUM ('dark', 'pale')")
    connection.execute("DROP TABLE IF EXISTS walls")
    connection.execute("CREATE TABLE walls (id INT PRIMARY KEY, s shade, others shade[])")
    yield "shade"
    connection.execute("DROP TABLE walls")
    connection.execute("DROP TYPE shade")


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_psycopg_registers_an_enum(connection, shade, binary):
    info = EnumInfo.fetch(connection, shade)
    assert info.labels == ["dark", "pale"]
    labels = {each: each.value for each in Shade}
    register_enum(info, connection, Shade, mapping=labels)
    cursor = connection.cursor(binary=binary)
    row = (1, Shade.PALE, [Shade.DARK, None])
    cursor.execute("INSERT INTO walls VALUES (%s, %s, %s)", row)
    assert cursor.execute("SELECT * FROM walls WHERE s = %s", (Shade.PALE,)).fetchone() == row
    assert [column.type_code for column in cursor.description] == [23, info.oid, info.array_oid]
    with pytest.raises(psycopg.errors.InvalidTextRepresentation, match="invalid input value"):
        cursor.execute("INSERT INTO walls VALUES (2, 'light', NULL)")


def test_asyncpg_introspects_enums(door, shade):
    async def run():
        client = await asyncpg.connect(**door, ssl=False)
        try:
            await client.execute("INSERT INTO walls VALUES ($1, $2, $3)", 1, "pale", ["dark"])
            row = await client.fetchrow("SELECT s, others FROM walls WHERE s > $1", "dark")
            assert tuple(row) == ("pale", ["dark"])
        finally:
            await client.close()

    asyncio.run(run())


def test_a_value_that_is_added_is_known_to_prepared_statements(connection, shade):
    for _ in range(2):
        connection.execute("SELECT id FROM walls WHERE s < %s ORDER BY s", ("pale",), prepare=True)
    connection.execute("ALTER TYPE shade ADD VALUE 'black' BEFORE 'dark'")
    connection.execute("INSERT INTO walls VALUES (1, 'dark'), (2, 'black'), (3, 'pale')")
    found = connection.execute(
        "SELECT id FROM walls WHERE s < %s ORDER BY s", ("pale",), prepare=True
    ).fetchall()
    assert found == [(2,), (1,)]


def test_copy_takes_labels_alone(connection, shade):
    with connection.cursor().copy("COPY walls (id, s) FROM STDIN") as copy:
        copy.write("1\tpale\n2\tdark\n")
    with (
        pytest.raises(psycopg.errors.InvalidTextRepresentation),
        connection.cursor().copy("COPY walls (id, s) FROM STDIN") as copy,
    ):
        copy.write("3\tlight\n")
    assert connection.execute("SELECT id FROM walls ORDER BY s").fetchall() == [(2,), (1,)]


def test_sqlalchemy_makes_and_reads_enums(door):
    url = f"postgresql+psycopg://{door['user']}@{door['host']}:{door['port']}/{door['database']}"
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    metadata = MetaData()
    table = Table(
        "fences", metadata, Column("id", Integer, primary_key=True), Column("s", Enum(Shade))
    )
    metadata.create_all(engine)
    try:
        with engine.begin() as connection:
            connection.execute(insert(table), [{"id": 1, "s": Shade.PALE}])
            assert connection.execute(select(table.c.s)).scalar() is Shade.PALE
        reflected = Table("fences", MetaData(), autoload_with=engine)
        assert reflected.c.s.type.enums == ["DARK", "PALE"]
    finally:
        metadata.drop_all(engine)
        engine.dispose()
