"""Records of every kind, from chance or from a strategy."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st

from remuda.storage.format import records as log

_integers = st.integers(-(2**63), 2**63 - 1)
_texts = st.text(st.characters(codec="utf-8"), max_size=8)
_blobs = st.binary(max_size=20)
_parts = st.builds(log.PartId, _integers, _integers, _integers)
_changes = st.lists(
    st.builds(log.Change, _integers, _integers, _blobs, st.none() | _blobs), max_size=3
).map(tuple)
_numbers = st.lists(_integers, max_size=4).map(tuple)
_units = st.frozensets(_parts | _texts, max_size=4)

records = st.one_of(
    st.builds(log.Prepared, _parts, _integers, _numbers, _blobs, _changes),
    st.builds(log.Committed, _parts, _integers, _numbers, st.none() | _changes),
    st.builds(log.RolledBack, _parts),
    st.builds(log.StagedRows, _texts, _texts, _integers, _integers, _integers, _blobs),
    st.builds(log.StagedKeys, _texts, _texts, _integers, _integers, _integers, _blobs),
    st.builds(
        log.JobPrepared,
        _texts,
        _integers,
        _integers,
        st.lists(_texts, max_size=3).map(tuple),
        st.booleans(),
        _numbers,
        _integers,
    ),
    st.builds(log.JobCommitted, _texts, _integers, _blobs),
    st.builds(log.JobRolledBack, _texts),
    st.builds(log.CatalogChanged, _integers, _integers, _blobs, _texts),
    st.builds(log.CutStart, _integers, _integers),
    st.builds(log.CutFinish, _integers, _units, _units),
    st.builds(log.PartitionTaken, _integers, _integers, _integers),
    st.builds(log.CopiedRows, _integers, _integers, _integers, _integers, _blobs),
    st.builds(log.PartitionReady, _integers, _integers, st.booleans()),
    st.builds(log.PartitionLeft, _integers, _integers),
    st.builds(log.Checkpoint, _integers, _integers, _integers, _texts, _blobs),
    st.builds(log.Closed, _integers),
    st.builds(log.Stopped, _integers),
    st.builds(
        log.LogsHeard,
        st.lists(st.builds(log.HeardLog, _integers, _blobs, _integers), max_size=3).map(tuple),
    ),
)


def commit(number: int, random: Random, size: int = 60) -> log.Committed:
    """A commit that no other is equal to."""
    part = log.PartId(number, 1, random.randrange(7))
    row = random.randbytes(random.randrange(size))
    change = log.Change(1, 1, number.to_bytes(4), row)
    return log.Committed(part, number * 10, (part.partition,), (change,))
