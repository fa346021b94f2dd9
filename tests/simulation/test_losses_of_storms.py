"""Messages that members send while they give copies back, return with folders, start again after a
loss of power, decide what a lost member has left, restore, or have no room: each kind is lost once,
and the run judges itself.

``python tests/simulation/test_losses_of_storms.py STORM SEED`` prints what a run sends.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
sys.path.append(str(Path(__file__).parent.parent / "storage"))
from sim_losses import Loss
from sim_losses_of_storms import StormLoss

BOTH, BROKEN = tuple(Loss), (Loss.BREAK,)
ENDS = ("PARTS INQUIRE", "PARTS TOLD", "PARTS BACKUP_ENDED", "PARTS BACKUP_FORGET")
KINDS = [
    ("donors", 1, ("AGREE REFUSED", "DONATE", "DONATE_COPIES"), BOTH),
    ("power", 1, ("RECOVER", "VIEW_INSTALL"), BOTH),
    ("returns", 1, ("COPY_COMPARE",), BROKEN),
    ("transactions", 20, ENDS, BOTH),
    ("snapshots", 1, ("SNAPSHOT_READ",), BOTH),
    ("bulk writes in doubt", 1, ("DONATE_JOB",), BOTH),
    ("uniques", 1, ("COMMIT_CHECK", "JOB_VALUES"), BOTH),
    ("numbers", 1, ("SEQUENCE", "SEQUENCE_VOID"), BOTH),
    ("full backups", 1, ("PARTS BACKUP_REFUSED",), BOTH),
]


def test_a_start_from_logs_goes_on_although_a_request_is_lost() -> None:
    """The others wait for the answer: it is asked for again."""
    lost = {"RECOVER": (2, Loss.DROP)}
    assert StormLoss("power", 1, lost).run().happened == [*lost]


@pytest.mark.soak
def test_a_restore_goes_on_although_a_request_or_its_answer_is_lost() -> None:
    """The coordinator would wait for five minutes: the member is asked again, and reads once."""
    for kind in ("SNAPSHOT_READ", "SNAPSHOT_READ, answer"):
        assert StormLoss("snapshots", 1, {kind: (2, Loss.DROP)}).run().happened == [kind]


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("storm", "seed", "kinds", "losses"), KINDS)
def test_every_kind(storm: str, seed: int, kinds: Sequence[str], losses: Sequence[Loss]) -> None:
    counts = StormLoss(storm, seed).run().counts
    assert counts.keys() >= set(kinds)
    names = (name for kind in kinds for name in (kind, f"{kind}, answer"))
    for kind in filter(counts.__contains__, names):
        for loss in losses:
            number = Random(f"1{kind}{loss}").randint(1, counts[kind])
            run = StormLoss(storm, seed, {kind: (number, loss)}).run()
            assert run.happened == [kind]


if __name__ == "__main__":
    print(dict(StormLoss(sys.argv[1], int(sys.argv[2])).run().counts))
