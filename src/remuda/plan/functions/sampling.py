"""The function behind TABLESAMPLE."""

from __future__ import annotations

from typing import Final

from remuda.datatypes.sql import BOOLEAN, DOUBLE
from remuda.plan.functions.signatures import ScalarFunction, Signature, Types


def _sampled(types: Types) -> Signature | None:
    """(percentage, seed, key column, ...): the seed of any type."""
    if len(types) < 3:
        return None
    return Signature((DOUBLE, *types[1:]), BOOLEAN)


FUNCTIONS: Final = (
    ScalarFunction(
        "sampled", _sampled, summary="percentage, seed, key: rows of a sample", raises=True
    ),
)
ALIASES: Final[dict[str, str]] = {}
