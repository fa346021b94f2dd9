"""The context that all parts of a run share: the session, the cluster, the environment, where
errors belong."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from remuda.client.blocking.client import Client
from remuda.client.network.login import Security, from_environment, of_options
from remuda.errors import RemudaError
from remuda.limits import USER_PORT
from remuda.spark.failures import explain
from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.model import Grid, Pipeline
from remuda.spark.pipeline.report import Tell
from remuda.spark.pipeline.variables import Values
from remuda.spark.transfer.grid import connect

DEFAULT_ADDRESS: Final = f"127.0.0.1:{USER_PORT}"
_MESSAGE_LINES: Final = 6
_OPTION_OF: Final = {"key": "tls_key"}
"""Connection options whose names mean something else in Spark's options."""
_ABOUT_THE_FILE: Final = (
    "AnalysisException", "ParseException", "IllegalArgumentException", "PySparkValueError",
)  # fmt: skip


@dataclass(slots=True)
class Context:
    """One run. ``address`` and ``security`` of the caller win over those of the file."""

    spark: SparkSession
    pipeline: Pipeline
    run: str
    tell: Tell
    address: str | None = None
    security: Mapping[str, str] = field(default_factory=dict)
    values: Values = field(default_factory=lambda: Values(os.environ))
    views: dict[str, DataFrame] = field(default_factory=dict)

    # --- places ---

    def path(self, text: str) -> str:
        """A path of the file: as it is when it is absolute or has a scheme, else beside it."""
        filled = self.values.fill(text)
        if "://" in filled or filled.startswith("file:") or Path(filled).is_absolute():
            return filled
        return str(self.pipeline.folder / filled)

    def connection(self, grid: Grid | None = None) -> tuple[str, dict[str, str]]:
        """Address, and options of how to connect, of the pipeline's cluster or another one."""
        own = grid is None or not grid.address
        chosen = self.pipeline.grid if own or grid is None else grid
        address = self.values.fill(chosen.address)
        options = self.values.fill_all(chosen.security)
        if own:
            address = self.address or address or DEFAULT_ADDRESS
            options |= dict(self.security)
        return address, options

    def client(self, grid: Grid | None = None) -> Client:
        address, options = self.connection(grid)
        return connect(address, _security(options))

    def spark_options(self, grid: Grid | None = None) -> dict[str, str]:
        """``connection`` as options of ``format("remuda")``."""
        address, options = self.connection(grid)
        named = {_OPTION_OF.get(name, name): value for name, value in options.items()}
        return {"address": address, **named}

    # --- views ---

    def show(self, name: str, frame: DataFrame) -> None:
        """Make ``frame`` the view ``name``."""
        frame.createOrReplaceTempView(name)
        self.views[name] = frame

    def close(self) -> None:
        """Forget the views."""
        for name in self.views:
            self.spark.catalog.dropTempView(name)
        self.views.clear()

    # --- errors ---

    @contextmanager
    def at(self, line: int, what: str) -> Iterator[None]:
        """Errors inside say which part of the file they belong to, and nothing secret."""
        try:
            yield
        except (RemudaError, PySparkException, Py4JJavaError) as error:
            raise self.explained(error, line, what) from None

    def explained(self, error: Exception, line: int, what: str) -> RemudaError:
        found = self._ours(error)
        hide = self.values.hide
        message = found.message
        if not message.startswith(f"{self.pipeline.file}:"):  # the innermost place is the best one
            message = f"{self.pipeline.file}:{line}: {what}: {message}"
        return type(found)(hide(message), detail=hide(found.detail), hint=hide(found.hint))

    def _ours(self, error: Exception) -> RemudaError:
        if isinstance(error, RemudaError):
            return error
        found = explain(error)
        if not found.message.startswith("the Spark job failed"):
            return found
        told = _CONDITION.search(str(error))
        condition = "" if told is None else told[1].partition(".")[0]
        if type(error).__name__ not in _ABOUT_THE_FILE and condition not in _HINTS:
            return found
        text = str(error) if told is None else str(error)[told.end() :]
        lines = [line for line in text.splitlines() if line.strip()][:_MESSAGE_LINES]
        message = "\n".join(lines).partition(" SQLSTATE:")[0]
        return PipelineInvalid(message, hint=_HINTS.get(condition, ""))


_CONDITION: Final = re.compile(r"\[([A-Z][A-Z_.0-9]+)\] ")
"""How Spark names what is wrong."""
_HINTS: Final = {
    "DATA_SOURCE_NOT_FOUND": "Put the format on Spark's class path: spark: {packages: "
    '["group:artifact:version"]} loads it, spark: {jars: [FILE]} takes a file.',
    "PATH_NOT_FOUND": "Relative paths are relative to the folder of the pipeline file.",
    "TABLE_OR_VIEW_NOT_FOUND": "A step sees the sources and the steps before it.",
}


def _security(options: Mapping[str, str]) -> Security:
    return of_options(from_environment(dict(options), os.environ))
