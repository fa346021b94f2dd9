"""The five ways of PEP 249 to mark parameters, rewritten to the ``?`` and ``$1`` of the members.

Strings, quoted names, dollar quotes and comments are left alone, and so are casts (``::``) and the
slices of arrays (``a[1:2]``): a ``:name`` begins no placeholder behind a letter, a digit, a bracket
or a colon. In the styles ``format`` and ``pyformat`` a ``%`` is written ``%%`` whenever parameters
are given, also inside strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from remuda.dbapi.exceptions import InterfaceError, ProgrammingError

Parameters: TypeAlias = Sequence[Any] | Mapping[str, Any]

STYLES: Final = ("qmark", "numeric", "named", "format", "pyformat")
_KEPT = 1024

_BEGIN = re.compile(r"--|/\*|'|\"|\$(?:[A-Za-z_]\w*)?\$")
_STRING = re.compile(r"(?:[^']|'')*'")
_ESCAPED_STRING = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_NAME = re.compile(r'(?:[^"]|"")*"')
_COMMENT_MARK = re.compile(r"/\*|\*/")
_COLON = r"(?<![\w\])\":]):"
_MARKS: Final = {
    "numeric": re.compile(_COLON + r"(?P<number>[1-9][0-9]*)(?!\w)"),
    "named": re.compile(_COLON + r"(?P<name>[A-Za-z_]\w*)"),
    "format": re.compile(r"%(?:(?P<next>s)|%)"),
    "pyformat": re.compile(r"%(?:\((?P<name>[^()]*)\)s|(?P<next>s)|%)"),
}


@dataclass(frozen=True, slots=True)
class Template:
    """A statement as the members read it. ``names``: where its parameters are found in a mapping,
    or None when they come as a sequence of ``count`` values (None: however many)."""

    text: str
    names: tuple[str, ...] | None
    count: int | None

    def values(self, parameters: Parameters) -> Sequence[Any]:
        """The parameters in the order of the text. ProgrammingError when they do not fit."""
        if self.names is not None:
            if not isinstance(parameters, Mapping):
                raise ProgrammingError(
                    "the statement has named parameters: give a mapping, "
                    f"not {type(parameters).__name__}"
                )
            missing = [name for name in self.names if name not in parameters]
            if missing:
                raise ProgrammingError(f'no value for the parameter "{missing[0]}"')
            return [parameters[name] for name in self.names]
        if isinstance(parameters, Mapping | str | bytes) or not isinstance(parameters, Iterable):
            raise ProgrammingError(
                f"the parameters are a sequence of values, not {type(parameters).__name__}"
            )
        values = list(parameters)
        if self.count is not None and len(values) != self.count:
            raise ProgrammingError(
                f"the statement takes {self.count} parameters, {len(values)} were given"
            )
        return values


def check_style(style: str) -> str:
    if style not in STYLES:
        raise InterfaceError(
            f"paramstyle is one of {', '.join(STYLES)}, found {style!r}",
        )
    return style


@lru_cache(maxsize=_KEPT)
def template(style: str, text: str) -> Template:
    """The statement with its placeholders rewritten."""
    if style == "qmark":
        return Template(text, None, None)
    found = _Found()
    marks = _MARKS[style]
    percent = style in ("format", "pyformat")
    parts = []
    for plain, start, end in _pieces(text):
        if not plain:
            piece = text[start:end]
            parts.append(piece.replace("%%", "%") if percent else piece)
            continue
        at = start
        for mark in marks.finditer(text, start, end):  # which looks at what is before, too
            parts += [text[at : mark.start()], found.replace(mark)]
            at = mark.end()
        parts.append(text[at:end])
    return found.template("".join(parts))


class _Found:
    """The placeholders of one statement, as they are met."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.following = 0
        self.highest = 0

    def replace(self, mark: re.Match[str]) -> str:
        groups = mark.groupdict()
        name = groups.get("name")
        if name is not None:
            return f"${self.names.setdefault(name, len(self.names) + 1)}"
        if groups.get("number"):
            number = int(groups["number"])
            self.highest = max(self.highest, number)
            return f"${number}"
        if groups.get("next"):
            self.following += 1
            return f"${self.following}"
        return "%"

    def template(self, text: str) -> Template:
        if self.names and self.following:
            raise ProgrammingError("%s and %(name)s cannot be in one statement")
        if self.names:
            return Template(text, tuple(self.names), None)
        return Template(text, None, self.highest or self.following or None)


def _pieces(text: str) -> Iterator[tuple[bool, int, int]]:
    """The text in pieces: (outside of quotes and comments, start, end). A quote that is not closed
    is left to the member, which says so."""
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        end = _CLOSERS.get(begin[0], _dollar_end)(text, begin)
        yield True, at, begin.start()
        yield False, begin.start(), end
        at = end
    yield True, at, len(text)


def _line_end(text: str, begin: re.Match[str]) -> int:
    end = text.find("\n", begin.end())
    return len(text) if end < 0 else end


def _comment_end(text: str, begin: re.Match[str]) -> int:
    """Comments nest."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(text, begin.end()):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)


def _string_end(text: str, begin: re.Match[str]) -> int:
    before = text[max(0, begin.start() - 2) : begin.start()]
    escapes = before[-1:] in ("e", "E") and not (before[:-1].isalnum() or before[:-1] == "_")
    found = (_ESCAPED_STRING if escapes else _STRING).match(text, begin.end())
    return len(text) if found is None else found.end()


def _name_end(text: str, begin: re.Match[str]) -> int:
    found = _NAME.match(text, begin.end())
    return len(text) if found is None else found.end()


def _dollar_end(text: str, begin: re.Match[str]) -> int:
    end = text.find(begin[0], begin.end())
    return len(text) if end < 0 else end + len(begin[0])


_CLOSERS: Final[dict[str, Callable[[str, re.Match[str]], int]]] = {
    "--": _line_end,
    "/*": _comment_end,
    "'": _string_end,
    '"': _name_end,
}
