"""Which PySpark this is made for."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Final

from remuda.errors import ResourceError

PYSPARK_MIN: Final = (4, 2)
"""Sources of Arrow batches, filters for them, and ``repartitionById``; all is tested with 4.3."""


class SparkMissing(ResourceError):
    """PySpark, or a package of the workers of Spark, is not there or too old; says what to
    install."""

    sqlstate = "58000"


def check_pyspark() -> None:
    """Raises SparkMissing unless this Python has a PySpark that can be used."""
    try:
        # Its own word, not that of the packages' metadata, whose reader is slow to import.
        version = str(import_module("pyspark").__version__)
    except ImportError as error:
        raise SparkMissing(
            "this Python has no pyspark", detail=str(error), hint='pip install "remuda[spark]"'
        ) from error
    if tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < PYSPARK_MIN:
        wanted = ".".join(map(str, PYSPARK_MIN))
        raise SparkMissing(
            f"Remuda needs PySpark {wanted} or newer, and this is {version}",
            hint='pip install "remuda[spark]"',
        )
