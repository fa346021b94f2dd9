"""The contents of a pipeline file, as plain values: no Spark, no clock, nothing resolved.

Texts may hold ``${NAME}`` for variables of the environment; they stay as written here, so that
nothing secret is printed (``variables`` fills them in, at the last moment).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from remuda.datatypes.sql import SqlType
from remuda.spark.pipeline.cron import Cron
from remuda.spark.pipeline.variables import names

Action: TypeAlias = Literal["drop", "quarantine", "fail"]
Mode: TypeAlias = Literal["append", "overwrite", "insert", "delete", "changes"]
IndexKind: TypeAlias = Literal["sorted", "hash", "bitmap"]
OutputMode: TypeAlias = Literal["append", "update", "complete"]


@dataclass(frozen=True, slots=True)
class Grid:
    """How to reach a cluster; ``security`` has the names of
    ``remuda.client.network.login.OPTIONS``."""

    address: str = ""
    security: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectation:
    """Rows for which ``condition`` (Spark SQL) is not true are dropped, put aside, or end the
    run."""

    name: str
    condition: str
    action: Action
    line: int = 0


@dataclass(frozen=True, slots=True)
class Watermark:
    """Rows of a stream that come later than ``delay`` after newer ones may be left out."""

    column: str
    delay: str


@dataclass(frozen=True, slots=True)
class Source:
    """Rows from outside, a view ``name`` for the steps. ``format`` is one of ``read.SOURCES``.

    ``options`` are those of Spark's reader of that format. ``stream``: read what comes, not what is
    there. ``schema`` is Spark DDL. ``grid`` is another cluster than that of the pipeline.
    """

    name: str
    format: str
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    stream: bool = False
    watermark: Watermark | None = None
    grid: Grid | None = None
    expectations: tuple[Expectation, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """A view made from others: by ``sql``, or by the function that ``python`` names.

    ``inputs`` are the names of the views that the function is called with. ``arguments`` are named
    parameters of the SQL, or keyword arguments of the function.
    """

    name: str
    sql: str | None = None
    python: str | None = None
    inputs: tuple[str, ...] = ()
    arguments: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Index:
    """A secondary index, made when the map has none of that name. ``columns`` are in the syntax of
    CREATE INDEX: names, perhaps with ASC or DESC."""

    name: str
    kind: IndexKind
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MapTarget:
    """The rows of view ``source`` go into a map, all at once.

    ``types`` are SQL types instead of those found. ``operation`` is the column of a change set that
    says what to do. ``latest`` is a column by which one of several rows with one key is chosen: the
    highest. Neither of the two is written. ``grid`` is another cluster than that of the pipeline.
    """

    map: str
    source: str
    key: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    replicated: bool | None = None
    types: Mapping[str, SqlType] = field(default_factory=dict)
    mode: Mode = "append"
    operation: str | None = None
    latest: str | None = None
    indexes: tuple[Index, ...] = ()
    output: OutputMode = "append"
    options: Mapping[str, str] = field(default_factory=dict)
    grid: Grid | None = None
    line: int = 0

    @property
    def label(self) -> str:
        return f"map {self.map}"


@dataclass(frozen=True, slots=True)
class FileTarget:
    """The rows of view ``source`` go into a folder of Parquet files."""

    path: str
    source: str
    mode: Literal["append", "overwrite"] = "overwrite"
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 0

    @property
    def label(self) -> str:
        return f"parquet {self.path}"


Target: TypeAlias = MapTarget | FileTarget
View: TypeAlias = Source | Step


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Where rows that were put aside go: a folder (one below it per view), or a map."""

    path: str | None = None
    map: str | None = None

    @property
    def label(self) -> str:
        return f"map {self.map}" if self.map is not None else f"parquet {self.path}"


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The settings of the Spark session of the command line."""

    master: str | None = None
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stream:
    """A pipeline that goes on. ``every`` is seconds between batches, 0 for as soon as possible;
    ``available_now``: the rows that are there are taken, in batches, and the run ends."""

    checkpoint: str
    every: float = 0.0
    available_now: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to run again: ``every`` so many seconds after the last start, or as ``cron`` says."""

    every: float | None = None
    cron: Cron | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A whole file. ``folder`` is what relative paths and Python files are relative to."""

    name: str
    file: str
    folder: Path
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    targets: tuple[Target, ...]
    grid: Grid = field(default_factory=Grid)
    spark: SparkOptions = field(default_factory=SparkOptions)
    quarantine: Quarantine | None = None
    stream: Stream | None = None
    schedule: Schedule | None = None

    @property
    def views(self) -> tuple[View, ...]:
        """Sources and steps, in order."""
        return (*self.sources, *self.steps)

    @property
    def maps(self) -> tuple[MapTarget, ...]:
        return tuple(target for target in self.targets if isinstance(target, MapTarget))

    @property
    def files(self) -> tuple[FileTarget, ...]:
        return tuple(target for target in self.targets if isinstance(target, FileTarget))

    @property
    def expectations(self) -> tuple[tuple[str, Expectation], ...]:
        """(view, expectation), in order."""
        return tuple((view.name, e) for view in self.views for e in view.expectations)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that it cannot do without, sorted."""
        return tuple(sorted({name for text in _texts(self) for name in names(text)}))


_NEVER_FILLED: Final = ("file", "sql", "condition")


def _texts(value: object) -> Iterator[str]:
    """All texts in ``value`` that variables are filled into."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from _texts(part)
    elif is_dataclass(value):
        for item in fields(value):
            if item.name not in _NEVER_FILLED:
                yield from _texts(getattr(value, item.name))
