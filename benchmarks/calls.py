"""Python calls, files, messages, bytes and syncs per operation: ``./run bench calls``.

Three members and an asyncio client run in one process on one loop (``counted_loop.py``), with one
synchronous backup unless an operation says otherwise. A profile hook counts every call of a Python
function and every resumption of a coroutine or generator that an operation causes, on the client
and on all members; background work does not count, nor does what a timer does later. So nothing of
this depends on time or load. ``calls.toml`` has the recorded figures and the goals, for one
version of Python, as others call differently; ``--record`` writes today's figures there, and
``--profile NAME`` prints which functions an operation calls.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import statistics
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from counted_door import at_the_door
from counted_loop import Count
from counted_operations import (
    Grid,
    Operation,
    batches,
    by_key,
    children,
    grid,
    queries,
    transactions,
    with_numbers,
)

BUDGETS = Path(__file__).with_name("calls.toml")
WARM_UP, REPETITIONS = 6, 5
PAUSE = 0.05
"""Seconds between two operations, in which background work goes on."""
IDLE_AFTER, IDLE = 12.0, 4.0
"""Versions of ten seconds are kept. Seconds in which everything counts, of members with nothing to
do: looks at the stores are two seconds apart."""


@dataclass(frozen=True)
class Figures:
    """Medians over the repetitions."""

    calls: int
    files: int
    messages: int
    bytes: int
    syncs: int


@dataclass(frozen=True)
class Budget:
    recorded: int
    goal: int | None = None

    @property
    def allowed(self) -> int:
        """2 % more than was recorded, and at least 5 calls: so small a change needs no new table,
        a step more for each request does."""
        return self.recorded + max(5, self.recorded // 50)


def budgets() -> tuple[str, dict[str, Budget]]:
    """The version of Python that they hold for, and the budget of each operation."""
    content = tomllib.loads(BUDGETS.read_text(encoding="utf-8"))
    python = content.pop("python")
    return python, {name: Budget(**each) for name, each in content.items()}


def write_budgets(python: str, found: dict[str, Budget]) -> None:
    lines = ["# Python calls of each operation, members and client together: `./run bench calls`.",
             f'python = "{python}"']  # fmt: skip
    for name, budget in found.items():
        lines += ["", f'["{name}"]', f"recorded = {budget.recorded}"]
        lines += [] if budget.goal is None else [f"goal = {budget.goal}"]
    BUDGETS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def this_python() -> str:
    return f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}"


def counted(here: Grid, operation: Operation) -> list[Count]:
    """One for each repetition."""
    for number in range(WARM_UP):
        here.loop.complete(operation(number))
        here.loop.rest(PAUSE)
    counts = []
    for number in range(WARM_UP, WARM_UP + REPETITIONS):
        counts.append(here.loop.count(operation, number))
        here.loop.rest(PAUSE)
    return counts


def all_counts() -> Iterator[tuple[str, list[Count]]]:
    """Each operation by its name in ``calls.toml``."""
    # Batches depend on how the rows of a map lie in chunks, hence on all writes before: they have
    # members of their own, so that no other operation changes their figures.
    for makers in (
        (by_key, transactions, queries, at_the_door, with_numbers),
        (batches,),
        (children,),
    ):
        with grid() as here:
            for make in makers:
                operations = here.loop.complete(make(here))
                for name, operation in operations.items():
                    yield name, counted(here, operation)
    with grid(backups=0) as here:
        yield "put without backup", counted(here, here.loop.complete(by_key(here))["put"])
    with grid() as here:
        here.loop.rest(IDLE_AFTER)
        yield "4 idle seconds", [here.loop.count_all(IDLE) for _ in range(REPETITIONS)]
    with tempfile.TemporaryDirectory() as folder, grid(Path(folder), log_sync="fsync") as here:
        operations = here.loop.complete(by_key(here))
        yield "put with fsync log", counted(here, operations["put"])
        yield "16 puts with fsync log", counted(here, operations["16 puts at once"])


def figures(counts: list[Count]) -> Figures:
    return Figures(
        *(
            int(statistics.median(getattr(count, name) for count in counts))
            for name in ("total", "files", "messages", "bytes", "syncs")
        )
    )


def print_profile(counts: list[Count]) -> None:
    """Calls by function, of the last repetition."""
    found: Counter[str] = Counter()
    for code, number in counts[-1].calls.items():
        place = code.co_filename.rpartition("/src/")[2] or code.co_filename
        found[f"{place}:{code.co_firstlineno} {code.co_qualname}"] += number
    for name, number in found.most_common():
        print(f"{number:6} {name}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true", help="write today's figures to calls.toml")
    parser.add_argument("--profile", metavar="NAME", help="functions that one operation calls")
    options = parser.parse_args()
    python, known = budgets()
    if python != this_python():
        print(f"(this is {this_python()}; the recorded calls are those of {python})\n")
        options.record = False
    print("| operation | calls | recorded | goal | files | messages | bytes | syncs |")
    print("|---|---|---|---|---|---|---|---|")
    found = {}
    with contextlib.closing(all_counts()) as counting:
        for name, counts in counting:
            if options.profile is not None:
                if name == options.profile:
                    print_profile(counts)
                continue
            now = figures(counts)
            budget = known.get(name, Budget(now.calls))
            found[name] = Budget(now.calls, budget.goal)
            goal = "" if budget.goal is None else f"{budget.goal:,}"
            print(f"| {name} | {now.calls:,} | {budget.recorded:,} | {goal} | {now.files}"
                  f" | {now.messages} | {now.bytes:,} | {now.syncs} |", flush=True)  # fmt: skip
    if options.record:
        write_budgets(python, found)
    return 0


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # members that stop one after the other miss each other
    sys.exit(main())
