"""What both faces of the client do with a transaction whose members fall silent or die."""

from __future__ import annotations

from functools import partial

import pytest
from faces import Blocking, cut, impatient, settle

from remuda.client.asynchronous import transaction as asyncio_transaction
from remuda.client.core.held import Held
from remuda.errors import ConnectionBroken, NoAnswer, OutcomeUnknown, UndefinedTransaction
from remuda.rpc.messages import user_pb2
from remuda.transaction.states import State

pytestmark = pytest.mark.usefixtures("short_pauses")


class TestTransactions:
    """What was lost with its connection, and what is not known of it."""

    @pytest.fixture(autouse=True)
    def transactions(self, grid, monkeypatch):
        """The members begin and end them, and remember each end: (member, whether a commit)."""
        ends = []

        def begin(member, request):
            status = user_pb2.TransactionStatus(
                transaction="t1", member=member.number, state=user_pb2.ACTIVE
            )
            request.reply(user_pb2.TRANSACTION_BEGIN, status)

        def end(member, request):
            message = user_pb2.TransactionEnd.FromString(request.pbody)
            ends.append((member.number, message.commit))
            request.reply(user_pb2.TRANSACTION_END, user_pb2.TransactionEnded())

        def savepoint(_, request):
            status = user_pb2.TransactionStatus(transaction="t1", state=user_pb2.ACTIVE)
            request.reply(user_pb2.TRANSACTION_SAVEPOINT, status)

        for member in grid.members:
            for name, handler in (("begin", begin), ("end", end), ("savepoint", savepoint)):
                bound = partial(handler, member)
                monkeypatch.setattr(member, f"on_transaction_{name}", bound, raising=False)
        return ends

    @pytest.mark.parametrize(("handler", "act"), [
        ("on_map_put", lambda tx: tx.map("m").get_and_put(1, {"v": 2})),
        ("on_map_get", lambda tx: tx.map("m").get(1)),
        ("on_transaction_savepoint", lambda tx: tx.savepoint("s")),
    ])  # fmt: skip
    def test_a_lost_connection_ends_it(self, face, grid, monkeypatch, transactions, handler, act):
        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            tx = await settle(client.transaction())
            await settle(tx.begin())
            seen = cut(monkeypatch, grid, handler, 1)
            with pytest.raises(ConnectionBroken):
                await settle(act(tx))
            assert len(seen) == 1
            assert tx.state is State.MARKED_ROLLBACK
            with pytest.raises(UndefinedTransaction, match="nothing of it took effect"):
                await settle(act(tx))
            assert len(seen) == 1  # no member is asked for it any more
            with pytest.raises(UndefinedTransaction) as caught:
                await settle(tx.commit())
            assert not caught.value.may_have_run
            assert tx.state is State.ROLLED_BACK
            assert transactions == []

        face(scenario, retry_reads=3, retry_writes=3)

    def test_without_an_answer_it_is_rolled_back(self, face, grid, transactions):
        async def scenario(client):
            await client.map("m").put(1, {"v": 1})
            tx = await settle(client.transaction())
            await settle(tx.begin())
            grid.silent.add("map_put")
            impatient(tx)
            with pytest.raises(NoAnswer):
                await settle(tx.map("m").get_and_put(1, {"v": 2}))
            impatient(tx, 30.0)
            assert tx.state is State.MARKED_ROLLBACK
            with pytest.raises(UndefinedTransaction):
                await settle(tx.commit())
            assert [commit for _, commit in transactions] == [False]

        face(scenario)

    @pytest.mark.parametrize("silent", [False, True])
    def test_a_commit_whose_answer_is_lost_is_not_repeated(self, face, grid, monkeypatch, silent):
        async def scenario(client):
            monkeypatch.setattr(asyncio_transaction, "COMMIT_GRACE", 0.2)
            impatient(client)
            seen = []
            if silent:
                grid.silent.add("transaction_end")
            else:
                seen = cut(monkeypatch, grid, "on_transaction_end", 9)
            runs = []

            def plain(tx):
                runs.append(tx)
                tx.map("m").put(1, {"v": 2})

            async def coroutine(tx):
                runs.append(tx)
                await tx.map("m").put(1, {"v": 2})

            await client.map("m").put(1, {"v": 1})
            function = plain if isinstance(client, Blocking) else coroutine
            with pytest.raises(OutcomeUnknown, match="whether the transaction was committed"):
                await client.run_transaction(function)
            assert [tx.state for tx in runs] == [State.UNKNOWN]
            assert len(seen) == (0 if silent else 1)

        face(scenario)

    def test_a_lost_commit_statement(self, face, grid, monkeypatch, script):
        """It may have taken effect: nobody says that it has not, and what follows stands alone."""

        async def scenario(client):
            grid.scripts["SELECT 1"] = script(tag="SELECT")
            client._core.shared.held = Held("t1", 1)
            with monkeypatch.context() as patch:
                cut(patch, grid, "on_run_query", 1)
                with pytest.raises(OutcomeUnknown):
                    await client.sql("COMMIT")
            assert client.transaction_state is None
            await client.sql("SELECT 1")
            assert not grid.statements[-1][1].transaction

            tx = await settle(client.transaction())
            await settle(tx.begin())
            cut(monkeypatch, grid, "on_run_query", 1)
            with pytest.raises(OutcomeUnknown):
                await settle(tx.sql("COMMIT"))
            assert tx.state is State.UNKNOWN

        face(scenario)
