"""``examples/change_stream_to_parquet.py`` runs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(900)]
EXAMPLE = Path(__file__).parents[2] / "examples" / "change_stream_to_parquet.py"


def test_changes_go_to_parquet(spark: Any, tmp_path: Path) -> None:
    example = runpy.run_path(str(EXAMPLE))
    assert example["run"](spark, tmp_path) == {1: "paid", 2: "paid", 4: "new"}
