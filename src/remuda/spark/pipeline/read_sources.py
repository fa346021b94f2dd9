"""The section ``sources`` of a pipeline file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from remuda.spark.pipeline.document import Section
from remuda.spark.pipeline.durations import parse_duration
from remuda.spark.pipeline.model import Source, Watermark
from remuda.spark.pipeline.read_steps import read_expectations
from remuda.spark.pipeline.read_targets import read_grid


@dataclass(frozen=True, slots=True)
class Format:
    """``keys``: a key of the file -> the option of Spark's reader that it is. ``needs``: exactly
    one key of each group must be there."""

    keys: dict[str, str]
    needs: tuple[tuple[str, ...], ...] = ()
    files: bool = False
    streams: bool = True


SOURCES: Final = {
    "parquet": Format({}, files=True),
    "csv": Format({"header": "header", "delimiter": "sep", "null": "nullValue"}, files=True),
    "json": Format({"multiline": "multiLine"}, files=True),
    "arrow": Format({}, files=True, streams=False),
    "jdbc": Format(
        {
            "url": "url", "table": "dbtable", "query": "query", "user": "user",
            "password": "password", "driver": "driver",
        },
        (("url",), ("table", "query")),
        streams=False,
    ),
    "delta": Format({}, files=True),
    "iceberg": Format({"table": "table"}, (("table",),)),
    "kafka": Format(
        {"servers": "kafka.bootstrap.servers", "topics": "subscribe"}, (("servers",), ("topics",))
    ),
    "remuda": Format(
        {
            "map": "map", "query": "query", "columns": "columns", "where": "where",
            "snapshot": "snapshot", "cut": "cut", "store": "store", "key_file": "key_file",
            "starting_from": "startingFrom", "images": "images",
            "rows_per_batch": "maxRowsPerTrigger",
        },
        (("map", "query"),),
    ),
    "spark": Format({"provider": "provider"}, (("provider",),)),
}  # fmt: skip
"""The formats. ``spark`` is any other one that Spark knows by the name ``provider``."""

_OF_CHANGES: Final = ("starting_from", "images", "rows_per_batch")
_COMMON: Final = ("name", "format", "options", "schema", "stream", "watermark", "expect")


def read_source(section: Section, streaming: bool) -> Source:
    """One source. ``streaming``: the pipeline is a stream, so its sources may be."""
    name = section.text("name")
    kind = section.choice("format", tuple(SOURCES))
    known = SOURCES[kind]
    own = (*(("path",) if known.files else ()), *known.keys)
    section.allow(*_COMMON, *own, *(("grid",) if kind == "remuda" else ()))
    if known.files:
        section.one_of("path")
    for group in known.needs:
        section.one_of(*group)
    if kind == "remuda" and section.has("query") and section.has("where"):
        section.fail("where", 'goes with "map"', hint="Put the condition into the query.")
    stream = bool(section.flag("stream"))
    if stream and not streaming:
        section.fail(
            "stream",
            "the pipeline is no stream",
            hint="A stream needs the section stream, with a checkpoint folder.",
        )
    if stream and not known.streams:
        section.fail("stream", f"{kind} cannot be read as a stream")
    for key in _OF_CHANGES if kind == "remuda" and not stream else ():
        if section.has(key):
            section.fail(key, "belongs to a source with stream: true")
    options = section.mapping("options")
    if kind == "remuda" and stream:
        options.setdefault("startingFrom", "snapshot")
    for key, option in known.keys.items():
        if section.has(key):
            options[option] = ",".join(section.texts(key))
    if kind == "csv":
        options.setdefault("header", "true")
    return Source(
        name=name,
        format=kind,
        paths=section.texts("path") if known.files else (),
        options=options,
        schema=section.maybe("schema"),
        stream=stream,
        watermark=_watermark(section.section("watermark"), stream),
        grid=read_grid(section.section("grid")) if kind == "remuda" else None,
        expectations=read_expectations(section),
        line=section.line,
    )


def _watermark(section: Section | None, stream: bool) -> Watermark | None:
    if section is None:
        return None
    section.allow("column", "delay")
    if not stream:
        section.fail(None, "only streams have watermarks")
    section.parsed("delay", parse_duration)
    return Watermark(section.text("column"), section.text("delay"))
