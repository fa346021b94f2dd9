"""Labels of enums: whether a text is one of its type."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from remuda.datatypes.sql import SqlType
from remuda.errors import InvalidText

_LABELS_SHOWN: Final = 20
_TEXT_SHOWN: Final = 60


def label_of(text: str, target: SqlType) -> str:
    """``text`` as a value of an enum; blanks count. Raises InvalidText, without a position."""
    assert target.enum is not None
    if text in target.enum.labels:
        return text
    raise _no_label(text, target)


def check_labels(array: pa.Array, target: SqlType) -> None:
    """Whether all values of a column of texts are labels. Raises InvalidText."""
    assert target.enum is not None
    if len(array) == 0 or pa.types.is_null(array.type):
        return
    known = pa.array(target.enum.labels, pa.string())
    found = pc.unique(array).drop_null()
    others = found.filter(pc.invert(pc.is_in(found, value_set=known)))
    if len(others):
        raise _no_label(others[0].as_py(), target)


def _no_label(text: str, target: SqlType) -> InvalidText:
    assert target.enum is not None
    labels = target.enum.labels
    shown = text if len(text) <= _TEXT_SHOWN else text[: _TEXT_SHOWN - 3] + "..."
    known = ", ".join(f'"{label}"' for label in labels[:_LABELS_SHOWN])
    return InvalidText(
        f'invalid input value for enum {target}: "{shown}"',
        hint=f"Its values: {known}{', ...' * (len(labels) > _LABELS_SHOWN)}." if labels else "",
    )
