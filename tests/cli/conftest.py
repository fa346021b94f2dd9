"""The command line is tested against the fake members of the client's tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

_PLACE = Path(__file__).parents[1] / "client" / "conftest.py"
_SPEC = importlib.util.spec_from_file_location("remuda_fake_members", _PLACE)
assert _SPEC is not None
assert _SPEC.loader is not None
_FAKES = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _FAKES
_SPEC.loader.exec_module(_FAKES)

grid = _FAKES.grid
client = _FAKES.client
script = _FAKES.script
