"""Parameters without a blank between them, which sqlglot takes for dollar-quoted strings."""

from __future__ import annotations

import pytest
from sqlglot.tokenizer_core import TokenType

from remuda.errors import SqlSyntaxError
from remuda.sql.text.dollar_parameters import with_other_marks
from remuda.sql.text.tokens import tokenize


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
def test_each_is_found_and_nothing_else(text, places):
    tokens = tokenize(text)
    found = [token for token in tokens if token.token_type is TokenType.PARAMETER]
    assert [token.start for token in found] == places
    assert {token.text for token in found} == {"$"}
    quoted = (TokenType.STRING, TokenType.HEREDOC_STRING, TokenType.IDENTIFIER)
    assert "@" not in "".join(t.text for t in tokens if t.token_type in quoted)


def test_texts_without_them_are_not_touched():
    for text in ("SELECT $1, $2", "SELECT $q$ a $q$", "SELECT '@', $1"):
        assert with_other_marks(text) is text


def test_an_open_dollar_quote_is_still_one():
    with pytest.raises(SqlSyntaxError, match="unterminated dollar-quoted string"):
        tokenize("SELECT $1,$2,$q$ open")
