"""The rules of reads and commits over copies that change hands (design rules 16 to 20 and 22), each
as a scenario that fails without the rule; registered with those of ``sim_rules``. The clients are
the product's own.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from sim_network import LOST, Fate
from sim_rules import GROUPS, ROWS, WIDE, Play, scenario
from sim_rules_leaving import begun, ended
from sim_users import connected, running, users_of

from remuda.cluster import movement
from remuda.cluster.membership import LeaveAsked
from remuda.cluster.movement import Move
from remuda.cluster.next_view import Placement
from remuda.datatypes.view import NOBODY
from remuda.errors import (
    NoLease,
    OutcomeUnknown,
    RemudaError,
    SerializationFailure,
    SnapshotTooOld,
    StorageFull,
    TransientError,
)
from remuda.member.state.routing import Router

SUM = "SELECT sum(g), count(*) FROM t"
BEFORE = [(sum(n % GROUPS for n in range(ROWS)), ROWS)]


def users(play: Callable[[Play, Any], Awaitable[None]]) -> Callable[[Play], Awaitable[None]]:
    """A scenario in which a process of its own uses the product's client."""

    async def played(scene: Play) -> None:
        with users_of(scene.sim):
            client = await connected(scene.sim, "user")
            try:
                await asyncio.shield(running(scene.sim, client, play(scene, client)))
            finally:
                await client.close()

    played.__name__, played.__doc__ = play.__name__, play.__doc__
    return played


async def rows(owner: Any, text: str, *params: Any) -> list[tuple[Any, ...]]:
    cursor = await owner.sql(text, *params)
    return [tuple(row) async for row in cursor]


async def rows_at(client: Any, text: str, at: int) -> list[tuple[Any, ...]]:
    cursor = await client.query(text, at=at)
    return [tuple(row) async for row in cursor]


def key_of(play: Play, member: int) -> int:
    """A key that ``member`` is the primary of."""
    core = play.sim.members[1].core
    router = Router(core.catalog.get("t"))
    return next(n for n in range(ROWS) if core.view.owners[router.partition([n])] == member)


def whole(play: Play) -> bool:
    """All are in one view, serve, and have the copies that they should have."""
    live = play.sim.live()
    view = max((m.core.view for m in live.values()), key=lambda view: view.number)
    return (
        all(m.core.view.number == view.number and m.core.ready for m in live.values())
        and view.by_number.keys() == live.keys()
        and not any(m.giving.gauges()["copies_outgoing"] for m in live.values())
        and movement.progress(view, 2)["partitions_to_place"] == 0
    )


# ---- 16: copies ----


@scenario(16, skew=4.0, backups=1)
@users
async def a_promoted_backup_starts_above_the_ceiling(play: Play, client: Any) -> None:
    """Member 3's calendar is 8 s ahead, and nobody hears it any more when it serves a last read: at
    the timestamp of that read, nothing may change."""
    sim = play.sim
    key = key_of(play, 3)
    reader = await play.client(3)
    text = f"SELECT g FROM t WHERE id = {key}"
    await reader.run(text)  # planned from now on: nobody needs to be asked
    await asyncio.sleep(1.0)
    for other in (1, 2):
        sim.network.silence(sim.nodes[3], sim.nodes[other], 100.0)
    core = sim.members[3].core
    at = 0
    while core.ready:
        try:
            found = await reader.run(text)
        except NoLease:  # it ended just now
            break
        assert found == [(key % GROUPS,)]
        at = core.clock.last
        await asyncio.sleep(0.05)
    assert at
    sim.crash(3, silently=True)
    await play.until(lambda: sim.members[1].core.view.number > 1, 20.0)
    await client.map("t").put(key, {"g": 77, "s": ""})
    assert (await client.map("t").get(key)).g == 77
    assert await rows_at(client, text, at) == [(key % GROUPS,)]


@scenario(16, backups=1)
async def copies_that_do_not_fit_wait_for_room(play: Play) -> None:
    """Member 3 is lost, and the others may store nothing more: partitions stay with one copy. Reads
    go on and writes are refused, until there is room."""
    sim = play.sim
    left = [sim.members[number] for number in (1, 2)]

    def allow(size: int) -> None:
        """In the next views, too."""
        for member in left:
            room = member.core.room
            room._config = replace(room._config, storage_memory=size)
            room.stored.resize(size)

    allow(1)
    sim.crash(3)
    await play.until(lambda: all(member.giving.refused for member in left), 60.0)
    await asyncio.sleep(5.0)
    assert sum(len(row) == 1 for row in left[0].core.view.replicas) > 100
    client = await play.client(1)
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS,)]
    with pytest.raises(StorageFull, match="has no room"):
        await client.run("INSERT INTO t VALUES (1000, 1, '')")
    told = [one for one in sim.violations if "no room for rows: writes are refused" in one]
    assert told  # the operator, as an error in the log
    sim.violations = [one for one in sim.violations if one not in told]
    allow(2**30)
    await play.until(lambda: whole(play), 60.0)
    await client.run("INSERT INTO t VALUES (1000, 1, '')")
    assert await play.gives(client, "SELECT count(*) FROM t") == [(ROWS + 1,)]


@scenario(16, backups=1)
@users
async def a_primary_that_comes_back_commits_above_what_was_read(play: Play, client: Any) -> None:
    """Member 3 has prepared a write that no other member knows of when its backup is to become the
    primary. That one serves a read, and is lost: member 3 is the primary again. Nothing may change
    at the timestamp of the read."""
    sim, key = play.sim, key_of(play, 3)
    core, giving = sim.members[3].core, sim.members[3].giving
    partition = Router(core.catalog.get("t")).partition([key])
    before = core.view.replicas[partition]
    other = before[1]
    play.fate("PARTS", LOST, sender=3, to=other)
    putting = running(sim, client, client.map("t").put(key, {"g": 77, "s": ""}))
    pending = sim.members[3].transactions.pending
    await play.until(lambda: any(address[1] == partition for address in pending.parts), 5.0)
    place, move = Placement(partition, before, before[::-1]), giving._next
    giving._next = lambda: Move(None, (place,)) if place.fits(core.view) else None  # type: ignore[method-assign]
    await asyncio.sleep(3.0)
    if place.fits(core.view):
        sim.network.rules.clear()
    await play.until(lambda: not place.fits(core.view), 10.0)
    reader, text = await play.client(other), f"SELECT g FROM t WHERE id = {key}"
    found = await reader.run(text)
    at = sim.members[other].core.clock.last
    sim.crash(other)
    giving._next = move  # type: ignore[method-assign]
    await play.until(lambda: whole(play), 60.0)
    await asyncio.wait([putting])
    assert await rows_at(client, text, at) == found
    assert await rows(client, text) == [(77,)]


@scenario(16, members=5, backups=2)
async def a_second_backup_commits_above_what_the_first_one_served(play: Play) -> None:
    """Only the second backup hears of a part, and its primary is lost. The first backup takes over,
    serves a read, and is lost as well. Nothing may change at the timestamp of the read."""
    sim = play.sim
    core = sim.members[1].core
    router = Router(core.catalog.get("t"))
    table = core.view.replicas
    key = next(n for n in range(ROWS) if 1 not in table[router.partition([n])])
    primary, first, second = table[router.partition([key])]
    near = await play.client(1)
    name = await begun(near)
    for one in (key, key_of(play, 1)):
        await near.run(f"UPDATE t SET g = 77 WHERE id = {one}", transaction=name)
    unheard = play.fate("PARTS", LOST, sender=primary, to=first)
    play.fate("PARTS", LOST, sender=first, to=primary)
    play.fate("PARTS", LOST, sender=1, to=first)
    committing = sim.loop.create_task(ended(near, name), context=sim.director.context)
    pending = sim.members[second].transactions.pending
    await play.until(lambda: bool(pending.parts) and unheard[0] > 0, 5.0)
    sim.crash(primary)
    text = f"SELECT g FROM t WHERE id = {key}"
    members = [sim.members[number].core for number in (1, first, second)]
    await play.until(lambda: all(primary not in one.view.by_number for one in members), 20.0)
    found = await (await play.client(first)).run(text)
    at = sim.members[first].core.clock.last
    sim.crash(first)
    await play.until(committing.done, 60.0)
    await committing
    client = await play.client(second)
    assert await client.run(text, read_timestamp=at) == found == [(key % GROUPS,)]
    assert await client.run(text) == [(77,)]


# ---- 14: leases ----


@scenario(14, backups=1)
@users
async def who_takes_over_serves_what_it_had(play: Play, client: Any) -> None:
    """Only the partitions of the lost member wait until its lease is over."""
    sim = play.sim
    ours, theirs = key_of(play, 1), key_of(play, 3)
    await client.map("t").put(ours, {"g": 1, "s": ""})
    sim.crash(3)
    for number in (1, 2):  # dropped at once: its lease has hardly begun
        sim.members[number].membership.step(LeaveAsked(3))
    await play.until(lambda: sim.members[1].core.view.number > 1, 10.0)
    readiness = sim.members[1].core.readiness
    assert "takeover" in readiness.holds
    at_once = sim.loop.now + 0.3
    getting = asyncio.get_running_loop().create_task(client.map("t").get(theirs))
    await client.map("t").put(ours, {"g": 2, "s": ""})
    assert (await client.map("t").get(ours)).g == 2
    assert sim.loop.now < at_once
    assert "takeover" in readiness.holds
    assert not getting.done()
    assert (await getting).g == theirs % GROUPS
    assert "takeover" not in readiness.holds


# ---- 17: prepare on all copies ----


@scenario(17, backups=1)
@users
async def what_is_acknowledged_is_on_the_backup(play: Play, client: Any) -> None:
    """The messages of the primary do not arrive; whatever the client is told, it is true later."""
    sim, key = play.sim, key_of(play, 3)
    play.fate("PARTS", LOST, sender=3)
    told: list[bool] = []

    async def put() -> None:
        try:
            await client.map("t").put(key, {"g": 77, "s": ""})
            told.append(True)
        except RemudaError:
            told.append(False)

    putting = asyncio.get_running_loop().create_task(put())
    await asyncio.sleep(0.4)
    acknowledged = told == [True]
    sim.crash(3)
    await play.until(lambda: sim.members[1].core.view.number > 1 and whole(play), 60.0)
    await putting
    found = await rows(client, f"SELECT g FROM t WHERE id = {key}")
    assert found == [(77,)] or not acknowledged
    assert found in ([(77,)], [(key % GROUPS,)])


# ---- 18: serializable ----


@scenario(18)
@users
async def who_rests_on_what_was_read_conflicts(play: Play, client: Any) -> None:
    """Write skew: each reads both rows and writes the other one."""
    one, other = client.transaction(), client.transaction()
    for tx in (one, other):
        await tx.begin()
        assert len(await tx.map("t").get_all([1, 2])) == 2
    await one.map("t").put(1, {"g": 50, "s": ""})
    await other.map("t").put(2, {"g": 50, "s": ""})
    await one.commit()
    with pytest.raises(SerializationFailure):
        await other.commit()


@scenario(18)
@users
async def who_rests_on_a_condition_conflicts(play: Play, client: Any) -> None:
    """A phantom: both count, and insert what the other one would have counted."""
    one, other = client.transaction(), client.transaction()
    for number, tx in enumerate((one, other)):
        await tx.begin()
        assert await rows(tx, "SELECT count(*) FROM t WHERE g = 70") == [(0,)]
        await tx.sql(f"INSERT INTO t VALUES ({500 + number}, 70, '')")
    await one.commit()
    with pytest.raises(SerializationFailure):
        await other.commit()
    assert await rows(client, "SELECT count(*) FROM t WHERE g = 70") == [(1,)]


@scenario(18, backups=1)
async def a_bulk_write_waits_for_who_has_read_its_rows(play: Play) -> None:
    """A transaction has read a row of member 1, where it is prepared, and writes one of member 2,
    which has not heard of it. Nobody may see a new value of the first row without the second."""
    sim = play.sim
    read, written = key_of(play, 1), key_of(play, 2)
    near, other, reader = [await play.client(3) for _ in range(3)]
    name = await begun(near)
    await near.run(f"SELECT g FROM t WHERE id = {read}", transaction=name)
    await near.run(f"UPDATE t SET g = 77 WHERE id = {written}", transaction=name)
    play.fate("PARTS", LOST, sender=3, to=2)
    committing = sim.loop.create_task(ended(near, name), context=sim.director.context)
    pending = sim.members[1].transactions.pending
    await play.until(lambda: bool(pending.parts), 5.0)
    text = f"UPDATE t SET g = 55 WHERE id = {read} AND random() < 2"
    updating = sim.loop.create_task(other.run(text), context=sim.director.context)
    await asyncio.sleep(1.0)
    text = f"SELECT g FROM t WHERE id IN ({read}, {written}) ORDER BY id = {written}"
    seen = await reader.run(text)
    sim.network.rules.clear()
    await committing
    await updating
    assert seen == [(read % GROUPS,), (written % GROUPS,)]
    assert await reader.run(text) == [(55,), (77,)]


# ---- 19: versions ----


async def _change_all(client: Any, seconds: float) -> None:
    for _ in range(int(seconds)):
        await client.sql("UPDATE t SET g = g + 1")
        await asyncio.sleep(1.0)


@scenario(19)
@users
async def versions_that_a_transaction_reads_are_kept(play: Play, client: Any) -> None:
    """On all members, for much longer than they keep versions that nobody asks for."""
    async with client.transaction(isolation="repeatable read") as tx:
        assert await rows(tx, SUM) == BEFORE
        await _change_all(client, 16.0)
        assert await rows(tx, SUM) == BEFORE


@scenario(19)
@users
async def what_was_collected_is_refused(play: Play, client: Any) -> None:
    at = (await client.cluster_info()).clock
    assert await rows_at(client, SUM, at) == BEFORE
    await _change_all(client, 16.0)
    with pytest.raises(SnapshotTooOld):
        await rows_at(client, SUM, at)


# ---- 20: handover ----


async def _moving(play: Play, client: Any, until: Callable[[], bool]) -> None:
    """Somebody reads an old timestamp, and a transaction its own, while partitions move."""
    at = (await client.cluster_info()).clock
    async with client.transaction(isolation="repeatable read") as tx:
        assert await rows(tx, SUM) == BEFORE
        await client.sql("UPDATE t SET g = g + 1")
        while not until():
            assert await rows_at(client, SUM, at) == BEFORE
            assert await rows(tx, SUM) == BEFORE
            await asyncio.sleep(0.01)
        assert await rows_at(client, SUM, at) == BEFORE
        assert await rows(tx, SUM) == BEFORE


@scenario(20, backups=1)
@users
async def old_versions_move_with_their_partition(play: Play, client: Any) -> None:
    """A member joins, and is given a part of everything."""
    sim = play.sim
    joining = sim.loop.create_task(sim.join(1), context=sim.director.context)
    await _moving(play, client, lambda: joining.done() and len(sim.live()) == 4 and whole(play))
    owned = sim.members[4].core.view.partitions_of(4)
    assert len(owned) > 50


@scenario(20, backups=1)
@users
async def old_versions_are_there_after_a_loss(play: Play, client: Any) -> None:
    """Its backups answer for member 3, at the timestamps that it would have answered at."""
    sim = play.sim
    near = client.transaction(isolation="repeatable read")
    await near.begin()
    assert await rows(near, SUM) == BEFORE
    at = (await client.cluster_info()).clock
    await client.sql("UPDATE t SET g = g + 1")
    sim.crash(3)
    await play.until(lambda: sim.members[1].core.view.number > 1, 10.0)
    assert await rows_at(client, SUM, at) == BEFORE
    await play.until(lambda: whole(play), 60.0)
    assert await rows_at(client, SUM, at) == BEFORE
    await near.rollback()


# ---- 22: staged rows ----


def _staged(start: int, count: int) -> pa.RecordBatch:
    keys = range(start, start + count)
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.int64()), pa.array([1] * count, pa.int32()), pa.array([WIDE] * count)],
        names=["id", "g", "s"],
    )


async def joined(play: Play) -> None:
    """A member joins, and gets what it should have, with a job that nobody commits."""
    joining = play.sim.loop.create_task(play.sim.join(1), context=play.sim.director.context)
    await play.until(joining.done, 60.0)
    await play.until(lambda: whole(play), 60.0)


async def committed(client: Any, job: Any, tasks: list[Any], count: int) -> None:
    """Nothing of it is seen before; all of it at one moment; committing again changes nothing."""
    assert await rows(client, "SELECT count(*) FROM t") == [(ROWS,)]
    for _ in range(2):
        try:
            assert await job.commit(tasks) == count
        except RemudaError as error:
            pytest.fail(f"the job was not committed: {error!r}")
        assert await rows(client, "SELECT count(*) FROM t") == [(ROWS + count,)]
    total = ROWS + count
    assert await rows(client, "SELECT count(DISTINCT id) FROM t") == [(total,)]


@scenario(22, backups=1)
@users
async def staged_rows_move_with_their_partition(play: Play, client: Any) -> None:
    """A member joins, and later another one leaves, while a job is written for long: neither waits
    for the job, and the job finds its rows where the partitions are. Its writer knows the members
    of when it began only, and goes on."""
    sim = play.sim
    job = await client.begin_job("t")
    ended = await job.write([_staged(1000, 300)])
    writer = job.writer("1:0")
    await writer.write(_staged(2000, 200))
    await joined(play)
    await writer.write(_staged(3000, 200))
    task = await writer.finish()
    leaving = sim.loop.create_task(sim.leave(3), context=sim.director.context)
    await play.until(leaving.done, 60.0)
    await play.until(lambda: 3 not in sim.members[1].core.view.by_number, 60.0)
    await committed(client, job, [ended, task], 700)


@scenario(22, backups=1)
@users
async def a_job_survives_the_loss_of_a_primary(play: Play, client: Any) -> None:
    """Its backups have all staged rows of tasks that had ended."""
    job = await client.begin_job("t")
    task = await job.write([_staged(1000, 300)])
    play.sim.crash(3)
    await play.until(lambda: whole(play), 60.0)
    await committed(client, job, [task], 300)


@scenario(22, backups=0)
@users
async def a_job_that_lost_rows_is_not_committed(play: Play, client: Any) -> None:
    """Without backups, nothing of it is seen, and who commits it is told to write it again."""
    job = await client.begin_job("t")
    task = await job.write([_staged(1000, 300)])
    play.sim.crash(3)
    await play.until(lambda: 3 not in play.sim.members[1].core.view.by_number, 60.0)
    with pytest.raises(TransientError):
        await job.commit([task])
    keys = [key for key in range(1000, 1300) if _owner(play, key) != NOBODY]
    assert len(keys) > 100
    assert not any((await client.map("t").get_all(keys)).values())


@scenario(22, backups=1)
@users
async def rows_that_arrive_while_their_partition_moves(play: Play, client: Any) -> None:
    """Writers go on all the time while a member joins: each row is committed once."""
    sim = play.sim
    play.fate("COPY_ROWS", Fate((0.2,)))
    job = await client.begin_job("t")
    joining = sim.loop.create_task(sim.join(1), context=sim.director.context)
    tasks, count = [], 0
    while not (joining.done() and whole(play)):
        tasks.append(await job.write([_staged(1000 + 10 * count, 10)], f"{count}:0"))
        count += 1
        await asyncio.sleep(0.05)
    await committed(client, job, tasks, 10 * count)


@scenario(22, backups=1)
@users
async def writers_go_round_a_member_that_has_left(play: Play, client: Any) -> None:
    """In the middle of a task, and for a task that begins with the view of when the job began."""
    sim = play.sim
    job = await client.begin_job("t", job_id="1-" + "a" * 24)
    writer = job.writer("0:0")
    await writer.write(_staged(1000, 200))
    leaving = sim.loop.create_task(sim.leave(3), context=sim.director.context)
    await play.until(leaving.done, 60.0)
    await writer.write(_staged(2000, 200))
    tasks = [await writer.finish(), await job.write([_staged(3000, 200)], "1:0")]
    await committed(client, job, tasks, 600)


def _owner(play: Play, key: int) -> int:
    core = play.sim.members[1].core
    return core.view.owners[Router(core.catalog.get("t")).partition([key])]


def _staged(start: int, count: int) -> pa.RecordBatch:
    keys = range(start, start + count)
    return pa.RecordBatch.from_arrays(
        [pa.array(keys, pa.int64()), pa.array([1] * count, pa.int32()), pa.array([WIDE] * count)],
        names=["id", "g", "s"],
    )


async def _counting(client: Any, keys: range, written: dict[int, list[int]]) -> None:
    """Put ever larger numbers, one key after the other, until somebody cancels this."""
    numbers = client.map("n")
    for number in itertools.count(1):
        for key in keys:
            try:
                await numbers.put(key, number)
            except (TransientError, OutcomeUnknown):
                continue
            written.setdefault(key, []).append(number)


async def _changes_since(client: Any, position: int) -> dict[int, list[tuple[int | None, int]]]:
    """The changes that a stream tells from there until now: value before and value, by key."""
    told: dict[int, list[tuple[int | None, int]]] = {}
    end = (await client.cluster_info()).clock
    async with await client.map("n").changes(position) as stream:
        while stream._feed.position < end or stream._pages:
            batch = await stream.read(0.1)
            for row in batch.to_pylist() if batch is not None else ():
                before = row["_before"] and row["_before"]["this"]
                told.setdefault(row["__key"], []).append((before, row["this"]))
    return told


@scenario(20, backups=1)
@users
async def what_was_undecided_at_a_handover_is_told_after_a_return(play: Play, client: Any) -> None:
    """Answers of backups are slow, so each handover meets writes that are not decided. The member
    that got the partitions is lost at once, and they come back. Nobody has read changes meanwhile.
    Each acknowledged write is told, and each change goes on from the one before."""
    sim = play.sim
    await client.sql("CREATE TABLE n (__key BIGINT PRIMARY KEY, this BIGINT)")
    position = (await client.cluster_info()).clock
    written: dict[int, list[int]] = {}
    work = [
        running(sim, client, _counting(client, range(first, 160, 16), written))
        for first in range(16)
    ]
    play.fate("PARTS", Fate((0.02,)))
    joining = sim.loop.create_task(sim.join(1), context=sim.director.context)
    await play.until(lambda: len(sim.members[1].core.view.partitions_of(4)) > 40, 60.0)
    await joining
    sim.crash(4)
    await play.until(lambda: 4 not in sim.members[1].core.view.by_number, 20.0)
    await asyncio.sleep(1.0)
    await play.until(lambda: all(m.core.ready for m in sim.live().values()), 20.0)
    for task in work:
        task.cancel()
    await asyncio.wait(work)
    await asyncio.sleep(1.0)
    told = await _changes_since(client, position)
    for key, numbers in written.items():
        values = [value for _, value in told[key]]
        assert set(numbers) <= set(values), (key, sorted(set(numbers) - set(values)))
        assert [before for before, _ in told[key]] == [None, *values[:-1]], key
