"""Texts read by a template as the SQL standard has it: ``.datetime(template)`` of jsonpath.

In contrast to ``to_timestamp``, what stands between the fields must be there as it is in the
template, and the text must be as long as the template.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from remuda.errors import DatetimeOverflow, InvalidDatetime
from remuda.execution.evaluate.datetime_assembly import Assembled, assembled, to_digits
from remuda.execution.evaluate.datetime_format import Field
from remuda.execution.evaluate.datetime_parse import FIXED, Between, Node, Reader, nodes_of

_SEPARATORS: Final = "-./,':; "
_ZONED: Final = frozenset({"TZH", "TZM", "TZ", "OF"})
_TIMED: Final = frozenset({
    "SSSSS", "SSSS", "HH24", "HH12", "HH", "MI", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4",
    "FF5", "FF6", "AM", "PM", "A.M.", "P.M.",
})  # fmt: skip
_DAYS: Final = range(-2_440_588, 2_145_031_949)


@lru_cache(maxsize=512)
def _check_separators(template: str) -> None:
    """Raises InvalidDatetime for what can be no separator."""
    for node in nodes_of(template):
        if isinstance(node, Between) and not node.quoted and node.character not in _SEPARATORS:
            raise InvalidDatetime(f'invalid datetime format separator: "{node.character}"')


class StrictReader(Reader):
    """``dated``, ``timed`` and ``zoned``: of which kinds the fields of the template are."""

    def __init__(self, text: str, template: str) -> None:
        _check_separators(template)
        super().__init__(text, template)

    def read(self, nodes: tuple[Node, ...]) -> None:
        names = {node.name.upper() for node in nodes if isinstance(node, Field)} - {FIXED.name}
        self.zoned = not names.isdisjoint(_ZONED)
        self.timed = not names.isdisjoint(_TIMED)
        self.dated = bool(names - _TIMED - _ZONED)
        self.fixed = True
        for place, node in enumerate(nodes):
            if self.at >= len(self.text):
                raise InvalidDatetime("input string is too short for datetime format")
            if isinstance(node, Between):
                self._matched(node)
            elif node is not FIXED:
                self.field(node, nodes[place + 1] if place + 1 < len(nodes) else None)
        if nodes and self.text[self.at :].strip():
            raise InvalidDatetime(
                "trailing characters remain in input string after datetime format"
            )

    def _matched(self, node: Between) -> None:
        if self.text[self.at] != node.character:
            kind = "character" if node.quoted else "separator"
            raise InvalidDatetime(f'unmatched format {kind} "{node.character}"')
        self.at += 1

    def moment(self) -> Assembled:
        """Raises InvalidDatetime, DatetimeOverflow and InvalidZoneDisplacement."""
        found = to_digits(assembled(self.values), self.values.fraction)
        if self.dated and found.days not in _DAYS:
            raise DatetimeOverflow(f'date out of range: "{self.text}"')
        return found
