"""The changes between two answers of one relation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

EXACT_MAX: Final = 2**53
"""Above it, a number of JavaScript is not exact: such integers travel as texts."""

Cells = dict[str, Any]
"""A row in the form of JSON, by the names of its columns."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``changed``: for each key of a new row all its cells, of another row those that differ;
    ``gone``: keys of rows that are there no longer. ``whole``: it replaces all that was there."""

    changed: Mapping[str, Cells] = field(default_factory=dict)
    gone: tuple[str, ...] = ()
    whole: bool = False

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"set": dict(self.changed)}
        if self.gone:
            found["gone"] = list(self.gone)
        if self.whole:
            found["whole"] = True
        return found


class Image:
    """The rows of one relation as pages have them; ``key`` names the columns that identify one."""

    def __init__(self, key: Sequence[str]) -> None:
        self._key = tuple(key)
        self._rows: dict[str, Cells] = {}

    @property
    def rows(self) -> Mapping[str, Cells]:
        return self._rows

    def whole(self) -> Difference:
        """For a page that has nothing yet."""
        return Difference(dict(self._rows), (), whole=True)

    def become(self, names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Difference | None:
        """Take over an answer. None: nothing has changed."""
        now: dict[str, Cells] = {}
        for row in rows:
            cells = {name: plain(value) for name, value in zip(names, row, strict=True)}
            now["|".join(str(cells[name]) for name in self._key)] = cells
        before, self._rows = self._rows, now
        changed: dict[str, Cells] = {}
        for key, cells in now.items():
            old = before.get(key)
            if old is None:
                changed[key] = cells
            elif old != cells:
                changed[key] = {n: v for n, v in cells.items() if n not in old or old[n] != v}
        gone = tuple(key for key in before if key not in now)
        return Difference(changed, gone) if changed or gone else None


def plain(value: Any) -> Any:
    """A value of a system relation for JSON: moments are milliseconds since 1970."""
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return value if -EXACT_MAX <= value <= EXACT_MAX else str(value)
        case datetime():
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return moment.timestamp() * 1000
        case date():
            return value.isoformat()
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {str(name): plain(item) for name, item in value.items()}
        case _:
            return str(value)
