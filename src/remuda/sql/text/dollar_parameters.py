"""``$1,$2``: sqlglot takes what is between two ``$`` without a blank, here ``1,``, for the tag of a
dollar-quoted string. Before it reads such a text, the ``$`` of its parameters become ``@``, which
it takes for the same token; afterwards the tokens have their ``$`` again.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

_MISREAD: Final = re.compile(r"\$[0-9][^\s$]*\$")
"""Only such texts are touched."""
_BEGIN: Final = re.compile(
    r"(?P<line>--)|(?P<comment>/\*)|(?P<escaped>(?<!\w)[eE]')|'|\"|\$(?:[^\W\d]\w*)?\$"
    r"|(?P<parameter>(?<![\w$])(?<!(?<!<)@)\$(?=[0-9]))"
)
"""What is no plain text, and parameters. Behind a bare ``@`` another one would make an operator."""
_ESCAPED_END: Final = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_COMMENT_MARK: Final = re.compile(r"/\*|\*/")


def with_other_marks(text: str) -> str:
    """A text of the same length, with ``@`` for the ``$`` of parameters if sqlglot needs it."""
    if _MISREAD.search(text) is None:
        return text
    parts, at, done = [], 0, 0
    while (begin := _BEGIN.search(text, at)) is not None:
        if begin["parameter"]:
            parts += [text[done : begin.start()], "@"]
            at = done = begin.end()
        else:
            at = _end(text, begin)
    return "".join([*parts, text[done:]])


def restore_marks(text: str, tokens: list[Token]) -> list[Token]:
    """The tokens of what ``with_other_marks`` made of ``text``, with the marks that are in it."""
    for token in tokens:
        if token.token_type is TokenType.PARAMETER:
            token.text = text[token.start]
    return tokens


def _end(text: str, begin: re.Match[str]) -> int:
    """Where the string, name or comment ends that begins there; the end of the text for one that
    is not closed."""
    start = begin.end()
    if begin["comment"]:
        return _comment_end(text, start)
    if begin["escaped"]:
        found = _ESCAPED_END.match(text, start)
        return len(text) if found is None else found.end()
    closer = "\n" if begin["line"] else begin[0]  # a doubled quote begins another string
    end = text.find(closer, start)
    return len(text) if end < 0 else end + len(closer)


def _comment_end(text: str, start: int) -> int:
    """Comments nest."""
    depth = 1
    for mark in _COMMENT_MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return len(text)
