"""The sections ``targets``, ``quarantine`` and ``grid`` of a pipeline file."""

from __future__ import annotations

import re
from typing import Final

from remuda.client.network.login import OPTIONS
from remuda.spark.pipeline.document import Section
from remuda.spark.pipeline.model import (
    FileTarget,
    Grid,
    Index,
    IndexKind,
    MapTarget,
    Mode,
    OutputMode,
    Quarantine,
    Target,
)
from remuda.spark.type_text import type_of_text

MODES: Final[tuple[Mode, ...]] = ("append", "overwrite", "insert", "delete", "changes")
OUTPUTS: Final[tuple[OutputMode, ...]] = ("append", "update", "complete")
KINDS: Final[tuple[IndexKind, ...]] = ("sorted", "hash", "bitmap")
_COLUMN: Final = re.compile(r"\s*(\w+)(\s+(asc|desc))?\s*\Z", re.IGNORECASE)


def read_target(section: Section, last_view: str, streaming: bool) -> Target:
    """One target; it takes ``last_view`` unless it says from where."""
    if section.one_of("map", "parquet") == "parquet":
        return _file_target(section, last_view, streaming)
    section.allow(
        "map", "from", "key", "partition_by", "replicated", "types", "mode", "operation",
        "latest", "indexes", "output", "options", "grid",
    )  # fmt: skip
    mode = section.choice("mode", MODES, "append")
    if mode == "changes" and not section.has("operation"):
        section.fail(
            "mode",
            'changes need "operation"',
            hint="It names the column that says insert, update, upsert or delete.",
        )
    if mode != "changes" and section.has("operation"):
        section.fail("operation", "belongs to mode: changes")
    if section.has("output") and not streaming:
        section.fail("output", "belongs to streams")
    if streaming and mode == "overwrite":
        section.fail(
            "mode", "a stream cannot overwrite", detail="allowed: append, insert, delete, changes"
        )
    if section.maybe("output") not in (None, "append") and mode != "append":
        section.fail("output", "goes with mode: append, which puts entries by their keys")
    if section.has("latest"):
        if not section.has("key"):
            section.fail("latest", 'needs "key": it chooses among rows with one key')
        if section.text("output", "append") == "complete":
            section.fail("latest", "all groups of output: complete have keys of their own")
        if streaming and mode == "insert":
            section.fail("latest", "goes with modes that put or delete by key in a stream")
    key = section.texts("key", different=True)
    partition_by = section.texts("partition_by", different=True)
    strangers = [column for column in partition_by if column not in key]
    if strangers:
        section.fail("partition_by", f"{strangers[0]} is not in the key ({', '.join(key)})")
    name = section.text("map")
    types = section.section("types")
    return MapTarget(
        map=name,
        source=section.text("from", last_view),
        key=key,
        partition_by=partition_by,
        replicated=section.flag("replicated"),
        types={} if types is None else {c: types.parsed(c, type_of_text) for c in types.values},
        mode=mode,
        operation=section.maybe("operation"),
        latest=section.maybe("latest"),
        indexes=tuple(_index(part, name) for part in section.sections("indexes")),
        output=section.choice("output", OUTPUTS, "append"),
        options=section.mapping("options"),
        grid=read_grid(section.section("grid")),
        line=section.line,
    )


def _file_target(section: Section, last_view: str, streaming: bool) -> FileTarget:
    section.allow("parquet", "from", "mode", "partition_by", "options")
    mode = section.choice("mode", ("append", "overwrite"), "append" if streaming else "overwrite")
    if streaming and mode == "overwrite":
        section.fail("mode", "a stream cannot overwrite", detail="allowed: append")
    return FileTarget(
        path=section.text("parquet"),
        source=section.text("from", last_view),
        mode="append" if mode == "append" else "overwrite",
        partition_by=section.texts("partition_by", different=True),
        options=section.mapping("options"),
        line=section.line,
    )


def _index(section: Section, map_name: str) -> Index:
    section.allow("columns", "kind", "name")
    columns = section.texts("columns")
    if not columns:
        section.fail(None, '"columns" is missing')
    found = [_COLUMN.match(column) for column in columns]
    for column, match in zip(columns, found, strict=True):
        if match is None:
            section.fail("columns", f"{column!r} is no column, perhaps with asc or desc")
    names = "_".join(match[1] for match in found if match)
    return Index(
        name=section.text("name", f"{map_name}_{names}"),
        kind=section.choice("kind", KINDS, "sorted"),
        columns=columns,
    )


def read_quarantine(section: Section | None) -> Quarantine | None:
    if section is None:
        return None
    section.allow("parquet", "map")
    section.one_of("parquet", "map")
    return Quarantine(section.maybe("parquet"), section.maybe("map"))


def read_grid(section: Section | None) -> Grid | None:
    """``address``, and how to connect, by the names of the client's options."""
    if section is None:
        return None
    section.allow("address", *OPTIONS)
    security = {name: section.text(name) for name in OPTIONS if section.has(name)}
    return Grid(section.text("address", ""), security)
