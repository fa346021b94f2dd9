"""SQL/JSON paths: what they lead to, and what they are refused for."""

from __future__ import annotations

import pytest

from remuda.datatypes.jsonpath import compiled
from remuda.datatypes.jsons import parse_json
from remuda.errors import InvalidJsonPath, InvalidRegularExpression, UnsupportedValue

DOCUMENT = parse_json('{"a": [{"n": 1, "t": "x"}, {"n": 2.5}, {"m": null}], "b c": {"d": true}}')


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", "[{}]"),
        ("$.a.n", "[1, 2.5]"),
        ("lax $.a[*].n", "[1, 2.5]"),
        ("$.a[0].t", '["x"]'),
        ("$.a[last].m", "[null]"),
        ("$.a[0 to 1].n", "[1, 2.5]"),
        ('$."b c".d', "[true]"),
        ("$.a.size()", "[3]"),
        ("$.a ? (@.n > 1).n", "[2.5]"),
        ('$.a ? (@.t == "x" || @.n > 2).n', "[1, 2.5]"),
        ("$.a ? (!exists (@.n)).m", "[null]"),
        ("$.a[*] ? (@.n == $.a[0].n).t", '["x"]'),
        ("$.nothing[*].at.all", "[]"),
    ],
)
def test_paths(path: str, expected: str) -> None:
    found = compiled(path)(DOCUMENT)
    assert (found == parse_json(expected)) or (path == "$" and found == [DOCUMENT])


@pytest.mark.parametrize(
    "path", ["", "a", "$.", "$[", "$[x]", "$ ? (@.a >)", "$ ? @.a", "$ $", "$.a.", "$ ? (1)", "#"]
)
def test_bad_paths(path: str) -> None:
    with pytest.raises(InvalidJsonPath) as raised:
        compiled(path)
    assert raised.value.sqlstate == "42601"


@pytest.mark.parametrize("path", ["strict $.a", "$.**{2}", "$.a.datetime()"])
def test_paths_that_are_not_supported(path: str) -> None:
    with pytest.raises(UnsupportedValue):
        compiled(path)


def test_wrong_regular_expressions_and_deep_nesting() -> None:
    with pytest.raises(InvalidRegularExpression):
        compiled('$ ? (@ like_regex "(")')
    with pytest.raises(InvalidJsonPath):
        compiled("$ ? " + "(" * 5000 + "@ == 1" + ")" * 5000)
    for text in ("$" + ".a" * 5000, "-" * 5000 + " $", "$" + " + 1" * 5000, "(" * 5000 + "$"):
        with pytest.raises(InvalidJsonPath):
            compiled(text)
