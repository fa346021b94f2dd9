"""Objects of a store that belong to no cut of a snapshot: which cut was lost with them, or how to
go on.

Somebody who is making a cut says so in a note first, so without one nobody is at it, and everything
that no manifest names was left: by a process that was killed, by an ``expire`` that was, or by a
manifest that was deleted together with the record of its cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from remuda.errors import DataCorrupted, UndefinedObject, UnknownFormat
from remuda.storage.snapshot.chain import Chain, load
from remuda.storage.snapshot.cut_records import decode_record, record_key
from remuda.storage.snapshot.expiring import LEFT_AFTER
from remuda.storage.snapshot.object_store import ObjectStore, unfinished_files
from remuda.storage.snapshot.writing import begun, manifest_key

SHOWN: Final = 20
"""Objects that are named one by one; of more, the number is told."""

Found = tuple[str, str]
"""A place and what is wrong with it."""


def lost_cuts(store: ObjectStore, chain: Chain) -> list[Found]:
    """False statements in the records of cuts, and cuts that have no record."""
    found = list(_without_records(chain))
    for version in sorted(chain.records()):
        key = record_key(chain.name, version)
        try:
            record = decode_record(store.get(key))
        except (DataCorrupted, UnknownFormat) as problem:
            found.append((key, problem.message))
            continue
        except UndefinedObject:  # given up meanwhile
            continue
        if record.version != version:
            found.append((key, f"it is the record of cut {record.version}"))
        elif version in chain.lost():
            at = datetime.fromtimestamp(record.created / 1e6, UTC).isoformat(timespec="seconds")
            problem_text = (
                f"the cut was finished at {at}, and its manifest is missing. Put"
                f" {manifest_key(chain.name, version)} (SHA-256 {record.manifest}) back from a"
                f" copy, or give the cut up: DROP SNAPSHOT {chain.name} CUT {version}"
            )
            found.append((f"cut {version}", problem_text))
        elif version in chain.digests and chain.digests[version] != record.manifest:
            found.append(
                (manifest_key(chain.name, version), "it is not the manifest that the cut had")
            )
    return found


def left_over(store: ObjectStore, chain: Chain, *, now: int) -> list[Found]:
    """Objects and files that belong to nothing, and cuts that were left in the middle. ``now`` in
    microseconds since 1970; 0: nothing is old."""
    found: list[Found] = []
    being_made: list[int] = []
    for version in chain.pending():
        if version in chain.manifests:
            continue  # the next cut, or expire, takes the note
        at = begun(store, chain.name, version)
        if not 0 < at < now - LEFT_AFTER:
            being_made.append(version)
            continue
        text = (
            f"it was begun more than a day ago and is not finished. If who made it is gone: EXPIRE"
            f" SNAPSHOT, or DROP SNAPSHOT {chain.name} CUT {version}"
        )
        found.append((f"cut {version}", text))
    if not being_made and not chain.pending():
        found += _objects(store, chain)
    for each in unfinished_files(store, f"{chain.name}/"):
        if not being_made or 0 < each.modified < now - LEFT_AFTER:
            text = (
                f"a file of {each.size} bytes that never became an object: its writer was killed."
                " EXPIRE SNAPSHOT removes it when it is a day old"
            )
            found.append((each.path, text))
    return found


def _objects(store: ObjectStore, chain: Chain) -> Iterator[Found]:
    if chain.damaged or chain.lost():
        return  # nobody knows what these need
    if not chain.spare():
        return
    again = load(store, chain.name)  # what has come or gone since the first look is no finding
    if again.pending():
        return
    spare = sorted(chain.spare() & again.spare())
    text = (
        "no cut needs it: what made it was interrupted, or its cut's manifest and record are gone."
        " EXPIRE SNAPSHOT removes it"
    )
    for key in spare[:SHOWN]:
        yield key, text
    folders = Counter(key.rpartition("/")[0] for key in spare[SHOWN:])
    for folder, count in folders.items():
        yield f"{folder}/", f"{count} more objects that no cut needs"


def _without_records(chain: Chain) -> Iterator[Found]:
    """A record is put before its manifest, so each manifest has one, also while others are made."""
    records = chain.records()
    for version in sorted(set(chain.manifests) - records):
        key = record_key(chain.name, version)
        text = (
            f"its record {key} is missing: somebody deleted it, or gave the cut up and was"
            " interrupted. The cut can be restored, but the loss of its manifest would not be"
            f" noticed. EXPIRE SNAPSHOT {chain.name} writes the record again"
        )
        yield f"cut {version}", text
