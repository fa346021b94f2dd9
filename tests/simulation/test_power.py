"""Losses of power of whole clusters: a few seeds here, many in ./run soak; and ways to break what
the log promises, each of which must turn one red.

``python tests/simulation/test_power.py SEED [LAST]`` runs some.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "transaction"))
sys.path.append(str(Path(__file__).parent.parent / "faults"))
sys.path.append(str(Path(__file__).parent.parent / "storage"))
import sim_log_disk
import sim_power
from sim_cluster import Violation
from sim_disk import PowerCut
from sim_log_disk import LogDisk
from sim_power import COMING, PowerStorm, run_seed
from sim_transaction_works import Bank, Elements

from remuda.errors import RemudaError, ResourceError
from remuda.member.journal.group import GroupCommit
from remuda.member.journal.writer import MemberWal
from remuda.storage.format import segment
from remuda.storage.log import reader

SEEDS = int(os.environ.get("REMUDA_SIMULATION_POWER_SEEDS", "2"))
SOAK_SEEDS = int(os.environ.get("REMUDA_SIMULATION_SOAK_SEEDS", "10000")) // 5
CAUGHT_WITHIN = 30
"""Seeds that are tried when the known one shows nothing any more."""


def test_nothing_acknowledged_is_lost() -> None:
    ends: Counter[str] = Counter()
    cuts = 0
    for seed in range(SEEDS):
        storm = run_seed(seed)
        ends.update(storm.ends)
        cuts += storm.cuts + storm.recovered
    assert cuts > SEEDS
    assert sum(count for name, count in ends.items() if name.endswith(" well")) > 5 * SEEDS


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_losses_of_power() -> None:
    for seed in range(SEEDS, SOAK_SEEDS):
        run_seed(seed)


class InterruptedStart(PowerStorm):
    """The power goes when one of three has settled in its log, and has not said so in its folder;
    then one of the others is so late that the cluster goes on without it."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.size, self.backups, self.cuts = 3, 2, 1
        self.works = [Elements(self.told), Bank(self.told)]
        self.settled = ""

    def _arrange_the_start(self) -> None:
        for name, disk in self.machines.items():
            disk.__dict__.pop("write", None)
            if not self.settled:
                disk.write = partial(self._cut_at_the_folder, name)  # type: ignore[method-assign]

    def _cut_at_the_folder(self, name: str, path: Path, _content: bytes) -> None:
        assert path.name == "member.json"
        self.settled = name
        self._all_end("between log and folder")
        raise PowerCut

    def _order(self) -> list[str]:
        return [self.settled, *sorted(self.machines.keys() - {self.settled})][-3:]

    def _coming(self, machine: str) -> float:
        return max(COMING) if self.settled and machine == max(self.machines) else 0.0


def test_a_start_that_was_interrupted() -> None:
    """What one has given up in its log for others is not taken from there, if they do not come."""
    storm = InterruptedStart(0)
    storm.run(0)
    assert storm.settled
    assert storm.recovered == 1


class RefusedStart(PowerStorm):
    """When all settle, the folder of the second one of three cannot be written; the others go on
    without it, in the same start."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.size, self.backups, self.cuts = 3, 2, 1
        self.works = [Elements(self.told), Bank(self.told)]
        self.settled: list[str] = []

    def _arrange_the_start(self) -> None:
        for name, disk in self.machines.items():
            disk.write = partial(self._written, name)  # type: ignore[method-assign]

    def _written(self, name: str, path: Path, content: bytes) -> None:
        if path.name == "member.json":
            self.settled.append(name)
            if len(self.settled) == 2:
                raise ResourceError(f"cannot write {path}")
        LogDisk.write(self.machines[name], path, content)

    def _coming(self, _machine: str) -> float:
        return 0.0


def test_a_start_that_one_refused() -> None:
    """The first one has given up what it has not, and the second one has."""
    storm = RefusedStart(0)
    storm.run(0)
    assert len(storm.settled) > 2


def test_storms_are_what_they_claim_to_be() -> None:
    storms = [PowerStorm(seed) for seed in range(200)]
    assert {storm.backups for storm in storms} == {0, 1, 2}
    assert {storm.size for storm in storms} == {1, 2, 3, 4}
    assert len({work.name for storm in storms for work in storm.works}) == 8


Patch = pytest.MonkeyPatch


def nothing(*_: Any, **__: Any) -> None: ...


def answers_do_not_wait(patch: Patch) -> None:
    """They go out before the record is on the disk."""
    patch.setattr(GroupCommit, "after", lambda _self, action: action())
    patch.setattr(sim_power, "DISK_WORK", (0.1,))


def votes_are_not_noted(patch: Patch) -> None:
    """A part votes, and its log does not know of it."""
    patch.setattr(MemberWal, "part_prepared", nothing)
    patch.setattr(MemberWal, "job_prepared", nothing)


def torn_records_are_read(patch: Patch) -> None:
    """Without a look at their checksums. (Small records are torn by bytes, seldom by sectors.)"""
    patch.setattr(sim_log_disk.sim_disk, "GRAINS", (sim_log_disk.sim_disk.BYTES,))

    def read_frame(data: bytes, offset: int, salt: int) -> segment.Frame | None:
        body = offset + len(segment.FRAME_MAGIC) + segment._checksum.size
        start = offset + segment.FRAME_OVERHEAD
        if start > len(data) or not data.startswith(segment.FRAME_MAGIC, offset):
            return None
        size, sequence, durable, kind = segment._frame.unpack_from(data, body)
        end = min(start + size, len(data))
        (checksum,) = segment._checksum.unpack_from(data, offset + len(segment.FRAME_MAGIC))
        return segment.Frame(offset, end, checksum, sequence, durable, kind, data[start:end])

    patch.setattr(reader, "read_frame", read_frame)


def names_are_not_synced(patch: Patch) -> None:
    """A segment is written and synced; its name is not on the disk."""
    patch.setattr(LogDisk, "sync_folder", nothing)


MUTATIONS: dict[Callable[[Patch], None], int] = {
    answers_do_not_wait: 2,
    votes_are_not_noted: 2,
    torn_records_are_read: 33,
    names_are_not_synced: 0,
}
"""With a seed that sees it."""


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_broken_promise_is_noticed(mutation: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutation(monkeypatch)
    with pytest.raises((Violation, RemudaError)):
        for seed in (MUTATIONS[mutation], *range(100, 100 + CAUGHT_WITHIN)):
            run_seed(seed)


if __name__ == "__main__":
    first = int(sys.argv[1])
    for number in range(first, int((*sys.argv, first)[2]) + 1):
        storm = run_seed(number)
        print(number, storm.size, storm.backups, storm.cuts, storm.recovered, dict(storm.ends))
