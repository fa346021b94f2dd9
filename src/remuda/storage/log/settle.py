"""How transactions in doubt end when all members are at rest and only their logs speak: a restore,
or ``verify``. Members that run ask each other instead (``transaction.parts``), by the same rule.
Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from remuda.errors import DataCorrupted
from remuda.storage.format.records import (
    Committed,
    JobCommitted,
    PartId,
    Prepared,
    Record,
    RolledBack,
)


@dataclass(slots=True)
class Witnesses:
    """What all logs together say about the parts of transactions."""

    prepared: dict[PartId, int] = field(default_factory=dict)
    """The highest prepare timestamp of a part that is not rolled back later in the same log."""
    committed: dict[PartId, int] = field(default_factory=dict)
    rolled_back: set[PartId] = field(default_factory=set)
    jobs: dict[str, int] = field(default_factory=dict)
    """The jobs that are committed."""

    def observe(self, record: Record) -> None:
        match record:
            case Prepared(part=part, timestamp=timestamp):
                self.prepared[part] = max(self.prepared.get(part, 0), timestamp)
            case Committed(part=part, timestamp=timestamp):
                known = self.committed.setdefault(part, timestamp)
                if known != timestamp:
                    raise DataCorrupted(f"{part} is committed at {known} and at {timestamp}")
            case RolledBack(part=part):
                self.rolled_back.add(part)
            case JobCommitted(job=job, timestamp=timestamp):
                known = self.jobs.setdefault(job, timestamp)
                if known != timestamp:
                    raise DataCorrupted(f"job {job} is committed at {known} and at {timestamp}")
            case _:
                pass


def decide(part: PartId, partitions: Collection[int], witnesses: Witnesses) -> int | None:
    """The commit timestamp of the transaction that ``part`` belongs to; None: it is rolled back.

    One that is committed somewhere is committed; one that is prepared everywhere may have been
    answered, and is; all others never were.
    """
    parts = [PartId(part.began, part.near, partition) for partition in partitions]
    ends = {witnesses.committed[each] for each in parts if each in witnesses.committed}
    if len(ends) > 1:
        raise DataCorrupted(f"parts of one transaction are committed at {sorted(ends)}: {part}")
    if ends:
        return ends.pop()
    if any(each in witnesses.rolled_back or each not in witnesses.prepared for each in parts):
        return None
    return max(witnesses.prepared[each] for each in parts)


def decide_job(job: str, witnesses: Witnesses) -> int | None:
    """As ``transaction.staged_commit`` decides without a coordinator: a job stands if one of its
    participants has committed it. Its user was told only when all had."""
    return witnesses.jobs.get(job)


def undecided(
    in_doubt: Mapping[PartId, Prepared], witnesses: Witnesses
) -> dict[PartId, int | None]:
    """How each part in doubt ends."""
    return {part: decide(part, each.partitions, witnesses) for part, each in in_doubt.items()}
