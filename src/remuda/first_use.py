"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(namespace: dict[str, Any], homes: Mapping[str, str]) -> Callable[[str], object]:
    """A ``__getattr__`` for the package with the globals ``namespace``: it imports the module that
    ``homes`` names, and keeps the value in the namespace, so it is asked once for each name."""
    package = namespace["__name__"]

    def imported(name: str) -> object:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(home), name)
        namespace[name] = value
        return value

    return imported
