"""SQL/JSON paths beside PostgreSQL's answers, and where the two are meant to differ."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from remuda.datatypes.jsons import parse_json
from remuda.errors import (
    InputError,
    InvalidRegularExpression,
    LimitExceeded,
    UnsupportedValue,
)
from remuda.execution.evaluate.json_path_syntax import parsed_path
from remuda.execution.evaluate.json_path_text import canonical_path
from remuda.execution.evaluate.json_paths import PATH_FUNCTIONS, found

sys.path.insert(0, str(Path(__file__).parent))
from json_path_samples import GOLDEN

CASES = [json.loads(line) for line in GOLDEN.read_text(encoding="utf-8").splitlines()]


def answered(function, document, path, variables, silent):
    try:
        if function == "jsonpath":
            return canonical_path(path)
        more = () if variables is None else (variables, silent)
        answer = PATH_FUNCTIONS[function](parse_json(document), path, *more)
    except InputError as error:
        return {"error": error.sqlstate}
    return ("true" if answer else "false") if isinstance(answer, bool) else answer


@pytest.mark.parametrize("kind", sorted({case[0] for case in CASES}))
def test_answers_are_postgresqls(kind):
    cases = [case for case in CASES if case[0] == kind]
    assert len(cases) > 20
    different = [(*case, got) for *case, want in cases if (got := answered(*case)) != want]
    assert not different


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("$.a + 1 + 2 * 3", '(($."a" + 1) + 2 * 3)'),
        ("-$.a.b + (-1)", '(-$."a"."b" + -1)'),
        ("$.**{2 to last}.**{last}.**{0 to last}.**{1}", "$.**{2 to last}.**{last}.**.**{1}"),
        ('$ ? (@ like_regex "a" flag "qi")', '$?(@ like_regex "a" flag "iq")'),
        ("strict $ ? ((@.c > 2) is unknown)", 'strict $?((@."c" > 2) is unknown)'),
        ('$.\\u0061\\x62\\u{63}\\n."\\t\\v\\q"', '$."abc\\n"."\\t\\u000bq"'),
        ("1.50 + .5 + 1e3 + 1.5e-3", "(((1.50 + 0.5) + 1000) + 0.0015)"),
        ("+ - $", "(+(-$))"),
        ("1..type()", "(1).type()"),
        ("$.true.TYPE()", '$."true".type()'),
        ("$ /* a * b */ . a", '$."a"'),
        # PostgreSQL loses a name with a comment behind it.
        ("$.a/**/.b", '$."a"."b"'),
    ],
)
def test_the_canonical_form(path, shown):
    assert canonical_path(path) == shown
    assert canonical_path(shown) == shown


@pytest.mark.parametrize(
    ("path", "sqlstate", "message"),
    [
        ("", "22P02", 'invalid input syntax for type jsonpath: ""'),
        ("@", "42601", "@ is not allowed in root expressions"),
        ("last", "42601", "LAST is allowed only in array subscripts"),
        ("$.a == 1 == 2", "42601", 'syntax error at or near "==" of jsonpath input'),
        ("$.a.", "42601", "syntax error at end of jsonpath input"),
        ("01", "42601", 'trailing junk after numeric literal at or near "01" of jsonpath input'),
        ('"abc', "42601", "unexpected end of quoted string at end of jsonpath input"),
        ('"\\u0000"', "22P05", "unsupported Unicode escape sequence"),
        ('"\\ud83d"', "22P02", "invalid input syntax for type jsonpath"),
        ('$ ? (@ like_regex "(")', "2201B", None),
        ('$ ? (@ like_regex "a" flag "x")', "0A000", None),
        ("$.**{99999999999}", "22003", None),
    ],
)
def test_wrong_paths(path, sqlstate, message):
    with pytest.raises(InputError) as raised:
        parsed_path(path)
    assert raised.value.sqlstate == sqlstate
    assert message is None or raised.value.message == message


@pytest.mark.parametrize(
    "text",
    [
        "$" + ".a" * 5000,
        "-" * 5000 + " $",
        "$" + " + 1" * 5000,
        "(" * 5000 + "$",
        "$ ? " + "(" * 5000 + "@ == 1" + ")" * 5000,
        "$" + "[$" * 5000,
    ],
)
def test_deep_paths_are_refused(text):
    with pytest.raises(LimitExceeded) as raised:
        parsed_path(text)
    assert raised.value.sqlstate in ("54000", "54001")


@pytest.mark.parametrize(
    "path",
    [
        "$" + ".a" * 119,
        "exists(" + "-(" * 24 + "$" + ")" * 24 + ")",
        "$" + "[*]" * 119,
        "$" + " ? (@ != 7)" * 39,
    ],
)
def test_paths_of_any_allowed_depth_are_evaluated(path):
    document = parse_json("[" * 400 + '{"a": 1}' + "]" * 400)
    found(document, path)


def test_wide_documents():
    document = parse_json("[" + "[1]," * 2000 + "[2]]")
    assert len(found(document, "$[*][*] ? (@ < 2)")) == 2000
    assert found(document, "strict $.** ? (@ == 2)") == [2]


def test_places_in_binary_documents():
    """Ids of ``.keyvalue()`` are places in PostgreSQL's JSONB; these are its own."""
    document = parse_json('{"a": 1, "b": {"c": [1.5, {"d": 100000, "e": 1e-20}]}}')
    ids = [pair["id"] for pair in found(document, "$.b.c[1].keyvalue()")]
    assert ids == [72, 72]
    [nested] = found(document, '$.keyvalue().value ? (@.type() == "object").keyvalue().id')
    assert nested == 30000000048
    [variable] = found(document, "$x.y.keyvalue().id", '{"x": {"y": {"z": 1}}}')
    assert variable == 10000000032


def test_times_that_need_a_zone():
    times = ["12:34:56", "12:34:56+01"]
    with pytest.raises(UnsupportedValue, match="without time zone usage"):
        found(times, "$[0].datetime() < $[1].datetime()")
    assert found(times, "$[0].datetime() < $[1].datetime()", zones=True) == [False]


def test_invalid_expressions_are_found_without_data():
    with pytest.raises(InvalidRegularExpression):
        canonical_path('$.nothing ? (@ like_regex "[")')
