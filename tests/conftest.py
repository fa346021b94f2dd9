"""Fixtures of the whole suite: golden files and their rewrite flag."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite", action="store_true", help="rewrite golden files instead of comparing"
    )
    parser.addoption("--soak", action="store_true", help="run the long tests as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    skip = pytest.mark.skip(reason="long: ./run soak")
    for item in items:
        if "soak" in item.keywords:
            item.add_marker(skip)


class GoldenFiles:
    """Compares text with a file below tests/golden, or rewrites the file (``--rewrite``)."""

    def __init__(self, rewrite: bool) -> None:
        self.rewrite = rewrite

    def path(self, name: str) -> Path:
        return GOLDEN / name

    def check(self, path: str, actual: str) -> None:
        file = GOLDEN / path
        actual = actual.rstrip("\n") + "\n"
        if self.rewrite:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(actual, encoding="utf-8")
            return
        assert file.exists(), f"{path} does not exist: run pytest --rewrite and read the diff"
        expected = file.read_text(encoding="utf-8")
        if expected != actual:
            diff = difflib.unified_diff(
                expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm=""
            )
            pytest.fail(f"golden file {path} differs:\n" + "\n".join(diff), pytrace=False)


@pytest.fixture(scope="session")
def golden(request: pytest.FixtureRequest) -> GoldenFiles:
    return GoldenFiles(bool(request.config.getoption("--rewrite")))
