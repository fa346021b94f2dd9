"""How a process of a member is started: it imports nothing from the folder in which its caller
happens to be. A file ``csv.py`` there would otherwise run in every member in place of Python's own
module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_MODULE: Final = "remuda.member"
_FROM: Final = (
    "import runpy, sys; sys.path.append(sys.argv[1]); del sys.argv[1]; "
    f"runpy.run_module({_MODULE!r}, run_name='__main__', alter_sys=True)"
)
"""Runs the module from a folder that comes after all others."""


def member_command() -> list[str]:
    """The command of a member, without its flags."""
    source = Path(__file__).resolve().parents[3]
    if source == Path.cwd():  # a source tree in which the caller stands: found there alone
        return [sys.executable, "-P", "-c", _FROM, str(source)]
    return [sys.executable, "-P", "-m", _MODULE]


def safe_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a member, from this process's or another one. An empty entry of PYTHONPATH
    means the current folder (``PYTHONPATH=$PYTHONPATH:/opt/lib`` makes one); it is left out."""
    found = dict(os.environ if environment is None else environment)
    found["PYTHONSAFEPATH"] = "1"
    if "PYTHONPATH" in found:
        found["PYTHONPATH"] = os.pathsep.join(
            path for path in found["PYTHONPATH"].split(os.pathsep) if path
        )
    return found
