"""Which statements have one fingerprint, and what their texts become."""

from __future__ import annotations

import pytest

from remuda.sql.text.fingerprint import READ_MAX, SHOWN_MAX, fingerprint

NUMBERS = ", ".join(map(str, range(2000)))
ROWS = ", ".join(f"({number}, 'text')" for number in range(2000))
MORE_ROWS = ", ".join(f"({number}, 'longer text')" for number in range(1000, 3000))

ONE = {
    "SELECT a FROM t WHERE k = $1": [
        "SELECT a FROM t WHERE k = 5",
        "select A from T where K=-5;",
        "SELECT a -- a comment\nFROM /* and /* another */ */ t WHERE \"k\" = 'it''s'",
        "SELECT a FROM t WHERE k = ?",
        "SELECT a FROM t WHERE k = $3",
        "SELECT a FROM t WHERE k = NULL",
        "SELECT a FROM t WHERE k = E'a\\'b'",
        "SELECT a FROM t WHERE k = 'a'\n'b'",
        "SELECT a FROM t WHERE k = .5",
        "SELECT a FROM t WHERE k = $x$ab'c$x$",
    ],
    "SELECT a FROM t WHERE k IN ($1 /*, ... */)": [
        "SELECT a FROM t WHERE k IN (1, 2)",
        "SELECT a FROM t WHERE k IN (1)",
        "SELECT a FROM t WHERE k IN (?, NULL, -3)",
        f"SELECT a FROM t WHERE k IN ({NUMBERS})",
    ],
    "INSERT INTO t VALUES ($1, $2) /*, ... */": [
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO t VALUES (1, true)",
        f"INSERT INTO t VALUES {ROWS}",
        f"INSERT INTO t VALUES {MORE_ROWS}",
    ],
    "SELECT $1 WHERE (a, b) IN (($2, $3) /*, ... */) AND c = ARRAY[$4 /*, ... */]": [
        "SELECT 1 WHERE (a, b) IN ((1, 2), (3, 4), (5, 6)) AND c = ARRAY[1, 2]",
        "SELECT 1 WHERE (a, b) IN ((1, 2)) AND c = ARRAY[1]",
    ],
    "VALUES ($1::int) /*, ... */ ORDER BY $2": [
        "VALUES (?::int), (2::int) ORDER BY 1",
        "VALUES ('3'::int) ORDER BY 1",
    ],
}
APART = [
    "SELECT a FROM t WHERE k IS NULL",
    "SELECT a FROM t WHERE k IS NOT NULL",
    "SELECT a FROM t WHERE k = 1",
    "SELECT a FROM t WHERE k - 1",
    "SELECT a FROM t WHERE k = 1 AND k = 2",
    'SELECT a FROM t WHERE "K" = 1',
    "SELECT b FROM t WHERE k = 1",
    "SELECT a FROM t WHERE k ? 'x'",
    "SELECT a FROM t WHERE f(1, 2)",
    "SELECT a FROM t WHERE f(1)",
    "SELECT a FROM t WHERE k IN (SELECT 1)",
    "SELECT a FROM t WHERE k IN (SELECT 1, 1)",
    "SELECT a FROM t WHERE k IN (b, 1)",
    "SELECT a FROM t WHERE k IN (b, b, 1)",
    "EXPLAIN SELECT a FROM t WHERE k = 1",
    "SHOW TABLES",
]


@pytest.mark.parametrize("texts", ONE.values(), ids=ONE)
def test_texts_with_one_fingerprint(texts):
    assert len({fingerprint(text).number for text in texts}) == 1


def test_texts_with_their_own_fingerprints():
    assert len({fingerprint(text).number for text in APART}) == len(APART)


@pytest.mark.parametrize("shown", ONE)
def test_what_is_shown(shown):
    """The blanks of the first text stay, and its constants have numbers."""
    found = fingerprint(ONE[shown][0])
    assert found.text == shown
    assert fingerprint(found.text).number == found.number


@pytest.mark.parametrize("text", ["CALL f('secret')", "SET a = 'secret'", "EXECUTE p('secret')"])
def test_constants_are_not_shown(text):
    assert "secret" not in fingerprint(text).text


@pytest.mark.parametrize("text", ["", " ; ", "-- nothing", "SELECT 'x", "SELECT /* x", 'SELECT "x'])
def test_texts_without_a_fingerprint(text):
    assert fingerprint(text) is None


@pytest.mark.parametrize("inside", ["'{}'", '"{}"', "/* {} */ 1", "-- {}\n1", "$a${}$a$", "{}"])
def test_long_texts_are_cut(inside):
    text = "SELECT a, " + inside.format("x" * READ_MAX) + " FROM t"
    found = fingerprint(text)
    assert found.text in {"SELECT a, ...", "SELECT a ..."}
    assert found == fingerprint(text + " WHERE b")


def test_what_is_shown_is_bounded():
    columns = ", ".join(f"column_{number}" for number in range(250))
    assert len(fingerprint(f"SELECT {columns} FROM t").text) == SHOWN_MAX


def test_brackets_that_do_not_match_do_no_harm():
    for text in ("SELECT )", "]]]", "(" * 3000, "VALUES (1", "x IN (1, ", "VALUES (1, 2)) , (3"):
        assert fingerprint(text) is not None
