"""Which release of Remuda this process runs."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def remuda_version() -> str:
    """As the installed package says; ``unknown`` where none is installed."""
    try:
        return version("remuda")
    except PackageNotFoundError:
        return "unknown"
