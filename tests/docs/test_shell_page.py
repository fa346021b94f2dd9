"""docs/shell.md has the list of the shell's commands (or gets it by ``--rewrite``)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from remuda.cli.results.options import FORMATS
from remuda.cli.shell.commands import index
from remuda.cli.shell.variables import DEFAULTS

PAGE = Path(__file__).parents[2] / "docs" / "shell.md"
_LIST = re.compile(r"(?<=```text\n).*?(?=\n```)", re.DOTALL)


def test_the_page_has_the_list_of_commands(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text(encoding="utf-8")
    if request.config.getoption("--rewrite"):
        text = _LIST.sub(lambda _found: index.text().rstrip(), text)
        PAGE.write_text(text, encoding="utf-8")
    found = _LIST.search(text)
    assert found is not None
    assert found.group() == index.text().rstrip()


def test_the_page_names_formats_and_variables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for name in (*FORMATS, *DEFAULTS) if f"`{name}`" not in text]
    assert set(missing) <= {"ENCODING"}
