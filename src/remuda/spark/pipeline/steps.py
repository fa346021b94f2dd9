"""Make the view of a step: SQL over the views before it, or a Python function of DataFrames."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from remuda.errors import RemudaError
from remuda.spark.pipeline.context import Context
from remuda.spark.pipeline.document import nearest
from remuda.spark.pipeline.errors import PipelineInvalid
from remuda.spark.pipeline.model import Step
from remuda.spark.pipeline.read_steps import PYTHON


def make_view(context: Context, step: Step) -> DataFrame:
    """Raises ``PipelineInvalid`` for SQL that is no query, and for functions that are not there or
    fail."""
    with context.at(step.line, f"step {step.name}"):
        arguments = {
            name: context.values.fill(value) if isinstance(value, str) else value
            for name, value in step.arguments.items()
        }
        if step.sql is not None:
            # In parentheses it can be a query only: Spark runs commands as soon as it sees them.
            query = step.sql.strip().rstrip(";")
            return context.spark.sql(f"SELECT * FROM ({query}\n)", args=arguments or None)  # noqa: S608
        assert step.python is not None
        function = find_function(context.pipeline.folder, step.python)
        frames = [context.spark.table(name) for name in step.inputs]
        with _beside(context.pipeline.folder):
            return _called(function, frames, arguments, step.python)


def find_function(folder: Path, text: str) -> Callable[..., Any]:
    """``module:function`` or ``file.py:function``, files and modules beside the pipeline first."""
    match = PYTHON.match(text)
    assert match is not None
    place, name = match["module"], match["function"]
    with _beside(folder):
        module = _of_file(folder / place) if place.endswith(".py") else _of_name(place)
    found = getattr(module, name, None)
    if not callable(found):
        functions = [key for key, value in vars(module).items() if callable(value)]
        raise PipelineInvalid(f"{place} has no function {name}", hint=nearest(name, functions))
    return found  # type: ignore[no-any-return]


def _of_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise PipelineInvalid(
            f"there is no file {path}", hint="Paths are relative to the pipeline file."
        )
    # Anew for each run: a pipeline that goes on with its schedule sees a corrected file.
    name = f"remuda_pipeline_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _failed(error, str(path)) from error
    # A second run loads it under the same name, which is not new then.
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    return module


def _of_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise PipelineInvalid(
                f"there is no Python module {name}",
                hint="It must be installed, or lie beside the pipeline file.",
            ) from None
        raise _failed(error, name) from error
    except Exception as error:
        raise _failed(error, name) from error


@contextmanager
def _beside(folder: Path) -> Iterator[None]:
    """Modules beside the pipeline can be imported inside. Workers cannot import them: the
    definitions of such a module travel with the tasks."""
    before = set(sys.modules)
    sys.path.insert(_after_standard_library(), str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        place = folder.resolve()
        for name in sys.modules.keys() - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).resolve().is_relative_to(place):
                cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]


def _after_standard_library() -> int:
    """The place in ``sys.path`` behind Python's own modules and in front of installed packages: a
    file csv.py beside a pipeline does not stand in for Python's."""
    own = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    own |= {str(Path(path) / "lib-dynload") for path in own}
    return max((place + 1 for place, path in enumerate(sys.path) if path in own), default=0)


def _called(
    function: Callable[..., Any], frames: list[DataFrame], arguments: dict[str, Any], text: str
) -> DataFrame:
    try:
        made = function(*frames, **arguments)
    except (RemudaError, PySparkException):
        raise
    except Exception as error:
        raise _failed(error, text) from error
    if not isinstance(made, DataFrame):
        raise PipelineInvalid(f"{text} returned {type(made).__name__} instead of a DataFrame")
    return made


def _failed(error: Exception, text: str) -> PipelineInvalid:
    """The error that the user's code raised, with the place in it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "importlib" not in f.filename and f.filename != __file__]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}: " if own else ""
    if isinstance(error, SyntaxError) and error.filename:
        place = f"{Path(error.filename).name}:{error.lineno}: "
    return PipelineInvalid(f"{text} failed: {place}{type(error).__name__}: {error}")
