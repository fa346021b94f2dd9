"""Regular expressions: the vectorized way and the general one agree, and wrong ones are refused."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from remuda.datatypes.sql import BOOLEAN, VARCHAR
from remuda.errors import InputError, InvalidEscape, InvalidEscapeUse, InvalidRegularExpression
from remuda.execution.batch import Batch
from remuda.execution.evaluate.compile import Compiler
from remuda.execution.evaluate.regex import replaced
from remuda.execution.evaluate.regex_syntax import compiled, similar
from remuda.plan.expression import Call, ColumnRef, Literal

TEXTS = ["abcabc", "", "foo bar", "a.b\\c", "x1y22z333", None, "AAA\nbbb$", "line\n"]
OTHER_TEXTS = [*TEXTS, "äöÜ x", "日本 1"]
PATTERNS = [
    "b", "[0-9]+", "(a)(b)", "a|b", r"\.", "o{2}", "[[:digit:]]", r"\d+", r"\s", "^a", "c$", "x*",
    "(?i)A", r"(.)\1", "[^a]", "a.b", "b+?", r"\\", "^$", r"\w", r"\m[a-z]", "e$", "[^[:alpha:]]",
]  # fmt: skip
REPLACEMENTS = ["X", "", r"<\1>", r"[\&]", r"\\", r"\x", "a\\", r"\1\2", "$1", r"\0"]
FLAGS = [None, "", "g", "i", "gi", "n"]


def over(texts, function, type_, *literals):
    arguments = (ColumnRef(VARCHAR, 0, "x"), *(Literal(VARCHAR, text) for text in literals))
    evaluate = Compiler({0: 0}).column(Call(type_, function, arguments))
    return evaluate(Batch([pa.array(texts, pa.string())], len(texts))).to_pylist()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("texts", [TEXTS, OTHER_TEXTS], ids=["ascii", "unicode"])
def test_replacing_columns_is_replacing_texts(pattern, texts):
    for replacement, flags in itertools.product(REPLACEMENTS, FLAGS):
        more = () if flags is None else (flags,)
        found = over(texts, "regexp_replace", VARCHAR, pattern, replacement, *more)
        assert found == [
            None if text is None else replaced(text, pattern, replacement, *more) for text in texts
        ], (replacement, flags)


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("texts", [TEXTS, OTHER_TEXTS], ids=["ascii", "unicode"])
def test_matching_columns_is_matching_texts(pattern, texts):
    for function, flags in (("~", ""), ("~*", "i")):
        expected = [
            None if text is None else compiled(pattern, flags).search(text) is not None
            for text in texts
        ]
        assert over(texts, function, BOOLEAN, pattern) == expected, function


WRONG = ["(", ")", "a)", "*a", "a**", "a*+", "[a", "a{2,1}", "a{256}", "[c-a]", "[[:foo:]]", r"\q",
         r"(a)\2", r"a\ ".strip(), "(?<x>a)"]  # fmt: skip


@pytest.mark.parametrize("pattern", WRONG)
def test_wrong_patterns(pattern):
    with pytest.raises(InvalidRegularExpression, match="invalid regular expression"):
        compiled(pattern)


def test_wrong_flags_and_escapes():
    with pytest.raises(InputError, match='option: "z"'):
        compiled("a", "z")
    with pytest.raises(InvalidEscape):
        similar("a", "##")
    with pytest.raises(InvalidEscapeUse):
        similar('a#"b', "#")


def test_patterns_that_would_take_seconds_to_translate_are_refused():
    for form in (compiled, similar):
        with pytest.raises(InvalidRegularExpression, match="too complex") as found:
            form("ab" * 40_000)
        assert "80000 characters" in found.value.detail
    assert compiled("(ab){200}").search("ab" * 200)


def test_the_longest_of_the_alternatives_is_taken():
    def found(pattern: str, text: str) -> str:
        match = compiled(pattern).search(text)
        assert match is not None
        return match[0]

    assert found("fo|foobar|foob", "foobarbaz") == "foobar"
    assert found("(a|ab)(c|bcd)", "abcd") == "abcd"
    assert found("a+?", "aaa") == "a"
    assert found("a+", "aaa") == "aaa"


def test_many_alternatives_in_long_texts_take_no_time():
    text = "the quick brown fox " * 5000
    assert replaced(text, "a|e|i|o|u", "_", "g").count("_") == 25_000
    assert replaced(text, "(quick|quickly)( brown)*", "x", "g").count("x fox") == 5000
