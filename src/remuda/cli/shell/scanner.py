r"""Cuts input into statements and backslash commands, line by line, as psql does.

A semicolon ends a statement outside of quotes, comments and parentheses. A backslash outside of
quotes and comments begins a command. ``:name``, ``:'name'`` and ``:"name"`` are replaced by
variables of the shell.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

_TOKEN = re.compile(
    r"""
      (?P<end>;)
    | (?P<line>--[^\n]*)
    | (?P<block>/\*)
    | (?P<escaped>[eE]')
    | (?P<quote>['"])
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<word>[^\W\d][\w$]*|\d[\w$]*)
    | (?P<cast>::|:=)
    | (?P<variable>:(?:\{\?\w+\}|'\w+'|"\w+"|\w+))
    | (?P<open>\()
    | (?P<close>\))
    | (?P<command>\\)
    """,
    re.VERBOSE,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPED_END = re.compile(r"(?:[^'\\]|\\.|'')*+'", re.DOTALL)

Lookup = Callable[[str, str], "str | None"]
"""The text for a variable: by name and quote (``""``, ``"'"``, ``'"'`` or ``"?"``, which asks
whether it is set). None: there is no such variable, and its name stays in the text."""


class Stop(Enum):
    """Why the scanner gives control back."""

    STATEMENT = "statement"
    COMMAND = "command"
    INPUT = "input"


class Scanner:
    """The statement that is being entered, over any number of lines."""

    def __init__(self, lookup: Lookup = lambda _name, _quote: None) -> None:
        self._lookup = lookup
        self._input = ""
        self._at = 0
        self._plain = 0
        """Input before this position came from a variable; nothing in it is replaced again."""
        self._query: list[str] = []
        self._content = False
        """Whether the statement has more than space and comments."""
        self._mode = ""
        """The open quote: ``'``, ``E`` (with escapes), ``"``, ``$tag$``, ``/*``; else nothing."""
        self._comments = 0
        self._parens = 0

    # --- input ---

    def feed(self, text: str) -> None:
        """More input, with the ends of its lines."""
        self._input = self._input[self._at :] + text
        self._plain = max(0, self._plain - self._at)
        self._at = 0

    def scan(self) -> Stop:
        """Take input into the statement until a semicolon, a backslash, or the end of it."""
        while True:
            if self._mode and not self._close():
                return Stop.INPUT
            token = _TOKEN.search(self._input, self._at)
            if token is None:
                self._take(len(self._input))
                return Stop.INPUT
            stop = self._token(token)
            if stop is not None:
                return stop

    def rest_of_line(self) -> str:
        """The input behind a backslash, up to the end of its line, which it removes."""
        end = self._input.find("\n", self._at)
        end = len(self._input) if end < 0 else end
        line = self._input[self._at : end]
        self._at = min(end + 1, len(self._input))
        return line

    def put_back(self, text: str) -> None:
        """Input that a command has left over: it is scanned next."""
        self._input = text + "\n" + self._input[self._at :]
        self._at = self._plain = 0

    # --- the statement ---

    @property
    def statement(self) -> str:
        """The text so far, without space around it."""
        return "".join(self._query).strip()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but space and comments, and no comment is open."""
        return not self._content and not self._mode

    def clear(self, text: str = "") -> None:
        """Begin a new statement with this text, which is not scanned."""
        self._query = [text] if text else []
        self._content = bool(text.strip())
        self._mode = ""
        self._comments = self._parens = 0

    def fork(self) -> Scanner:
        """A scanner in this state, to look ahead with: it replaces no variables."""
        found = Scanner()
        found._query = list(self._query)
        found._content, found._mode = self._content, self._mode
        found._comments, found._parens = self._comments, self._parens
        return found

    def mark(self) -> tuple[str, int]:
        """The statement, to come back to by ``restore``."""
        return "".join(self._query), self._parens

    def restore(self, mark: tuple[str, int]) -> None:
        self.clear(mark[0])
        self._parens = mark[1]

    @property
    def status(self) -> str:
        """psql's %R: ``=`` at the beginning, ``-`` in a statement, ``'``, ``"``, ``$``, ``*`` and
        ``(`` in what is open."""
        if self._mode:
            return {"E": "'", "/*": "*"}.get(self._mode, self._mode[0])
        if self._parens:
            return "("
        return "=" if self.is_empty else "-"

    # --- tokens ---

    def _token(self, token: re.Match[str]) -> Stop | None:
        kind = token.lastgroup
        if kind == "variable" and token.start() >= self._plain:
            self._variable(token)
            return None
        if kind == "command" and token.start() >= self._plain:
            self._take(token.start())
            self._at += 1
            return Stop.COMMAND
        self._take(token.start())
        if kind == "end" and not self._parens:
            self._at += 1
            return Stop.STATEMENT
        self._take(token.end(), content=kind not in ("line", "block"))
        match kind:
            case "open":
                self._parens += 1
            case "close":
                self._parens = max(0, self._parens - 1)
            case "block":
                self._mode, self._comments = "/*", 1
            case "escaped":
                self._mode = "E"
            case "quote" | "dollar":
                self._mode = token.group()
        return None

    def _variable(self, token: re.Match[str]) -> None:
        name = token.group()[1:]
        quote = name[0] if name[0] in "'\"" else "?" if name[0] == "{" else ""
        value = self._lookup(name.strip("'\"{?}"), quote)
        if value is None:
            # Only the colon is taken: there may be a quote behind it.
            self._take(token.start() + 1)
            return
        self._take(token.start())
        rest = self._input[token.end() :]
        self._input, self._at, self._plain = value + rest, 0, len(value)

    def _close(self) -> bool:
        """Take input up to the end of what is open; False if that is not here yet."""
        if self._mode == "/*":
            return self._close_comment()
        if self._mode == "E":
            found = _ESCAPED_END.match(self._input, self._at)
            end = -1 if found is None else found.end()
        else:
            end = self._input.find(self._mode, self._at)
            end = end if end < 0 else end + len(self._mode)
        if end < 0:
            self._take(len(self._input))
            return False
        self._take(end)
        self._mode = ""
        return True

    def _close_comment(self) -> bool:
        """Block comments nest, as in PostgreSQL."""
        while self._comments:
            edge = _COMMENT_EDGE.search(self._input, self._at)
            if edge is None:
                self._take(len(self._input), content=False)
                return False
            self._comments += 1 if edge.group() == "/*" else -1
            self._take(edge.end(), content=False)
        self._mode = ""
        return True

    def _take(self, end: int, *, content: bool = True) -> None:
        if end > self._at:
            text = self._input[self._at : end]
            self._content = self._content or (content and not text.isspace())
            self._query.append(text)
            self._at = end
