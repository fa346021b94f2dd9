"""Every command line that a page shows is one that the command line takes."""

from __future__ import annotations

import argparse
import re
import shlex
from importlib import import_module
from pathlib import Path

import pytest

import remuda.cli.main as command_line
from remuda.cli.arguments import Parser
from remuda.member.main import parser as member_parser

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
OWN = ("demo", "test", "check", "bench", "soak", "python")
"""Commands of ./run that are no commands of remuda."""
_LINE = re.compile(r"(?:\./run|\bremuda|-m remuda\.cli\.main) (?=[a-z])(.*)")


def _shown(page: Path) -> list[str]:
    """The command lines of a page: in its blocks, and between backticks where there are more words
    than a command's name."""
    parts = re.split(r"^ *```.*$", page.read_text().replace("\\\n", " "), flags=re.MULTILINE)
    blocks, prose = parts[1::2], "\n".join(parts[::2])
    found = [line for block in blocks for line in block.splitlines()]
    found = [line.split(" # ")[0].split(" | ")[-1] for line in found]
    found = [line for line in found if re.match(r"\s*(\$ )?(\./run|remuda) [a-z]", line)]
    spans = [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    spans = [span for span in spans if re.match(r"(\./run|remuda) [a-z-]+ [^|]+$", span)]
    found += [span for span in spans if not span.endswith("...")]
    return [_LINE.search(line)[1].rstrip("& ") for line in found]  # type: ignore[index]


def _parser(command: str) -> argparse.ArgumentParser:
    if command == "member":
        return member_parser()
    found = Parser(prog=f"remuda {command}")
    import_module(command_line._EXTRAS[command][0]).add_arguments(found)
    return found


LINES = sorted({line for page in PAGES for line in _shown(page) if line.split()[0] not in OWN})


def test_pages_show_command_lines() -> None:
    assert {line.split()[0] for line in LINES} >= {
        "start", "sql", "status", "snapshot", "user", "cluster", "member", "load", "pipeline",
        "gateway", "spark-service",
    }  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_command_line_of_a_page_is_taken(line: str) -> None:
    command, *words = shlex.split(re.sub(r"\[|\]|\.\.\.", "", line))
    if command in command_line._EXTRAS:
        _parser(command).parse_args(words)
    else:
        options = command_line._parser(command).parse_args([command, *words])
        assert options.run is not None
