"""Each kind of message between members is lost once: everything goes on, and nothing is left over.

``python tests/simulation/test_losses.py THEME SEED drop|break`` loses every kind of one theme.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sim_cluster import Violation
from sim_losses import Loss, LossRun, Theme, run_loss

from remuda.member.base.peers import Peers

SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 2500
TRIES = 3
PAUSE_OVER = {"MOVES_PAUSE over": (1, Loss.DROP)}


def lose_every_kind(
    theme: Theme, seed: int, loss: Loss, together: int = 1
) -> Mapping[str, LossRun | None]:
    """Lose one frame of each kind that a run without losses has sent, ``together`` of them in one
    run. None: the runs have not come to it, which a kind that depends on time may do."""
    chance = Random(f"{seed}/{theme}/{loss}")
    counts = run_loss(seed, theme).counts
    left = [kind for kind in sorted(counts) for _ in range(TRIES)]
    chance.shuffle(left)
    seen: dict[str, LossRun | None] = dict.fromkeys(counts)
    while left := [kind for kind in left if seen[kind] is None]:
        some = set(left[:together])
        del left[:together]
        lost = {kind: (chance.randint(1, counts[kind]), loss) for kind in sorted(some)}
        run = run_loss(seed, theme, lost)
        seen |= dict.fromkeys(run.happened, run)
    return seen


def test_a_pause_ends_although_a_message_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sent once, as it was before, a lost end of a pause stops moves for two minutes."""
    assert run_loss(1, Theme.WRITES, PAUSE_OVER).happened == [*PAUSE_OVER]

    def tell_once(self, number, rpc_type, message, heard=lambda: None):
        self.request_nowait(number, rpc_type, message(), (), lambda _: heard())

    monkeypatch.setattr(Peers, "tell", tell_once)
    with pytest.raises(Violation, match="not repaired"):
        run_loss(1, Theme.WRITES, PAUSE_OVER)


def test_requests_that_others_wait_for_are_sent_again() -> None:
    """And connections may break together with them."""
    lost = {"MOVES_PAUSE": (3, Loss.DROP), "COMMIT_TURN, answer": (4, Loss.DROP)}
    run = run_loss(1, Theme.WRITES, {**lost, "COPY_ROWS": (20, Loss.BREAK)})
    assert set(run.happened) >= {*lost}


def test_a_cut_goes_on_although_its_messages_are_lost() -> None:
    """Sent once, the answer to CUT_STORE was waited for as long as a slow store may take."""
    lost = {"CUT_CLOCK": (2, Loss.DROP), "CUT_MARK, answer": (3, Loss.DROP)}
    lost |= {"CUT_STORE, answer": (2, Loss.DROP)}
    assert {*run_loss(1, Theme.SNAPSHOTS, lost).happened} == {*lost}


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_operators_and_waiting_transactions_get_an_answer() -> None:
    """Their requests are lost, and the answer to a read that a transaction waits for."""
    lost = {"KEY_LOCK ask": (1, Loss.DROP), "END_WORK": (2, Loss.DROP), "DRAIN": (1, Loss.DROP)}
    assert {*lost} == {*run_loss(1, Theme.HANDS, lost).happened}
    answer = {"FORWARD MAP_GET, answer": (3, Loss.DROP)}
    assert run_loss(1, Theme.HANDS, answer).happened == [*answer]


@pytest.mark.soak
@pytest.mark.timeout(14400)
@pytest.mark.parametrize("loss", Loss)
@pytest.mark.parametrize("theme", Theme)
def test_every_kind(theme: Theme, loss: Loss) -> None:
    for seed in range(1, 2 + SOAK_SEEDS):
        seen = lose_every_kind(theme, seed, loss, together=1 if seed == 1 else 3)
        assert sum(run is not None for run in seen.values()) > 0.9 * len(seen)


if __name__ == "__main__":
    found = lose_every_kind(Theme(sys.argv[1]), int(sys.argv[2]), Loss(sys.argv[3]))
    print(f"{len(found)} kinds; not lost: {[kind for kind, run in found.items() if run is None]}")
