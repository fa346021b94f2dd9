r"""How results are printed: the options of ``\pset``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

FORMATS: Final = (
    "aligned",
    "arrow",
    "csv",
    "html",
    "json",
    "markdown",
    "ndjson",
    "parquet",
    "unaligned",
    "wrapped",
)
SAME_FORMATS: Final = {"table": "aligned"}
"""Earlier names."""
NULL: Final = "<null>"


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """``width`` and ``height`` are those of the terminal, 0 where there is none. ``null`` is the
    text for NULL; None leaves it to the format."""

    format: str = "aligned"
    border: int = 1
    expanded: str = "off"
    null: str | None = None
    tuples_only: bool = False
    footer: bool = True
    title: str = ""
    columns: int = 0
    fieldsep: str = "|"
    recordsep: str = "\n"
    csv_fieldsep: str = ","
    linestyle: str = "ascii"
    numericlocale: bool = False
    tableattr: str = ""
    pager: str = "on"
    pager_min_lines: int = 0
    width: int = 0
    height: int = 0
    colors: bool = field(default=False)

    @property
    def target_width(self) -> int:
        """Columns for ``wrapped`` and for ``expanded auto``; 0: any number."""
        return self.columns or self.width

    def null_text(self, default: str) -> str:
        return default if self.null is None else self.null
