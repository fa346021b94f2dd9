"""Upgrades from the release before, which is built from its commit."""

from __future__ import annotations

import sys
from pathlib import Path

# Modules that tests share lie beside them: pytest imports in importlib mode, which adds no path.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "faults"))
