"""PostgreSQL's advanced regular expressions, SIMILAR TO patterns too, in Python's syntax.

The differences between the two: the ends ``^ $`` and the dot where there are newlines, POSIX
classes, the escapes for ends of words, and which match is preferred. Of several matches that begin
at one place PostgreSQL takes the longest (the shortest, if the first quantifier is a non-greedy
one), where Python takes the first that it finds: see ``Pattern.search``. A departure: of several
ways to cut the whole match into groups, Python's first one is taken, and not that with the longest
first group (``(fo|foo)(bar|obar)`` on ``foobar`` gives ``fo`` and ``obar``).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import regex

from remuda.errors import (
    InputError,
    InvalidEscape,
    InvalidEscapeUse,
    InvalidRegularExpression,
    LimitExceeded,
)

_LONGEST: Final = 256
"""Characters behind the start of a match among which a longer one is looked for, at most."""
SECONDS_MAX: Final = 5.0
_PATTERN_MAX: Final = 1 << 16
"""Characters of a pattern: to translate more takes longer than a member may be silent."""
_FLAGS: Final = "bceimnpqstwx"
_CLASS_ESCAPES: Final = {"d": r"\d", "s": r"\s", "w": r"\w"}
_CONTROL: Final = {"a": "\a", "b": "\b", "B": "\\", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r",
                   "t": "\t", "v": "\v", "0": "\0"}  # fmt: skip
_CLASSES: Final = {
    "alpha": r"[^\W\d_]",
    "alnum": r"[^\W_]",
    "digit": r"\d",
    "space": r"\s",
    "word": r"\w",
    "blank": r"[ \t]",
    "cntrl": r"[\x00-\x1f\x7f]",
    "graph": r"[^\s\x00-\x1f\x7f]",
    "print": r"[^\x00-\x1f\x7f\t\n]",
    "punct": r"[!-/:-@\[-`{-~]",
    "xdigit": r"[0-9A-Fa-f]",
}


@dataclass(frozen=True)
class Pattern:
    """A compiled expression. ``ascii_syntax`` says the same to RE2 for texts in ASCII; None if
    it cannot. ``longest`` (no match has more characters; 0: does not matter) and ``shortest``: the
    first match that Python finds may be another one."""

    compiled: regex.Pattern[str]
    ascii_syntax: str | None
    longest: int = 0
    shortest: bool = False
    any_text: bool = False
    """``ascii_syntax`` holds for all texts: no class of characters and no case is in question."""

    def search(self, text: str, start: int = 0) -> regex.Match[str] | None:
        """Raises LimitExceeded when backtracking takes too long: it may be exponential."""
        try:
            return self._search(text, start)
        except TimeoutError:
            raise LimitExceeded(
                f"regular expression takes more than {SECONDS_MAX:g} s "
                f"on a text of {len(text)} characters",
                hint="Avoid nested repetitions such as (a+)+.",
            ) from None

    def _search(self, text: str, start: int) -> regex.Match[str] | None:
        match = self.compiled.search(text, start, timeout=SECONDS_MAX)
        if match is None or not (self.longest or self.shortest):
            return match
        first = match.start()
        if self.longest:
            ends = range(min(len(text), first + self.longest), match.end(), -1)
        else:
            ends = range(first, match.end())
        for end in ends:
            other = self.compiled.fullmatch(text, first, end, timeout=SECONDS_MAX)
            if other is not None:
                return other
        return match

    def matches(self, text: str, start: int = 0) -> Iterator[regex.Match[str]]:
        """From left to right; behind an empty match the search goes on one character later."""
        at = start
        while at <= len(text):
            match = self.search(text, at)
            if match is None:
                return
            yield match
            at = match.end() if match.end() > match.start() else match.end() + 1


@lru_cache(maxsize=1024)
def compiled(pattern: str, flags: str = "") -> Pattern:
    """The expression with PostgreSQL's flags (``g`` is none of them).

    Raises InvalidRegularExpression for what is not an expression, InputError for a wrong flag."""
    if len(pattern) > _PATTERN_MAX:
        raise InvalidRegularExpression(
            "invalid regular expression: regular expression is too complex",
            detail=f"It has {len(pattern)} characters; at most {_PATTERN_MAX} are translated.",
        )
    for flag in flags:
        if flag not in _FLAGS:
            raise InputError(f'invalid regular expression option: "{flag}"')
    return _Translation(pattern, flags).result()


@lru_cache(maxsize=1024)
def similar(pattern: str, escape: str = "\\") -> Pattern:
    """A SIMILAR TO pattern, which has to match the whole text."""
    if len(pattern) > _PATTERN_MAX:
        return compiled(pattern)
    return compiled(similar_syntax(pattern, escape), "s")


class _Translation:
    def __init__(self, pattern: str, flags: str) -> None:
        self.text = pattern
        self.at = 0
        self.groups = 0
        self.open_groups = 0
        self.python: list[str] = []
        self.re2: list[str] | None = []
        self.quantified = False
        self.first_greedy: bool | None = None
        self.before_groups: list[bool | None] = []
        """The preferences of what stands before each open group, and before the last closed one."""
        self.before_last: bool | None = None
        self.after_group = False
        self.lazy = False
        self.alternates = False
        self.looks_around = False
        self.classes = False
        self.width = 0
        """At least as many characters as any match has, up to a limit."""
        self.options(flags)
        self._embedded(flags)

    def options(self, flags: str) -> None:
        self.ignore_case = "i" in flags and flags.rfind("i") > flags.rfind("c")
        self.literal = "q" in flags
        self.expanded = "x" in flags
        newline = max(flags.rfind("n"), flags.rfind("m"))
        others = max(flags.rfind("s"), flags.rfind("p"), flags.rfind("w"))
        self.dot_all = not (
            (newline > others)
            or ("p" in flags and flags.rfind("p") > max(newline, flags.rfind("s")))
        )
        self.lines = (newline > others) or (
            "w" in flags and flags.rfind("w") > max(newline, flags.rfind("s"))
        )

    def _embedded(self, flags: str) -> None:
        """``***=text``, ``***:expression``, ``(?flags)expression``"""
        if self.text.startswith("***="):
            self.text, self.literal = self.text[4:], True
            return
        self.text = self.text.removeprefix("***:")
        if self.literal:
            return
        match = re.match(r"\(\?([a-z]+)\)", self.text)
        if match:
            if not set(match[1]) <= set(_FLAGS):
                raise _invalid("invalid embedded option")
            self.text = self.text[match.end() :]
            self.options(flags + match[1])

    # --- the result ---

    def result(self) -> Pattern:
        if self.literal:
            self._emit(re.escape(self.text))
        else:
            while self.at < len(self.text):
                self._piece()
            if self.open_groups:
                raise _invalid("parentheses () not balanced")
        flags = regex.IGNORECASE if self.ignore_case else 0
        if self.dot_all:
            flags |= regex.DOTALL
        if self.lines:
            flags |= regex.MULTILINE
        try:
            expression = regex.compile("".join(self.python), flags)
        except (regex.error, OverflowError, RecursionError) as error:
            raise _invalid(str(getattr(error, "msg", error))) from None
        plain = not self.looks_around
        return Pattern(
            expression,
            self._for_re2(),
            longest=self.width
            if plain and (self.alternates or self.lazy) and self.first_greedy is not False
            else 0,
            shortest=plain and self.first_greedy is False,
            any_text=not (self.ignore_case or self.classes),
        )

    def _for_re2(self) -> str | None:
        if self.re2 is None:
            return None
        letters = ("i" if self.ignore_case else "") + ("s" if self.dot_all else "")
        letters += "m" if self.lines else ""
        return (f"(?{letters})" if letters else "") + "".join(self.re2)

    def _emit(self, python: str, re2: str | None = "") -> None:
        """``re2``: None if it has no such thing, '' for the same text."""
        self.python.append(python)
        if self.re2 is not None:
            if re2 is None:
                self.re2 = None
            else:
                self.re2.append(re2 or python)

    # --- pieces ---

    def _piece(self) -> None:
        character = self.text[self.at]
        self.at += 1
        if character in "*+?" or (character == "{" and self._next().isdecimal()):
            self._quantifier(character)
            return
        self.quantified = self.after_group = False
        self.width = min(self.width + 1, _LONGEST)
        match character:
            case "\\":
                self._escape()
            case "[":
                self._bracket()
            case "(":
                self._group()
            case ")":
                self.open_groups -= 1
                if self.open_groups < 0:
                    raise _invalid("parentheses () not balanced")
                self._leave_group()
                self._emit(")")
            case "|":
                self.alternates = True
                self.first_greedy = True  # the whole that it is in prefers the longest
                self._emit("|")
            case "$":
                self.looks_around = True
                self._emit("$" if self.lines else r"\Z", "$" if self.lines else r"\z")
            case "^":
                self._emit("^")
            case ".":
                self._emit(".")
            case _ if self.expanded and (character.isspace() or character == "#"):
                if character == "#":
                    end = self.text.find("\n", self.at)
                    self.at = len(self.text) if end < 0 else end + 1
            case _:
                self._emit(re.escape(character))

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _quantifier(self, character: str) -> None:
        if self.quantified or not self.python or self.python[-1] in ("|", "(", "(?:"):
            raise _invalid("quantifier operand invalid")
        written = character
        most = _LONGEST
        if character == "{":
            match = re.match(r"(\d+)(,(\d*))?\}", self.text[self.at :])
            if match is None:
                raise _invalid("braces {} not balanced")
            low, high = int(match[1]), int(match[3] or match[1])
            if low > 255 or high > 255 or (match[3] and high < low):
                raise _invalid("invalid repetition count(s)")
            written += match[0]
            self.at += match.end()
            most = low if match[2] is None else high if match[3] else _LONGEST
        self.width = min(self.width * (1 if character == "?" else most + 1), _LONGEST)
        greedy = self._next() != "?"
        if not greedy:
            written += "?"
            self.at += 1
        self.lazy |= not greedy
        if not re.fullmatch(r"\{\d+\}\??", written):
            # The quantifier of a group decides, and not what is inside of it.
            before = self.before_last if self.after_group else self.first_greedy
            self.first_greedy = greedy if before is None else before
        self.after_group = False
        self.quantified = True
        self._emit(written)

    def _leave_group(self) -> None:
        self.before_last = self.before_groups.pop()
        if self.before_last is not None:
            self.first_greedy = self.before_last
        self.after_group = True

    def _group(self) -> None:
        self.open_groups += 1
        self.before_groups.append(self.first_greedy)
        self.first_greedy = None
        for start in ("?:", "?=", "?!", "?<=", "?<!"):
            if self.text.startswith(start, self.at):
                self.at += len(start)
                around = start != "?:"
                self.looks_around |= around
                self._emit("(" + start, None if around else "")
                return
        if self._next() == "?":
            raise _invalid("quantifier operand invalid")
        self.groups += 1
        self._emit("(")

    def _escape(self) -> None:
        character = self._next()
        self.at += 1
        if not character:
            raise _invalid(r"invalid escape \ sequence")
        lower = character.lower()
        if lower in _CLASS_ESCAPES:
            self.classes = True
            self._emit("\\" + character)
        elif character in "mM<>":
            if character in "<>":
                self._emit(character)
                return
            self.looks_around = True
            self._emit(r"\b(?=\w)" if character == "m" else r"\b(?<=\w)", None)
        elif lower == "y":
            self.looks_around = self.classes = True
            self._emit(r"\b" if character == "y" else r"\B")
        elif character == "A":
            self._emit(r"\A")
        elif character == "Z":
            self.looks_around = True
            self._emit(r"\Z", r"\z")
        elif character in "123456789":
            self._back_reference(character)
        else:
            self._emit(re.escape(self._character(character)))

    def _back_reference(self, digit: str) -> None:
        if int(digit) > self.groups:
            raise _invalid("invalid backreference number")
        self._emit(f"(?:\\{digit})", None)

    def _character(self, character: str) -> str:
        """The one that is written as ``\\character...``."""
        lengths = {"u": (4, 4), "U": (8, 8), "x": (1, 255)}
        if character in lengths:
            low, high = lengths[character]
            match = re.match(rf"[0-9A-Fa-f]{{{low},{high}}}", self.text[self.at :])
            if match is None or int(match[0], 16) > sys.maxunicode:
                raise _invalid(r"invalid escape \ sequence")
            self.at += match.end()
            return chr(int(match[0], 16))
        if character == "c" and self._next():
            self.at += 1
            return chr(ord(self.text[self.at - 1]) & 31)
        if character in _CONTROL:
            return _CONTROL[character]
        if character.isalnum():
            raise _invalid(r"invalid escape \ sequence")
        return character

    # --- brackets ---

    def _bracket(self) -> None:
        negated = self._next() == "^"
        self.at += negated
        items: list[str] = []
        named: list[str] = []
        named_re2: list[str] = []
        first = True
        while True:
            character = self._next()
            if not character:
                raise _invalid("brackets [] not balanced")
            self.at += 1
            if character == "]" and not first:
                break
            first = False
            if character == "[" and self._next() in (":", ".", "="):
                text = self._named(self._next())
                if len(text) > 1:
                    self._named_class(text, named, named_re2)
                    continue
                character = text
            elif character == "\\":
                escaped = self._next()
                self.at += 1
                if escaped.lower() in _CLASS_ESCAPES and escaped:
                    if escaped.isupper():
                        raise _invalid(r"invalid escape \ sequence")
                    named.append(_CLASS_ESCAPES[escaped])
                    named_re2.append(_CLASS_ESCAPES[escaped])
                    continue
                character = self._character(escaped) if escaped else "\\"
            items.append(self._range(character))
        self._emit_bracket(negated, "".join(items), named, named_re2)

    def _range(self, low: str) -> str:
        if self._next() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return _in_class(low)
        self.at += 1
        high = self._next()
        self.at += 1
        if high == "[" and self._next() in (".", "="):
            high = self._named(self._next())
        elif high == "\\":
            self.at += 1
            high = self._character(self.text[self.at - 1])
        if len(high) != 1 or high < low:
            raise _invalid("invalid character range")
        return f"{_in_class(low)}-{_in_class(high)}"

    def _named(self, kind: str) -> str:
        """``[:alpha:]`` gives alpha, ``[.-.]`` and ``[=a=]`` one character."""
        end = self.text.find(kind + "]", self.at + 1)
        if end < 0:
            raise _invalid("brackets [] not balanced")
        name = self.text[self.at + 1 : end]
        self.at = end + 2
        if kind == ":" and name not in _CLASSES and name not in ("upper", "lower"):
            raise _invalid("invalid character class")
        if kind != ":" and len(name) != 1:
            raise _invalid("invalid collating element")
        return name

    def _named_class(self, name: str, named: list[str], named_re2: list[str]) -> None:
        named_re2.append(f"[:{name}:]")
        if name in ("upper", "lower"):
            if self.ignore_case:
                named.append(_CLASSES["alpha"])
                return
            named.append(_cased(name))
            return
        named.append(_CLASSES[name])

    def _emit_bracket(
        self, negated: bool, items: str, named: list[str], named_re2: list[str]
    ) -> None:
        self.classes |= bool(named)
        newline = "" if self.dot_all or not negated else "\\n"
        re2 = f"[{'^' if negated else ''}{items}{''.join(named_re2)}{newline}]"
        if not named:
            python = f"[{'^' if negated else ''}{items}{newline}]"
        else:
            parts = ([f"[{items}]"] if items else []) + named
            python = "(?:" + "|".join(parts) + ")"
            if negated:
                python = f"(?:(?!{python}){'.' if not self.dot_all else '[^]'})"
                python = python.replace("[^]", r"[\s\S]")
        self._emit(python, re2)


def _in_class(character: str) -> str:
    return "\\" + character if character in r"\]^-[&~|" else character


@lru_cache(maxsize=2)
def _cased(name: str) -> str:
    """All upper or lower case letters as a class."""
    wanted = str.isupper if name == "upper" else str.islower
    ranges: list[str] = []
    start: int | None = None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and wanted(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            ranges.append(chr(start) if start == code - 1 else f"{chr(start)}-{chr(code - 1)}")
            start = None
    return "[" + "".join(ranges) + "]"


def _invalid(message: str) -> InvalidRegularExpression:
    return InvalidRegularExpression(f"invalid regular expression: {message}")


def similar_syntax(pattern: str, escape: str) -> str:
    """A SIMILAR TO pattern as a regular expression over the whole text. ``escape`` '' is none.

    ``escape"`` twice cuts the pattern in three: the middle becomes the first group (substring)."""
    if len(escape) > 1:
        raise InvalidEscape("invalid escape string", hint="Escape string must be one character.")
    parts: list[list[str]] = [[]]
    bracket = False
    characters = iter(pattern)
    for character in characters:
        here = parts[-1]
        if escape and character == escape:
            following = next(characters, None)
            if following == '"' and not bracket:
                parts.append([])
            else:
                here.append("\\" + (following or "\\"))
        elif bracket:
            bracket = character != "]"
            here.append("\\\\" if character == "\\" else character)
        else:
            bracket = character == "["
            here.append(_SIMILAR.get(character, character))
    texts = ["".join(part) for part in parts]
    if len(texts) == 1:
        return f"^(?:{texts[0]})$"
    if len(texts) != 3:
        raise InvalidEscapeUse(
            "SQL regular expression may not contain more than two escape-double-quote separators"
        )
    return f"^(?:{texts[0].replace('.*', '.*?')})({texts[1]})(?:{texts[2]})$"


_SIMILAR: Final = {
    "%": ".*",
    "_": ".",
    "(": "(?:",
    "\\": "\\\\",
    ".": "\\.",
    "^": "\\^",
    "$": "\\$",
}
