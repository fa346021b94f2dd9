"""Variables of the shell: of the user, and those that psql gives a meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from remuda.errors import InputError

_NAME: Final = re.compile(r"\w+")
_ON: Final = ("on", "true", "yes", "1")
_OFF: Final = ("off", "false", "no", "0")

DEFAULTS: Final = MappingProxyType(
    {
        "AUTOCOMMIT": "on",
        "ECHO": "none",
        "ECHO_HIDDEN": "off",
        "ENCODING": "UTF8",
        "ERROR": "false",
        "LAST_ERROR_MESSAGE": "",
        "LAST_ERROR_SQLSTATE": "00000",
        "ON_ERROR_ROLLBACK": "off",
        "PROMPT1": "remuda%x> ",
        "PROMPT2": "%w%R> ",
        "PROMPT3": "     >> ",
        "QUIET": "off",
        "ROW_COUNT": "0",
        "SINGLELINE": "off",
        "SQLSTATE": "00000",
        "VERBOSITY": "default",
    }
)
_SWITCHES: Final = frozenset({"AUTOCOMMIT", "ON_ERROR_STOP", "QUIET", "SINGLELINE"})
_CHOICES: Final = {
    "ECHO": ("none", "errors", "queries", "all"),
    "ECHO_HIDDEN": ("on", "off", "noexec"),
    "ON_ERROR_ROLLBACK": ("on", "off", "interactive"),
    "VERBOSITY": ("default", "verbose", "terse", "sqlstate"),
}


class Variables:
    """Names and texts. Those with a meaning refuse values that mean nothing."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self._values: dict[str, str] = dict(DEFAULTS)
        for name, value in (given or {}).items():
            self.set(name, value)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(sorted(self._values.items()))

    def get(self, name: str) -> str | None:
        return self._values.get(name)

    def text(self, name: str) -> str:
        """The value, or an empty text."""
        return self._values.get(name, "")

    def is_on(self, name: str) -> bool:
        return self.text(name).lower() in _ON

    def set(self, name: str, value: str) -> None:
        """Raises InputError for a name or a value that cannot be."""
        if not _NAME.fullmatch(name):
            raise InputError(f'invalid variable name: "{name}"')
        if name in _SWITCHES:
            value = "on" if truth(value or "on", name) else "off"
        elif name in _CHOICES:
            value = self._choice(name, value)
        self._values[name] = value

    def unset(self, name: str) -> None:
        """Forget it; one with a meaning has its default again."""
        if name in _SWITCHES and name not in ("ON_ERROR_STOP", "QUIET"):
            self._values[name] = "off"
        elif name in DEFAULTS and name not in ("PROMPT1", "PROMPT2", "PROMPT3"):
            self._values[name] = DEFAULTS[name]
        else:
            self._values.pop(name, None)

    def lookup(self, name: str, quote: str) -> str | None:
        """As ``scanner.Lookup``."""
        value = self.get(name)
        if quote == "?":
            return "FALSE" if value is None else "TRUE"
        if value is None:
            return None
        if quote == "'":
            return quoted_text(value)
        return '"' + value.replace('"', '""') + '"' if quote else value

    def _choice(self, name: str, value: str) -> str:
        allowed = _CHOICES[name]
        found = value.lower()
        if "on" in allowed and found in (*_ON, *_OFF, ""):
            found = "off" if found in _OFF else "on"
        if found not in allowed:
            raise InputError(
                f'unrecognized value "{value}" for "{name}"',
                hint=f"Available values are: {', '.join(allowed)}.",
            )
        return found


def quoted_text(value: str) -> str:
    """A text as a literal of SQL."""
    text = value.replace("'", "''")
    return f" E'{text.replace(chr(92), chr(92) * 2)}'" if "\\" in text else f"'{text}'"


def truth(value: str, what: str) -> bool:
    """Any beginning of ``true``, ``false``, ``yes``, ``no``, or ``on``, ``off``, ``1``, ``0``.
    Raises InputError that names ``what``."""
    low = value.lower()
    if low and ("true".startswith(low) or "yes".startswith(low) or low in ("on", "1")):
        return True
    if low and ("false".startswith(low) or "no".startswith(low) or low in ("of", "off", "0")):
        return False
    raise InputError(f'unrecognized value "{value}" for "{what}": Boolean expected')
