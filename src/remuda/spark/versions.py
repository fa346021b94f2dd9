"""Which PySpark this is made for."""

from __future__ import annotations

import re
from importlib import metadata
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
    wanted = ".".join(map(str, PYSPARK_MIN))
    for package in ("pyspark", "pyspark-client"):
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
        numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
        if numbers >= PYSPARK_MIN:
            return
        raise SparkMissing(
            f"Remuda needs {package} {wanted} or newer, and this is {version}",
            hint='pip install "remuda[spark]"',
        )
    try:
        import pyspark  # noqa: PLC0415, F401 (one that was not installed as a package)
    except ImportError as error:
        raise SparkMissing(
            "this Python has no pyspark", hint='pip install "remuda[spark]"'
        ) from error
