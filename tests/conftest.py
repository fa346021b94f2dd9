"""Fixtures of the whole suite (golden files and their rewrite flag, certificates), and the options
that select tests; ``tests/selection`` holds what they mean."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme
from xdist.scheduler import LoadScopeScheduling

import remuda

# Modules that tests share lie beside them: pytest imports in importlib mode, which adds no path.
sys.path.insert(0, str(Path(__file__).parent / "selection"))
import near_tests
from file_costs import file_of, write_costs
from files_together import FilesTogether
from forked_members import ForkedStarts
from spark_classes import use_archive
from unit_tier import UnitGuard, has_unit_tests, in_unit_tier

GC_THRESHOLDS = (50_000, 20, 100)
GOLDEN = Path(__file__).parent / "golden"
NEAR = pytest.StashKey[list[str] | None]()
"""The files of a near run; None if the run is none."""
NEAR_LINE = pytest.StashKey[str]()
STARTS = pytest.StashKey[ForkedStarts]()
SECONDS_OF_FILES: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    pluginmanager.import_plugin("hang_guard")
    pluginmanager.import_plugin("failed_reports")
    parser.addoption(
        "--rewrite", action="store_true", help="rewrite golden files instead of comparing"
    )
    parser.addoption("--soak", action="store_true", help="run the long tests as well")
    parser.addoption("--unit", action="store_true", help="run the unit tier only")
    parser.addoption("--near", action="store_true", help="run the tests nearest to the change only")
    parser.addoption("--since", help="--near: the change since this revision (default: main)")
    parser.addoption("--near-seconds", type=float, default=near_tests.SECONDS, help="--near: work")
    parser.addoption("--costs", action="store_true", help="rewrite tests/selection/costs.txt")


def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        files = config.workerinput["near"]
    elif config.getoption("--near"):
        try:
            changed = near_tests.changed_files(config.getoption("--since"))
        except ValueError as error:
            raise pytest.UsageError(f"--near: {error}") from error
        near = near_tests.near_tests(changed, config.getoption("--near-seconds"))
        files = [str(file) for file in near.files]
        config.stash[NEAR_LINE] = (
            f"near: {len(files)} of the {near.reaching} test files that reach"
            f" {len(changed)} changed files; ./run test runs the rest"
        )
    else:
        files = None
    config.stash[NEAR] = files
    use_archive(os.environ)
    config.stash[STARTS] = starts = ForkedStarts()
    starts.install()
    config.add_cleanup(starts.close)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["near"] = node.config.stash[NEAR]


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if NEAR_LINE in config.stash:
        terminalreporter.write_line(config.stash[NEAR_LINE])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what was not asked for before it, or its conftest, imports anything."""
    near = config.stash[NEAR]
    if collection_path.is_dir():
        unit = has_unit_tests(collection_path)
        chosen = near is None or any(file.startswith(f"{collection_path}/") for file in near)
    elif collection_path.name.startswith("test_"):
        unit = in_unit_tier(collection_path)
        chosen = near is None or str(collection_path) in near
    else:
        return None
    return True if not chosen or (config.getoption("--unit") and not unit) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    guard = UnitGuard.of(item.config)
    guard.active = in_unit_tier(item.path)
    starts = item.config.stash[STARTS]
    starts.active = item.get_closest_marker("real_start") is None
    try:
        return (yield)
    finally:
        guard.active = starts.active = False


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    SECONDS_OF_FILES[file_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--costs") and not hasattr(session.config, "workerinput"):
        write_costs(SECONDS_OF_FILES)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    skip = pytest.mark.skip(reason="long: ./run soak")
    for item in items:
        if "soak" in item.keywords:
            item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Thousands of collected tests live to the end: no need to look through them for garbage, now
    or later. The collector runs as seldom as in a member, for clusters here allocate as much."""
    guard = UnitGuard.of(session.config)
    guard.active = session.config.getoption("--unit")
    gc.disable()
    try:
        return (yield)
    finally:
        guard.active = False
        gc.collect()
        gc.freeze()
        gc.set_threshold(*GC_THRESHOLDS)
        gc.enable()


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


@pytest.fixture(scope="session")
def members_of_session() -> Iterator[remuda.Cluster]:
    """Three member processes with default settings. Tests take ``three_members``."""
    with remuda.start(members=3) as cluster:
        yield cluster


def drop_everything(cluster: remuda.Cluster) -> None:
    with cluster.connect() as client:
        schemas = client.sql("SELECT nspname FROM pg_namespace WHERE oid >= 16384").fetchall()
        for (name,) in schemas:
            client.sql(f'DROP SCHEMA "{name}" CASCADE')
        for kind, relation in (("VIEW", "sys.views"), ("TABLE", "sys.maps")):
            for (name,) in client.sql(f"SELECT name FROM {relation}").fetchall():
                client.sql(f'DROP {kind} IF EXISTS "{name}" CASCADE')
        for (name,) in client.sql("SELECT typname FROM pg_type WHERE typtype = 'e'").fetchall():
            client.sql(f'DROP TYPE "{name}"')


@pytest.fixture(scope="module")
def three_members(members_of_session: remuda.Cluster) -> Iterator[remuda.Cluster]:
    """Three member processes for tests that stop none and change no setting. A start takes
    more than a second of processor time, so files share them. Each file finds no table, and leaves
    none."""
    yield members_of_session
    drop_everything(members_of_session)


ClusterOf = Callable[..., AbstractContextManager[remuda.Cluster]]


@pytest.fixture(scope="session")
def cluster_of(request: pytest.FixtureRequest) -> ClusterOf:
    """``with cluster_of(members, settings)``: the three members of the session if these are wanted,
    without tables before and after; otherwise members that start here and stop at the end."""

    @contextmanager
    def given(
        members: int, settings: Mapping[str, object] | None = None
    ) -> Iterator[remuda.Cluster]:
        if members == 3 and not settings:
            cluster = request.getfixturevalue("members_of_session")
            try:
                yield cluster
            finally:
                drop_everything(cluster)
        else:
            with remuda.start(members=members, settings=settings) as cluster:
                yield cluster

    return given


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
