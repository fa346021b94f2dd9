"""What may come between two steps of a transaction with definitions (decision 0109): a few steps in
each run, every one in ``./run soak``; and ways to break the rules, each of which turns one red.

``python tests/simulation/test_definition_steps.py make 117 all`` runs one.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
sys.path.append(str(Path(__file__).parent.parent / "storage"))
import sim_definition_steps
from sim_cluster import Violation
from sim_definition_steps import TRANSACTIONS, Event, happening, reference
from sim_steps import kinds

from remuda.member.membership import forming_again
from remuda.member.membership.forming_again import Gathering
from remuda.member.sessions.transaction_definitions import TransactionDefinitions
from remuda.transaction import states as tx
from remuda.transaction.near import Near
from remuda.transaction.recovered_parts import RecoveredParts

FEW: tuple[tuple[str, Event, str, int], ...] = (
    ("make", "all", "frame PARTS", -12),
    ("make", "all", "frame CATALOG_VOTE", -2),
    ("replace", "all", "frame CATALOG_INSTALL", -1),
    ("make", "one", "frame CATALOG_CHANGE", -1),
    ("replace", "join", "frame CATALOG_VOTE", -3),
    ("make", "cut", "frame CATALOG_CHANGE", 2),
)
"""Transaction, what comes, and the step before which it comes, of those of a kind."""


def place(what: str, kind: str, which: int) -> int:
    """The number of a step, of those of a kind."""
    steps = enumerate(reference(what).steps, 1)
    return [number for number, step in steps if step.startswith(f"{kind} of")][which]


def test_a_transaction_is_what_it_claims_to_be() -> None:
    for what in TRANSACTIONS:
        run = reference(what)
        assert run.acknowledged
        assert run.after != run.before
        assert kinds(run)["frame PARTS"] > 10
        assert kinds(run)["frame CATALOG_VOTE"] > 3


@pytest.mark.parametrize(("what", "event", "kind", "which"), FEW)
def test_a_few_steps(what: str, event: Event, kind: str, which: int) -> None:
    run = happening(what, place(what, kind, which), event)
    assert run.came
    assert run.acknowledged or event in {"all", "one"}


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("event", ["all", "one", "join", "cut"])
@pytest.mark.parametrize("what", TRANSACTIONS)
def test_every_step(what: str, event: Event) -> None:
    told: Counter[bool] = Counter()
    for step in range(1, len(reference(what).steps) + 1):
        told[happening(what, step, event).acknowledged] += 1
    assert told[True], told


# --- broken rules -------------------------------------------------------------------------------

Patch = pytest.MonkeyPatch


def names_come_before_the_rows(patch: Patch) -> None:
    """The catalog is asked first, and the rows are prepared afterwards."""
    prepare, on_catalog = Near.prepare, Near.on_catalog

    def ask(self: Near, now: float) -> list[tx.Effect]:
        if not self._by_catalog:
            return prepare(self, now)
        self.state = tx.State.PREPARING
        return [tx.DecideHere(self.transaction, self.transaction.began)]

    def go_on(self: Near, now: float, cause: Any) -> list[tx.Effect]:
        if cause is not None or not self._by_catalog:
            return on_catalog(self, now, cause)
        self._votes[tx.CATALOG] = self.transaction.began
        return self._send(now)

    patch.setattr(Near, "prepare", ask)
    patch.setattr(Near, "on_catalog", go_on)


def parts_end_without_the_catalog(patch: Patch) -> None:
    """Prepared parts whose near member is lost commit when all others are prepared."""

    def decide(self: Any, address: Any, part: Any) -> list[tx.Effect]:
        if {*part.partitions} - {address[1], *part.told} != {tx.CATALOG}:
            return []
        at = [part.prepare_timestamp, *(each.timestamp for each in part.told.values())]
        return self._end_recovery(address, part, max(at))  # type: ignore[no-any-return]

    patch.setattr(RecoveredParts, "_ask_catalog", decide)


def a_start_asks_no_catalog(patch: Patch) -> None:
    """Parts in the logs commit when all are prepared."""
    patch.setattr(forming_again, "CATALOG", -1)


def a_start_forgets_the_catalog(patch: Patch) -> None:
    """Parts in the logs are rolled back, whatever the catalog of the logs notes."""
    decide = Gathering.decide

    def blindly(self: Any, found: Any, told: Any) -> Any:
        answers = list(told)
        for answer in answers:
            answer.catalog.ClearField("decided")
        return decide(self, found, answers)

    patch.setattr(Gathering, "decide", blindly)


def maps_of_earlier_lives_stay(patch: Patch) -> None:
    """Nobody drops after a start what a transaction before it has made."""
    patch.setattr(TransactionDefinitions, "_look_for_left", lambda *_: None)


MUTATIONS: dict[Callable[[Patch], None], tuple[Event, int]] = {
    names_come_before_the_rows: ("one", 70),
    a_start_asks_no_catalog: ("all", 132),
    a_start_forgets_the_catalog: ("all", 142),
    parts_end_without_the_catalog: ("one", 115),
    maps_of_earlier_lives_stay: ("all", 40),
}
"""With what comes and the step of ``make`` before which it comes, which see it."""
LONGER = (parts_end_without_the_catalog, maps_of_earlier_lives_stay)
CAUGHT_WITHIN = 20
"""Steps that are tried when the known one shows nothing any more."""


@pytest.mark.parametrize(
    "mutation",
    [pytest.param(m, marks=[pytest.mark.soak] if m in LONGER else []) for m in MUTATIONS],
    ids=lambda mutation: mutation.__name__,
)
def test_a_broken_rule_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    monkeypatch.setattr(sim_definition_steps, "_REFERENCES", {})
    mutation(monkeypatch)
    event, known = MUTATIONS[mutation]
    steps = len(reference("make").steps)
    with pytest.raises(Violation):
        for step in (known, *range(steps // 3, steps, max(1, steps // (2 * CAUGHT_WITHIN)))):
            happening("make", step, event)


if __name__ == "__main__":
    transaction, number, came = sys.argv[1:]
    print(happening(transaction, int(number), came).sim.useful_log())  # type: ignore[arg-type]
