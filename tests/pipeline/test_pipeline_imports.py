"""Functions in Python beside a pipeline: what they import, and how workers get it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.steps import find_function

STEPS = """\
import nturl2path

import WEIGHTS


def heavy(number):
    return WEIGHTS.times(number), nturl2path.__file__
"""


@pytest.mark.parametrize("place", ["steps_NAME.py", "steps_NAME"])
def test_modules_beside_a_pipeline_travel_with_the_tasks(place: str, tmp_path: Path) -> None:
    """And a file with the name of a module of Python's own does not stand in for it."""
    name = "file" if place.endswith(".py") else "module"
    (tmp_path / f"steps_{name}.py").write_text(STEPS.replace("WEIGHTS", f"weights_{name}"))
    (tmp_path / f"weights_{name}.py").write_text("def times(number):\n    return number * 3\n")
    (tmp_path / "nturl2path.py").write_text("raise ImportError('the one beside the pipeline')")
    before = list(sys.path)
    function = find_function(tmp_path, place.replace("NAME", name) + ":heavy")
    assert sys.path == before
    assert function(2)[0] == 6
    assert Path(function(2)[1]).parent == Path(os.__file__).parent
    sent = tmp_path / "sent"
    sent.write_bytes(cloudpickle.dumps(function))
    program = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb'))(5)[0])"
    found = subprocess.run(
        [sys.executable, "-P", "-c", program, str(sent)],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.strip() == "15", found.stderr


def test_a_module_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PipelineInvalid, match="there is no Python module absent_here"):
        find_function(tmp_path, "absent_here:f")
