"""Tokens: sqlglot's, checked and rewritten so that its lenient parser cannot guess wrong.

- every call ``name(`` is marked, so that the parser keeps name and arguments as they are
  written instead of turning them into its own functions;
- each ``?`` becomes a numbered parameter, in the order of the text;
- a bare JOIN becomes INNER JOIN, so that it differs from a comma;
- a typed literal before ``::`` is put into parentheses;
- escapes of ``E''`` strings are read (``sql.text.escape_strings``);
- gaps of the grammar are closed (``sql.text.grammar_gaps``);
- what the parser would silently drop (empty items of lists, ``==``, ``1_000``) is refused here;
- nesting is bounded here, before anything recursive sees it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from remuda.errors import LimitExceeded, NotSupported, Position, SqlSyntaxError
from remuda.limits import EXPRESSION_DEPTH_MAX, STATEMENT_LENGTH_MAX
from remuda.sql.text.arrow_tokens import with_plain_arrows
from remuda.sql.text.catalog_tokens import with_typed_objects, without_pg_catalog
from remuda.sql.text.dollar_parameters import restore_marks, with_other_marks
from remuda.sql.text.escape_strings import with_escapes
from remuda.sql.text.grammar_gaps import close_gaps
from remuda.sql.text.join_aliases import with_listed_aliases
from remuda.sql.text.number_tokens import with_own_signs
from remuda.sql.text.places import end_of, position_at, position_of_token
from remuda.sql.text.prefix_tokens import with_prefix_calls
from remuda.sql.text.search_tokens import with_joined_names
from remuda.sql.text.substring_tokens import with_plain_substrings
from remuda.sql.text.typed_tokens import enclose_literals, is_operator, like

CALL_MARK: Final = "\x01"
"""Put before the name of a function; no text can contain it (``tokenize`` refuses it)."""


class RemudaPostgres(Postgres):
    """sqlglot's PostgreSQL; subscripts of arrays stay as they are written."""

    INDEX_OFFSET = 0

    class Tokenizer(Postgres.Tokenizer):
        """``oid`` and ``regclass`` are names of types like any other: there are arrays of them."""

        KEYWORDS: ClassVar = {
            word: kind
            for word, kind in Postgres.Tokenizer.KEYWORDS.items()
            if kind is not TokenType.OBJECT_IDENTIFIER
        }


DIALECT: Final = RemudaPostgres()

_SPECIAL_CALLS: Final = frozenset(
    {"CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM", "MATERIALIZED", "ONLY", "BOTH", "LEADING"}
    | {"TRAILING", "SYMMETRIC", "BERNOULLI", "SYSTEM", "REPEATABLE", "SETS", "CONFLICT", "KEY"}
    | {"RECURSIVE"}
    | {"DEFAULT", "ESCAPE", "ISNULL", "NOTNULL", "NEXT", "ASYMMETRIC", "OVERLAY", "GROUP"}
)
"""Words before a parenthesis that keep their meaning in the grammar."""

_T = TokenType
_CALLABLE_TYPES: Final = frozenset({_T.VAR, _T.LEFT, _T.RIGHT, _T.REPLACE, _T.FORMAT})
_NO_ITEM_AFTER_COMMA: Final = frozenset(
    {_T.COMMA, _T.R_PAREN, _T.FROM, _T.WHERE, _T.GROUP_BY, _T.ORDER_BY, _T.HAVING, _T.LIMIT}
    | {_T.OFFSET, _T.SEMICOLON, _T.UNION, _T.ON, _T.FETCH, _T.EXCEPT, _T.INTERSECT}
)
_NO_COMMA_AFTER: Final = frozenset(
    {_T.L_PAREN, _T.SELECT, _T.FROM, _T.WHERE, _T.GROUP_BY, _T.ORDER_BY, _T.HAVING, _T.DISTINCT}
)
_JOIN_WORDS: Final = frozenset(
    {_T.INNER, _T.LEFT, _T.RIGHT, _T.FULL, _T.OUTER, _T.CROSS, _T.NATURAL, _T.SEMI, _T.ANTI}
    | {_T.ASOF}
)
_OPENING: Final = frozenset({_T.L_PAREN, _T.L_BRACKET, _T.L_BRACE, _T.CASE})
_CLOSING: Final = frozenset({_T.R_PAREN, _T.R_BRACKET, _T.R_BRACE, _T.END})
_PREFIXES: Final = frozenset({_T.NOT, _T.DASH, _T.PLUS, _T.TILDE})
_STRINGS: Final = frozenset({_T.BYTE_STRING, _T.HEREDOC_STRING, _T.RAW_STRING, _T.NATIONAL_STRING})

_BLANK = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*"
_COMMAND_WORD = re.compile(
    _BLANK
    + r"(show|explain|describe|desc|set|reset|prepare|execute|deallocate(?:\s+prepare)?|discard"
    r"|close|unlisten|analyze|vacuum|reindex)\b",
    re.IGNORECASE | re.DOTALL,
)
_ONLY_BLANK = re.compile(_BLANK + r"\Z", re.DOTALL)
_LEXEME = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$(\w*)\$.*?\$\1\$"
    r"|(?<!\w)[eE]'(?:[^'\\]|\\.|'')*+(?:'|(?P<open>\\?\Z))"
    r"|(?:[^'\"$/eE-]|[eE](?!'))+|.",
    re.DOTALL,
)


@dataclass(slots=True)
class TokenList:
    """The tokens of one statement, ready for the parser; ``parameters`` as in ParsedStatement."""

    text: str
    tokens: list[Token]
    parameters: int = 0


def check_text(text: str) -> None:
    if len(text) > STATEMENT_LENGTH_MAX:
        raise LimitExceeded(
            f"the statement has {len(text)} characters; the limit is {STATEMENT_LENGTH_MAX}",
            hint="Pass long values as parameters, load many rows with put_all or remuda load.",
        )
    for bad in (CALL_MARK, "\x00"):
        if bad in text:
            at = text.index(bad)
            raise SqlSyntaxError(
                f"invalid character {bad!r} in the statement", position=position_at(text, at)
            )


def command_word(text: str) -> tuple[str, str]:
    """The leading SHOW, EXPLAIN, DESCRIBE or DESC in lower case ("" if none), and ``text`` with
    that word blanked: the tokenizer would swallow the rest of the statement after it."""
    match = _COMMAND_WORD.match(text)
    if match is None:
        return "", text
    start, end = match.span(1)
    word = match[1].lower().split()[0]
    return "describe" if word == "desc" else word, text[:start] + " " * (end - start) + text[end:]


def semicolons(text: str) -> list[int]:
    """Offsets of the semicolons outside quotes and comments."""
    found: list[int] = []
    for match in _LEXEME.finditer(text):
        lexeme = match[0]
        if lexeme[0] in "'\"$" or lexeme[1:2] == "'" or lexeme.startswith(("--", "/*")):
            if (len(lexeme) == 1 and lexeme in "'\"") or match["open"] is not None:
                raise _unterminated(text)
            continue
        at = lexeme.find(";")
        while at >= 0:
            found.append(match.start() + at)
            at = lexeme.find(";", at + 1)
    return found


def is_blank(text: str) -> bool:
    """Whether there are only blanks and comments in ``text``."""
    return _ONLY_BLANK.match(text) is not None


def tokenize(text: str) -> list[Token]:
    """All tokens, statements separated by SEMICOLON tokens."""
    try:
        tokens = restore_marks(text, DIALECT.tokenize(with_other_marks(text)))
    except TokenError as error:
        raise _unterminated(text) from error
    return with_own_signs(text, with_escapes(text, tokens))


def _unterminated(text: str) -> SqlSyntaxError:
    """The first quote or comment that never ends."""
    kinds = {"'": "quoted string", '"': "quoted identifier", "$": "dollar-quoted string"}
    for match in _LEXEME.finditer(text):
        lexeme = match[0]
        kind = kinds.get(lexeme) if match["open"] is None else "quoted string"
        if kind is None and text.startswith("/*", match.start()) and len(lexeme) == 1:
            kind = "comment"
        if kind is not None:
            at = match.start()
            shown = text[at : at + 30].split("\n", maxsplit=1)[0]
            return SqlSyntaxError(
                f'unterminated {kind} at or near "{shown}"',
                position=position_at(text, at, len(shown)),
            )
    opening = text.rfind("/*")
    if opening >= 0:  # comments may be nested
        return SqlSyntaxError("unterminated /* comment", position=position_at(text, opening, 2))
    return SqlSyntaxError("the statement cannot be split into words", position=position_at(text, 0))


def prepare(text: str, tokens: list[Token]) -> TokenList:
    """Check and rewrite the tokens of one statement (see the module)."""
    tokens = with_typed_objects(without_pg_catalog(tokens))
    tokens = with_joined_names(with_listed_aliases(close_gaps(tokens)))
    tokens = enclose_literals(tokens)
    tokens = with_plain_arrows(with_prefix_calls(with_plain_substrings(tokens)))
    prepared: list[Token] = []
    marks = dollars = depth = run = brackets = 0
    previous: Token | None = None
    for index, token in enumerate(tokens):
        kind = token.token_type
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        brackets += (kind is _T.L_BRACKET) - (kind is _T.R_BRACKET)
        if kind in _OPENING:
            depth += 1
        elif kind in _CLOSING:
            depth -= 1
        run = run + 1 if kind in _PREFIXES else 0
        if depth + run > EXPRESSION_DEPTH_MAX:
            raise too_deep(position_of_token(text, token))
        _check(text, previous, token, following)
        if kind is _T.PLACEHOLDER and is_operator(previous, following):
            pass
        elif kind is _T.PLACEHOLDER or kind is _T.QDCOLON:
            marks += 1
            prepared.append(like(token, _T.PARAMETER, "$"))
            number = like(token, _T.NUMBER, str(marks))
            if kind is _T.QDCOLON:
                # "?::" is one token: a parameter and a cast.
                prepared.append(number)
                token = like(token, _T.DCOLON, "::")  # noqa: PLW2901
            else:
                token = number  # noqa: PLW2901
        elif kind is _T.PARAMETER or (kind is _T.COLON and not brackets):
            dollars = max(dollars, _parameter_number(text, token, following))
        elif kind in _STRINGS:
            token = like(token, _T.STRING, token.text)  # noqa: PLW2901
        elif kind is _T.STRING and previous is not None and previous.token_type is _T.STRING:
            prepared[-1] = previous = _joined(text, prepared[-1], token)
            continue
        elif kind is _T.JOIN and (previous is None or previous.token_type not in _JOIN_WORDS):
            prepared.append(like(token, _T.INNER, "INNER"))
        elif kind in _CALLABLE_TYPES and following is not None:
            token = _mark_call(token, following)  # noqa: PLW2901
        prepared.append(token)
        previous = token
    if marks and dollars:
        first = next(t for t in tokens if t.token_type is _T.PLACEHOLDER)
        raise SqlSyntaxError(
            "parameters ? and $n cannot be mixed in one statement",
            position=position_of_token(text, first),
        )
    return TokenList(text, prepared, max(marks, dollars))


def too_deep(position: Position | None) -> LimitExceeded:
    return LimitExceeded(
        f"the statement is nested too deeply; the limit is {EXPRESSION_DEPTH_MAX} levels",
        position=position,
    )


def _joined(text: str, first: Token, second: Token) -> Token:
    """Texts side by side are one, if they stand on different lines (as the standard has it)."""
    if second.line == first.line:
        raise near(text, second)
    joined = first.text + second.text
    return Token(_T.STRING, joined, second.line, first.col, first.start, first.end)


def _mark_call(token: Token, following: Token) -> Token:
    if following.token_type is not _T.L_PAREN or token.text.upper() in _SPECIAL_CALLS:
        return token
    return like(token, _T.VAR, CALL_MARK + token.text)


def _parameter_number(text: str, token: Token, following: Token | None) -> int:
    if (
        token.text != "$"
        or following is None
        or following.token_type is not _T.NUMBER
        or following.start != token.end + 1
    ):
        raise NotSupported(
            "only positional parameters are supported",
            hint="Write ? or $1, $2, ...",
            position=position_of_token(text, token),
        )
    number = int(following.text) if following.text.isdecimal() else 0
    if not 1 <= number <= 65_535:
        raise SqlSyntaxError(
            f"there is no parameter ${following.text}", position=position_of_token(text, following)
        )
    return number


def _check(text: str, previous: Token | None, token: Token, following: Token | None) -> None:
    kind = token.token_type
    if kind is _T.COMMA:
        if following is None:
            raise SqlSyntaxError("syntax error at end of input", position=end_of(text))
        if following.token_type in _NO_ITEM_AFTER_COMMA:
            raise near(text, following)
        if previous is None or previous.token_type in _NO_COMMA_AFTER:
            raise near(text, token)
    elif kind is _T.NUMBER and token.text[-1:] in ("e", "E", "+", "-", "_"):
        raise SqlSyntaxError(
            f'trailing junk after numeric literal at or near "{token.text}"',
            position=position_of_token(text, token),
        )
    elif kind is _T.EQ and token.text == "==":
        raise near(text, token, hint="Equality is written with one =.")
    elif (
        kind in (_T.VAR, _T.IDENTIFIER)
        and previous is not None
        and previous.token_type is _T.NUMBER
        and previous.end + 1 == token.start
    ):
        raise SqlSyntaxError(
            "trailing junk after numeric literal at or near "
            f'"{text[previous.start : token.end + 1]}"',
            position=position_at(text, previous.start, token.end + 1 - previous.start),
        )


def near(text: str, token: Token, hint: str = "") -> SqlSyntaxError:
    """``syntax error at or near "..."`` at ``token``."""
    shown = text[token.start : token.end + 1]
    if len(shown) > 40:
        shown = shown[:37] + "..."
    return SqlSyntaxError(
        f'syntax error at or near "{shown}"', position=position_of_token(text, token), hint=hint
    )
