"""Requests of operators end what they name, as long as it runs and its commit has not begun."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from remuda.errors import QueryCanceled, SessionTerminated, UndefinedObject, WrongState
from remuda.query.ending import (
    Cancel,
    Close,
    ConnectedClient,
    Effect,
    EndClient,
    EndStatement,
    EndStatementsOfClient,
    EndTransaction,
    Refuse,
    RequireOwner,
    RollBack,
    RunningStatement,
    RunningTransaction,
    step,
)
from remuda.query.ids import QueryId
from remuda.transaction.states import State

FIRST, SECOND = QueryId(1, 1), QueryId(2, 2)


@dataclass
class Known:
    """What runs on member 3."""

    statements: dict[QueryId, RunningStatement] = field(default_factory=dict)
    transactions: dict[str, RunningTransaction] = field(default_factory=dict)
    clients: dict[int, ConnectedClient] = field(default_factory=dict)
    past: dict[object, str] = field(default_factory=dict)
    member: int = 3

    def statement(self, query: QueryId) -> RunningStatement | None:
        return self.statements.get(query)

    def transaction(self, name: str) -> RunningTransaction | None:
        return self.transactions.get(name)

    def client(self, pid: int) -> ConnectedClient | None:
        return self.clients.get(pid)

    def ended(self, name: object) -> str:
        return self.past.get(name, "")


def refused(effects: list[Effect]) -> Exception:
    (refusal,) = [effect for effect in effects if isinstance(effect, Refuse)]
    assert not any(isinstance(effect, Cancel | RollBack | Close) for effect in effects)
    return refusal.error


def test_a_statement_is_ended_by_its_id_alone() -> None:
    work = Known({FIRST: RunningStatement(FIRST, "ada"), SECOND: RunningStatement(SECOND, "ada")})
    owner, cancel = step(work, EndStatement(FIRST, "bob"))
    assert owner == RequireOwner("ada")
    assert isinstance(cancel, Cancel)
    assert cancel.query == FIRST
    assert isinstance(cancel.error, QueryCanceled)
    assert cancel.error.message == "the statement was cancelled by user bob"


def test_a_late_request_ends_nothing() -> None:
    work = Known({SECOND: RunningStatement(SECOND, "")}, past={FIRST: "cancelled", "3:1": "ended"})
    error = refused(step(work, EndStatement(FIRST, "")))
    assert isinstance(error, UndefinedObject)
    assert error.message.endswith("has ended already")
    assert error.detail == "state: cancelled"
    assert refused(step(work, EndTransaction("3:1", ""))).args == (
        "transaction 3:1 has ended already",
    )
    assert refused(step(work, EndTransaction("3:2", ""))).args == (
        "transaction 3:2 does not run on member 3",
    )
    assert step(work, EndStatementsOfClient(7, "")) == step(work, EndClient(7, "")) == []


@pytest.mark.parametrize("state", [*State, None])
@pytest.mark.parametrize("committing", [False, True])
def test_a_statement_ends_until_its_commit_begins(state: State | None, committing: bool) -> None:
    running = RunningStatement(FIRST, "ada", committing, state)
    work = Known({FIRST: running}, clients={7: ConnectedClient(7, "ada", (running,))})
    effects = step(work, EndStatement(FIRST, "ada"))
    stays = committing or state in {State.PREPARING, State.COMMITTING}
    assert effects[0] == RequireOwner("ada"), "only the owner hears what it does"
    if stays:
        assert isinstance(refused(effects), WrongState)
    else:
        assert isinstance(effects[1], Cancel)
    for request in (EndStatementsOfClient(7, "ada"), EndClient(7, "ada")):
        ends = [effect for effect in step(work, request) if isinstance(effect, Cancel)]
        assert bool(ends) is not stays


@pytest.mark.parametrize("state", State)
def test_a_transaction_ends_with_its_statements(state: State) -> None:
    open_one = RunningTransaction("3:1", "ada", state, (FIRST, SECOND))
    client = ConnectedClient(7, "ada", (RunningStatement(FIRST, "ada", state=state),), (open_one,))
    work = Known(transactions={"3:1": open_one}, clients={7: client})
    commits = state in {State.PREPARING, State.COMMITTING}
    effects = step(work, EndTransaction("3:1", ""))
    assert effects[0] == RequireOwner("ada")
    if commits:
        assert isinstance(refused(effects), WrongState)
    else:
        assert isinstance(effects[1], RollBack), "before the statements, which wait in it"
        assert [each.query for each in effects[2:] if isinstance(each, Cancel)] == [FIRST, SECOND]
    ends = step(work, EndClient(7, ""))
    rolled_back = [effect for effect in ends if isinstance(effect, RollBack)]
    assert bool(rolled_back) is not (commits or state is State.SUSPENDED)
    assert isinstance(ends[-1], Close)
    assert isinstance(ends[-1].error, SessionTerminated)
    assert not any(
        isinstance(effect, RollBack | Close) for effect in step(work, EndStatementsOfClient(7, ""))
    )
