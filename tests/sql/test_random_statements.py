"""No statement ends with an internal error: random ones over the catalogue of functions, operators,
types and clauses, on a member that parses, binds, plans and runs them."""

from __future__ import annotations

import itertools
import os
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import pytest

import remuda
from remuda.errors import RemudaError

sys.path.insert(0, str(Path(__file__).parent))
from random_statements import SETUP, Statements
from typed_statements import TypedStatements
from wide_statements import WideStatements

SEED = 20_261_122
IN_DEFAULT_RUN = 200
IN_SOAK = 1_000_000
PER_CLUSTER = 25_000
"""After so many, statements of definitions have changed what the others may meet."""
ROWS_READ = 300
PATIENCE = 20.0

pytestmark = pytest.mark.cluster


def _outcome(client: remuda.Client, text: str) -> str:
    """The SQLSTATE, or "ok"; exceptions of Python itself are the client's, and not caught."""
    try:
        with client.sql(text, timeout=PATIENCE) as cursor:
            for _ in itertools.islice(cursor, ROWS_READ):
                pass
    except RemudaError as error:
        return f"{error.sqlstate}: {error.message}" if error.sqlstate == "XX000" else error.sqlstate
    return "ok"


def _run(make: type[Statements], seed: int, count: int) -> Counter[str]:
    """How statements ended; fails with those that ended with an internal error."""
    outcomes: Counter[str] = Counter()
    bugs: list[str] = []
    statements = make(seed)
    strict = patch.dict(os.environ, PYTHONWARNINGS="error::RuntimeWarning")  # NumPy's, too
    with strict, remuda.start(members=1) as cluster, cluster.connect() as client:
        for text in SETUP:
            client.sql(text).close()
        for _ in range(count):
            text = statements.statement()
            found = _outcome(client, text)
            outcomes[found[:5]] += 1
            if found.startswith("XX000"):
                bugs.append(f"{found}\n    {text}")
            elif found == "25P02":  # a transaction that something has aborted
                client.sql("ROLLBACK").close()
        counted = next(iter(client.sql("SELECT internal_errors FROM sys.members")))[0]
    assert counted == len(bugs)
    assert not bugs, f"seed {seed}:\n" + "\n".join(bugs[:20])
    return outcomes


def test_random_statements_end_without_internal_errors() -> None:
    outcomes = _run(Statements, SEED, IN_DEFAULT_RUN)
    # Most of the grammar refuses; without those that run, execution would not be tried at all.
    assert outcomes["ok"] > IN_DEFAULT_RUN / 8
    assert len(outcomes) > 10


def test_random_statements_of_fitting_types_mostly_run() -> None:
    outcomes = _run(TypedStatements, SEED, IN_DEFAULT_RUN)
    assert outcomes["ok"] > IN_DEFAULT_RUN / 2


def test_random_casts_paths_arrays_and_catalogs_end_without_internal_errors() -> None:
    outcomes = _run(WideStatements, SEED, IN_DEFAULT_RUN)
    assert outcomes["ok"] > IN_DEFAULT_RUN / 5
    assert len(outcomes) > 10


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("part", range(IN_SOAK // PER_CLUSTER))
def test_a_million_random_statements(part: int) -> None:
    made = (Statements, TypedStatements, WideStatements)[part % 3]
    _run(made, SEED + 1 + part, PER_CLUSTER)
