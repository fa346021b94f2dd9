"""Messages of parts (``transaction.states``) as protobuf and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from remuda.errors import ProtocolError
from remuda.member.state.transaction_sets import Key, PartWork, Scan, Write
from remuda.plan import codec as plan_codec
from remuda.plan.expression import Expression
from remuda.rpc import codec
from remuda.rpc.messages import control_pb2
from remuda.transaction import states as tx

PartMessage = control_pb2.PartMessage

_STATES = {
    tx.State.UNKNOWN: PartMessage.UNKNOWN,
    tx.State.PREPARED: PartMessage.PREPARED,
    tx.State.COMMITTED: PartMessage.COMMITTED,
    tx.State.ROLLED_BACK: PartMessage.ROLLED_BACK,
}
_BACKUP_PREPARE = PartMessage.BACKUP_PREPARE  # attributes of messages are slow
_STATE_OF = {number: state for state, number in _STATES.items()}
SCANS_KEPT = 1024
_KEPT_SIZE = 12
"""Bytes of an answer in a frame, about."""


# --- work -----------------------------------------------------------------------------------------


@lru_cache(maxsize=SCANS_KEPT)
def encode_scan(scan: Scan) -> bytes:
    """Without its partitions: a part names its own one."""
    message = control_pb2.PartScan(map_id=scan.map_id, schema_version=scan.schema_version)
    if scan.predicate is not None:
        message.predicate = plan_codec.encode(scan.predicate)
    message.column_ids.extend(identity for identity, _ in scan.columns)
    message.positions.extend(position for _, position in scan.columns)
    message.parameters.extend(codec.encode_values(scan.parameters))
    return message.SerializeToString(deterministic=True)


@lru_cache(maxsize=SCANS_KEPT)
def decode_scan(data: bytes) -> Scan:
    """Raises ProtocolError."""
    message = control_pb2.PartScan.FromString(data)
    predicate = None
    if message.HasField("predicate"):
        decoded = plan_codec.decode(message.predicate)
        if not isinstance(decoded, Expression):
            raise ProtocolError("the predicate of a scan is no expression")
        predicate = decoded
    return Scan(
        message.map_id,
        message.schema_version,
        predicate,
        tuple(zip(message.column_ids, message.positions, strict=True)),
        codec.decode_values(message.parameters),
    )


def fill_work(message: control_pb2.PartWork, partition: int, work: PartWork) -> None:
    message.partition = partition
    message.snapshot = work.snapshot
    for write in work.writes:
        _fill_write(message.writes.add(), write)
    for map_id, key in work.reads:
        codec.fill_row(message.reads.add(map_id=map_id).key, key)
    if work.since:
        for read, since in zip(message.reads, work.since, strict=True):
            read.since = since
    for scan in work.scans:
        message.scans.append(encode_scan(scan))
    if work.owner is not None:
        fill_name(message.owner, work.owner)


def _fill_write(out: control_pb2.PartWrite, write: Write) -> None:
    out.map_id, out.schema_version = write.map_id, write.schema_version
    codec.fill_row(out.key, write.key)
    if write.row is not None:
        codec.fill_row(out.row, write.row)
        if write.ttl:
            out.ttl = write.ttl


def decode_work(message: control_pb2.PartWork) -> PartWork:
    """Raises ProtocolError."""
    decode, made = codec.decode_row, tx.made
    writes = []
    for write in message.writes:
        row = decode(write.row) if write.HasField("row") else None
        fields = (write.map_id, write.schema_version, decode(write.key), row, write.ttl, False)
        writes.append(made(Write, fields))
    reads: tuple[tuple[int, Key], ...] = ()
    if message.reads:
        reads = tuple([(read.map_id, decode(read.key)) for read in message.reads])
    scans = tuple([decode_scan(data) for data in message.scans]) if message.scans else ()
    owner = decode_name(message.owner) if message.HasField("owner") else None
    since = _since(message) if reads else ()
    return made(PartWork, (message.snapshot, tuple(writes), reads, scans, owner, since))


def _since(message: control_pb2.PartWork) -> tuple[int, ...]:
    if not message.reads[0].since:
        return ()
    return tuple([read.since or message.snapshot for read in message.reads])


def fill_name(message: control_pb2.TransactionName, transaction: tx.TransactionId) -> None:
    message.began, message.near = transaction.began, transaction.near


def decode_name(message: control_pb2.TransactionName) -> tx.TransactionId:
    return tx.TransactionId(message.began, message.near)


def fill_given(out: control_pb2.PartMessage, given: tx.GivenPart) -> None:
    """A donor's knowledge of a part."""
    transaction, partition = given.transaction, given.partition
    if given.state is tx.State.PREPARED:
        kept = tx.BackupPrepare(
            transaction, partition, given.timestamp, given.partitions, given.work, given.one_phase
        )
        fill_message(out, kept)
        return
    fill_message(out, tx.Told(transaction, partition, partition, given.state, given.timestamp))
    out.partitions.extend(given.partitions)


def decode_given(message: control_pb2.PartMessage) -> tx.GivenPart:
    """Raises ProtocolError."""
    match decode_message(message):
        case tx.BackupPrepare(transaction, partition, timestamp, partitions, work, one_phase):
            state = tx.State.PREPARED
            return tx.GivenPart(
                transaction, partition, state, partitions, timestamp, work, one_phase
            )
        case tx.Told(transaction, partition, _, state, timestamp):
            partitions = tuple(message.partitions)
            return tx.GivenPart(transaction, partition, state, partitions, timestamp, None, False)
        case other:
            raise ProtocolError(f"{other} is not what a donor knows of a part")


# --- messages -------------------------------------------------------------------------------------


def fill_message(out: control_pb2.PartMessage, message: tx.Message) -> None:
    """Write ``message`` into an empty one."""
    out.began, out.near = message.transaction.began, message.transaction.near
    fill = _FILL[type(message)]
    fill(out, message)


def _fill_prepare(out: control_pb2.PartMessage, message: tx.Prepare) -> None:
    out.kind = PartMessage.PREPARE
    out.one_phase = message.one_phase
    out.partitions.extend(message.partitions)
    for partition, work in message.work.items():
        assert isinstance(work, PartWork)
        fill_work(out.work.add(), partition, work)


def _fill_prepare_last(out: control_pb2.PartMessage, message: tx.PrepareLast) -> None:
    out.kind, out.one_phase = PartMessage.PREPARE, True
    out.partitions.extend(message.partitions)
    work = message.work
    assert isinstance(work, PartWork)
    fill_work(out.work.add(), message.partition, work)
    for keep in message.companions:
        kept, companion = out.work.add(), keep.work
        assert isinstance(companion, PartWork)
        fill_work(kept, keep.partition, companion)
        kept.kept_at = keep.timestamp


def _fill_keep_all(out: control_pb2.PartMessage, message: tx.KeepAll) -> None:
    out.kind, out.timestamp = PartMessage.KEEP_ALL, message.timestamp
    for partition, work in message.work.items():
        assert isinstance(work, PartWork)
        fill_work(out.work.add(), partition, work)


def _fill_kept_all(out: control_pb2.PartMessage, message: tx.KeptAll) -> None:
    out.kind, out.timestamp = PartMessage.KEPT_ALL, message.timestamp


def _fill_vote(out: control_pb2.PartMessage, message: tx.Vote) -> None:
    out.kind, out.partition = PartMessage.VOTE, message.partition
    out.timestamp, out.committed = message.timestamp, message.committed
    if message.companions:
        out.partitions.extend(message.companions)
    if message.refusal is not None:
        out.refusal.CopyFrom(codec.encode_error(message.refusal))


def _fill_backup_prepare(out: control_pb2.PartMessage, message: tx.BackupPrepare) -> None:
    out.kind, out.partition = _BACKUP_PREPARE, message.partition
    out.timestamp, out.one_phase = message.timestamp, message.one_phase
    out.partitions.extend(message.partitions)
    assert isinstance(message.work, PartWork)
    fill_work(out.work.add(), message.partition, message.work)


def _fill_backup_refused(out: control_pb2.PartMessage, message: tx.BackupRefused) -> None:
    out.kind, out.partition = PartMessage.BACKUP_REFUSED, message.partition
    out.refusal.CopyFrom(codec.encode_error(message.refusal))


def _fill_told(out: control_pb2.PartMessage, message: tx.Told) -> None:
    out.kind, out.partition = PartMessage.TOLD, message.partition
    out.asking, out.timestamp = message.asking, message.timestamp
    out.state = _STATES[message.state]


def _fill_inquire(out: control_pb2.PartMessage, message: tx.Inquire) -> None:
    out.kind, out.partition, out.asking = PartMessage.INQUIRE, message.partition, message.asking


def _plain(kind: control_pb2.PartMessage.Kind) -> Callable[[control_pb2.PartMessage, Any], None]:
    def fill(out: control_pb2.PartMessage, message: Any) -> None:
        out.kind, out.partition = kind, message.partition

    return fill


def _ended(kind: control_pb2.PartMessage.Kind) -> Callable[[control_pb2.PartMessage, Any], None]:
    def fill(out: control_pb2.PartMessage, message: Any) -> None:
        out.kind, out.partition = kind, message.partition
        if message.timestamp is not None:
            out.timestamp = message.timestamp

    return fill


_FILL: dict[type, Callable[[control_pb2.PartMessage, Any], None]] = {
    tx.Prepare: _fill_prepare,
    tx.PrepareLast: _fill_prepare_last,
    tx.KeepAll: _fill_keep_all,
    tx.KeptAll: _fill_kept_all,
    tx.Vote: _fill_vote,
    tx.Finish: _ended(PartMessage.FINISH),
    tx.Finished: _plain(PartMessage.FINISHED),
    tx.BackupPrepare: _fill_backup_prepare,
    tx.BackupPrepared: _plain(PartMessage.BACKUP_PREPARED),
    tx.BackupRefused: _fill_backup_refused,
    tx.BackupFinish: _ended(PartMessage.BACKUP_FINISH),
    tx.BackupFinished: _plain(PartMessage.BACKUP_FINISHED),
    tx.BackupEnded: _ended(PartMessage.BACKUP_ENDED),
    tx.BackupForget: _plain(PartMessage.BACKUP_FORGET),
    tx.Inquire: _fill_inquire,
    tx.Told: _fill_told,
}


def fill_alone(
    frame: control_pb2.PartMessages, message: tx.Message, sender: int, receiver: int
) -> int:
    """Write a message of a part that is alone (``transaction.alone``) into the fields of the frame
    for these; how many bytes it takes. 0: it is another message."""
    if isinstance(message, tx.BackupPrepared):
        if message.transaction.near != receiver:
            return 0
        frame.kept.append(message.transaction.began)
        frame.kept_partitions.append(message.partition)
        return _KEPT_SIZE
    if not isinstance(message, tx.BackupPrepare) or not message.one_phase:
        return 0
    work = message.work
    assert isinstance(work, PartWork)
    transaction, at = message.transaction, message.timestamp
    if (
        transaction.began != at
        or transaction.near != sender
        or work.snapshot != at
        or work.reads
        or work.scans
        or work.owner is not None
    ):
        return 0
    out = frame.alone.add()
    out.timestamp, out.partition = at, message.partition
    for write in work.writes:
        _fill_write(out.writes.add(), write)
    return out.ByteSize()


def decode_alone(message: control_pb2.AlonePart, sender: int) -> tx.BackupPrepare:
    """Raises ProtocolError."""
    at, partition = message.timestamp, message.partition
    if partition < 0:
        raise _negative()
    writes = []
    for write in message.writes:
        row = codec.decode_row(write.row) if write.HasField("row") else None
        key = codec.decode_row(write.key)
        fields = (write.map_id, write.schema_version, key, row, write.ttl, False)
        writes.append(tx.made(Write, fields))
    transaction = tx.made(tx.TransactionId, (at, sender))
    work = tx.made(PartWork, (at, tuple(writes), (), (), None, ()))
    return tx.made(tx.BackupPrepare, (transaction, partition, at, (partition,), work, True))


def decode_message(message: control_pb2.PartMessage) -> tx.Message:
    """Raises ProtocolError."""
    transaction = tx.made(tx.TransactionId, (message.began, message.near))
    partition = message.partition
    decode = _DECODE.get(message.kind)
    if decode is None:
        raise ProtocolError(f"there is no message {message.kind} of a part")
    if partition < 0:
        raise _negative()
    return decode(message, transaction, partition)


def _negative() -> ProtocolError:
    return ProtocolError("a partition has a negative number")


def _end_of(message: control_pb2.PartMessage) -> int | None:
    return message.timestamp if message.HasField("timestamp") else None


def _works(message: control_pb2.PartMessage) -> tuple[tuple[int, ...], dict[int, PartWork]]:
    """The partitions of the transaction, and the work in some of them."""
    partitions = tuple(message.partitions)
    works: dict[int, PartWork] = {}
    for work in message.work:
        works[work.partition] = decode_work(work)
    if min(partitions, default=0) < 0 or min(works, default=0) < 0:
        raise _negative()
    return partitions, works


def _decode_prepare(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, _partition: int
) -> tx.Message:
    partitions, works = _works(message)
    kept: list[tx.BackupPrepare] = []
    for at in message.work:
        if at.HasField("kept_at"):
            place = at.partition
            fields = (transaction, place, at.kept_at, partitions, works.pop(place), False)
            kept.append(tx.made(tx.BackupPrepare, fields))
    if not kept:
        return tx.made(tx.Prepare, (transaction, partitions, works, message.one_phase, ()))
    if len(works) != 1:
        raise ProtocolError("parts to keep come with one part that is prepared")
    ((partition, work),) = works.items()
    return tx.made(tx.PrepareLast, (transaction, partitions, partition, work, tuple(kept)))


def _decode_keep_all(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, _partition: int
) -> tx.Message:
    return tx.KeepAll(transaction, message.timestamp, _works(message)[1])


def _decode_kept_all(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, _partition: int
) -> tx.Message:
    return tx.KeptAll(transaction, message.timestamp)


def _decode_vote(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    refusal = codec.decode_error(message.refusal) if message.HasField("refusal") else None
    at, companions = message.timestamp, tuple(message.partitions)
    voted = (transaction, partition, at, message.committed, refusal, companions)
    return tx.made(tx.Vote, voted)


def _decode_backup_prepare(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    partitions, works = _works(message)
    timestamp = _end_of(message)
    if len(message.work) != 1 or timestamp is None:
        raise ProtocolError("a part for a backup has no work or no timestamp")
    (work,) = works.values()
    kept = (transaction, partition, timestamp, partitions, work, message.one_phase)
    return tx.made(tx.BackupPrepare, kept)


def _decode_backup_refused(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    return tx.BackupRefused(transaction, partition, codec.decode_error(message.refusal))


def _decode_inquire(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    if message.asking < 0:
        raise _negative()
    return tx.Inquire(transaction, partition, message.asking)


def _decode_told(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    if message.asking < 0:
        raise _negative()
    state = _STATE_OF[message.state]
    return tx.Told(transaction, partition, message.asking, state, message.timestamp)


def _decode_finish(
    message: control_pb2.PartMessage, transaction: tx.TransactionId, partition: int
) -> tx.Message:
    return tx.made(tx.Finish, (transaction, partition, _end_of(message), ()))


Decode = Callable[[control_pb2.PartMessage, tx.TransactionId, int], tx.Message]


def _simple(kind: type[tx.Message]) -> Decode:
    return lambda _message, *address: tx.made(kind, address)


def _with_end(kind: type[tx.Message]) -> Decode:
    return lambda message, *address: tx.made(kind, (*address, _end_of(message)))


_DECODE: dict[int, Decode] = {
    PartMessage.PREPARE: _decode_prepare,
    PartMessage.KEEP_ALL: _decode_keep_all,
    PartMessage.KEPT_ALL: _decode_kept_all,
    PartMessage.VOTE: _decode_vote,
    PartMessage.FINISH: _decode_finish,
    PartMessage.FINISHED: _simple(tx.Finished),
    PartMessage.BACKUP_PREPARE: _decode_backup_prepare,
    PartMessage.BACKUP_PREPARED: _simple(tx.BackupPrepared),
    PartMessage.BACKUP_REFUSED: _decode_backup_refused,
    PartMessage.BACKUP_FINISH: _with_end(tx.BackupFinish),
    PartMessage.BACKUP_FINISHED: _simple(tx.BackupFinished),
    PartMessage.BACKUP_ENDED: _with_end(tx.BackupEnded),
    PartMessage.BACKUP_FORGET: _simple(tx.BackupForget),
    PartMessage.INQUIRE: _decode_inquire,
    PartMessage.TOLD: _decode_told,
}
