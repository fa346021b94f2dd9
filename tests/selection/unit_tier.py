"""The unit tier: tests that start no process and import neither PySpark nor DuckDB.

``./run test --unit`` runs it in less than a minute. While a test of the tier runs, in the whole
suite as well, starting a process or importing one of these packages fails it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import ClassVar

import pytest
from imports_of_tests import TESTS, imported_names, shared_modules

UNIT_FOLDERS = (
    "catalog", "cluster", "config", "datatypes", "errors", "execution", "plan", "planner",
    "query", "rpc", "session", "sql", "storage", "transaction",
)  # fmt: skip
FORBIDDEN_PACKAGES = {"duckdb", "pyspark"}
PROCESS_MODULES = {"subprocess", "multiprocessing", "pty"}
PROCESS_EVENTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn"}
OF_OTHERS = {
    "execution/test_evaluate.py",
    "execution/test_json_paths.py",
    "rpc/test_tls.py",
    "sql/test_found_by_random_statements.py",
    "sql/test_random_statements.py",
    "sql/test_tpc.py",
    "sql/test_types_oracle.py",
    "storage/test_format_versions.py",
    "storage/test_log_kills.py",
}
"""Files of these folders that ask DuckDB or PySpark, or start processes."""
LONG = {
    "cluster/test_agreement.py",
    "cluster/test_movement.py",
    "cluster/test_replicas.py",
    "execution/test_distinct_values.py",
    "execution/test_exchange.py",
    "execution/test_grouping_operators.py",
    "execution/test_merge_join.py",
    "execution/test_partitioned_aggregate.py",
    "execution/test_partitioned_join.py",
    "execution/test_pool.py",
    "execution/test_regex.py",
    "execution/test_sorted_runs.py",
    "execution/test_streaming_aggregate.py",
    "planner/test_equivalence.py",
    "rpc/test_fuzz.py",
    "storage/test_expiring_rows.py",
    "storage/test_index_model.py",
    "storage/test_left_over.py",
    "storage/test_log_crashes.py",
    "storage/test_log_damage.py",
    "storage/test_log_replay.py",
    "storage/test_readers_on_threads.py",
    "storage/test_snapshots.py",
    "storage/test_transfer.py",
    "transaction/test_commit.py",
    "transaction/test_logged_cuts.py",
    "transaction/test_shells.py",
    "transaction/test_staged_returns.py",
    "transaction/test_unreachable_parts.py",
}
"""Files that take more than their share of the minute."""
OUTSIDE = OF_OTHERS | LONG


def in_unit_tier(file: Path) -> bool:
    place = file.relative_to(TESTS)
    return place.parts[0] in UNIT_FOLDERS and str(place) not in OUTSIDE


def has_unit_tests(folder: Path) -> bool:
    return folder == TESTS or folder.relative_to(TESTS).parts[0] in UNIT_FOLDERS


def forbidden_imports(file: Path) -> set[str]:
    """Packages that a file of the tier must not import, in its text or in modules beside it."""
    texts = [file, *shared_modules(file)]
    packages = {name.split(".", 1)[0] for text in texts for name in imported_names(text)}
    return packages & (FORBIDDEN_PACKAGES | PROCESS_MODULES)


class UnitGuard:
    """An audit hook of this process, which Python calls at each start of a process and import."""

    _KEY: ClassVar = pytest.StashKey["UnitGuard"]()

    def __init__(self) -> None:
        self.active = False
        sys.addaudithook(self._audit)

    @classmethod
    def of(cls, config: pytest.Config) -> UnitGuard:
        """The guard of the run. It is made once: Python cannot take an audit hook away."""
        if cls._KEY not in config.stash:
            config.stash[cls._KEY] = cls()
        return config.stash[cls._KEY]

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event in PROCESS_EVENTS:
            raise RuntimeError(f"a test of the unit tier starts a process ({event})")
        if event == "import" and str(arguments[0]).split(".", 1)[0] in FORBIDDEN_PACKAGES:
            raise RuntimeError(f"a test of the unit tier imports {arguments[0]}")
