r"""Patterns of the ``\d`` commands: ``*``, ``?``, ``schema.name``, and quotes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r'"((?:[^"]|"")*)"?|([^"]+)')
_SIGNS = {"*": ".*", "?": ".", "$": "\\$"}


@dataclass(frozen=True, slots=True)
class Pattern:
    """Regular expressions for the names of the schema and of the object; "" for any."""

    schema: str
    name: str

    def condition(self, schema: str, name: str, visible: str) -> tuple[str, tuple[str, ...]]:
        """A condition of SQL over these columns, and its parameters. ``visible`` is the condition
        where the pattern has no schema; "" if there is none."""
        parts, values = [], []
        for column, pattern in ((schema, self.schema), (name, self.name)):
            if pattern and column and pattern != "^(.*)$":
                parts.append(f"{column} ~ ?")
                values.append(pattern)
        if not self.schema and visible:
            parts.append(visible)
        return " AND ".join(parts) or "true", tuple(values)


def pattern_of(text: str | None) -> Pattern:
    """Of the word that the user has typed; None for every object."""
    if text is None:
        return Pattern("", "")
    names = [""]
    for quoted, plain in _PART.findall(text):
        if not plain:
            names[-1] += re.escape(quoted.replace('""', '"'))
            continue
        for sign in plain.lower():
            if sign == ".":
                names.append("")
            else:
                names[-1] += _SIGNS.get(sign, sign)
    whole = [f"^({name})$" if name else "" for name in names]
    return Pattern("", whole[0]) if len(whole) == 1 else Pattern(whole[-2], whole[-1])
