"""Names in SQL of the grid, whatever they are."""

from __future__ import annotations


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
