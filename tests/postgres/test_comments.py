"""COMMENT ON for every kind of object, as PostgreSQL's catalogs and functions tell the comments."""

from __future__ import annotations

import psycopg
import pytest

COMMENTS = {
    "TABLE noted": ("noted", "pg_class", "a table"),
    "INDEX noted_size": ("noted_size", "pg_class", "an index"),
    "INDEX noted_pkey": ("noted_pkey", "pg_class", "index of the key"),
    "CONSTRAINT noted_pkey ON noted": ("noted_pkey", "pg_constraint", "the key"),
    "CONSTRAINT noted_name_key ON noted": ("noted_name_key", "pg_constraint", "one of each"),
    "CONSTRAINT positive ON noted": ("positive", "pg_constraint", "no debts"),
}
TOLD = (
    "SELECT coalesce(c.relname, n.conname), d.classoid::regclass::text, d.description,"
    " obj_description(d.objoid, d.classoid::regclass::name)"
    " FROM pg_description d LEFT JOIN pg_class c ON d.classoid = 'pg_class'::regclass"
    " AND c.oid = d.objoid LEFT JOIN pg_constraint n"
    " ON d.classoid = 'pg_constraint'::regclass AND n.oid = d.objoid"
    " WHERE coalesce(c.relname, n.conname) LIKE 'noted%' OR n.conname = 'positive'"
)


@pytest.fixture
def noted(connect):
    connection = connect()
    connection.execute(
        "CREATE TABLE noted (id INT PRIMARY KEY, name TEXT UNIQUE, size INT,"
        " CONSTRAINT positive CHECK (size > 0))"
    )
    connection.execute("CREATE INDEX noted_size ON noted (size)")
    yield connection
    connection.execute("DROP TABLE noted")


def test_comments_stay_with_their_objects(noted):
    for place, (_, _, text) in COMMENTS.items():
        noted.execute(f"COMMENT ON {place} IS '{text}'")
    expected = {(name, kind, text, text) for name, kind, text in COMMENTS.values()}
    assert set(noted.execute(TOLD).fetchall()) == expected
    noted.execute("ALTER TABLE noted RENAME COLUMN size TO height")  # the CHECK follows
    noted.execute("ALTER TABLE noted ADD COLUMN born DATE")
    assert set(noted.execute(TOLD).fetchall()) == expected
    shown = noted.execute("SHOW CREATE TABLE noted").fetchone()[1]
    assert "COMMENT ON CONSTRAINT positive ON noted IS 'no debts';" in shown
    assert "COMMENT ON INDEX noted_pkey IS 'index of the key';" in shown
    for place in COMMENTS:
        noted.execute(f"COMMENT ON {place} IS NULL")
    assert noted.execute(TOLD).fetchall() == []


def test_a_copy_has_the_comments_that_it_asks_for(noted):
    noted.execute("COMMENT ON CONSTRAINT positive ON noted IS 'no debts'")
    for including, wanted in (("CONSTRAINTS", None), ("ALL", "no debts")):
        noted.execute(f"CREATE TABLE noted_too (LIKE noted INCLUDING {including})")
        found = noted.execute(
            "SELECT obj_description(oid, 'pg_constraint') FROM pg_constraint"
            " WHERE conrelid = 'noted_too'::regclass AND contype = 'c'"
        ).fetchone()
        noted.execute("DROP TABLE noted_too")
        assert found == (wanted,)


@pytest.mark.parametrize(
    ("place", "state", "message"),
    [
        ("INDEX noted_siez", "42704", 'index "noted_siez" does not exist'),
        (
            "CONSTRAINT positiv ON noted",
            "42704",
            'constraint "positiv" for table "noted" does not exist',
        ),
        ("CONSTRAINT positive ON nothing", "42P01", 'relation "nothing" does not exist'),
        ("TRIGGER positive ON noted", "0A000", "COMMENT ON this is not supported"),
    ],
)
def test_comments_need_their_object(noted, place, state, message):
    with pytest.raises(psycopg.Error) as caught:
        noted.execute(f"COMMENT ON {place} IS 'x'")
    assert caught.value.sqlstate == state
    assert caught.value.diag.message_primary == message
    assert caught.value.diag.message_hint
