"""SQL types in texts of users: ``DECIMAL(7, 2)``."""

from __future__ import annotations

import re
from typing import Final

from remuda.datatypes.sql import SqlType, array
from remuda.errors import InputError
from remuda.sql.text.types import type_from_name

_TYPE: Final = re.compile(r"\s*([A-Za-z_][\w ]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?\s*\Z")


def type_of_text(text: str) -> SqlType:
    """Raises ``InputError`` for what is no type, ``UndefinedType`` for an unknown name."""
    if text.rstrip().endswith("[]"):
        return array(type_of_text(text.rstrip()[:-2]))
    match = _TYPE.match(text)
    if match is None:
        raise InputError(f"{text.strip()!r} is no SQL type")
    words = " ".join(match[1].lower().split())
    arguments = tuple(int(number) for number in match.groups()[1:] if number is not None)
    return type_from_name(words, arguments, None)
