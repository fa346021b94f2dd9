"""A folder with a file for every module of Python's own, and for some that are installed. Each of
them tells that it was imported, and is of no use: a process that starts there must not do so."""

from __future__ import annotations

import sys
from pathlib import Path

INSTALLED = (
    "google",
    "numpy",
    "pandas",
    "pyarrow",
    "pyspark",
    "regex",
    "sortedcontainers",
    "uvloop",
)
TELLS = """\
with open({marker!r}, "a") as file:
    file.write(__name__ + "\\n")
raise ImportError("a file of the caller's folder was imported: " + __name__)
"""


def poisoned_folder(place: Path) -> tuple[Path, Path]:
    """The folder, and the file that names what was imported from it; it is not there if nothing
    was."""
    folder, marker = place / "poisoned", place / "imported"
    folder.mkdir()
    names = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    for name in sorted(names | set(INSTALLED)):
        (folder / f"{name}.py").write_text(TELLS.format(marker=str(marker)))
    return folder, marker
