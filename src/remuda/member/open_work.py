"""The open work of a member that outlives the requests that began it: a leave waits for it."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.errors import MemberLeaving
from remuda.member.commits.commits import Commits
from remuda.member.commits.jobs import Jobs
from remuda.member.queries.page_forms import is_stock
from remuda.member.queries.queries import Queries
from remuda.member.sessions.session import TransactionSessions
from remuda.member.statements.statements import Statements
from remuda.member.transactions.transactions import Transactions
from remuda.rpc.client_channel import ClientChannel
from remuda.rpc.transport import Channel


class OpenWork:
    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        sessions: TransactionSessions,
        statements: Statements,
        queries: Queries,
        jobs: Jobs,
        transactions: Transactions,
        commits: Commits,
    ) -> None:
        self._sessions = sessions
        self._statements = statements
        self._queries = queries
        self._jobs = jobs
        self._transactions = transactions
        self._commits = commits

    def counts(self) -> dict[str, int]:
        """How much of it there is, by kind."""
        return {
            "transactions": len(self._sessions),
            "statements": self._statements.gauges()["statements"],
            "queries": self._queries.count,
            "jobs": self._jobs.count,
            "committing": self._transactions.gauges()["committing"],
            "commits": self._commits.gauges()["commits"],
        }

    def end(self, error: MemberLeaving) -> None:
        """Roll back transactions and jobs, and end statements. Commits that are under way go on."""
        self._sessions.end_open(error)
        self._jobs.end_open(error)
        for statement, _, _ in list(self._statements.running()):
            if not statement.commits_now:
                self._statements.cancel(statement.query, error)

    def busy(self) -> set[ClientChannel]:
        """The connections of clients on which something is open."""
        found = {statement.channel for statement, _, _ in self._statements.running()}
        found.update(transaction.channel for transaction in self._sessions)
        return found

    def idle(self, channels: Iterable[Channel]) -> list[Channel]:
        """Those of Drill's own clients on which nothing is open: no refusal of their next request
        makes them ask another member."""
        busy = self.busy()
        return [channel for channel in channels if is_stock(channel) and channel not in busy]
