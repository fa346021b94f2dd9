"""Transactions of both faces: what they promise, and how they end."""

from __future__ import annotations

import asyncio
import io
import threading
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

import remuda
import remuda.aio
from remuda.cli.shell.editing import run_shell
from remuda.cli.shell.session import Session
from remuda.client.blocking.tool_access import outside
from remuda.client.network.known_members import KnownMembers
from remuda.client.requests import requests
from remuda.errors import (
    DeadlockDetected,
    FailedTransaction,
    InputError,
    LimitExceeded,
    MemberUnavailable,
    NoActiveTransaction,
    NotSupported,
    ReadOnlyTransaction,
    SchemaChanged,
    SerializationFailure,
    TransactionSuspended,
    TransactionTimeout,
    UndefinedMap,
    UndefinedSavepoint,
    UndefinedTransaction,
    UniqueViolation,
)
from remuda.transaction.states import State

pytestmark = pytest.mark.cluster


@dataclass
class Account:
    amount: int


@pytest.fixture(scope="module")
def cluster() -> Any:
    settings = {"transaction_memory": 100_000}
    with remuda.start(members=2, settings=settings) as found:
        yield found


@pytest.fixture
def client(cluster: Any) -> Any:
    with cluster.connect() as found:
        found.drop_map("accounts", if_exists=True)
        found.map("accounts", Account).put_all({n: Account(100) for n in range(10)})
        yield found


def total(client: Any) -> Any:
    return client.sql("SELECT sum(amount) FROM accounts").scalar()


def test_maps_and_sql_together(client: Any) -> None:
    accounts = client.map("accounts", Account)
    with client.transaction() as tx:
        own = tx.map("accounts", Account)
        own.put(1, Account(own.get(1).amount - 30))
        tx.sql("UPDATE accounts SET amount = amount + 30 WHERE __key = 2")
        assert own.get_all([1, 2, 77]) == {1: Account(70), 2: Account(130)}
        assert dict(own.entries(remuda.col("amount") > 100)) == {2: Account(130)}
        assert own.put_if_absent(1, Account(0)) is False
        assert own.put_if_absent(20, Account(5)) is True
        assert own.replace(21, Account(0)) is False
        assert own.get_and_put(20, Account(6)) == Account(5)
        assert (own.remove(20), own.remove(20), 20 in own, 1 in own) == (
            Account(6),
            None,
            False,
            True,
        )
        assert (own.delete(3), len(own), len(accounts)) == (True, 9, 10)
        assert own.put_all({n: Account(0) for n in range(100, 300)}) == 200
        table = pa.table({"__key": [300, 301], "amount": [1, 2]})
        assert own.put_all(table) == 2
        assert len(own) == 211
        assert tx.prepare("SELECT count(*) FROM accounts WHERE amount < ?")(3).scalar() == 202
        assert tx.execute_many("DELETE FROM accounts WHERE __key = ?", [(300,), (301,)]) == 2
        assert accounts.get(1) == Account(100)
        assert total(client) == 1000
    assert tx.state is State.COMMITTED
    assert tx.commit_timestamp is not None
    assert (accounts.get(1), accounts.get(2), accounts.get(3)) == (Account(70), Account(130), None)
    assert (len(accounts), total(client)) == (209, 900)


def test_an_exception_rolls_back(client: Any) -> None:
    with pytest.raises(ValueError, match="mine"), client.transaction() as tx:
        tx.map("accounts", Account).put(1, Account(0))
        raise ValueError("mine")
    assert tx.state is State.ROLLED_BACK
    assert client.map("accounts", Account).get(1) == Account(100)


def test_a_conflict_names_the_map_and_the_key(client: Any) -> None:
    with (
        pytest.raises(SerializationFailure, match='"accounts"') as caught,
        client.transaction() as tx,
    ):
        amount = tx.map("accounts", Account).get(1).amount
        client.map("accounts", Account).put(1, Account(5))
        tx.map("accounts", Account).put(2, Account(amount))
    assert caught.value.detail == "Key (__key)=(1)"
    assert "again" in caught.value.hint
    assert (caught.value.sqlstate, caught.value.retryable) == ("40001", True)
    assert tx.state is State.ROLLED_BACK
    assert client.map("accounts", Account).get(2) == Account(100)


def test_blind_writes_do_not_conflict(client: Any) -> None:
    with client.transaction() as tx:
        tx.map("accounts", Account).put(1, Account(1))
        client.map("accounts", Account).put(1, Account(2))
    assert client.map("accounts", Account).get(1) == Account(1)


def test_run_transaction_runs_again(client: Any) -> None:
    def transfer(_: int) -> None:
        def work(tx: Any) -> None:
            accounts = tx.map("accounts", Account)
            one, two = accounts.get(1).amount, accounts.get(2).amount
            accounts.put_all({1: Account(one - 1), 2: Account(two + 1)})

        for _ in range(10):
            client.run_transaction(work, attempts=1000)

    threads = [threading.Thread(target=transfer, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    accounts = client.map("accounts", Account)
    assert (accounts.get(1), accounts.get(2)) == (Account(60), Account(140))


def test_run_transaction_gives_up(client: Any) -> None:
    calls = []

    def never(tx: Any) -> None:
        calls.append(tx)
        seen = tx.map("accounts", Account).get(1)
        client.map("accounts", Account).put(1, seen)
        tx.map("accounts", Account).put(1, seen)

    with pytest.raises(SerializationFailure):
        client.run_transaction(never, attempts=3)
    assert len(calls) == 3
    with pytest.raises(ZeroDivisionError):
        client.run_transaction(lambda _: 1 / 0)
    with pytest.raises(InputError, match="attempts"):
        client.run_transaction(never, attempts=0)


def test_run_transaction_of_the_other_face(cluster: Any, client: Any) -> None:
    async def awaited(tx: Any) -> None:
        await tx.map("accounts", Account).put(1, Account(0))

    async def main() -> None:
        async with remuda.aio.connect(cluster.addresses) as other:
            await other.run_transaction(lambda _: 5)

    with pytest.raises(InputError, match="this client blocks"):
        client.run_transaction(awaited)
    with pytest.raises(InputError, match="it returned 5"):
        asyncio.run(main())
    assert total(client) == 1000


def test_savepoints(client: Any) -> None:
    with client.transaction() as tx:
        own = tx.map("accounts", Account)
        own.put(1, Account(1))
        tx.savepoint("a")
        own.put(1, Account(2))
        own.delete(2)
        tx.rollback_to("a")
        assert (own.get(1), own.get(2)) == (Account(1), Account(100))
        tx.release("a")
        with pytest.raises(UndefinedSavepoint, match='"a"'):
            tx.rollback_to("a")
        with pytest.raises(InputError):
            tx.savepoint("")


def test_a_failed_statement_fails_the_transaction(client: Any) -> None:
    with client.transaction() as tx:
        tx.savepoint("a")
        with pytest.raises(UniqueViolation):
            tx.sql("INSERT INTO accounts VALUES (1, 1)")
        assert tx.state is State.MARKED_ROLLBACK
        for use in (lambda: tx.map("accounts").get(1), lambda: tx.sql("SELECT 1"), tx.commit):
            with pytest.raises(FailedTransaction) as caught:
                use()
            assert caught.value.sqlstate == "25P02"
            if use is not tx.commit:
                continue
        assert tx.state is State.ROLLED_BACK


def test_a_cursor_that_is_given_up_fails_nothing(client: Any) -> None:
    with client.transaction() as tx:
        cursor = tx.sql("SELECT a.__key FROM accounts a, accounts b, accounts c, accounts d")
        cursor.fetchone()
        cursor.close()
        assert tx.sql("SELECT 1").scalar() == 1


def test_suspend_and_resume(cluster: Any, client: Any) -> None:
    tx = client.transaction(label="aside").begin()
    tx.map("accounts", Account).put(1, Account(0))
    with pytest.raises(NoActiveTransaction):
        tx.resume()
    tx.suspend()
    assert tx.state is State.SUSPENDED
    for use in (tx.commit, lambda: tx.map("accounts").get(1), lambda: tx.sql("SELECT 1")):
        with pytest.raises(TransactionSuspended):
            use()
    with pytest.raises(NoActiveTransaction):
        tx.suspend()
    found = client.sql("SELECT state, label, writes FROM sys.transactions").fetchall()
    assert [tuple(row) for row in found] == [("SUSPENDED", "aside", 1)]
    tx.resume()
    tx.commit()
    assert client.map("accounts", Account).get(1) == Account(0)
    assert client.sql("SELECT count(*) FROM sys.transactions").scalar() == 0


def test_after_its_end(client: Any) -> None:
    tx = client.transaction()
    with pytest.raises(NoActiveTransaction, match="has not begun"):
        tx.commit()
    with tx:
        tx.commit()
    with pytest.raises(NoActiveTransaction, match="is over: committed"):
        tx.map("accounts")
    with pytest.raises(InputError, match="begun already"):
        tx.begin()


def test_what_is_kept_beyond_the_end_is_of_no_use(client: Any) -> None:
    with client.transaction() as tx:
        accounts = tx.map("accounts", Account)
        statement = tx.prepare("SELECT amount FROM accounts WHERE __key = ?")
        assert statement(1).scalar() == 100
    for use in (
        lambda: accounts.get(1),
        lambda: accounts.put(1, Account(0)),
        lambda: accounts.put_all({n: Account(0) for n in range(5)}),
        lambda: statement(1),
    ):
        with pytest.raises(NoActiveTransaction, match="is over"):
            use()
    assert total(client) == 1000


def test_timeout(client: Any) -> None:
    accounts = client.map("accounts", Account)
    tx = client.transaction(timeout=0.2).begin()
    with pytest.raises(TransactionTimeout) as caught:
        tx.map("accounts", Account).put(1, Account(0))
        for _ in iter(lambda: client.sql("SELECT count(*) FROM sys.transactions").scalar(), 0):
            pass
        tx.commit()
    assert caught.value.sqlstate == "25P04"
    assert accounts.get(1) == Account(100)
    tx = client.transaction(timeout=0.2).begin()
    for _ in iter(lambda: client.sql("SELECT count(*) FROM sys.transactions").scalar(), 0):
        pass
    for use in (lambda: tx.map("accounts").get(1), lambda: tx.sql("SELECT 1")):
        with pytest.raises(TransactionTimeout):
            use()
        assert tx.state is State.MARKED_ROLLBACK
    tx.rollback()
    assert tx.state is State.ROLLED_BACK


def test_the_end_of_the_connection_rolls_back(cluster: Any, client: Any) -> None:
    with cluster.connect() as other:
        other.transaction().begin().map("accounts", Account).put(1, Account(0))
        aside = other.transaction().begin()
        aside.map("accounts", Account).put(2, Account(0))
        aside.suspend()
    for _ in iter(lambda: client.sql("SELECT count(*) FROM sys.transactions").scalar(), 1):
        pass
    assert client.sql("SELECT state FROM sys.transactions").scalar() == "SUSPENDED"
    assert total(client) == 1000


def test_a_transaction_of_another_client_is_nobodys(cluster: Any, client: Any) -> None:
    tx = client.transaction().begin()
    tx._transaction.core.held.name = "1:12345"
    with pytest.raises(UndefinedTransaction):
        tx.map("accounts", Account).get(1)


def test_bounds(client: Any) -> None:
    with pytest.raises(LimitExceeded, match="100000 bytes") as caught, client.transaction() as tx:
        tx.map("accounts", Account).put_all({n: Account(n) for n in range(2000)})
    assert "smaller parts" in caught.value.hint
    with pytest.raises(LimitExceeded, match="100000 bytes"), client.transaction() as tx:
        tx.sql("INSERT INTO accounts SELECT x + 1000, 1 FROM generate_series(1, 2000) t(x)")
    assert total(client) == 1000


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"concurrency": "hopeful"}, InputError),
        ({"isolation": "none"}, InputError),
        ({"timeout": 0}, InputError),
        ({"timeout": "long"}, InputError),
        ({"label": 5}, InputError),
    ],
)
def test_options_that_make_no_sense(client: Any, options: dict[str, Any], kind: type) -> None:
    with pytest.raises(kind):
        client.transaction(**options)


def test_what_is_refused(client: Any) -> None:
    with (
        pytest.raises(NotSupported, match="READ COMMITTED or REPEATABLE READ"),
        client.transaction(concurrency="pessimistic", isolation="serializable"),
    ):
        pass
    with client.transaction(read_only=True) as tx:
        for write in (
            lambda: tx.map("accounts", Account).put(1, Account(0)),
            lambda: tx.map("accounts", Account).delete(1),
            lambda: tx.map("accounts", Account).put_all({n: Account(0) for n in range(99)}),
        ):
            with pytest.raises(ReadOnlyTransaction):
                write()
        assert tx.sql("SELECT count(*) FROM accounts").scalar() == 10
    with client.transaction() as tx:
        tx.sql("BEGIN")  # as in PostgreSQL: the transaction goes on
        assert tx.sql("SELECT 1").scalar() == 1
        tx.map("accounts").create_index("amount")  # a definition belongs to its transaction
        tx.rollback()
    assert client.sql("SELECT count(*) FROM sys.indexes WHERE map = 'accounts'").scalar() == 0


def test_a_map_that_is_altered_meanwhile(client: Any) -> None:
    with pytest.raises(SerializationFailure), client.transaction() as tx:
        tx.map("accounts", Account).put(1, Account(0))
        client.sql("ALTER TABLE accounts ADD COLUMN more INT")
        tx.sql("SELECT * FROM accounts").fetchall()
    with pytest.raises(SchemaChanged) as caught, client.transaction() as tx:
        tx.sql("DELETE FROM accounts")
        client.drop_map("accounts")
    assert tx.state is State.ROLLED_BACK
    assert caught.value.hint == "Run the transaction again."


def test_a_map_is_described_once_for_each_version_of_the_catalog(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    describe = requests.describe_map

    def counted(name: str, **options: Any) -> Any:
        asked.append(name)
        return describe(name, **options)

    monkeypatch.setattr(requests, "describe_map", counted)

    def read(key: Any) -> Any:
        with client.transaction() as tx:
            return tx.map("accounts").get(key)

    assert read(1).amount == read(1).amount == 100
    assert asked == ["accounts"]
    client.sql("ALTER TABLE accounts ADD COLUMN owner VARCHAR DEFAULT 'me'").close()
    assert (read(1).owner, read(2).amount) == ("me", 100)
    client.drop_map("accounts")
    client.map("accounts").put("text", {"amount": 7})
    assert read("text").amount == 7
    assert read("none") is None
    client.drop_map("accounts")
    with client.transaction() as tx, pytest.raises(UndefinedMap):
        tx.map("accounts").get("text")
    assert len(asked) == 5  # one by the handle that puts


def test_statements_of_the_client_itself(client: Any) -> None:
    assert client.transaction_state is None
    client.sql("BEGIN")
    assert client.transaction_state is State.ACTIVE
    client.sql("DELETE FROM accounts")
    assert client.sql("SELECT count(*) FROM accounts").scalar() == 0
    assert outside(client).sql("SELECT count(*) FROM accounts").scalar() == 10
    with pytest.raises(UniqueViolation):
        client.sql("INSERT INTO accounts VALUES (1, 1), (1, 2)")
    assert client.transaction_state is State.MARKED_ROLLBACK
    assert client.sql("COMMIT").tag == "ROLLBACK"
    assert client.transaction_state is None
    assert client.sql("SELECT count(*) FROM accounts").scalar() == 10


def test_a_lost_transaction_is_not_gone_unnoticed(client: Any) -> None:
    """Statements behind it must not commit one by one."""
    client.sql("BEGIN")
    client._core.shared.held.broken = remuda.errors.ConnectionBroken("gone")
    with pytest.raises(FailedTransaction, match="lost"):
        client.sql("DELETE FROM accounts")
    client.sql("ROLLBACK")
    assert client.sql("SELECT count(*) FROM accounts").scalar() == 10
    client.sql("BEGIN")
    client._core.shared.held.broken = remuda.errors.ConnectionBroken("gone")
    with pytest.raises(UndefinedTransaction, match="nothing of it took effect") as caught:
        client.sql("COMMIT")
    assert not caught.value.may_have_run
    assert isinstance(caught.value.__cause__, remuda.errors.ConnectionBroken)
    assert client.transaction_state is None


def test_a_transaction_whose_member_has_left_ends_at_once(client: Any) -> None:
    transaction = client.transaction().begin()
    core = transaction._transaction._core
    left = core.held.member
    core.members = KnownMembers(core.ports, core.settings, lambda: None)
    core.members.install(replace(client._core.view, members=()))
    core.refresh = cluster_info  # whoever answers: the member stays away
    with pytest.raises(MemberUnavailable, match="is lost with member") as caught:
        transaction.map("accounts", Account).put(1, Account(1))
    assert caught.value.member == str(left)
    transaction.rollback()


async def cluster_info() -> None:
    """A view without the member is known already."""


def test_asyncio(cluster: Any, client: Any) -> None:
    async def main() -> None:
        async with remuda.aio.connect(cluster.addresses) as other:
            async with other.transaction() as tx:
                accounts = tx.map("accounts", Account)
                await accounts.put(1, Account(1))
                assert (
                    await (await tx.sql("SELECT amount FROM accounts WHERE __key = 1")).scalar()
                    == 1
                )
                assert await other.map("accounts", Account).get(1) == Account(100)
                assert await accounts.size() == 10
            assert tx.state is State.COMMITTED

            async def transfer(tx: Any) -> int:
                accounts = tx.map("accounts", Account)
                one, two = await accounts.get(3), await accounts.get(4)
                await accounts.put(3, Account(one.amount - 1))
                await accounts.put(4, Account(two.amount + 1))
                return one.amount

            await asyncio.gather(*(other.run_transaction(transfer, attempts=100) for _ in range(8)))
            assert await other.map("accounts", Account).get(4) == Account(108)
            with pytest.raises(RuntimeError):
                async with other.transaction() as tx:
                    await tx.map("accounts", Account).put(1, Account(50))
                    raise RuntimeError
            assert await other.map("accounts", Account).get(1) == Account(1)

    asyncio.run(main())


def test_the_shell_shows_it_in_its_prompt(client: Any) -> None:
    lines = ["BEGIN;", "DELETE FROM accounts;", "SELECT 1/0;", "COMMIT;", "\\q"]
    prompts: list[str] = []

    class Lines:
        def history(self) -> list[str]:
            return []

        def read(self, prompt: str) -> str:
            prompts.append(prompt)
            return lines.pop(0)

    out = io.StringIO()
    run_shell(Session(client, out=out, errors=out), Lines())
    assert prompts == ["remuda> ", "remuda*> ", "remuda*> ", "remuda!> ", "remuda> "]
    assert "BEGIN\nDELETE 10\n" in out.getvalue()
    assert "ROLLBACK\n" in out.getvalue()


def by_four(work: Any) -> None:
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_pessimistic_ones_wait_for_each_other(client: Any) -> None:
    def transfer() -> None:
        for _ in range(5):
            with client.transaction(concurrency="pessimistic") as tx:
                accounts = tx.map("accounts", Account)
                one, two = accounts.get(1).amount, accounts.get(2).amount
                accounts.put_all({1: Account(one - 1), 2: Account(two + 1)})

    def increment() -> None:
        for _ in range(5):
            with client.transaction(concurrency="pessimistic", isolation="read committed") as tx:
                tx.sql("UPDATE accounts SET amount = amount + 1 WHERE __key = 3")

    by_four(transfer)
    by_four(increment)
    accounts = client.map("accounts", Account)
    assert (accounts.get(1), accounts.get(2)) == (Account(80), Account(120))
    assert accounts.get(3) == Account(120)


def test_a_single_put_waits_for_the_lock(client: Any) -> None:
    accounts = client.map("accounts", Account)
    with client.transaction(concurrency="pessimistic") as tx:
        own = tx.map("accounts", Account)
        seen = own.get(1)
        putting = threading.Thread(target=lambda: accounts.put(1, Account(0)))
        putting.start()
        own.put(2, seen)
        assert putting.is_alive()
        assert own.get(1) == seen
    putting.join()
    assert (accounts.get(1), accounts.get(2)) == (Account(0), Account(100))


def test_a_deadlock_names_the_circle(client: Any) -> None:
    first, second = (client.transaction(concurrency="pessimistic").begin() for _ in range(2))
    first.map("accounts").get(5)
    second.map("accounts").get(6)
    failed: list[Any] = []

    def get(tx: Any, key: int) -> None:
        try:
            tx.map("accounts").get(key)
        except DeadlockDetected as error:
            failed.append(error)
            tx.rollback()
        else:
            tx.commit()

    threads = [
        threading.Thread(target=get, args=(first, 6)),
        threading.Thread(target=get, args=(second, 5)),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (error,) = failed
    assert error.sqlstate == "40P01"
    assert first.id in error.detail
    assert second.id in error.detail
    with client.transaction(concurrency="pessimistic") as tx:
        assert tx.map("accounts", Account).get_all([5, 6]).keys() == {5, 6}
