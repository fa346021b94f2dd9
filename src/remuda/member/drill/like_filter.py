"""LIKE filters of metadata requests: SQL's LIKE over a whole name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from remuda.errors import InvalidEscape
from remuda.rpc.messages.user_metadata_pb2 import LikeFilter

Matches: TypeAlias = Callable[[str], bool]


def matcher(message: LikeFilter | None) -> Matches:
    """``%`` stands for any characters, ``_`` for one. Without an escape nothing is escaped; the
    escape is one character and may stand only before ``%``, ``_`` and itself. None and a filter
    without a pattern let everything through. Raises InvalidEscape."""
    if message is None or not message.HasField("pattern"):
        return lambda _: True
    pattern = re.compile(_regex(message.pattern, message.escape), re.DOTALL)
    return lambda name: pattern.fullmatch(name) is not None


def lowered(message: LikeFilter) -> LikeFilter:
    """With the pattern in lower case: names of schemas have no case for Drill's clients."""
    made = LikeFilter()
    made.CopyFrom(message)
    if made.HasField("pattern"):
        made.pattern = made.pattern.lower()
    return made


def _regex(pattern: str, escape: str) -> str:
    if len(escape) > 1:
        raise InvalidEscape(
            f"the escape of a LIKE filter is one character, not {escape!r}",
        )
    found: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            after = next(characters, None)
            if after not in ("%", "_", escape):
                raise InvalidEscape(
                    f"the escape {escape!r} stands before {after or 'the end'!r} in {pattern!r}",
                    hint=f"It may stand before %, _ and {escape} only.",
                )
            found.append(re.escape(after))
        elif character == "%":
            found.append(".*")
        elif character == "_":
            found.append(".")
        else:
            found.append(re.escape(character))
    return "".join(found)
