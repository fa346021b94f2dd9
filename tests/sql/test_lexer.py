"""Tokens by PostgreSQL's lexical rules."""

from __future__ import annotations

import pytest

from remuda.errors import SqlSyntaxError
from remuda.sql.text.lexemes import TokenKind
from remuda.sql.text.lexer import is_blank, semicolons, tokenize

K = TokenKind


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("VALUES ($1,$2)", [8, 11]),
        ("VALUES ($1,$2),($1,$2)", [8, 11, 16, 19]),
        ("SELECT $1::int,$12", [7, 15]),
        ("SELECT '$1,$2',$1,$2", [15, 18]),
        ("SELECT E'\\'$1,$2',$1,$2", [18, 21]),
        ("SELECT 'it''s $1,$2',$1,$2", [21, 24]),
        ('SELECT "$1,$2",$1,$2', [15, 18]),
        ("SELECT $$ $1,$2 $$,$1,$2", [19, 22]),
        ("SELECT $q$ $1,$2 $$ $q$,$1,$2", [24, 27]),
        ("SELECT /* /* ' */ ' $1,$2 */$1,$2", [28, 31]),
        ("SELECT -- '$1,$2\n$1,$2", [17, 20]),
        ("SELECT a<@$1,$2", [10, 13]),
    ],
)
def test_each_parameter_is_found_and_nothing_else(text, places):
    tokens = tokenize(text)
    assert [token.start for token in tokens if token.kind is K.PARAMETER] == places


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1e5+1", ["1e5", "+", "1"]),
        ("1e5-1e3", ["1e5", "-", "1e3"]),
        ("a=-1", ["a", "=", "-", "1"]),
        ("a<-1", ["a", "<", "-", "1"]),
        ("1*-2", ["1", "*", "-", "2"]),
        ("1+-+2", ["1", "+", "-", "+", "2"]),
        ("a@-b", ["a", "@-", "b"]),
        ("j#-'{a}'", ["j", "#-", "{a}"]),
        ("a--b\n+c", ["a", "+", "c"]),
        ("a+--b\nc", ["a", "+", "c"]),
        ("a/*b*/-c", ["a", "-", "c"]),
        ("a||/8", ["a", "||/", "8"]),
        ("a->>'b'", ["a", "->>", "b"]),
        ("a=?", ["a", "=", "?"]),
        ("a>=?::int", ["a", ">=", "?", "::", "int"]),
        ("?||?", ["?", "||", "?"]),
        ("a?|b", ["a", "?|", "b"]),
        ("a@?b", ["a", "@?", "b"]),
        ("a<>b!=c", ["a", "<>", "b", "!=", "c"]),
        ("x[1:2]", ["x", "[", "1", ":", "2", "]"]),
        ("f(a=>1)", ["f", "(", "a", "=>", "1", ")"]),
        ("t.*", ["t", ".", "*"]),
        (".5+1.", [".5", "+", "1."]),
        ("a$b c", ["a$b", "c"]),
        ("größe", ["größe"]),
    ],
)
def test_operators_are_the_longest_that_postgresql_reads(text, words):
    assert [token.text for token in tokenize(text)] == words


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("'it''s'", K.STRING, "it's"),
        ("'a\\n'", K.STRING, "a\\n"),
        ("e'a\\n'", K.STRING, "a\n"),
        ("E'\\''", K.STRING, "'"),
        ("n'a'", K.STRING, "a"),
        ("$$it's$$", K.STRING, "it's"),
        ("$a$x$b$y$a$", K.STRING, "x$b$y"),
        ("b'101'", K.BITS, "101"),
        ("X'0aFF'", K.HEX, "0aFF"),
        ("U&'d\\0061'", K.UNICODE_STRING, "d\\0061"),
        ('U&"d\\0061"', K.UNICODE_NAME, "d\\0061"),
        ('"a""b"', K.NAME, 'a"b'),
        ("'a'\n'b'", K.STRING, "ab"),
        ("'a' -- comment\n  'b'", K.STRING, "ab"),
        ("E'\\x41'\n'\\x42'", K.STRING, "AB"),
    ],
)
def test_constants_and_names(text, kind, value):
    (token,) = tokenize(text)
    assert (token.kind, token.text) == (kind, value)
    assert (token.start, token.end) == (0, len(text) - 1)


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("SELECT $1,$2,$q$ open", 'unterminated dollar-quoted string at or near "$q$ open"', 13),
        ("SELECT 'a", "unterminated quoted string", 7),
        ('SELECT "a', "unterminated quoted identifier", 7),
        ("SELECT 1 /* /* */", "unterminated /* comment", 9),
        ("SELECT 12ab", 'trailing junk after numeric literal at or near "12ab"', 7),
        ("SELECT 1_000", 'trailing junk after numeric literal at or near "1_000"', 7),
        ("SELECT 0x", 'trailing junk after numeric literal at or near "0x"', 7),
    ],
)
def test_what_never_ends_has_its_place(text, message, offset):
    with pytest.raises(SqlSyntaxError) as caught:
        tokenize(text)
    assert message in caught.value.message
    assert caught.value.position is not None
    assert caught.value.position.offset == offset


def test_texts_side_by_side_are_two():
    assert len(tokenize("'a' 'b'")) == 2
    assert len(tokenize("'a' /* \n */ 'b'")) == 2


def test_scripts_are_split_outside_of_quotes_and_nested_comments():
    text = "a;';';\"; \";/* ; /* ; */ ; */$q$;$q$;--;\n;E'\\';';x1;"
    assert [text[at] for at in semicolons(text)] == [";"] * 7
    assert list(semicolons("12ab; $1;")) == [4, 8]


@pytest.mark.parametrize("text", ["", "  \n", "-- a", "/* a /* b */ */ \n--"])
def test_comments_are_blank(text):
    assert is_blank(text)
    assert tokenize(text) == []


def test_a_long_run_of_blanks_is_read_once():
    assert [token.text for token in tokenize("a" + " " * 200_000 + "b" + " " * 200_000)] == [
        "a", "b",
    ]  # fmt: skip
