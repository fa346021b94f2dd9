"""Tokens of SQL/JSON paths: names, strings, variables, numbers and signs, as in PostgreSQL."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from remuda.errors import InvalidJsonPath, InvalidText, UntranslatableCharacter

NAME, STRING, VARIABLE, NUMBER, INTEGER, SIGN, END = (
    "name", "string", "variable", "number", "integer", "sign", "end",
)  # fmt: skip

KEYWORDS: Final = frozenset({
    "abs", "ceiling", "datetime", "double", "exists", "flag", "floor", "is", "keyvalue", "last",
    "lax", "like_regex", "size", "starts", "strict", "to", "type", "unknown", "with",
})  # fmt: skip
"""Words that mean something in any spelling; ``_LOWER_CASE`` only as they stand there."""
_LOWER_CASE: Final = frozenset({"true", "false", "null"})

_OTHER: Final = r"[^?%$.\[\]{}()|&!=<>@#,*:\-+/\\\" \t\n\r\f]"
_DECIMAL: Final = r"(?:(?:0|[1-9][0-9]*)\.[0-9]*|\.[0-9]+)"
_INTEGER: Final = r"(?:0|[1-9][0-9]*)"
_BLANKS: Final = re.compile(r"(?:[ \t\n\r\f]|/\*(?:[^*]|\*(?!/))*\*/)+")
_NUMERIC: Final = re.compile(
    rf"(?P<real>(?:{_DECIMAL}|{_INTEGER})[eE][+-]?[0-9]+)|(?P<decimal>{_DECIMAL})"
    rf"|(?P<integer>{_INTEGER})"
)
_JUNK: Final = re.compile(_OTHER)
_SIGNS: Final = re.compile(r"&&|\|\||\*\*|<=|>=|==|<>|!=|[?%$.\[\]{}()|&!=<>@#,*:\-+/]")
_VARIABLE: Final = re.compile(rf"\$({_OTHER}+)")
_PLAIN: Final = re.compile(rf"{_OTHER}+")
_QUOTED: Final = re.compile(r'[^\\"]+')
_UNICODE: Final = re.compile(r"\\u(?:([0-9A-Fa-f]{4})|\{([0-9A-Fa-f]{1,6})\})")
_HEX: Final = re.compile(r"\\x([0-9A-Fa-f]{2})")
_CONTROL: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Token(NamedTuple):
    kind: str
    text: str
    """Its meaning: a name or string without quotes and escapes, a sign as it is."""
    word: str = ""
    """The keyword that a name is, in lower case."""
    source: str = ""


def tokens_of(text: str) -> list[Token]:
    """The tokens of a path; the last one has the kind END.

    Raises InvalidJsonPath, InvalidText or UntranslatableCharacter for what is no token."""
    return list(_Cutter(text).tokens())


def bad_path(problem: str, near: str, path: str) -> InvalidJsonPath:
    """The error of a wrong text; ``near`` is the part where it is wrong, "" its end."""
    where = f'at or near "{near}"' if near else "at end"
    return InvalidJsonPath(
        f"{problem} {where} of jsonpath input", detail=f"The path is {path[:80]!r}."
    )


class _Cutter:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def tokens(self) -> list[Token]:
        found: list[Token] = []
        while True:
            self._skip_blanks()
            if self.at >= len(self.text):
                found.append(Token(END, ""))
                return found
            start = self.at
            token = self._token()
            found.append(token._replace(source=self.text[start : self.at]))

    def _skip_blanks(self) -> None:
        blanks = _BLANKS.match(self.text, self.at)
        if blanks is not None:
            self.at = blanks.end()
        if self.text.startswith("/*", self.at):
            self._bad("unexpected end of comment", "")

    def _token(self) -> Token:
        variable = _VARIABLE.match(self.text, self.at)
        if variable is not None:
            self.at = variable.end()
            return Token(VARIABLE, variable[1])
        if self.text.startswith('$"', self.at):
            self.at += 1
            return Token(VARIABLE, self._quoted())
        if self.text[self.at] == '"':
            return Token(STRING, self._quoted())
        number = _NUMERIC.match(self.text, self.at)
        if number is not None:
            return self._number(number)
        sign = _SIGNS.match(self.text, self.at)
        if sign is not None:
            self.at = sign.end()
            return Token(SIGN, sign[0])
        return self._name()

    def _number(self, number: re.Match[str]) -> Token:
        self.at = number.end()
        if _JUNK.match(self.text, self.at):
            self._bad("trailing junk after numeric literal", number[0] + self.text[self.at])
        return Token(INTEGER if number["integer"] else NUMBER, number[0])

    def _name(self) -> Token:
        parts: list[str] = []
        while self.at < len(self.text):
            plain = _PLAIN.match(self.text, self.at)
            if plain is not None:
                parts.append(plain[0])
                self.at = plain.end()
            elif self.text[self.at] == "\\":
                parts.append(self._escaped())
            else:
                break
        name = "".join(parts)
        lower = name.lower()
        known = name in _LOWER_CASE or lower in KEYWORDS
        return Token(NAME, name, lower if known else "")

    def _quoted(self) -> str:
        self.at += 1
        parts: list[str] = []
        while True:
            if self.at >= len(self.text):
                self._bad("unexpected end of quoted string", "")
            if self.text[self.at] == '"':
                self.at += 1
                return "".join(parts)
            plain = _QUOTED.match(self.text, self.at)
            if plain is None:
                parts.append(self._escaped())
            else:
                parts.append(plain[0])
                self.at = plain.end()

    # --- escapes ---

    def _escaped(self) -> str:
        """The characters of the escapes that begin here."""
        kind = self.text[self.at + 1 : self.at + 2]
        if kind == "u":
            return self._unicode()
        if kind == "x":
            match = _HEX.match(self.text, self.at)
            if match is None:
                self._bad("invalid hex character sequence", self._broken("x", 1))
            self.at = match.end()
            return self._character(int(match[1], 16))
        if not kind:
            self._bad("unexpected end after backslash", "\\")
        self.at += 2
        return _CONTROL.get(kind, kind)

    def _unicode(self) -> str:
        """``\\u0061`` and ``\\u{61}``; two that follow each other may be a pair."""
        parts: list[str] = []
        high = 0
        while match := _UNICODE.match(self.text, self.at):
            self.at = match.end()
            code = int(match[1] or match[2], 16)
            low = 0xDC00 <= code <= 0xDFFF
            if high != 0 and not low:
                raise _lone("Unicode low surrogate must follow a high surrogate.")
            if 0xD800 <= code <= 0xDBFF:
                high = code
                continue
            if low:
                if not high:
                    raise _lone("Unicode low surrogate must follow a high surrogate.")
                code = 0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)
                high = 0
            parts.append(self._character(code))
        if self.text.startswith("\\u", self.at):
            self._bad("invalid unicode sequence", self._broken("u", 3))
        if high:
            raise _lone("Unicode low surrogate must follow a high surrogate.")
        return "".join(parts)

    def _broken(self, letter: str, most: int) -> str:
        """The escape that is not complete."""
        pattern = rf"\\{letter}(?:\{{[0-9A-Fa-f]{{0,6}}|[0-9A-Fa-f]{{0,{most}}})"
        match = re.compile(pattern).match(self.text, self.at)
        return match[0] if match else f"\\{letter}"

    @staticmethod
    def _character(code: int) -> str:
        if code == 0:
            raise UntranslatableCharacter(
                "unsupported Unicode escape sequence",
                detail="\\u0000 cannot be converted to text.",
            )
        if code > 0x10FFFF:
            raise InvalidText(
                "invalid input syntax for type jsonpath",
                detail="Unicode escape values end with 10FFFF.",
            )
        return chr(code)

    def _bad(self, problem: str, near: str) -> NoReturn:
        raise bad_path(problem, near, self.text)


def _lone(detail: str) -> InvalidText:
    return InvalidText("invalid input syntax for type jsonpath", detail=detail)
