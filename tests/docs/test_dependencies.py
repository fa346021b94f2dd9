"""docs/dependencies.md names each pinned package; our code uses it; pyarrow is the pinned one."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
NAMES = {
    "dbapi-compliance": "dbapi20",
    "google-crc32c": "google_crc32c",
    "protobuf": "google.protobuf",
    "pyyaml": "yaml",
    "pytest-xdist": "xdist",
    "grpcio-tools": "grpc_tools",
    "import-linter": "importlinter",
    "sqlalchemy-drill": "sqlalchemy_drill",
}
BY_CONFIGURATION = {"pytest-timeout", "mypy", "ruff", "import-linter"}
BY_TYPES = {"types-protobuf", "types-regex", "types-pyyaml", "pandas-stubs"}
BY_HAND = {"grpcio-tools"}


def pinned() -> list[tuple[str, str]]:
    """(package, version) of each line of requirements/*.in; "" where it is not pinned there."""
    found = []
    for file in sorted((ROOT / "requirements").glob("*.in")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith(("#", "-")):
                name, _, version = line.partition("==")
                found.append((name.partition("[")[0], version))
    return found


def texts() -> str:
    files = [
        path
        for folder in ("src", "tests", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if path != Path(__file__)
    ]
    return "\n".join(path.read_text(encoding="utf-8") for path in files)


SOURCES = texts()


@pytest.mark.parametrize(("name", "version"), pinned())
def test_each_package_is_explained_and_used(name: str, version: str) -> None:
    assert re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", PAGE), f"{name} is not explained"
    if name in BY_CONFIGURATION | BY_TYPES | BY_HAND:
        return
    module = NAMES.get(name, name)
    used = rf"(import|from) {re.escape(module)}\b|[\"']{re.escape(name)}[\"'.]"
    assert re.search(used, SOURCES), f"nothing uses {name}"


def test_pyarrow_is_the_pinned_version() -> None:
    assert dict(pinned())["pyarrow"] == pa.__version__


def test_nothing_else_is_explained() -> None:
    names = {name for name, _ in pinned()} | {"sqlglotc"}
    cells = re.findall(r"^\| ([a-z][^|]*?) \|", PAGE, re.MULTILINE)
    listed = {re.sub(r"\(.*\)", "", part).strip() for cell in cells
              for part in re.split(r", | with ", cell)} - {"package"}  # fmt: skip
    assert listed == names
