"""A pipeline file as a ``Pipeline``: which sections there are, and how they go together.

Everything that can be known without Spark and without a cluster is checked here. docs/pipelines.md
describes the format.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from remuda.errors import InputError
from remuda.spark.pipeline.cron import parse_cron
from remuda.spark.pipeline.document import Section, nearest, open_document
from remuda.spark.pipeline.durations import parse_duration
from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.model import (
    Grid,
    Pipeline,
    Quarantine,
    Schedule,
    Source,
    SparkOptions,
    Step,
    Stream,
    Target,
    View,
)
from remuda.spark.pipeline.read_sources import read_source
from remuda.spark.pipeline.read_steps import read_step
from remuda.spark.pipeline.read_targets import read_grid, read_quarantine, read_target

KEYS = (
    "pipeline", "grid", "spark", "sources", "steps", "quarantine", "targets", "stream", "schedule",
)  # fmt: skip


def parse(path: str | os.PathLike[str]) -> Pipeline:
    """The pipeline in the file ``path``. Raises ``PipelineInvalid`` with file and line."""
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise PipelineInvalid(f"{file}: the file is not UTF-8 text") from None
    except OSError as error:
        raise PipelineInvalid(f"{file} cannot be read: {error.strerror}") from None
    return parse_text(text, str(file), file.resolve().parent)


def parse_text(text: str, file: str = "pipeline.yml", folder: Path | None = None) -> Pipeline:
    """The pipeline in ``text``; ``file`` is for messages, ``folder`` what paths are relative to."""
    top = open_document(text, file).allow(*KEYS)
    name = top.text("pipeline")
    if not all(c.isalnum() or c in "_-." for c in name):
        top.fail("pipeline", f"{name!r} is no name: letters, digits, '-', '_' and '.'")
    stream = _stream(top)
    sources = tuple(read_source(s, stream is not None) for s in top.sections("sources"))
    if not sources:
        top.fail(None, '"sources" is missing')
    steps = tuple(read_step(s) for s in top.sections("steps"))
    views = _views(top, sources, steps)
    quarantine = read_quarantine(top.section("quarantine"))
    targets = tuple(read_target(s, views[-1], stream is not None) for s in top.sections("targets"))
    if not targets:
        top.fail(None, '"targets" is missing')
    _targets(top, targets, views, quarantine)
    made = Pipeline(
        name=name,
        file=file,
        folder=folder or Path.cwd(),
        sources=sources,
        steps=steps,
        targets=targets,
        grid=read_grid(top.section("grid")) or Grid(),
        spark=_spark(top.section("spark")),
        quarantine=quarantine,
        stream=stream,
        schedule=_schedule(top, stream),
    )
    _goes_together(top, made)
    return made


def _views(top: Section, sources: tuple[Source, ...], steps: tuple[Step, ...]) -> list[str]:
    """The names of all views, in order, each of them new; inputs are views before."""
    known: list[str] = []
    lower: dict[str, int] = {}
    views: tuple[View, ...] = (*sources, *steps)
    for view in views:
        where = f"{top.file}:{view.line}: "
        if not view.name.isidentifier():
            raise PipelineInvalid(
                f"{where}{view.name!r} is no name of a view: letters, digits and '_'"
            )
        if view.name.lower() in lower:
            raise PipelineInvalid(
                f'{where}there is a view "{view.name}" already',
                detail=f"in line {lower[view.name.lower()]}; case makes no difference",
            )
        for wanted in view.inputs if isinstance(view, Step) else ():
            if wanted not in known:
                raise PipelineInvalid(
                    f'{where}step {view.name}: there is no view "{wanted}" before it',
                    detail=f"there are: {', '.join(known)}",
                    hint=nearest(wanted, known),
                )
        lower[view.name.lower()] = view.line
        known.append(view.name)
    return known


def _targets(
    top: Section, targets: tuple[Target, ...], views: list[str], quarantine: Quarantine | None
) -> None:
    for target in targets:
        if target.source not in views:
            raise PipelineInvalid(
                f'{top.file}:{target.line}: {target.label}: there is no view "{target.source}"',
                detail=f"there are: {', '.join(views)}",
                hint=nearest(target.source, views),
            )
    labels = [target.label for target in targets]
    labels += [quarantine.label] if quarantine else []
    twice = [label for label, count in Counter(labels).items() if count > 1]
    if twice:
        top.fail("targets", f"{twice[0]} is written twice")


def _goes_together(top: Section, made: Pipeline) -> None:
    aside = [e for _, e in made.expectations if e.action == "quarantine"]
    if aside and made.quarantine is None:
        raise PipelineInvalid(
            f"{top.file}:{aside[0].line}: {aside[0].name} puts rows aside, "
            'but "quarantine" does not say where',
            hint="Add it at the end:\nquarantine: {parquet: rejected/}",
        )
    if made.quarantine is not None and not aside:
        top.fail(
            "quarantine",
            "no expectation puts rows aside",
            hint="An expectation does that with action: quarantine.",
        )
    if made.stream is not None and not any(source.stream for source in made.sources):
        top.fail(
            "stream",
            "no source is a stream",
            hint='Say "stream: true" in the source whose new rows are to be read.',
        )


def _stream(top: Section) -> Stream | None:
    section = top.section("stream")
    if section is None:
        return None
    section.allow("checkpoint", "trigger")
    trigger = section.text("trigger", "immediately")
    if trigger in ("immediately", "available-now"):
        return Stream(section.text("checkpoint"), 0.0, trigger == "available-now")
    if trigger.replace("_", "-").replace(" ", "-").lower() in ("available-now", "availablenow"):
        section.fail("trigger", f"{trigger!r} is not possible", hint="Write available-now.")
    try:
        every = parse_duration(trigger)
    except InputError as error:
        section.fail(
            "trigger",
            error.message,
            detail="allowed: immediately, available-now, or a span of time",
            hint=nearest(trigger, ("immediately", "available-now")) or error.hint,
        )
    return Stream(section.text("checkpoint"), every)


def _schedule(top: Section, stream: Stream | None) -> Schedule | None:
    section = top.section("schedule")
    if section is None:
        return None
    section.allow("every", "cron", "zone")
    if stream is not None and not stream.available_now:
        top.fail(
            "schedule",
            "a stream goes on by itself",
            hint="Leave the schedule out, or take trigger: available-now.",
        )
    if section.one_of("every", "cron") == "every":
        if section.has("zone"):
            section.fail("zone", 'belongs to "cron"')
        every = section.parsed("every", parse_duration)
        return Schedule(every=every, text=f"every {section.text('every')}")
    zone = section.text("zone", "UTC")
    cron = section.parsed("cron", lambda text: parse_cron(text, zone))
    return Schedule(cron=cron, text=f"cron {cron.text} ({zone})")


def _spark(section: Section | None) -> SparkOptions:
    if section is None:
        return SparkOptions()
    section.allow("master", "packages", "jars", "settings")
    return SparkOptions(
        master=section.maybe("master"),
        packages=section.texts("packages"),
        jars=section.texts("jars"),
        settings=section.mapping("settings"),
    )
