"""Which release of Remuda this process runs.

A constant rather than the metadata of an installed package: a member that runs from sources has no
metadata, and an operator must see its release too. The package's own version is read from here.
"""

from __future__ import annotations

from typing import Final

__version__: Final = "0.1.0"
