"""Statements that need no task of their own: changes of one entry by its key, and queries that read
no map (decision 0084).

Such a change is one request to the owner of its key and back, so it is started and ended in
callbacks; such a query is computed at once. They are among the statements of their clients
meanwhile, are cancelled, timed, counted and noted like every other one, and go on in the general
way (``Statements.run``) when they must be planned again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError, TransientError
from remuda.limits import MIB
from remuda.member.base.core import Core, bug
from remuda.member.maps.keyed_writes import Outcome
from remuda.member.queries.constant_rows import constant_rows
from remuda.member.sessions.replanning import told
from remuda.member.sessions.statement import Statement, too_late
from remuda.member.statements.query_history import QueryHistory
from remuda.member.statements.write_statements import KeyedStatements
from remuda.planner.constant_read import ConstantRead
from remuda.session.answer_form import AnswerForm
from remuda.session.parameters import clock_values
from remuda.session.planning import PlannedChange, PlannedInsert, PlannedQuery
from remuda.session.settings import SETTINGS
from remuda.transaction.own_writes import Row

LONG: Final = 0.02
"""Seconds after which the client is told the id of a statement that still waits, so that it can
cancel it."""
ANSWER_SIZE_MAX: Final = MIB
"""Several rows of together more than this travel as Arrow, in the general way."""


class ShortAnswer(Protocol):
    """The way to the client of one statement. Nothing is raised."""

    def rows(self, form: AnswerForm, packed: Sequence[bytes]) -> None:
        """The end of a query."""

    def changed(self, form: AnswerForm, tag: str, rows: int, returned: bytes | None) -> None:
        """The end of a change: ``returned`` is the row of RETURNING, packed."""

    def failed(self, error: RemudaError) -> None:
        """The end."""

    def waits(self) -> None:
        """It takes longer: its end will come by the wire of the statement, as of every other."""


class General(Protocol):
    """The general way of statements."""

    def accept(self, statement: Statement) -> None: ...

    def again(self, statement: Statement, error: RemudaError) -> bool:
        """Have it run once more; False: it fails with ``error``."""

    def changed(
        self, statement: Statement, found: PlannedInsert | PlannedChange, row: Row | None
    ) -> None: ...

    def failed(self, statement: Statement, error: RemudaError) -> None: ...

    def closed(self, statement: Statement) -> None: ...

    def keeps_numbers(self, statement: Statement) -> bool:
        """Note the numbers that it has taken in the session of its client. False: the client keeps
        its session by itself."""


class ShortStatements:
    def __init__(
        self, core: Core, general: General, keyed: KeyedStatements, history: QueryHistory
    ) -> None:
        self.core = core
        self.general = general
        self.keyed = keyed
        self.history = history

    def change(
        self,
        statement: Statement,
        found: PlannedInsert | PlannedChange,
        values: tuple[PhysicalValue, ...],
        answer: ShortAnswer,
    ) -> bool:
        """Run a statement by its cached plan. False: nothing was done, it takes the general way."""
        if (
            not self._takes(statement)
            or not self.keyed.takes(statement, found)
            or not self.core.readiness.ready
            or (statement.session.values and _reads_only(statement))
        ):
            return False
        ShortChange(self, statement, found, answer).begin(values)
        return True

    def select(
        self,
        statement: Statement,
        found: PlannedQuery,
        values: tuple[PhysicalValue, ...],
        answer: ShortAnswer,
    ) -> bool:
        """Run a query that reads no map. False: nothing was done, it takes the general way."""
        if found.constant is None or not self._takes(statement):
            return False
        try:
            packed = self._computed(statement, found, found.constant, values)
        except RemudaError as error:
            self._refuse(statement, error, answer)
            return True
        except Exception as error:  # noqa: BLE001 (the boundary, see bug)
            self._refuse(statement, bug(error, f"statement {statement.text[:200]!r}"), answer)
            return True
        size = sum(map(len, packed))
        if size > ANSWER_SIZE_MAX and len(packed) > 1:
            return False
        self.history.ended(statement, None, len(packed), size)
        answer.rows(found.form, packed)
        return True

    def _computed(
        self,
        statement: Statement,
        found: PlannedQuery,
        read: ConstantRead,
        values: tuple[PhysicalValue, ...],
    ) -> list[bytes]:
        if self.core.access.active:
            self.core.access.check(statement.user, found)
        if found.clock_parameters:
            moments = found.clock_parameters
            values += clock_values(moments, statement.moment, statement.session)
        pack = found.form.rows.pack
        return list(map(pack, constant_rows(read, values)))

    def _refuse(self, statement: Statement, error: RemudaError, answer: ShortAnswer) -> None:
        error = told(statement, error)
        self.history.ended(statement, error, 0, 0)
        answer.failed(error)

    @staticmethod
    def _takes(statement: Statement) -> bool:
        return (
            statement.transaction is None
            and statement.lost is None
            and statement.row_limit is None
            and statement.progress.pauses is None
        )


def _reads_only(statement: Statement) -> bool:
    """Whether its session refuses it: the general way says so."""
    return statement.session.value(SETTINGS["default_transaction_read_only"]) == "on"


class ShortChange:
    """One statement, from its start to its end."""

    __slots__ = ("_answer", "_found", "_home", "_over", "_statement", "_timer")

    def __init__(
        self,
        home: ShortStatements,
        statement: Statement,
        found: PlannedInsert | PlannedChange,
        answer: ShortAnswer,
    ) -> None:
        self._home = home
        self._statement = statement
        self._found = found
        self._answer: ShortAnswer | None = answer
        self._timer: asyncio.TimerHandle | None = None
        self._over = False

    def begin(self, values: tuple[PhysicalValue, ...]) -> None:
        home, statement, keyed = self._home, self._statement, self._found.keyed
        assert keyed is not None
        home.general.accept(statement)
        statement.progress.alone = True
        try:
            if home.core.access.active:
                home.core.access.check(statement.user, self._found)
            statement.check()
            home.keyed.begin(statement, keyed, values, self._ended)
        except RemudaError as error:
            self._ended(error)
        except Exception as error:  # noqa: BLE001 (the boundary, see bug)
            self._ended(bug(error, f"statement {statement.text[:200]!r}"))
        if self._over:
            home.keyed.ended(statement)
            return
        timeout = statement.timeout
        if timeout is None or timeout > LONG:
            self._later(LONG, self._takes_long)
        else:
            self._later(timeout, self._too_late)

    def _later(self, seconds: float, what: Callable[[], None]) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, what)

    def _takes_long(self) -> None:
        self._timer = None
        self._go_by_wire()
        timeout = self._statement.timeout
        if timeout is not None:
            self._later(timeout - LONG, self._too_late)

    def _too_late(self) -> None:
        self._timer = None
        too_late(self._statement)

    def _go_by_wire(self) -> None:
        if self._answer is not None:
            answer, self._answer = self._answer, None
            answer.waits()

    def _ended(self, outcome: Outcome) -> None:
        """Once; called by the owner's answer, or by what keeps the request from it."""
        if self._over:
            return
        self._over = True
        self._home.keyed.ended(self._statement)
        if self._timer is not None:
            self._timer.cancel()
        try:
            self._end(outcome)
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            self._fail(bug(error, f"statement {self._statement.text[:200]!r}"))

    def _end(self, outcome: Outcome) -> None:
        home, statement, found = self._home, self._statement, self._found
        if isinstance(outcome, TransientError) and home.general.again(statement, outcome):
            self._go_by_wire()
            return
        if statement.progress.numbers and not home.general.keeps_numbers(statement):
            self._go_by_wire()  # with the new session
        if isinstance(outcome, RemudaError):
            self._fail(outcome)
        elif self._answer is None:
            home.general.changed(statement, found, outcome)
        else:
            returned = None
            if outcome is not None and found.form.columns:
                returned = found.form.rows.pack(outcome)
            rows = int(outcome is not None)
            home.history.ended(statement, None, rows, len(returned or b""))
            answer, self._answer = self._answer, None
            verb = found.verb if isinstance(found, PlannedChange) else "INSERT"
            answer.changed(found.form, verb, rows, returned)
            home.general.closed(statement)

    def _fail(self, error: RemudaError) -> None:
        home, statement = self._home, self._statement
        if self._answer is None:
            home.general.failed(statement, error)
            return
        error = told(statement, error)
        home.history.ended(statement, error, 0, 0)
        answer, self._answer = self._answer, None
        answer.failed(error)
        home.general.closed(statement)
