"""The section ``steps`` of a pipeline file, and the expectations of any view."""

from __future__ import annotations

import re
from typing import Final

from remuda.spark.pipeline.document import Section
from remuda.spark.pipeline.model import Action, Expectation, Step

ACTIONS: Final[tuple[Action, ...]] = ("drop", "quarantine", "fail")
PYTHON: Final = re.compile(r"(?P<module>[\w.]+|.+\.py):(?P<function>[A-Za-z_]\w*)\Z")


def read_step(section: Section) -> Step:
    section.allow("name", "sql", "python", "inputs", "arguments", "expect")
    kind = section.one_of("sql", "python")
    inputs = section.texts("inputs")
    if kind == "sql":
        if inputs:
            section.fail("inputs", "SQL names the views that it reads; inputs are for functions")
    else:
        if PYTHON.match(section.text("python")) is None:
            section.fail(
                "python",
                f"{section.text('python')!r} names no function",
                hint="Write module:function, or file.py:function for a file beside this one.",
            )
        if not inputs:
            section.fail(
                None,
                '"inputs" is missing',
                hint="It lists the views that the function is called with, in order.",
            )
    if "${" in section.text("sql", " "):
        section.fail(
            "sql",
            "variables of the environment are not filled into SQL",
            hint="Name a parameter, :since, and give it: arguments: {since: '${SINCE}'}.",
        )
    return Step(
        name=section.text("name"),
        sql=section.maybe("sql"),
        python=section.maybe("python"),
        inputs=inputs,
        arguments=section.arguments("arguments"),
        expectations=read_expectations(section),
        line=section.line,
    )


def read_expectations(section: Section) -> tuple[Expectation, ...]:
    found: list[Expectation] = []
    for part in section.sections("expect"):
        part.allow("name", "condition", "action")
        name = part.text("name")
        if any(other.name == name for other in found):
            part.fail("name", f'there is an expectation "{name}" already')
        found.append(
            Expectation(name, part.text("condition"), part.choice("action", ACTIONS), part.line)
        )
    return tuple(found)
