"""Partitions change hands while something is under way."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.member.conftest import TestCluster
from transacting import Session

from remuda.datatypes.arrow import engine_schema
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.timestamp import FOREVER
from remuda.errors import (
    JobAborted,
    MemberUnavailable,
    SerializationFailure,
    SnapshotTooOld,
    TransientError,
    ViewChanged,
)
from remuda.limits import PARTITIONS
from remuda.member.base.forwarding import LocalCall
from remuda.member.commits import move_pauses
from remuda.member.commits.job_rows import Frame
from remuda.member.commits.move_pauses import LOOK
from remuda.member.state.commit_work import Work
from remuda.member.state.routing import Router
from remuda.member.state.transaction_sets import PartWork, Write
from remuda.member.transactions.apply import Applying
from remuda.rpc import arrow_stream
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.control_pb2 import RpcType as ControlType
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.storage.maps.transfer import EVERY_PARTITION
from remuda.transaction import states as tx
from remuda.transaction.move_pause import Pause


def test_what_is_served_once_more_waits_until_the_member_is_ready(in_cluster: Any) -> None:
    """A call that another member refused because of its view, and reads of the member's own: this
    member may be about to get the rows."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        await client.sql("INSERT INTO t VALUES (1, 'a')")
        schema = await client.schema("t")
        member = cluster.member(1)
        body = client.keys_request(schema, 1).SerializeToString()
        member.core.readiness.hold("test", "rows are on their way")
        repeated = LocalCall(RpcType.MAP_GET, body)
        member.forwarding.handle(repeated)
        reading = asyncio.ensure_future(
            member.open.keys.rows(schema, [(1,)], member.core.timestamp())
        )
        for _ in range(20):
            await asyncio.sleep(0)
        assert not repeated.answer.done()
        assert not reading.done()
        member.core.readiness.release("test")
        answer = user_pb2.RowsResponse.FromString(await repeated.answer)
        assert answer.rows[0].HasField("row")
        assert await reading == [(1, "a")]

    in_cluster(scenario, members=1)


def test_a_map_that_is_made_while_copies_change_is_held_as_well(in_cluster: Any) -> None:
    """The receiver of a copy is not asked to keep the rows of a job before a view names it."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        jobs = cluster.member(1).commits.participants
        await jobs.hold()
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY) REPLICATED")
        await client.sql("INSERT INTO r VALUES (1)")
        writing = asyncio.ensure_future(client.sql("INSERT INTO t VALUES (1), (2)"))
        for _ in range(3):
            assert await client.sql("SELECT count(*) FROM t") == [(0,)]
        assert not writing.done()
        jobs.release()
        await writing
        assert await client.sql("SELECT count(*) FROM t") == [(2,)]
        await cluster.idle()

    in_cluster(scenario, members=1)


def test_a_write_that_leaves_a_member_out_is_refused(in_cluster: Any) -> None:
    """It was begun in a view without that member, which has copies or rows by now."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY) REPLICATED")
        await client.sql("INSERT INTO t VALUES (1), (2), (3)")
        await client.sql("INSERT INTO r VALUES (1)")
        member = cluster.member(1)
        for name in ("t", "r"):
            schema = await client.schema(name)
            work = Work(member.commits.new_job(), schema, (), overwrite=True)
            with pytest.raises(ViewChanged):
                await member.commits.commit(work, (1,))
        reports: list[tx.Report] = []
        write = Write(schema.map_id, schema.version, (2,), (2,))
        part = {PARTITIONS + 1: PartWork(0, (write,))}
        member.transactions.shell.begin(part, reports.append, one_phase=True)
        assert isinstance(reports[0].cause, SerializationFailure)
        for name, rows in (("t", 3), ("r", 1)):
            assert await client.sql(f"SELECT count(*) FROM {name}") == [(rows,)]
        await cluster.idle()

    in_cluster(scenario, members=2)


def test_no_copy_of_a_replicated_map_is_complete_without_a_source(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE r (k BIGINT PRIMARY KEY) REPLICATED")
        schema = await client.schema("r")
        member = cluster.member(2)
        member.core.lost[1] = "it is silent"
        with pytest.raises(TransientError):
            await member.receiving._fetch(schema)

    in_cluster(scenario, members=2)


def test_a_put_that_a_new_primary_refuses_is_made_again(in_cluster: Any) -> None:
    """It was prepared at a timestamp below the one from which on the new primary serves."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v VARCHAR)")
        schema = await client.schema("t")
        refusals = [SnapshotTooOld("what was before the handover is not known here")] * 2
        for member in cluster.members:
            validation = member.transactions.shell.validation
            known = validation.conflict
            validation.must_look = lambda _partition, _work: True  # type: ignore[method-assign]
            validation.conflict = lambda address, work, known=known: (  # type: ignore[method-assign]
                refusals.pop() if refusals else known(address, work)
            )
        assert await client.put(schema, (1, "a")) == [None]
        assert not refusals
        assert await client.get(schema, 1) == [(1, "a")]

    in_cluster(scenario, members=2, backups=1)


def test_rows_of_a_job_whose_coordinator_is_lost_are_not_kept(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        schema = await client.schema("t")
        jobs = cluster.member(1).commits
        with pytest.raises(JobAborted):
            jobs.staging("7-abc", schema)
        assert not jobs.is_staging("7-abc")

    in_cluster(scenario, members=1)


def test_a_batch_that_waited_is_not_written_by_a_member_that_is_not_ready(in_cluster: Any) -> None:
    """Its partitions may have got another primary while it waited for a bulk write."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        schema = await client.schema("t")
        member = cluster.member(1)
        waited = asyncio.Event()
        settled = member.commits.settled

        async def view_comes(map_id: int, at: int = 2**62) -> None:
            await settled(map_id, at)
            if not waited.is_set():
                member.core.readiness.hold("test", "another view has come")
                waited.set()

        member.commits.settled = view_comes
        batch = pa.record_batch([pa.array([1, 2, 3])], schema=engine_schema(schema))
        put = asyncio.ensure_future(
            client.channel.request(
                RpcType.MAP_PUT_BATCH,
                user_pb2.PutBatchRequest(map="t"),
                [arrow_stream.encode(batch.schema, [batch])],
            )
        )
        await waited.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert member.core.stores[schema.map_id].rows == 0
        member.core.readiness.release("test")
        await put
        assert member.core.stores[schema.map_id].rows == 3

    in_cluster(scenario, members=1)


def test_a_read_of_partitions_that_were_given_away_before_it_began_is_refused(
    in_cluster: Any,
) -> None:
    """They were its own when it came; their rows would silently be missing."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY)")
        core = cluster.member(1).core
        before = core.view
        rows = list(before.replicas)
        rows[5] = (2,)

        async def view_comes(timeout: float = 0.0) -> None:
            core.view = replace(before, replicas=tuple(rows))

        core.until_ready = view_comes  # type: ignore[method-assign]
        with pytest.raises(ViewChanged):
            await client.sql("SELECT count(*) FROM t", partitions=[5])
        core.view = before

    in_cluster(scenario, members=1)


def test_a_move_and_the_commits_of_jobs_take_turns(in_cluster: Any) -> None:
    """Jobs that begin to commit while a move waits come after it: there might be no end of them."""

    async def scenario(cluster: TestCluster) -> None:
        pauses = cluster.member(1).job_rows.pauses
        assert await pauses.pause("1-before") == ()
        move = asyncio.ensure_future(pauses.begin_move())
        await asyncio.sleep(0)
        later = asyncio.ensure_future(pauses.pause("1-later"))
        await asyncio.sleep(3 * LOOK)
        assert not move.done()
        pauses.resume("1-before")
        await move
        await asyncio.sleep(3 * LOOK)
        assert not later.done()
        pauses.end_move()
        assert await later == ()
        pauses.resume("1-later")
        await pauses.begin_move()
        pauses.end_move()

    in_cluster(scenario, members=1)


def test_a_job_that_waited_until_a_member_was_ready_asks_again_whether_it_moves(
    in_cluster: Any,
) -> None:
    async def scenario(cluster: TestCluster) -> None:
        member = cluster.member(1)
        pauses = member.job_rows.pauses
        member.core.readiness.hold("test", "rows are on their way")
        job = asyncio.ensure_future(pauses.pause("1-job"))
        await asyncio.sleep(0)
        await pauses.begin_move()
        member.core.readiness.release("test")
        await asyncio.sleep(3 * LOOK)
        assert not job.done()
        pauses.end_move()
        assert await job == ()
        pauses.resume("1-job")

    in_cluster(scenario, members=1)


def test_a_job_is_not_refused_because_a_move_waits_for_another_one(
    in_cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move_pauses, "GRANT_WAIT", 0.0)

    async def scenario(cluster: TestCluster) -> None:
        pauses = cluster.member(1).job_rows.pauses
        await pauses.pause("1-long")
        move = asyncio.ensure_future(pauses.begin_move())
        await asyncio.sleep(0)
        assert await pauses.pause("1-later") == ()
        assert not move.done()
        pauses.resume("1-long")
        pauses.resume("1-later")
        await move
        pauses.end_move()

    in_cluster(scenario, members=1)


def test_a_job_waits_until_it_is_known_who_has_rows_of_a_silent_member(in_cluster: Any) -> None:
    """Its user may have loaded rows for an hour: another member has them soon."""

    async def scenario(cluster: TestCluster) -> None:
        core, pauses = cluster.member(1).core, cluster.member(1).job_rows.pauses
        silent, alive = [MemberUnavailable("member 2 is lost: it is silent")], core.require_alive

        def require_alive(number: int) -> None:
            if number == 2 and silent:
                raise silent.pop()
            alive(number)

        core.require_alive = require_alive  # type: ignore[method-assign]
        assert await pauses.pause("1-job") == ()
        assert not silent
        pauses.resume("1-job")

    in_cluster(scenario, members=2)


def test_a_move_does_not_wait_for_the_job_of_a_member_that_is_gone(in_cluster: Any) -> None:
    """Nobody would say that it has ended, and copies are missing meanwhile."""

    async def scenario(cluster: TestCluster) -> None:
        pauses = cluster.member(1).job_rows.pauses
        await pauses._pause_here(Pause("9-job", 1))
        async with asyncio.timeout(60):
            await pauses.begin_move()
        pauses.end_move()

    in_cluster(scenario, members=1)


async def rows_of_job(client: Any) -> tuple[MapSchema, pa.RecordBatch]:
    """Of all partitions."""
    schema = await client.schema("t")
    arrow = engine_schema(schema)
    columns = [pa.array(range(600), field.type) for field in arrow]
    return schema, pa.record_batch(columns, schema=arrow)


def test_whoever_is_given_a_copy_anew_gets_rows_that_it_had_before(in_cluster: Any) -> None:
    """A move began again while rows were on their way: the receiver has dropped what it had."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        schema, batch = await rows_of_job(client)
        member = cluster.member(1)
        rows, mine = member.job_rows, member.core.view.partitions_of(1)
        rows.receivers = dict.fromkeys(mine, 2)
        sent: list[int] = []

        async def send(receiver: int, *_rows: Any, **_options: Any) -> None:
            sent.append(receiver)
            if len(sent) == 1:
                rows.receivers = dict(rows.receivers)

        rows._send = send  # type: ignore[method-assign]
        partitions = Router(schema).partitions(batch)
        own = np.isin(partitions, list(mine))
        job = member.commits.new_job()
        frame = Frame(job, "0:0", 1, 0, removal=False)
        await rows._on_copies(schema, frame, batch.filter(pa.array(own)), partitions[own])
        assert sent == [2, 2]
        rows.receivers = {}
        member.commits.drop(job, [1])

    in_cluster(scenario, members=2, backups=0)


def test_rows_of_jobs_arrive_before_and_after_a_map_is_altered(in_cluster: Any) -> None:
    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        member = cluster.member(1)
        rows, theirs = member.job_rows, member.core.view.partitions_of(2)
        rows.await_copies(lambda: theirs)
        jobs = [member.commits.new_job() for _ in range(2)]
        for job in jobs:
            schema, batch = await rows_of_job(client)
            arriving = np.isin(Router(schema).partitions(batch), list(theirs))
            frame = Frame(job, "0:0", 2, 0, removal=False)
            rows._keep(schema, frame, batch.filter(pa.array(arriving)))
            await client.sql(f"ALTER TABLE t ADD COLUMN w{len(schema.columns)} BIGINT")
        for job in jobs:
            member.commits.drop(job, [1])
        assert not rows._arriving

    in_cluster(scenario, members=2, backups=0)


def test_a_write_of_before_a_handover_is_not_covered_by_the_rows_that_came(in_cluster: Any) -> None:
    """It was prepared by the old primary, below the timestamp at which those rows begin here."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        await client.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        schema = await client.schema("t")
        core = cluster.member(1).core
        store = core.stores[schema.map_id]
        prepared = core.timestamp()
        arrived = store.arrival(list(store.extraction(EVERY_PARTITION).versions()))
        store.discard_partitions(EVERY_PARTITION)
        cut = core.timestamp()
        arrived.begins = arrived.begins.clip(min=cut)
        store.install(arrived)
        store.raise_floor(cut)
        for key, row in (((1,), (1, 11)), ((2,), None), ((3,), (3, 31))):
            write = Write(schema.map_id, schema.version, key, row)
            Applying(core).apply(0, PartWork(0, (write,)), prepared)
        assert sorted(await client.sql("SELECT k, v FROM t")) == [(1, 11), (3, 31)]
        assert await client.get(schema, 1, 2, 3) == [(1, 11), None, (3, 31)]
        assert store.size(core.timestamp()) == 2

    in_cluster(scenario, members=1)


def test_rows_by_key_come_from_one_member_below_a_handover(in_cluster: Any) -> None:
    """Both have them there; a statement that asks both would meet a row twice. One that asks only
    the owner of each key does not."""

    async def scenario(cluster: TestCluster) -> None:
        client = await cluster.client(1)
        await client.sql("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        await client.sql("INSERT INTO t VALUES (1, 10), (2, 20)")
        schema = await client.schema("t")
        core = cluster.member(1).core
        core.primary_here = frozenset(range(PARTITIONS)) - {Router(schema).key_partition((1,))}
        store = core.stores[schema.map_id]
        session = Session(client)
        await session.sql("BEGIN")
        by_key = "SELECT v FROM t WHERE k IN (1, 2)"
        texts = ("SELECT DISTINCT v FROM t WHERE k IN (1, 2)", "SELECT v FROM t WHERE k > 0")
        for text in (by_key, *texts):
            assert sorted(await session.sql(text)) == [(10,), (20,)]
        store.mixed_until = FOREVER
        assert sorted(await session.sql(by_key)) == [(10,), (20,)]
        for text in texts:
            assert await session.sql(text) == [(20,)]
        await session.sql("ROLLBACK")

    in_cluster(scenario, members=1)


def test_an_end_of_a_pause_and_of_a_turn_that_got_lost_are_said_again(in_cluster: Any) -> None:
    """Moves and new copies stood still for two minutes after one lost message."""

    async def scenario(cluster: TestCluster) -> None:
        peers = cluster.member(1).peers
        ends = (ControlType.MOVES_PAUSE, ControlType.COMMIT_TURN_END)
        lost: list[int] = []
        request = peers.request_nowait

        def lossy(number: int, rpc_type: int, *rest: Any) -> None:
            if rpc_type in ends and rpc_type not in lost:
                lost.append(rpc_type)  # without a word to either side
            else:
                request(number, rpc_type, *rest)

        pauses, there = cluster.member(1).job_rows.pauses, cluster.member(2).job_rows.pauses
        await pauses.pause("1-job")
        assert "1-job" in there._jobs()
        peers.request_nowait = lossy
        pauses.resume("1-job")
        await there.begin_move()
        there.end_move()

        commits = cluster.member(1).commits
        home_is_2 = next(m for m in range(1, 300) if commits.turns._home(m) == 2)
        await commits.turns.turn(home_is_2, "1-job")
        commits.turns.end_turn(home_is_2, "1-job")
        await cluster.member(2).commits.turns.turn(home_is_2, "2-next")
        assert lost == list(ends)

    in_cluster(scenario, members=2)
