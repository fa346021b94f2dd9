"""Reads by a secondary index on the short way and the general one, judged by one history; and ways
to break the short one, each of which must turn a storm red.

``python tests/simulation/test_index_reads.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
from sim_cluster import Violation
from sim_index_reads import IndexStorm, dense, moving, quiet
from sim_transactions import run_seed

from remuda.member.base.peers import Peers
from remuda.member.maps.index_reads import IndexReads
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.storage.indexes.index_set import IndexSet

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 20
CAUGHT_WITHIN = 10
"""Seeds that are tried."""
Patch = pytest.MonkeyPatch
Seen = tuple[Callable[[int, str | None], Any], str]
"""The storm that notices it, and a word of what the judge tells."""


def run(seed: int, kind: Callable[[int, str | None], Any]) -> IndexStorm:
    storm: Any = run_seed(seed, "serializable", kind)
    assert isinstance(storm, IndexStorm)
    return storm


def test_both_ways_have_one_history() -> None:
    storm = run(0, dense)
    assert storm.asked > 50, storm.ends
    assert storm.ends["indexed well"] > 50, storm.ends
    storm = run(0, IndexStorm)
    assert storm.asked > 20, storm.ends


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_both_ways_have_one_history_in_many_storms() -> None:
    for seed in range(SOAK_SEEDS):
        for kind in (dense, quiet, moving, IndexStorm):
            run(seed, kind)


# --- broken short ways --------------------------------------------------------------------------


def a_member_is_left_out(patch: Patch) -> Seen:
    original = Peers.request_nowait

    def request_nowait(self: Peers, number: int, rpc_type: int, *rest: Any) -> None:
        if rpc_type == RpcType.INDEX_READ and number == 2:
            number = 3 if self._core.number == 1 else 1
        original(self, number, rpc_type, *rest)

    patch.setattr(Peers, "request_nowait", request_nowait)
    return dense, "the index finds"


def what_is_newer_is_not_seen(patch: Patch) -> Seen:
    """A member answers as of T, though it has committed above T and told its user so."""
    original = IndexSet.few

    def few(self: IndexSet, *arguments: Any) -> Any:
        return original(self, *arguments[:-1], None)

    patch.setattr(IndexSet, "few", few)
    return quiet, "realtime|G-single|G2"


def what_is_undecided_is_not_seen(patch: Patch) -> Seen:
    """Half of a transaction is seen: one part has ended, another one is not decided yet."""
    patch.setattr(IndexReads, "_awaits", lambda *_: False)
    return dense, "G-single|G2|G1c"


MUTATIONS = (a_member_is_left_out, what_is_newer_is_not_seen, what_is_undecided_is_not_seen)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_short_way_is_noticed(
    mutation: Callable[[Patch], Seen], monkeypatch: Patch
) -> None:
    kind, says = mutation(monkeypatch)
    with pytest.raises(Violation, match=says):
        for seed in range(CAUGHT_WITHIN):
            run(seed, kind)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        for each in (dense, quiet, moving, IndexStorm):
            found = run(number, each)
            print(number, found.events, found.asked, dict(found.ends))
