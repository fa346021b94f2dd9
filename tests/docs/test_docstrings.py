"""Every public name, and what it offers, says what it is."""

from __future__ import annotations

import dataclasses
import inspect
from types import ModuleType

import pytest

import remuda
import remuda.aio
import remuda.dbapi
import remuda.spark

MODULES: tuple[ModuleType, ...] = (remuda, remuda.aio, remuda.dbapi, remuda.spark)
SPARKS_OWN = {"name", "schema", "reader", "writer", "streamReader", "streamWriter"}
"""Methods of ``DataSource``: Spark documents them."""
NAMES = [(module, name) for module in MODULES for name in module.__all__ if name[0] != "_"]


def offered(cls: type) -> list[tuple[str, object]]:
    """The public methods and properties that a class defines itself."""
    return [
        (name, getattr(member, "func", getattr(member, "fget", None)) or member)
        for name, member in vars(cls).items()
        if not name.startswith("_")
        and (inspect.isroutine(member) or hasattr(member, "func") or isinstance(member, property))
    ]


@pytest.mark.parametrize(
    ("module", "name"), NAMES, ids=lambda value: getattr(value, "__name__", value)
)
def test_public_names_have_docstrings(module: ModuleType, name: str) -> None:
    thing = getattr(module, name)
    text = thing.__doc__ or ""
    assert text.strip(), f"{module.__name__}.{name} says nothing"
    if dataclasses.is_dataclass(thing):
        assert not text.startswith(f"{name}("), f"{module.__name__}.{name} has no text of its own"
    if not inspect.isclass(thing):
        return
    silent = [member for member, function in offered(thing) if not function.__doc__]
    if issubclass(thing, remuda.spark.RemudaDataSource):
        silent = [member for member in silent if member not in SPARKS_OWN]
    small = {"is_integer", "is_float", "is_text"}  # their names say it
    assert set(silent) <= small, f"{module.__name__}.{name}: {silent}"
