"""Spark's workers, and members inside Spark, import nothing from the caller's folder."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")

_FOUND = importlib.util.spec_from_file_location(
    "poisoned", Path(__file__).parents[1] / "client" / "poisoned.py"
)
assert _FOUND is not None
assert _FOUND.loader is not None
poisoned = importlib.util.module_from_spec(_FOUND)
_FOUND.loader.exec_module(poisoned)


pytestmark = [pytest.mark.spark, pytest.mark.cluster]


def test_workers_do_not_import_from_the_callers_folder(spark: Any) -> None:
    def seen(_batches: Iterator[Any]) -> Iterator[Any]:
        import os  # noqa: PLC0415 (in the worker)
        import sys  # noqa: PLC0415

        import pandas as pd  # noqa: PLC0415

        found = {"safe": sys.flags.safe_path, "inside": os.getcwd() in sys.path or "" in sys.path}
        yield pd.DataFrame({name: [value] for name, value in found.items()})

    rows = spark.range(1).mapInPandas(seen, "safe boolean, inside boolean").collect()
    assert rows
    assert {(row.safe, row.inside) for row in rows} == {(True, False)}


@pytest.mark.soak
def test_a_session_in_a_folder_with_modules_of_pythons_names(tmp_path: Path) -> None:
    folder, marker = poisoned.poisoned_folder(tmp_path)
    program = Path(__file__).parent / "safe_paths_run.py"
    told = subprocess.run(
        [sys.executable, str(program)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "all was found" in told.stdout, told.stderr[-3000:]
    assert not marker.exists(), marker.read_text()
