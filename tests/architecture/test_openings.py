"""Clauses of pages and docstrings name their actor: none opens with *what*, *who* or *whoever*.
Pages that newcomers read in a terminal have short lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.openings import banned, docstrings, paragraphs
from tests.docs.programs import ROOT

DOCS = ROOT / "docs"
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *sorted((ROOT / "examples").rglob("*.md")),
]
ALLOWED: dict[str, int] = {}
"""Sentences that older pages still have. A page that is rewritten leaves the list."""
DOCSTRINGS = 40
"""As many docstrings have one today. Lower the number when they vanish; it only falls."""

WRAPPED = [ROOT / "CONTRIBUTING.md", DOCS / "ARCHITECTURE.md", DOCS / "life-of-a-query.md"]
LINE_MAX = 120


@pytest.mark.parametrize("page", WRAPPED, ids=lambda page: page.name)
def test_lines_are_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > LINE_MAX] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_clause_of_a_page_opens_with_what_or_who(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [sentence for part in paragraphs(text) for sentence in banned(part)]
    allowed = ALLOWED.get(str(page.relative_to(ROOT)), 0)
    assert len(found) <= allowed, "name the actor as the subject:\n" + "\n".join(found)


def test_fewer_docstrings_open_with_what_or_who() -> None:
    modules = (ROOT / "src").rglob("*.py")
    found = [
        f"{module.relative_to(ROOT)}: {sentence}"
        for module in modules
        for part in docstrings(module.read_text(encoding="utf-8"))
        for sentence in banned(part)
    ]
    assert len(found) <= DOCSTRINGS, (
        f"{len(found)}; name the actor as the subject, as in:\n{found[-1]}"
    )


@pytest.mark.parametrize(
    "text",
    [
        "What is lost stays lost.",
        "It waits; who asks meanwhile gets an error.",
        "Rows go, and whoever reads them waits.",
        "- Whoever writes, waits.",
        "| `x` | Whatever comes is refused. |",
        "*What* it holds counts.",
    ],
)
def test_a_clause_without_an_actor_is_found(text: str) -> None:
    assert [found for part in paragraphs(text) for found in banned(part)]


@pytest.mark.parametrize(
    "text",
    [
        "A member that asks gets an error. It says what is wrong, who caused it.",
        "What happens then? It waits.",
        "```\nWhat is in code is code.\n```",
        "# What is here\n\nThis.",
        "| who | may |",
        "Whole rows go.",
    ],
)
def test_other_sentences_pass(text: str) -> None:
    assert not [found for part in paragraphs(text) for found in banned(part)]
