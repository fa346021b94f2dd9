"""The releases that tests of upgrades run, as programs of members and clients.

``before`` is the last release, built from its commit: the history of the repository has it, and a
checkout without history (a source package, a shallow clone) has not. All run with the packages of
this environment. ``after`` is the release that follows: this one, once its version is higher than
that of the release before; until then a simulated one (``next_release``).
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Final

from rolling import Program

from remuda.release import VERSIONS, __version__

ROOT: Final = Path(__file__).resolve().parents[2]
BEFORE: Final = ("0.2.0", 2, "f9c7402378badc3a11fadb7e136cc008eba2c8ce")
"""The last release, its version of the cluster, and its commit. A release changes this line."""
PYTHON: Final = (sys.executable, "-P")
NEXT: Final = Path(__file__).with_name("next_release.py")


@dataclass(frozen=True)
class Release:
    """``member`` is the program of a member; ``client`` begins the command line of a program that
    uses the Python client, in the environment of ``member``."""

    name: str
    version: int
    member: Program
    client: tuple[str, ...]


@cache
def missing() -> str:
    """Why the release before cannot be built here; empty: it can."""
    if not (ROOT / ".git").exists():
        return "this is no checkout of the repository: the release before is built from its commit"
    found = subprocess.run(
        ["git", "cat-file", "-e", f"{BEFORE[2]}^{{commit}}"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    return "" if found.returncode == 0 else "the history of this checkout lacks the release before"


def before(folder: Path) -> Release:
    """The last release, with its sources in ``folder``."""
    name, version, commit = BEFORE
    command = ["git", "archive", "--format=tar", commit, "src"]
    data = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    sources = {"PYTHONPATH": str(folder / "src")}
    return Release(name, version, Program(environment=sources), PYTHON)


def after() -> Release:
    """The release that follows ``before``."""
    if VERSIONS.highest > BEFORE[1]:
        return this()
    program = (*PYTHON, str(NEXT))
    return Release("0.99.0", BEFORE[1] + 1, Program((*program, "member")), program)


def this() -> Release:
    """The code under test."""
    return Release(__version__, VERSIONS.highest, Program(), PYTHON)
