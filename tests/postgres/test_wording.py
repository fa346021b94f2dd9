"""Errors name relations in PostgreSQL's words, and leave what they quote."""

from __future__ import annotations

import psycopg
import pytest

from remuda.postgres.wording import worded


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('map "x" does not exist', 'relation "x" does not exist'),
        ('map "x" exists already', 'relation "x" already exists'),
        ('a view of the name "a ""b""" exists already', 'relation "a ""b""" already exists'),
        ('index "i" exists already', 'relation "i" already exists'),
        ('column "a" of map "x" does not exist', 'column "a" of relation "x" does not exist'),
        ('type "t" already exists', 'type "t" already exists'),
        ('invalid input syntax: "map "x""', 'invalid input syntax: "map "x""'),
        ('invalid label "of map "x""', 'invalid label "of map "x""'),
    ],
)
def test_words_of_postgresql(text, told):
    assert worded(text) == told


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1 FROM nobody", 'relation "nobody" does not exist'),
        ("CREATE TABLE items (id INT PRIMARY KEY)", 'relation "items" already exists'),
        ("CREATE VIEW items AS SELECT 1", 'relation "items" already exists'),
        ("CREATE INDEX items_name ON items (price)", 'relation "items_name" already exists'),
        ("INSERT INTO items (nam) VALUES (1)", 'column "nam" of relation "items" does not exist'),
        ("ALTER TABLE items DROP COLUMN nam", 'column "nam" of relation "items" does not exist'),
        ("DROP TYPE nobody", 'type "nobody" does not exist'),
        ("SELECT 'map \"x\" exists already'::int", 'invalid input syntax for type integer: "map'),
    ],
)
def test_clients_are_told_of_relations(connection, items, text, message):
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(text)
    assert refused.value.diag.message_primary.startswith(message)


def test_several_statements_cannot_be_prepared(connection):
    with pytest.raises(psycopg.errors.SyntaxError, match="cannot insert multiple commands into a"):
        connection.execute("SELECT 1; SELECT %s", (2,))
