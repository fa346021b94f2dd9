"""A pipeline as text: which view is made of which, what is expected, where it goes.

Nothing that was filled in for ``${NAME}`` is in it, and no password.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from remuda.spark.pipeline.model import (
    Expectation,
    FileTarget,
    MapTarget,
    Pipeline,
    Source,
    Step,
    Target,
)

_IGNORED: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_WORD: Final = re.compile(r"`([^`]+)`|\b([A-Za-z_]\w*)\b")
_ACTIONS: Final = {"drop": "dropped", "quarantine": "put aside", "fail": "the run fails"}
_NAME_WIDTH_MAX: Final = 32


def picture(pipeline: Pipeline, columns: Mapping[str, Sequence[str]] | None = None) -> str:
    """The plan, a view or target per line. ``columns``: the columns of the views, as Spark has
    found them."""
    rows: list[tuple[str, str, str, str, list[str]]] = []
    for view in pipeline.views:
        notes = [_expectation(e) for e in view.expectations]
        if columns and view.name in columns:
            notes.append("columns " + ", ".join(columns[view.name]))
        if isinstance(view, Source):
            rows.append(("source", view.name, _source(view), "", notes))
        else:
            kind = "sql" if view.sql is not None else f"python {view.python}"
            rows.append(("step", view.name, kind, ", ".join(reads(view, pipeline)), notes))
    if pipeline.quarantine is not None:
        kind, _, name = pipeline.quarantine.label.partition(" ")
        aside = [name for name, e in pipeline.expectations if e.action == "quarantine"]
        rows.append(("aside", name, kind, ", ".join(dict.fromkeys(aside)), []))
    rows += [_target(target) for target in pipeline.targets]
    widths = [min(max(len(row[i]) for row in rows), _NAME_WIDTH_MAX) for i in range(3)]
    lines = [f"pipeline {pipeline.name}: {_when(pipeline)}"]
    for number, (kind, name, about, inputs, notes) in enumerate(rows):
        last = number == len(rows) - 1
        head = f"{kind:<{widths[0]}}  {name:<{widths[1]}}  {about:<{widths[2]}}"
        arrow = f"  <─ {inputs}" if inputs else ""
        lines.append(f"{'└' if last else '├'}─ {head}{arrow}".rstrip())
        lines += [f"{' ' if last else '│'}    {note}" for note in notes]
    return "\n".join(lines)


def reads(step: Step, pipeline: Pipeline) -> list[str]:
    """The views before ``step`` that it is made of; for SQL, those whose names it holds."""
    if step.sql is None:
        return list(step.inputs)
    before: dict[str, str] = {}
    for view in pipeline.views:
        if view.name == step.name:
            break
        before[view.name.lower()] = view.name
    text = _IGNORED.sub(" ", step.sql)
    words = [(quoted or plain).lower() for quoted, plain in _WORD.findall(text)]
    return [before[word] for word in dict.fromkeys(words) if word in before]


def _when(pipeline: Pipeline) -> str:
    if pipeline.stream is not None:
        stream = pipeline.stream
        how = "what is there" if stream.available_now else "as rows come"
        if stream.every:
            how = f"a batch every {stream.every:g} s"
        text = f"stream, {how}, checkpoint {stream.checkpoint}"
    else:
        text = "batch"
    return text if pipeline.schedule is None else f"{text}, {pipeline.schedule.text}"


def _source(source: Source) -> str:
    options = source.options
    kind = options["provider"] if source.format == "spark" else source.format
    if source.paths:
        what = ", ".join(source.paths)
    elif source.format == "jdbc":
        what = options.get("dbtable") or "query"
    elif source.format == "remuda":
        what = f"map {options['map']}" if "map" in options else "query"
        if source.grid is not None and source.grid.address:
            what += f" of {source.grid.address}"
    else:
        what = options.get("table") or options.get("subscribe") or ""
    return f"{'stream ' if source.stream else ''}{kind} {what}".rstrip()


def _expectation(expectation: Expectation) -> str:
    condition = " ".join(expectation.condition.split())
    return f"expect {expectation.name}: {condition}, else {_ACTIONS[expectation.action]}"


def _target(target: Target) -> tuple[str, str, str, str, list[str]]:
    if isinstance(target, FileTarget):
        notes = [f"folders by {', '.join(target.partition_by)}"] if target.partition_by else []
        return ("target", target.path, f"parquet, {target.mode}", target.source, notes)
    return ("target", target.map, f"map, {_map_mode(target)}", target.source, _map_notes(target))


def _map_mode(target: MapTarget) -> str:
    if target.mode == "changes":
        return f"changes by {target.operation}"
    return target.mode if target.output == "append" else f"{target.mode}, {target.output}"


def _map_notes(target: MapTarget) -> list[str]:
    notes = []
    if target.key:
        notes.append(f"key {', '.join(target.key)}")
    if target.latest is not None:
        notes.append(f"of several rows with one key, the highest {target.latest}")
    if target.types:
        notes.append("types " + ", ".join(f"{c} {t}" for c, t in target.types.items()))
    notes += [f"index {i.name}: {i.kind} ({', '.join(i.columns)})" for i in target.indexes]
    if target.grid is not None and target.grid.address:
        notes.append(f"cluster {target.grid.address}")
    return notes
