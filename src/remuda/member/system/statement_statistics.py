"""STATEMENT_STATISTICS and ``sys.statement_statistics``: statements by fingerprint, summed over all
members."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Iterable
from typing import Any, Final

from remuda.catalog.system_relations import OWNER
from remuda.member.base.access import HIDDEN_TEXT
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.base.round import PATIENCE, Gathered, in_one_round, listed
from remuda.member.metrics.statement_table import NOT_READ, OTHERS, StatementSums
from remuda.member.sessions.statement import Statement
from remuda.rpc.messages import control_pb2
from remuda.rpc.messages.control_pb2 import RpcType
from remuda.rpc.transport import Request

Row = tuple[Any, ...]
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_AT_ONCE: Final = 200
"""Statements that are encoded or added up before others have a turn on the loop."""


class StatementStatistics:
    """Asks the members, and answers them."""

    def __init__(self, core: Core, peers: Peers) -> None:
        self._core = core
        self._peers = peers

    async def on_request(self, request: Request) -> None:
        message = control_pb2.StatementStatisticsRequest.FromString(request.pbody)
        self._core.observe_peer(message.context)
        answer = control_pb2.StatementStatistics(context=self._core.context())
        for number, each in enumerate(self._core.measures.by_fingerprint.all()):
            answer.statements.append(_encoded(each))
            await _turn(number)
        request.reply(RpcType.STATEMENT_STATISTICS, answer)

    async def rows(self, statement: Statement) -> Iterable[Row]:
        """Of ``sys.statement_statistics``. Texts and fingerprints of other users are for
        administrators. Each row names the members whose calls it lacks."""
        core = self._core
        answers = await in_one_round(
            core,
            self._peers,
            RpcType.STATEMENT_STATISTICS,
            control_pb2.StatementStatisticsRequest(context=core.context()),
            control_pb2.StatementStatistics.FromString,
            PATIENCE,
        )
        silent, owns = listed(answers.silent), core.access.owns
        rows: list[Row] = []
        for each, members in await self._sums(answers):
            hidden = not (_of_nobody(each) or owns(statement.user, each.user))
            rows.append((*_row(each, members, hidden=hidden), silent))
        return rows

    async def _sums(
        self, answers: Gathered[control_pb2.StatementStatistics]
    ) -> Iterable[tuple[StatementSums, int]]:
        """Those of this member and of the others, each with the number of members that have it."""
        found: dict[tuple[int, str], tuple[StatementSums, int]] = {}
        sources = [self._core.measures.by_fingerprint.all()]
        sources += [map(_decoded, answer.statements) for answer in answers.known.values()]
        for source in sources:
            for number, each in enumerate(source):
                key = each.number, each.user
                whole, members = found.get(key) or (_empty(each), 0)
                whole.merge(each)
                found[key] = whole, members + 1
                await _turn(number)
        return found.values()


async def _turn(number: int) -> None:
    """A turn for others, now and then."""
    if number % _AT_ONCE == _AT_ONCE - 1:
        await asyncio.sleep(0)


def _empty(like: StatementSums) -> StatementSums:
    """The sums of members are not changed: they are added to this."""
    return StatementSums(like.number, like.user, like.text)


def _of_nobody(sums: StatementSums) -> bool:
    """Its text tells nothing."""
    return sums.text in {OTHERS.text, NOT_READ.text}


def _row(sums: StatementSums, members: int, *, hidden: bool) -> Row:
    timed = sums.timed
    measured = (sums.shortest, sums.seconds / timed, sums.longest) if timed else (None,) * 3
    fingerprint = None if hidden or _of_nobody(sums) else sums.number
    return (
        fingerprint, sums.user or OWNER, HIDDEN_TEXT if hidden else sums.text,
        timed + sums.reads, sums.errors, sums.reads, sums.rows, sums.seconds, *measured,
        sums.quantile(0.5), sums.quantile(0.95), sums.quantile(0.99), sums.planning, sums.queued,
        sums.waited, sums.memory, sums.spilled, _moment(sums.first), _moment(sums.last), members,
    )  # fmt: skip


def _moment(micros: int) -> dt.datetime | None:
    """None: no call was timed."""
    return _EPOCH + dt.timedelta(microseconds=micros) if micros else None


def _encoded(sums: StatementSums) -> control_pb2.StatementSums:
    return control_pb2.StatementSums(
        fingerprint=sums.number,
        user=sums.user,
        text=sums.text,
        timed=sums.timed,
        reads=sums.reads,
        errors=sums.errors,
        rows=sums.rows,
        seconds=sums.seconds,
        shortest=sums.shortest,
        longest=sums.longest,
        planning=sums.planning,
        queued=sums.queued,
        waited=sums.waited,
        memory=sums.memory,
        spilled=sums.spilled,
        first=sums.first,
        last=sums.last,
        buckets=sums.buckets.keys(),
        counts=sums.buckets.values(),
    )


def _decoded(message: control_pb2.StatementSums) -> StatementSums:
    return StatementSums(
        number=message.fingerprint,
        user=message.user,
        text=message.text,
        timed=message.timed,
        reads=message.reads,
        errors=message.errors,
        rows=message.rows,
        seconds=message.seconds,
        shortest=message.shortest,
        longest=message.longest,
        planning=message.planning,
        queued=message.queued,
        waited=message.waited,
        memory=message.memory,
        spilled=message.spilled,
        first=message.first,
        last=message.last,
        buckets=dict(zip(message.buckets, message.counts, strict=True)),
    )
