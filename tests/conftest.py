"""Fixtures of the whole suite (golden files and their rewrite flag, certificates), and which tests
stay together, and come first, when several processes share them."""

from __future__ import annotations

import difflib
import gc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from xdist.scheduler import LoadScopeScheduling

GOLDEN = Path(__file__).parent / "golden"
ONE_PROCESS = ("tests/spark/",)
"""Folders whose tests share what is dear: one Java process and its cluster, for the session."""
LONG = ("spark", "simulation", "tpc", "slt", "pipeline", "docs", "oracle", "cli", "member")
"""Folders with files of half a minute and more, the longest first."""


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


def pytest_collection_finish() -> None:
    """Thousands of collected tests live to the end: no need to look through them for garbage."""
    gc.collect()
    gc.freeze()


class FilesTogether(LoadScopeScheduling):
    """The tests of a file run in one process, in order: their clusters are started once. What takes
    long comes first, so that at the end no process works on alone."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", 1)[0]
        return next((folder for folder in ONE_PROCESS if file.startswith(folder)), file)

    def schedule(self) -> None:
        begins = self.collection is None
        super().schedule()
        if begins:
            for folder in reversed(LONG):
                for scope in reversed(list(self.workqueue)):
                    if scope.startswith(f"tests/{folder}/"):
                        self.workqueue.move_to_end(scope, last=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    return FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


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


@dataclass(frozen=True)
class Certificates:
    """PEM files of a certificate authority, and of certificates that it has signed or not."""

    folder: Path
    authority: trustme.CA
    ca: str

    def issue(
        self, name: str, *names: str, authority: trustme.CA | None = None, **options: Any
    ) -> tuple[str, str]:
        """The files of a new certificate and its key."""
        made = (authority or self.authority).issue_cert(*(names or ("127.0.0.1",)), **options)
        certificate, key = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        made.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        for index, blob in enumerate(made.cert_chain_pems):
            blob.write_to_path(certificate, append=index > 0)
        return str(certificate), str(key)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    folder = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    return Certificates(folder, authority, str(folder / "ca.pem"))
