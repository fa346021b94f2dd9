"""Two of five members are cut off with partitions that only they have, live, and give them back."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import sim_world
from sim_cluster import Simulation, simulation
from sim_log_disk import LogDisk
from sim_network import LOST, Fate, Sent

from remuda.cluster.next_view import Placement
from remuda.errors import MemberUnavailable, PartitionsUnreachable, RemudaError
from remuda.member.commits import participants as commit_participants
from remuda.member.commits.participants import CommitParticipants
from remuda.member.copies import donations
from remuda.member.copies.donor import Donor
from remuda.member.copies.receiving import Incoming
from remuda.member.monitoring.pages import Pages
from remuda.member.state.commit_work import Taking
from remuda.storage.maps import transfer
from remuda.transaction.staged_commit import FinishAsked

ROWS = 300
SPLIT = 14.0
TOTAL = "SELECT count(*), sum(v) FROM t"
Work = Callable[[Simulation], Awaitable[None]]


def play(work: Work, seed: int = 1, *, logged: bool = False, **settings: Any) -> None:
    """``logged``: members keep logs."""
    with ExitStack() as patches:
        if logged:
            patches.enter_context(mock.patch.object(sim_world, "SimulatedDisk", LogDisk))
            settings["data_dir"] = "/data"
        sim = patches.enter_context(simulation(seed, 5, backups=1, **settings))
        sim.form()
        sim.complete(load(sim))
        sim.complete(work(sim))
        sim.settle(60.0)
        sim.verdict()


async def load(sim: Simulation) -> None:
    client = await sim.client(1)
    await client.run("CREATE TABLE t (id BIGINT PRIMARY KEY, v INT)")
    rows = ", ".join(f"({n}, 1)" for n in range(ROWS))
    await client.run(f"INSERT INTO t VALUES {rows}")
    client.channel.close()


async def until(condition: Callable[[], object], limit: float = 60.0) -> None:
    async with asyncio.timeout(limit):
        while not condition():
            await asyncio.sleep(0.05)


async def cut_off(sim: Simulation) -> Any:
    """The others have gone on without members 4 and 5; the core of member 1."""
    one = sim.members[1].core
    sim.split({4, 5}, SPLIT)
    await until(lambda: set(one.view.by_number) == {1, 2, 3})
    assert one.view.unreachable
    assert not one.view.lost
    return one


def test_copies_come_back() -> None:
    async def work(sim: Simulation) -> None:
        one = await cut_off(sim)
        away = len(one.view.unreachable)
        client = await sim.client(1)
        with pytest.raises(PartitionsUnreachable) as caught:
            await client.run(TOTAL)
        assert caught.value.retryable
        assert not caught.value.may_have_run
        await until(lambda: not one.view.absent)
        assert sum(one.view.generation(p) for p in range(271)) == away
        assert not one.view.emptied
        assert await client.run(TOTAL) == [(ROWS, ROWS)]
        await client.run("UPDATE t SET v = v + 1")
        assert await client.run(TOTAL) == [(ROWS, 2 * ROWS)]
        # The donors have ended, as nobody wants anything of them.
        await until(lambda: all(sim.members[n]._end.done() for n in (4, 5)))
        client.channel.close()

    play(work)


def test_after_the_loss_was_accepted_copies_are_void() -> None:
    async def work(sim: Simulation) -> None:
        one = await cut_off(sim)
        away = len(one.view.absent)
        assert await sim.members[1].lost.accept() == away
        client = await sim.client(1)
        ((left, _),) = await client.run(TOTAL)
        assert 0 < left < ROWS
        await until(lambda: all(sim.members[n].core.stopping for n in (4, 5)))
        await until(lambda: all(sim.members[n]._end.done() for n in (4, 5)))
        assert (await client.run(TOTAL))[0][0] == left
        client.channel.close()

    play(work)


def test_a_copy_that_could_not_be_given_stays_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Donors that end at once: what they had is neither lost nor there."""
    monkeypatch.setattr(Donor, "run", lambda self: asyncio.sleep(0))

    async def work(sim: Simulation) -> None:
        one = await cut_off(sim)
        await until(lambda: all(sim.members[n].core.stopping for n in (4, 5)))
        await asyncio.sleep(10.0)
        assert one.view.unreachable
        assert await sim.members[1].lost.accept()

    play(work)


async def silent_donor(sim: Simulation) -> None:
    """Both that were cut off have the same copies; one of them is chosen, and ends before it gives
    any."""
    one = await cut_off(sim)
    silent = str(sim.nodes[4])

    def rule(sent: Sent) -> Fate | None:
        return LOST if sent.name == "DONATE_COPIES" and sent.sender == silent else None

    sim.network.rules.append(rule)
    await until(lambda: any(each.donor == 4 for each in one.view.missing))
    sim.crash(4)
    client = await sim.client(1)
    await until(lambda: not one.view.absent)
    assert await client.run(TOTAL) == [(ROWS, ROWS)]
    client.channel.close()


def test_a_silent_donor_is_replaced() -> None:
    play(silent_donor)


def test_without_that_partitions_stay_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(donations, "SILENT", 1e6)
    with pytest.raises(TimeoutError):
        play(silent_donor)


async def slow_donors(sim: Simulation) -> None:
    """Both have the same copies, and each needs far longer to give them than a silent one has."""
    one = await cut_off(sim)
    away = {str(sim.nodes[number]) for number in (4, 5)}

    def rule(sent: Sent) -> Fate | None:
        return Fate((2.0,)) if sent.name == "COPY_ROWS" and sent.sender in away else None

    sim.network.rules.append(rule)
    await until(lambda: not one.view.absent, 120.0)
    client = await sim.client(1)
    assert await client.run(TOTAL) == [(ROWS, ROWS)]
    client.channel.close()


async def other_views(sim: Simulation) -> None:
    """Views that do not concern the copies of donors come while these give them."""
    one = await cut_off(sim)
    away = {str(sim.nodes[number]) for number in (4, 5)}
    views = itertools.count()

    def rule(sent: Sent) -> Fate | None:
        if sent.name != "COPY_ROWS" or sent.sender not in away:
            return None
        next(views)
        number = one.number
        rows = list(enumerate(one.view.replicas))
        backed = [Placement(p, row, (row[1], row[0])) for p, row in rows if len(row) == 2]
        sim.members[number].membership.wish_places(backed[:1])
        return Fate((0.5,))

    sim.network.rules.append(rule)
    await until(lambda: not one.view.absent, 120.0)
    assert next(views) > 5
    client = await sim.client(1)
    assert await client.run(TOTAL) == [(ROWS, ROWS)]
    client.channel.close()


def test_views_that_do_not_concern_a_donor_leave_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "SENT_ROWS", 1)
    play(other_views)


@pytest.mark.soak
def test_where_every_view_does_it_never_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "SENT_ROWS", 1)
    monkeypatch.setattr(Incoming, "chosen", lambda *_: False)
    with pytest.raises(TimeoutError):
        play(other_views)


def test_donors_that_are_slow_but_get_on_are_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "SENT_ROWS", 1)
    play(slow_donors)


@pytest.mark.soak
def test_donors_whose_progress_is_not_heard_replace_each_other_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transfer, "SENT_ROWS", 1)
    monkeypatch.setattr(donations, "PATIENCE_MAX", 1)
    monkeypatch.setattr(Donor, "tell_progress", lambda *_: asyncio.sleep(0))
    with pytest.raises(TimeoutError):
        play(slow_donors)


@pytest.mark.soak
def test_without_progress_their_patience_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where members do not hear of it: the time that a donor has grows with every change."""
    monkeypatch.setattr(transfer, "SENT_ROWS", 1)
    monkeypatch.setattr(Donor, "tell_progress", lambda *_: asyncio.sleep(0))
    play(slow_donors)


def test_a_donor_without_a_majority_waits_and_says_so() -> None:
    """Nobody can answer for a majority any more: it must not end, and whoever asks hears why."""

    async def work(sim: Simulation) -> None:
        one = await cut_off(sim)
        sim.network.rules.append(lambda sent: LOST if sent.name == "DONATE" else None)
        await until(lambda: all(sim.members[n].core.stopping for n in (4, 5)))
        sim.crash(2)
        sim.crash(3)
        sim.network.rules.clear()
        await until(lambda: not one.ready)
        await asyncio.sleep(200.0)
        for number in (4, 5):
            member = sim.members[number]
            assert not member._end.done()
            with pytest.raises(MemberUnavailable) as caught:
                await sim.client(number)
            assert "is not in the cluster any more" in caught.value.message
            assert "may not serve: it is not heard by a majority" in caught.value.detail
            assert "leave this process alone" in caught.value.hint
            said = sum("a donor waits" in line for line in sim.log().splitlines())
            assert 4 < said < 40, "not once for each question"
            assert Pages(member.core, tuple, None)._ready().content == b"donor\n"
            member.donor.end()
        await until(lambda: all(sim.members[n]._end.done() for n in (4, 5)))

    with simulation(1, 5, backups=1) as sim:
        sim.form()
        sim.complete(load(sim))
        sim.complete(work(sim), 2000.0)


async def forgotten_end(sim: Simulation) -> None:
    """A bulk write that the members have committed is prepared on the donors, which have not heard
    how it ended; other writes end before these come back."""
    away = {str(sim.nodes[number]) for number in (4, 5)}

    def rule(sent: Sent) -> Fate | None:
        return LOST if sent.name == "COMMIT_FINISH" and sent.receiver in away else None

    sim.network.rules.append(rule)
    client = await sim.client(1)
    bulk = await client.start("INSERT INTO t SELECT g, 1 FROM generate_series(1000, 5999) AS s(g)")
    far = sim.members[4].commits.participants
    near = sim.members[2].commits.participants
    await until(lambda: far.prepared and near._decided and not near.prepared)
    one = await cut_off(sim)
    await bulk.done.wait()
    for number, job in itertools.product((1, 2, 3), ("1-a", "1-b", "1-c")):
        sim.members[number].commits.participants.step(job, FinishAsked(None))
    sim.network.rules.remove(rule)
    await until(lambda: not one.view.absent)
    assert await client.run(TOTAL) == [(ROWS + 5000, ROWS + 5000)]
    client.channel.close()


def test_ends_of_bulk_writes_are_kept_until_copies_are_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit_participants, "DECIDED_KEPT", 1)
    play(forgotten_end)


def test_an_end_that_is_forgotten_takes_rows_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve = CommitParticipants._resolve

    def forgetting(self: CommitParticipants, taking: Taking, timestamp: int | None) -> None:
        resolve(self, taking, timestamp)
        while len(self._decided) > 1:
            self._decided.popitem(last=False)

    monkeypatch.setattr(CommitParticipants, "_resolve", forgetting)
    with pytest.raises((AssertionError, TimeoutError)):
        play(forgotten_end)


def storm(seed: int, *, logged: bool = False) -> tuple[int, int]:
    """Transfers between accounts by SQL statements while the members are cut off and come back, and
    writes of single rows: the sum stays. How many committed, and how many may have."""
    ends = {"well": 0, "unknown": 0}

    async def transfer(sim: Simulation, number: int) -> None:
        chance = sim.random
        await asyncio.sleep(chance.uniform(0.0, 30.0))
        near = chance.choice((1, 2, 3, 4, 5))
        a, b = chance.sample(range(ROWS), 2)
        text = (
            f"UPDATE t SET v = v + CASE WHEN id = {a} THEN 5 ELSE -5 END WHERE id IN ({a}, {b})"
            if number % 3
            else "UPDATE t SET v = v + CASE WHEN id % 2 = 0 THEN 1 ELSE -1 END"
        )
        if number % 4 == 0:
            text = f"UPDATE t SET v = v WHERE id = {a}"
        try:
            async with asyncio.timeout(60.0):
                client = await sim.client(near)
                await client.run(text)
                client.channel.close()
        except (RemudaError, TimeoutError):
            ends["unknown"] += 1
        else:
            ends["well"] += 1

    async def work(sim: Simulation) -> None:
        one = sim.members[1].core
        working = [sim.loop.create_task(transfer(sim, n)) for n in range(30)]
        await asyncio.sleep(sim.random.uniform(0.0, 5.0))
        sim.split({4, 5}, sim.random.choice((3.8, 6.0, SPLIT)))
        await asyncio.gather(*working)
        await until(lambda: not one.view.absent, 120.0)
        await asyncio.sleep(10.0)
        client = await sim.client(1)
        assert await client.run(TOTAL) == [(ROWS, ROWS)]
        client.channel.close()

    play(work, seed, logged=logged)
    return ends["well"], ends["unknown"]


def test_sums_stay_while_members_are_cut_off_and_come_back() -> None:
    found = [storm(seed) for seed in range(3)]
    assert sum(well for well, _ in found) > 20


def test_sums_stay_where_members_keep_logs() -> None:
    assert storm(1, logged=True)[0] > 5


@pytest.mark.soak
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("logged", [False, True])
def test_many_storms(logged: bool) -> None:
    for seed in range(3, 300):
        storm(seed, logged=logged)
