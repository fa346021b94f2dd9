"""What docs/life-of-a-query.md names exists, and where it says.

Notation of the page: ``folder/file.py`` below src/remuda; ``function()`` and ``Class.method()``,
defined in the file named last before them; ``Class``, defined anywhere; ``MESSAGE``, in a .proto.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests.syntax_trees import syntax_tree

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "remuda"
PAGE = (ROOT / "docs" / "life-of-a-query.md").read_text(encoding="utf-8")

PATH = re.compile(r"[a-z_]+(/[a-z_]+)*\.py")
CALL = re.compile(r"([A-Za-z_][\w.]*)\(\)")
CLASS = re.compile(r"[A-Z][a-z]+([A-Z][a-z]*)*")
MESSAGE = re.compile(r"[A-Z]+(_[A-Z]+)+")
WORDS = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, classes and ``Class.method``s that a file defines."""
    found = set()
    for node in syntax_tree(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return frozenset(found)


def wrong(text: str) -> list[str]:
    """What is named in ``text`` and does not exist, in the order of the text."""
    classes = {name for path in SOURCE.rglob("*.py") for name in names(path)}
    messages = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.proto"))
    problems: list[str] = []
    file = ""
    for word in WORDS.findall(re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        if PATH.fullmatch(word):
            if (SOURCE / word).is_file():
                file = word
            elif not (ROOT / word).is_file():
                problems.append(word)
        elif call := CALL.fullmatch(word):
            if not file or call[1] not in names(SOURCE / file):
                problems.append(f"{file}: {word}")
        elif CLASS.fullmatch(word):
            if word not in classes:
                problems.append(word)
        elif MESSAGE.fullmatch(word) and not re.search(rf"\b{word}\b", messages):
            problems.append(word)
    return problems


def test_everything_named_exists() -> None:
    assert wrong(PAGE) == []


def test_the_page_names_much() -> None:
    words = WORDS.findall(PAGE)
    assert sum(CALL.fullmatch(word) is not None for word in words) > 90
    assert sum(PATH.fullmatch(word) is not None for word in words) > 60


def test_wrong_names_are_found() -> None:
    text = (
        "`client/core/core.py`: `Core.execute()`, `Core.explode()`, `Nonsense`, `no.py`, `NO_SUCH`"
    )
    assert wrong(text) == ["client/core/core.py: Core.explode()", "Nonsense", "no.py", "NO_SUCH"]
