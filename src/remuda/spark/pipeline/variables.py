"""``${NAME}`` in texts of a file: variables of the environment, which may be secret.

``${NAME:-text}`` has a default; ``$${`` is ``${`` itself. A value that was filled in is never
shown: ``Values.hide`` takes it out of texts that others made, such as Spark's errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from remuda.errors import InputError

_USE: Final = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_BROKEN: Final = re.compile(r"(?<!\$)\$\{(?![A-Za-z_][A-Za-z0-9_]*(?::-[^}]*)?\})")
HIDDEN_MIN: Final = 4
"""Shorter values are no secrets, and taking them out would tear other words apart."""


def names(text: str) -> Iterable[str]:
    """The variables that ``text`` cannot do without."""
    for match in _USE.finditer(text):
        if match[1] is not None and match[2] is None:
            yield match[1]


def check(text: str) -> None:
    """Raises ``InputError`` for ``${`` that begins nothing."""
    found = _BROKEN.search(text)
    if found:
        raise InputError(
            "'${' is not followed by a name and '}'",
            hint="${NAME} is a variable of the environment; write $${ for the characters.",
        )


@dataclass(slots=True)
class Values:
    """The environment, and which of its values were used."""

    environment: Mapping[str, str]
    used: dict[str, str] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """``text`` with its variables. Raises ``InputError`` for one that is not set."""

        def value(match: re.Match[str]) -> str:
            name, default = match[1], match[2]
            if name is None:
                return "${"
            found = self.environment.get(name)
            if found is None and default is None:
                raise InputError(
                    f"the variable {name} of the environment is not set",
                    hint=f"Set it ({name}=... remuda pipeline ...), or write a default: "
                    f"${{{name}:-text}}.",
                )
            if found is None:
                return str(default)
            self.used[name] = found
            return found

        return _USE.sub(value, text)

    def fill_all(self, values: Mapping[str, str]) -> dict[str, str]:
        return {name: self.fill(value) for name, value in values.items()}

    def hide(self, text: str) -> str:
        """``text`` without any value that was filled in."""
        for name, value in sorted(self.used.items(), key=lambda item: -len(item[1])):
            if len(value) >= HIDDEN_MIN:
                text = text.replace(value, f"${{{name}}}")
        return text
