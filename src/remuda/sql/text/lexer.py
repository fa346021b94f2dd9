"""Text -> tokens, by the rules of PostgreSQL's manual (4.1, Lexical Structure).

An operator is the longest run of operator characters, but it ends before a comment, and ``+`` or
``-`` end one only that has a character which no arithmetic operator of SQL has: so ``1*-2`` has two
operators and ``a @- b`` has one. ``?`` is apart: it is mostly a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from remuda.errors import InputError, NotSupported, Position, SqlSyntaxError
from remuda.sql.text.escape_strings import decoded
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.text.places import position_at

_LETTER: Final = "A-Za-z_\x80-\U0010ffff"
_LEXEME: Final = re.compile(
    rf"""\s*+(?:
      ([eEbBxXnN]'|[uU]&['"])                              # 1: a constant with a prefix
    | ([{_LETTER}][{_LETTER}0-9$]*+)                       # 2: a word
    | ([,();\[\]]|\.(?![0-9.])|::|:=|\.\.|[:{{}}])         # 3: a symbol
    | '((?:[^']|'')*+)'                                    # 4: a string
    | ((?:[0-9]++(?:\.(?!\.)[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)
      ([{_LETTER}][{_LETTER}0-9$]*+)?                      # 5, 6: a number, and junk behind it
    | "((?:[^"]|"")*+)"                                    # 7: a name
    | (--[^\n]*+|/\*)                                      # 8: a comment begins
    | \$([0-9]++)                                          # 9: a parameter
    | (\$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$)               # 10: a dollar quote begins
    | (@\?|\?[|&](?![-+*/<>=~!@\#%^&|`])|\?)               # 11: operators with a question mark
    | ((?:(?!--|/\*)[-+*/<>=~!@\#%^&|`])+)                 # 12: an operator
    | (.)                                                  # 13: anything else
    | \Z
    )""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")
_ESCAPED: Final = re.compile(r"(?:[^'\\]|\\.|'')*+'", re.DOTALL)
_PLAIN: Final = re.compile(r"(?:[^']|'')*+'")
_QUOTED: Final = re.compile(r'(?:[^"]|"")*+"')
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]+")
_OWN_SIGN: Final = frozenset("~!@#%^&|`")
"""With one of these an operator may end with a sign."""
_ARITHMETIC: Final = "+-"

_WORD, _SYMBOL, _STRING = TokenKind.WORD, TokenKind.SYMBOL, TokenKind.STRING
_PREFIXED: Final = {
    "e": TokenKind.STRING, "n": TokenKind.STRING, "b": TokenKind.BITS, "x": TokenKind.HEX,
}  # fmt: skip


def tokenize(text: str) -> list[Token]:
    """All tokens of ``text``; statements are separated by semicolons.

    Raises SqlSyntaxError for a quote or a comment that never ends and for letters behind a number,
    and InputErrors for wrong escapes.
    """
    tokens: list[Token] = []
    at, length = 0, len(text)
    while at < length:
        at = _read(text, at, tokens)
    return tokens


def _read(text: str, at: int, tokens: list[Token]) -> int:
    """Reads on as far as lexemes follow each other plainly; returns where it stopped."""
    append = tokens.append
    for match in _LEXEME.finditer(text, at):
        group = match.lastindex
        if group is None:
            break  # blanks at the end
        start, end = match.span(group)
        if group == 2:
            found = match[2]
            append(Token(_WORD, found, found.lower(), start, end - 1))
        elif group == 3:
            append(Token(_SYMBOL, match[3], match[3], start, end - 1))
        elif group == 5:
            append(Token(TokenKind.NUMBER, match[5], "", start, end - 1))
        elif group == 4:
            found = match[4]
            if "''" in found:
                found = found.replace("''", "'")
            _add_string(text, tokens, Token(_STRING, found, "", start - 1, end))
        elif group == 12:
            found = match[12]
            cut = _without_signs(found)
            append(Token(_SYMBOL, found[:cut], found[:cut], start, start + cut - 1))
            if cut < len(found):
                return start + cut
        elif (read := _RARE.get(group)) is not None:
            return read(text, match, tokens)
        else:
            append(_rare_token(text, match, group))
    return len(text)


def _rare_token(text: str, match: re.Match[str], group: int) -> Token:
    start, end = match.span(group)
    if group == 9:
        return Token(TokenKind.PARAMETER, match[9], "", start - 1, end - 1)
    if group == 7:
        return Token(TokenKind.NAME, match[7].replace('""', '"'), "", start - 1, end)
    if group == 6:
        raise _junk(match[5] + match[6], position_at(text, match.start(5), end - match.start(5)))
    if match[group] in "'\"":
        kind = "quoted string" if match[group] == "'" else "quoted identifier"
        raise _unterminated(text, start, kind)
    return Token(_SYMBOL, match[group], match[group], start, end - 1)


def _junk(written: str, place: Position) -> InputError:
    if _HEXADECIMAL.fullmatch(written):
        return NotSupported(
            f"{written}, which is a number to some and bytes to others, is not supported",
            position=place,
            hint=f"Write {int(written, 16)}, or x'{written[2:]}'.",
        )
    return SqlSyntaxError(
        f'trailing junk after numeric literal at or near "{written}"', position=place
    )


def _comment(text: str, match: re.Match[str], _tokens: list[Token]) -> int:
    return _comment_end(text, match.start(8)) if match[8] == "/*" else match.end()


def _without_signs(operator: str) -> int:
    """How many characters of a run of operator characters are one operator."""
    cut = len(operator)
    if cut > 1 and operator[-1] in _ARITHMETIC and not _OWN_SIGN.intersection(operator):
        while cut > 1 and operator[cut - 1] in _ARITHMETIC:
            cut -= 1
    return cut


def _comment_end(text: str, start: int) -> int:
    """Comments nest."""
    depth = 0
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise SqlSyntaxError("unterminated /* comment", position=position_at(text, start, 2))


def _prefixed(text: str, match: re.Match[str], tokens: list[Token]) -> int:
    start, inside = match.span(1)
    prefix = text[start].lower()
    unicode = prefix == "u"
    is_name = text[inside - 1] == '"'
    pattern = _QUOTED if is_name else _ESCAPED if prefix == "e" else _PLAIN
    found = pattern.match(text, inside)
    if found is None:
        raise _unterminated(text, start, "quoted identifier" if is_name else "quoted string")
    end = found.end()
    body = text[inside : end - 1]
    if prefix == "e":
        body = decoded(text, inside, end - 1)
    elif is_name:
        body = body.replace('""', '"')
    else:
        body = body.replace("''", "'")
    if unicode:
        kind = TokenKind.UNICODE_NAME if is_name else TokenKind.UNICODE_STRING
    else:
        kind = _PREFIXED[prefix]
    tokens.append(Token(kind, body, "", start, end - 1))
    return end


def _dollar_quoted(text: str, match: re.Match[str], tokens: list[Token]) -> int:
    quote = match[10]
    start, inside = match.span(10)
    end = text.find(quote, inside)
    if end < 0:
        raise _unterminated(text, start, "dollar-quoted string")
    end += len(quote)
    tokens.append(Token(_STRING, text[inside : end - len(quote)], "", start, end - 1))
    return end


def _add_string(text: str, tokens: list[Token], token: Token) -> None:
    """Texts on lines that follow each other are one, as the standard has it; behind ``E''`` the
    others have escapes too."""
    before = tokens[-1] if tokens else None
    if before is None or before.kind is not _STRING or text[before.end] != "'":
        tokens.append(token)
        return
    gap = text[before.end + 1 : token.start]
    if "\n" not in gap or (gap.strip() and not _only_line_comments(gap)):
        tokens.append(token)
        return
    body = token.text
    if text[before.start] in "eE":
        body = decoded(text, token.start + 1, token.end)
    tokens[-1] = Token(_STRING, before.text + body, "", before.start, token.end)


def _only_line_comments(gap: str) -> bool:
    lines = (line.strip() for line in gap.splitlines())
    return all(not line or line.startswith("--") for line in lines)


def _unterminated(text: str, at: int, kind: str) -> SqlSyntaxError:
    shown = text[at : at + 30].split("\n", maxsplit=1)[0]
    return SqlSyntaxError(
        f'unterminated {kind} at or near "{shown}"',
        position=position_at(text, at, len(shown)),
    )


_RARE: Final[dict[int, Callable[[str, re.Match[str], list[Token]], int]]] = {
    1: _prefixed, 8: _comment, 10: _dollar_quoted,
}  # fmt: skip
"""Lexemes that the pattern only finds the beginning of."""


# --- scripts ----------------------------------------------------------------------------------

_PIECE: Final = re.compile(
    r"(--[^\n]*+)|(/\*)|(?<![A-Za-z_0-9$\x80-\U0010ffff])[eE]'(?:[^'\\]|\\.|'')*+'"
    r"|(?<![A-Za-z_0-9$\x80-\U0010ffff])(\$(?:[A-Za-z_\x80-\U0010ffff]\w*+)?\$)"
    r"|'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|(;)|(['\"])",
    re.DOTALL,
)


def semicolons(text: str) -> Iterator[int]:
    """Offsets of the semicolons outside quotes and comments; nothing else is looked at. Raises
    SqlSyntaxError for a quote or a comment that never ends."""
    at = 0
    while (match := _PIECE.search(text, at)) is not None:
        at = match.end()
        if match[2]:
            at = _comment_end(text, match.start())
        elif match[3]:
            end = text.find(match[3], at)
            if end < 0:
                raise _unterminated(text, match.start(), "dollar-quoted string")
            at = end + len(match[3])
        elif match[4]:
            yield match.start()
        elif match[5]:
            quoted = "quoted string" if match[5] == "'" else "quoted identifier"
            raise _unterminated(text, match.start(), quoted)


def is_blank(text: str) -> bool:
    """Whether there are only blanks and comments in ``text``."""
    at, length = 0, len(text)
    while at < length:
        if text[at].isspace():
            at += 1
        elif text.startswith("--", at):
            end = text.find("\n", at)
            at = length if end < 0 else end
        elif text.startswith("/*", at):
            try:
                at = _comment_end(text, at)
            except SqlSyntaxError:
                return False
        else:
            return False
    return True
