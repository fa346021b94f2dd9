"""Write a view into a folder of Parquet files, without a moment at which half of it is there."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812 (Spark's own convention)

from remuda.errors import InputError
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.model import FileTarget
from remuda.spark.pipeline.report import TargetReport

_ROWS = "remuda_file_rows"


def write_files(context: Context, target: FileTarget) -> TargetReport:
    """``overwrite`` replaces the folder; ``append`` writes the folder ``run=ID`` in it, which a
    repeated run with the same id replaces."""
    started = time.perf_counter()
    with context.at(target.line, target.label):
        path = context.path(target.path)
        if target.mode == "append":
            path = f"{path.rstrip('/')}/run={context.run}"
        rows = replace_folder(
            context,
            context.views[target.source],
            path,
            target.partition_by,
            context.values.fill_all(target.options),
        )
    return TargetReport(target.label, rows, time.perf_counter() - started)


def replace_folder(
    context: Context,
    frame: DataFrame,
    path: str,
    partition_by: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> int:
    """Make ``path`` hold the rows of ``frame`` and nothing else; how many they are.

    On a disk of this machine the files are written beside it and the folders change their names: an
    interrupted run leaves the old one. Elsewhere it is Spark's own overwrite.
    """
    counted = Observation(_ROWS)
    writer = frame.observe(counted, F.count(F.lit(1)).alias("rows")).write.options(
        **(options or {})
    )
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    local = local_path(path)
    if local is None:
        writer.mode("overwrite").parquet(path)
        return int(counted.get["rows"])
    if local.exists() and not local.is_dir():
        raise InputError(f"{local} is no folder")
    fresh, old = (local.with_name(f".{local.name}.{context.run}.{word}") for word in ("new", "old"))
    try:
        local.parent.mkdir(parents=True, exist_ok=True)
        writer.mode("overwrite").parquet(str(fresh))
        if old.exists():
            shutil.rmtree(old)
        if local.exists():
            local.rename(old)
        fresh.rename(local)
    except OSError as error:
        raise InputError(f"{local} cannot be written: {error.strerror or error}") from error
    finally:
        if old.exists() and not local.exists():
            old.rename(local)
        for folder in (fresh, old):
            shutil.rmtree(folder, ignore_errors=True)
    return int(counted.get["rows"])


def local_path(path: str) -> Path | None:
    """A folder of this machine's file system; None for any other store."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    return None if "://" in path else Path(path)
