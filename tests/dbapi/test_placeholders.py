"""Parameters in five styles: what is one, and what only looks like one."""

from __future__ import annotations

import pytest

from remuda.dbapi.exceptions import InterfaceError, ProgrammingError
from remuda.dbapi.placeholders import check_style, template


@pytest.mark.parametrize(
    ("style", "text", "expected"),
    [
        ("qmark", "a ? ':x' %s", "a ? ':x' %s"),
        ("numeric", "x = :1 AND y=:2 OR z = :1", "x = $1 AND y=$2 OR z = $1"),
        ("numeric", "a[1:2] :1", "a[1:2] $1"),
        ("numeric", "x::int :1a :0", "x::int :1a :0"),
        ("named", ":a, (:b), :a::date, x=:c", "$1, ($2), $1::date, x=$3"),
        ("named", "x::int, a[n:m], f():y, \"q\":z", "x::int, a[n:m], f():y, \"q\":z"),
        ("named", "':a' \":a\" $$ :a $$ -- :a\n:a", "':a' \":a\" $$ :a $$ -- :a\n$1"),
        ("named", "$t$ :a $$ $t$ :b", "$t$ :a $$ $t$ $1"),
        ("named", "/* :a /* :b */ :c */ :d", "/* :a /* :b */ :c */ $1"),
        ("named", "'it''s :a' :b", "'it''s :a' $1"),
        ("named", r"E'\' :a' :b", r"E'\' :a' $1"),
        ("named", r"name'\' :b", r"name'\' $1"),
        ("named", "'open :a", "'open :a"),
        ("format", "%s %% %s '%%' '%s' 7 % 2", "$1 % $2 '%' '%s' 7 % 2"),
        ("pyformat", "%(a)s %(b c)s %(a)s '%(a)s %%'", "$1 $2 $1 '%(a)s %'"),
        ("pyformat", "%s + %s", "$1 + $2"),
    ],
)  # fmt: skip
def test_text(style, text, expected):
    assert template(style, text).text == expected


def test_values():
    assert template("named", ":b, :a, :b").values({"a": 1, "b": 2, "c": 3}) == [2, 1]
    assert template("numeric", ":2 :1").values((5, 6)) == [5, 6]
    assert template("format", "%s").values(iter([5])) == [5]
    assert template("qmark", "?").values(range(3)) == [0, 1, 2]
    for style, text, given, match in [
        ("named", ":a", (1,), "give a mapping, not tuple"),
        ("named", ":a", {"b": 1}, 'no value for the parameter "a"'),
        ("numeric", ":2", (1,), "takes 2 parameters, 1 were given"),
        ("format", "%s", "x", "not str"),
        ("qmark", "?", 5, "a sequence of values, not int"),
        ("format", "%s", {"a": 1}, "not dict"),
    ]:
        with pytest.raises(ProgrammingError, match=match):
            template(style, text).values(given)
    with pytest.raises(ProgrammingError, match="cannot be in one statement"):
        template("pyformat", "%s %(a)s")
    with pytest.raises(InterfaceError, match="paramstyle"):
        check_style("percent")
