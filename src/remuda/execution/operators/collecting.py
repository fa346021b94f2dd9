"""Aggregates that keep every value: array_agg, jsonb_agg, jsonb_object_agg."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from remuda.datatypes.arrow import engine_type
from remuda.datatypes.jsons import json_text
from remuda.datatypes.values import array_to_values
from remuda.errors import NullNotAllowed
from remuda.execution.arrays import Data, Indices
from remuda.execution.evaluate.decimals import canonical
from remuda.execution.evaluate.json_values import json_form, key_text
from remuda.execution.operators.collected import CollectedState


class _KeepingState(CollectedState):
    """NULLs are values like others."""

    def wanted(self, columns: object) -> Data | None:  # noqa: ARG002
        return None


class ArrayState(_KeepingState):
    """array_agg: the values of a group as one array."""

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        element = self.types[0]
        offsets = np.append(starts, ends[-1:]).astype(np.int32)
        values = columns[0]
        if pa.types.is_null(values.type):
            values = pa.nulls(len(values), engine_type(element))
        buffers = [None, pa.py_buffer(offsets)]
        flat = canonical(values, element)
        return pa.Array.from_buffers(
            engine_type(self.result), len(starts), buffers, children=[flat]
        )


class JsonArrayState(_KeepingState):
    """jsonb_agg: the values of a group as one JSON array."""

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        form = json_form(self.types[0])
        values = array_to_values(canonical(columns[0], self.types[0]), self.types[0])
        found = [None if value is None else form(value) for value in values]
        return pa.array(
            [json_text(found[a:b]) for a, b in zip(starts.tolist(), ends.tolist(), strict=True)],
            pa.string(),
        )


class JsonObjectState(_KeepingState):
    """jsonb_object_agg: (key, value); of a key that comes twice the last value stays."""

    def computed(self, starts: Indices, ends: Indices, columns: list[pa.Array]) -> pa.Array:
        name, form = key_text(self.types[0]), json_form(self.types[1])
        keys, values = (
            array_to_values(canonical(column, t), t)
            for column, t in zip(columns[:2], self.types[:2], strict=True)
        )
        if None in keys:
            raise NullNotAllowed("field name must not be null")
        members = [
            (name(key), None if value is None else form(value))
            for key, value in zip(keys, values, strict=True)
        ]
        return pa.array(
            [
                json_text(dict(members[a:b]))
                for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
            ],
            pa.string(),
        )
