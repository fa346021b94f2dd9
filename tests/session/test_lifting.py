"""Literals of statements as parameters: which are taken out, and which plans keep the meaning."""

from __future__ import annotations

import pytest

from remuda.catalog.catalog import Catalog
from remuda.catalog.statistics import FixedStatistics
from remuda.datatypes.sql import INTEGER
from remuda.session.lifting import NUMBER_MAX, TEXT_MAX, Fits, Forms, fits_of, lift
from remuda.session.planning import Environment, Planned, bound, planned
from remuda.sql.binder import bind
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import CreateMapStatement

TABLES = (
    """CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, d DECIMAL(10, 2), r REAL, v VARCHAR(5),
       dt DATE, p TIMESTAMP(2), b BOOLEAN)""",
    "CREATE TABLE h (a INTEGER, v VARCHAR)",
)


def catalog() -> Catalog:
    found = Catalog()
    for text in TABLES:
        statement = bind(parse(text), found)
        assert isinstance(statement, CreateMapStatement)
        found, _ = found.with_map(statement.schema, if_not_exists=False)
    return found


def plan_of(form: str, types: tuple[object, ...]) -> Planned:
    environment = Environment(catalog(), 1, 3, FixedStatistics({}), {})
    return planned(bound(form, types, environment.catalog), environment)  # type: ignore[arg-type]


def fits(text: str) -> Fits | None:
    lifted = lift(text)
    assert lifted is not None, text
    return fits_of(plan_of(lifted.form, lifted.types), lifted.types)


@pytest.mark.parametrize(
    ("text", "form", "values"),
    [
        ("UPDATE t SET n = n + 12 WHERE id=3;", "UPDATE t SET n = n + $1 WHERE id=$2;", (12, 3)),
        ("update t set n=n - -12 where id=-3", "update t set n=n - -$1 where id=$2", (12, -3)),
        ("SELECT 1, 'a' FROM t WHERE id = 3", "SELECT 1, 'a' FROM t WHERE id = $1", (3,)),
        ("DELETE FROM t WHERE v = 'it''s'", "DELETE FROM t WHERE v = $1", ("it's",)),
        ("INSERT INTO h VALUES (1, 'x = 5')", "INSERT INTO h VALUES ($1, $2)", (1, "x = 5")),
        ("DELETE FROM h WHERE a>1 OR v LIKE '=5'", "DELETE FROM h WHERE a>$1 OR v LIKE '=5'", (1,)),
        ('SELECT "a=5" FROM t WHERE id = 5', 'SELECT "a=5" FROM t WHERE id = $1', (5,)),
        ("SELECT n FROM t WHERE id IN (1,2)", "SELECT n FROM t WHERE id IN ($1,$2)", (1, 2)),
        ("INSERT INTO h VALUES (1) RETURNING (2)", "INSERT INTO h VALUES ($1) RETURNING (2)", (1,)),
        ("SELECT n FROM t WHERE id = 5 AND dt = DATE '2024-01-31'",
         "SELECT n FROM t WHERE id = $1 AND dt = DATE '2024-01-31'", (5,)),
    ],
)  # fmt: skip
def test_literals_that_are_operands_are_lifted(
    text: str, form: str, values: tuple[object, ...]
) -> None:
    lifted = lift(text)
    assert lifted is not None
    assert (lifted.form, lifted.values) == (form, values)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 5",
        "SELECT n FROM t",
        "SELECT n FROM t WHERE id = 5 ORDER BY 1, 2",
        "SELECT n FROM t WHERE id = 5 LIMIT 1",
        "SELECT n FROM t WHERE id = 5 GROUP BY 1",
        "SELECT n FROM t WHERE id = $1 AND n = 5",
        "SELECT n FROM t WHERE id = 5 -- five",
        "SELECT n /*+ ENGINE(spark) */ FROM t WHERE id = 5",
        "UPDATE t SET v = E'\\'' WHERE id = 5",
        "DELETE FROM t WHERE v = 'a '",
        "DELETE FROM t WHERE n = 1e3",
        "DELETE FROM t WHERE v = 'a'\n'b'",
        "UPDATE t SET n = 1; UPDATE t SET n = 2",
        "EXPLAIN UPDATE t SET n = 5 WHERE id = 3",
        "DELETE FROM t WHERE id = " + "9" * (NUMBER_MAX + 1),
        "DELETE FROM t WHERE id = 5" + " " * TEXT_MAX,
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert lift(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT n FROM t WHERE n = 5",  # not by key: statistics choose
        "SELECT (5) FROM t WHERE id = 5 AND n = round((2))",
        "UPDATE t SET d = d * 2 WHERE id = 5",  # the digits decide the type
        "UPDATE t SET n = n + (2) WHERE id = 5",  # its type is not said
        "UPDATE t SET r = 0.1 WHERE id = 5",
        "UPDATE t SET b = 'true' WHERE id = 5",
        "UPDATE t SET p = '2024-01-31 10:00' WHERE id = 5",
        "UPDATE t SET v = v || ('a') WHERE id = 5",
        "UPDATE t SET n = 5",
        "DELETE FROM t WHERE id = ANY ('{1,2}')",
        "INSERT INTO h VALUES (1, 'a'), (2, 'b')",
    ],
)
def test_other_plans_are_not_shared(text: str) -> None:
    assert fits(text) is None


@pytest.mark.parametrize(
    ("text", "others", "wrong"),
    [
        ("UPDATE t SET d = 2.5 WHERE id = 5", ("1", "-7.25"), ("1.005", "999999999", "'x'")),
        ("UPDATE t SET v = 'a' WHERE id = 5", ("'abcde'", "''"), ("'abcdef'",)),
        ("UPDATE t SET dt = '2024-01-31' WHERE id = 5", ("'1999-12-31'",), ("'today'", "'x'")),
        ("DELETE FROM t WHERE id = 5", ("-3", "'7'", "3.0"), ("3000000000", "2.5", "'x'")),
    ],
)
def test_values_must_have_an_exact_counterpart(
    text: str, others: tuple[str, ...], wrong: tuple[str, ...]
) -> None:
    """Another value rounds, fails or means something else, which its own plan says."""
    found = fits(text)
    assert found is not None
    first = text.split("= ")[1].partition(" ")[0]
    for other, good in [(o, True) for o in others] + [(w, False) for w in wrong]:
        lifted = lift(text.replace(first, other, 1))
        assert lifted is not None
        assert (found.values(lifted, "UTC") is not None) == good, other


def test_a_form_is_planned_when_it_comes_again() -> None:
    forms, lifted = Forms(size=2), lift("DELETE FROM t WHERE id = 5")
    assert lifted is not None
    assert not forms.wanted(lifted, version=1)
    assert forms.wanted(lifted, version=1)
    forms.refuse(lifted, version=1)
    assert not forms.wanted(lifted, version=1)
    assert forms.wanted(lifted, version=2)
    for number in range(2):
        assert not forms.wanted(lifted._replace(form=str(number)), version=2)
    assert not forms.wanted(lifted, version=2), "it was forgotten"


def test_the_type_of_an_integer_in_arithmetic_is_its_own() -> None:
    lifted = lift("UPDATE t SET n = n + 5 WHERE id = 5")
    assert lifted is not None
    assert lifted.types == (INTEGER, None)
    assert lift("UPDATE t SET n = n + 2147483648 WHERE n IS NULL") is None
