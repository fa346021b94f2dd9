"""docs/dependencies.md names each pinned package; our code uses it; pyarrow is the pinned one."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest
from packaging.requirements import Requirement

from remuda.release import __version__

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
NAMES = {
    "dbapi-compliance": "dbapi20",
    "google-crc32c": "google_crc32c",
    "hazelcast-python-client": "hazelcast",
    "prometheus-client": "prometheus_client",
    "protobuf": "google.protobuf",
    "pyyaml": "yaml",
    "pytest-xdist": "xdist",
    "grpcio-tools": "grpc_tools",
    "import-linter": "importlinter",
    "sqlalchemy-drill": "sqlalchemy_drill",
    "psycopg-pool": "psycopg_pool",
    "psycopg2-binary": "psycopg2",
    "ipython": "IPython",
    "adbc-driver-postgresql": "adbc_driver_postgresql",
    "dbt-core": "dbt.cli.main",
    "duckdb-extension-postgres-scanner": "duckdb_extension_postgres_scanner",
    "opentelemetry-api": "opentelemetry.trace",
    "opentelemetry-sdk": "opentelemetry.sdk.trace",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry.exporter.otlp.proto.http",
}
BY_CONFIGURATION = {"pytest-timeout", "mypy", "ruff", "import-linter"}
BY_TYPES = {"types-protobuf", "types-regex", "types-pyyaml", "pandas-stubs"}
BY_HAND = {"grpcio-tools", "jupysql"}
BY_OTHERS = {"dbt-postgres", "adbc-driver-manager"}
"""Another package loads them."""


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
    if name in BY_CONFIGURATION | BY_TYPES | BY_HAND | BY_OTHERS:
        return
    module = NAMES.get(name, name)
    used = (
        rf"(import|from) {re.escape(module)}\b|[\"']({re.escape(name)}|{re.escape(module)})[\"'.]"
    )
    assert re.search(used, SOURCES), f"nothing uses {name}"


def test_pyarrow_is_the_pinned_version() -> None:
    assert dict(pinned())["pyarrow"] == pa.__version__


def test_nothing_else_is_explained() -> None:
    names = {name for name, _ in pinned()}
    cells = re.findall(r"^\| ([a-z][^|]*?) \|", PAGE, re.MULTILINE)
    listed = {re.sub(r"\(.*\)", "", part).strip() for cell in cells
              for part in re.split(r", | with ", cell)} - {"package"}  # fmt: skip
    assert listed == names


def ranges() -> list[Requirement]:
    """What pyproject.toml tells package managers, its extras included."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    return [Requirement(text) for listed in lists for text in listed]


def lowest(requirement: Requirement) -> str:
    return next(bound.version for bound in requirement.specifier if bound.operator == ">=")


@pytest.mark.parametrize("requirement", ranges(), ids=lambda requirement: requirement.name)
def test_applications_may_have_other_versions_than_the_pinned_ones(
    requirement: Requirement,
) -> None:
    """An exact version keeps every application out that needs another one."""
    operators = {bound.operator for bound in requirement.specifier}
    assert operators <= {">=", "<"}, f"{requirement} is no range"
    pins = dict(pinned())
    version = pins.get(requirement.name, "")
    assert not version or requirement.specifier.contains(version), version


def test_the_page_tells_the_lower_ends() -> None:
    section = PAGE.partition("## Ranges")[2].partition("\n## ")[0]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for text in project["dependencies"]:
        requirement = Requirement(text)
        cells = rf"\| {re.escape(requirement.name)} \| {re.escape(lowest(requirement))} \|"
        assert re.search(cells, section), f"{requirement.name} {lowest(requirement)}"


def test_messages_are_made_with_the_oldest_protobuf() -> None:
    """A newer compiler's modules refuse to be imported with it."""
    made_with = runpy.run_path(str(ROOT / "docs" / "generate_messages.py"))["PROTOBUF"]
    assert made_with == next(lowest(each) for each in ranges() if each.name == "protobuf")
    modules = sorted((ROOT / "src/remuda/rpc/messages").glob("*_pb2.py"))
    assert len(modules) >= 6
    for module in modules:
        assert f"# Protobuf Python Version: {made_with}\n" in module.read_text(encoding="utf-8"), (
            f"{module.name} was made by another compiler: run docs/generate_messages.py"
        )


def test_the_license_is_in_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["license"] == "Apache-2.0"
    assert "Version 2.0, January 2004" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert all((ROOT / name).is_file() for name in project["license-files"])
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
