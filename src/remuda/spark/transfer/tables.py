"""Options of tables in Spark's catalog (``CREATE TABLE t USING remuda OPTIONS (...)``).

Spark tells a Python source the options of such a table once, when it asks for its columns, and
neither when it reads nor when it writes. It does keep the columns with their metadata, and hands
them over each time: so that is where the options are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import StructField, StructType

from remuda.formats import SPARK_TABLE
from remuda.spark.transfer.options import KNOWN

_METADATA: Final = "remuda.options"
_FORMAT: Final = "remuda.format"
_OF_A_TABLE: Final = "provider"
"""A property that Spark gives along with the options of tables, and only then."""
_SECRET: Final = frozenset({"password"})
"""Never kept: REMUDA_PASSWORD is for these."""
_WHERE: Final = frozenset({"address", "snapshot", "cut"})
"""An option that says what is meant: nothing of a table's counts then."""


def keeping_options(schema: StructType, options: Mapping[str, str]) -> StructType:
    """``schema`` with the options of the table that it is for; as it is, for anything else."""
    given = {name.lower(): value for name, value in options.items()}
    if _OF_A_TABLE not in given:
        return schema
    kept = {name: given[name] for name in given if name in KNOWN and name not in _SECRET}
    metadata = {_METADATA: json.dumps(kept), _FORMAT: SPARK_TABLE.number}
    fields = schema.fields
    return StructType([StructField(f.name, f.dataType, f.nullable, metadata) for f in fields])


def options_of(schema: StructType, options: Mapping[str, str]) -> dict[str, str]:
    """``options``, and behind them those of the table that ``schema`` is of, if it is of one."""
    given = dict(options)
    if not _WHERE & {name.lower() for name in given}:
        for field in schema.fields:
            if _METADATA in field.metadata:
                SPARK_TABLE.check(field.metadata.get(_FORMAT, 1))
                kept: dict[str, str] = json.loads(field.metadata[_METADATA])
                return {**kept, **given}
    return given
