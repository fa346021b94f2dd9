"""``U&'d\\0061ta' [UESCAPE '!']``: texts and names with the numbers of their characters."""

from __future__ import annotations

import re
from typing import Final

from remuda.errors import Position, SqlSyntaxError

_BAD_ESCAPES: Final = frozenset("0123456789abcdefABCDEF+'\"" + " \t\n")


def decoded_unicode(text: str, escape: str, place: Position) -> str:
    """Raises SqlSyntaxError for escapes that are none."""
    if len(escape) != 1 or escape in _BAD_ESCAPES:
        raise SqlSyntaxError("invalid Unicode escape character", position=place)
    quoted = re.escape(escape)
    pattern = rf"{quoted}(?:({quoted})|([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}})|)"

    def character(match: re.Match[str]) -> str:
        if match[1]:
            return escape
        digits = match[2] or match[3]
        if not digits:
            raise SqlSyntaxError(
                "invalid Unicode escape",
                position=place,
                hint=f"Unicode escapes are {escape}XXXX or {escape}+XXXXXX.",
            )
        number = int(digits, 16)
        if not number or number > 0x10FFFF:
            raise SqlSyntaxError("invalid Unicode escape value", position=place)
        return chr(number)

    decoded = re.sub(pattern, character, text)
    try:  # surrogates come in pairs
        return decoded.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SqlSyntaxError("invalid Unicode surrogate pair", position=place) from None
