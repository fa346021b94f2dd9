"""Performs the turns of a session: prepared reads by key that are answered by one write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from remuda.datatypes.values import PhysicalValue
from remuda.errors import RemudaError
from remuda.member.base.core import Core, bug
from remuda.member.maps.point_reads import Row
from remuda.member.postgres.preparing import Planning
from remuda.member.postgres.turn_forms import TurnForm
from remuda.member.statements.plans import Plans
from remuda.member.statements.statements import Statements
from remuda.postgres.prepared import Turn
from remuda.postgres.session import Session
from remuda.rpc.client_channel import ClientChannel
from remuda.session.settings import Meaning


class Outlet(ClientChannel, Protocol):
    """The connection, as a turn sees it."""

    def write(self, data: bytes | memoryview) -> None: ...
    def advance(self) -> None: ...


class Turns:
    def __init__(
        self, core: Core, statements: Statements, plans: Plans, machine: Session, outlet: Outlet
    ) -> None:
        self._core = core
        self._statements = statements
        self._plans = plans
        self._machine = machine
        self._outlet = outlet

    def read(self, turn: Turn, meaning: Meaning) -> bool:
        """Answer a turn of the machine, now or when the owner of the key has answered. ``meaning``
        is the session's. False: nothing was done, and the messages are taken one by one."""
        planning: Planning = turn.prepared.token
        found = self._plans.known(planning.text, planning.by.types, meaning, self._outlet.user)
        form = planning.turns.of(found, turn, planning.types, planning.oids, meaning.zone)
        values = form.values(turn.message.values) if form is not None else None
        if form is None or values is None or not form.serves(turn.limit):
            return False
        began = self._core.world.clock.monotonic()
        reading = _Reading(self, turn, form, values, form.elsewhere, began)
        written = form.stored is not None and self._core.traces is None  # a trace ends elsewhere
        try:
            return self._statements.read_point(
                form.query,
                values,
                reading.answer,
                text=planning.text,
                user=self._outlet.user,
                written=reading if written else None,
            )
        except RemudaError as error:
            if not reading.answered:
                reading.answer(error)
            return True

    def answer_written(self, reading: _Reading, row: bytes | RemudaError | None) -> None:
        if isinstance(row, RemudaError):
            self.answer(reading, row)
            return
        self._core.measures.postgres.ended(reading.form.kind, reading.began, None)
        if self._outlet.closed:
            return
        rows = () if row is None else (row,)
        self._outlet.write(self._machine.turned(reading.turn, reading.form.description, rows))
        self._outlet.advance()

    def answer(self, reading: _Reading, entries: list[Row] | RemudaError) -> None:
        turn, form, machine = reading.turn, reading.form, self._machine
        failed = entries if isinstance(entries, RemudaError) else None
        self._core.measures.postgres.ended(form.kind, reading.began, failed)
        if self._outlet.closed:
            return
        try:
            if isinstance(entries, RemudaError):
                raise entries
            rows = form.rows(self._core, reading.values, entries)
            answer = machine.turned(turn, form.description, rows)
        except RemudaError as error:
            answer = machine.turn_failed(turn, form.description, error)
        except Exception as problem:  # noqa: BLE001 (called back: nobody else would answer)
            answer = machine.turn_failed(turn, form.description, bug(problem, "a read by key"))
        self._outlet.write(answer)
        self._outlet.advance()


@dataclass(slots=True)
class _Reading:
    """A read until it is answered."""

    turns: Turns
    turn: Turn
    form: TurnForm
    values: tuple[PhysicalValue, ...]
    wire_form: bytes
    """See ``point_reads.Written``."""
    began: float
    answered: bool = False

    def answer(self, entries: list[Row] | RemudaError) -> None:
        self.answered = True
        self.turns.answer(self, entries)

    def answer_written(self, row: bytes | RemudaError | None) -> None:
        self.answered = True
        self.turns.answer_written(self, row)
