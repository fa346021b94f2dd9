"""The answer to an Execute whose statement needs no task (decision 0084)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from remuda.errors import RemudaError
from remuda.member.base.core import bug
from remuda.member.postgres.portals import ResultRun
from remuda.postgres.rows import RowForm
from remuda.session.answer_form import AnswerForm
from remuda.session.shape import ResultShape

Measured: TypeAlias = Callable[[RemudaError | None], None]
"""Told the end of a statement, for the metrics of the door."""


@dataclass(slots=True)
class PortalAnswer:
    """A ``ShortAnswer``. A statement that takes longer, or must be planned again, ends by ``wire``.

    ``formats`` and ``zone`` are those of the rows; ``measured`` is called once with the end,
    ``general`` makes the result of the general way, which measures by itself.
    """

    formats: Sequence[int]
    zone: str
    measured: Measured
    general: Callable[[], ResultRun]
    done: Callable[[str, int, bytes], None]
    """Told the tag, the number of rows, and the rows for the client."""
    refused: Callable[[RemudaError], None]

    def wire(self, shape: ResultShape) -> ResultRun:
        return self.general().wire(shape)

    def rows(self, form: AnswerForm, packed: Sequence[bytes]) -> None:
        self._ended(form, "SELECT", len(packed), packed)

    def changed(self, form: AnswerForm, tag: str, rows: int, returned: bytes | None) -> None:
        self._ended(form, tag, rows, () if returned is None else (returned,))

    def _ended(self, form: AnswerForm, tag: str, count: int, packed: Sequence[bytes]) -> None:
        self.measured(None)
        try:
            row = RowForm([c.type for c in form.columns], self.formats, self.zone).row
            data = b"".join([row(form.rows.unpack(each)) for each in packed])
        except RemudaError as error:
            self.refused(error)
        except Exception as error:  # noqa: BLE001 (called back: nobody else would answer)
            self.refused(bug(error, "the rows of a short answer"))
        else:
            self.done(tag, count, data)

    def failed(self, error: RemudaError) -> None:
        self.measured(error)
        self.refused(error)

    def waits(self) -> None:
        """The client asks for a cancel by its connection: there is nothing to tell it."""
