"""Syntax trees of Python's sources, for tests of the code's structure."""

from __future__ import annotations

import ast
import gc


def syntax_tree(source: str) -> ast.Module:
    """The tree of a module. No collection of garbage runs meanwhile: CPython 3.11 fails to build
    a tree ("recursion depth mismatch") when a finalizer, or a thread that gets its turn in one,
    builds another."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if enabled:
            gc.enable()
