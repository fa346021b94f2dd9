"""The tests that are nearest to a change, by the import graph, within some seconds of work.

The distance of a test file from a changed module is the number of imports between them: 0 if the
file imports the module itself. An import through a conftest or a module beside the tests counts one
more. Each folder that the test shares with the module (``tests/planner`` and ``remuda.planner``)
counts one less, as does the module's name in the test's. Almost all tests of a high layer reach a
module of a low one, so the nearest are chosen until the seconds are spent, and ``./run test`` runs
the rest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import grimp
from file_costs import SHORT, read_costs
from imports_of_tests import TESTS, every_test_file, imported_names, shared_modules

ROOT = TESTS.parent
PACKAGES = ("remuda", "pyspark_remuda")
CHANGED = -10
"""The distance of a changed test file. The smallest of another one is that of its folders."""
FOUND_BY_FOLDER = {"remuda.execution.operator_builders": "remuda.execution.operators"}
"""Modules that import all modules of a folder, without an import statement for each."""
SECONDS = 20.0
"""Seconds of work of one run, shared by its processes."""


@dataclass(frozen=True)
class NearTests:
    """The files to run, the nearest first, and the number of files that reach the change too."""

    files: tuple[Path, ...]
    reaching: int


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ValueError(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.split("\n")[:-1]


def changed_files(since: str | None = None) -> set[Path]:
    """Files that differ from ``since``, uncommitted ones too. Without ``since``: from where this
    branch left main; if nothing differs from there, the last commit. ValueError if git cannot."""
    base = since or _git("merge-base", "main", "HEAD")[0]
    changed = _git("diff", "--name-only", base)
    changed += _git("ls-files", "--others", "--exclude-standard")
    if not changed and since is None:
        changed = _git("diff", "--name-only", "HEAD~1")
    return {ROOT / name for name in changed}


def module_of(file: Path) -> str | None:
    source = ROOT / "src"
    if file.suffix != ".py" or not file.is_relative_to(source):
        return None
    parts = file.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _distances(graph: grimp.ImportGraph, modules: Iterable[str]) -> dict[str, int]:
    """The number of imports between each module and the nearest of ``modules``."""
    found = {module: 0 for module in modules if module in graph.modules}
    edge = list(found)
    while edge:
        importers = {
            name for near in edge for name in graph.find_modules_that_directly_import(near)
        }
        distance = found[edge[0]] + 1
        edge = [name for name in sorted(importers) if name not in found]
        found.update(dict.fromkeys(edge, distance))
    return found


def _distance(file: Path, distances: dict[str, int], modules: Iterable[str]) -> int | None:
    steps = [distances[name] for name in imported_names(file) if name in distances]
    for shared in shared_modules(file):
        steps += [distances[name] + 1 for name in imported_names(shared) if name in distances]
    return min(steps) - max(_kinship(file, module) for module in modules) if steps else None


def _kinship(file: Path, module: str) -> int:
    """The number of folders that a test file shares with a module, and one for the name."""
    folders = zip(file.relative_to(TESTS).parts[:-1], module.split(".")[1:], strict=False)
    together = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], folders))
    return together + file.stem.startswith(f"test_{module.rsplit('.', 1)[-1]}")


def near_tests(changed: Collection[Path], seconds: float = SECONDS) -> NearTests:
    """The changed test files, those beside a changed module of the tests, and then the nearest."""
    modules = {module for file in changed if (module := module_of(file)) is not None}
    # Without a cache: that of import-linter holds its modules only as it has read them itself.
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    for importer, folder in FOUND_BY_FOLDER.items():
        for module in graph.find_children(folder):
            graph.add_import(importer=importer, imported=module)
    distances = _distances(graph, modules)
    costs = read_costs()
    ranked: list[tuple[int, float, Path]] = []
    for file in every_test_file():
        if file in changed:
            distance: int | None = CHANGED
        elif not shared_modules(file).isdisjoint(changed):
            distance = CHANGED + 1
        else:
            distance = _distance(file, distances, modules)
        if distance is not None:
            cost = costs.get(str(file.relative_to(ROOT)), SHORT)
            ranked.append((distance, cost, file))
    chosen: list[Path] = []
    for distance, cost, file in sorted(ranked):
        if distance > CHANGED and cost > seconds:
            continue
        seconds -= cost
        chosen.append(file)
    return NearTests(tuple(chosen), len(ranked))
