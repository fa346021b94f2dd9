"""The session of a PostgreSQL client, as a COPY sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from remuda.copying.options import CopyOptions, Format
from remuda.datatypes.schema import Column
from remuda.member.postgres.portals import ResultRun
from remuda.member.queries.copy_port import CopyInput
from remuda.postgres.messages import copy_in_response
from remuda.session.shape import ResultShape


class SessionCopies:
    """The ``CopyPort`` of one statement, whose rows ``run`` takes away."""

    def __init__(
        self,
        run: ResultRun,
        ask: Callable[[bytes, CopyInput], None],
        advance: Callable[[], None],
    ) -> None:
        """``ask`` sends a CopyInResponse, and has the messages that follow go to an input;
        ``advance`` takes further messages."""
        self._run = run
        self._ask = ask
        self._advance = advance

    def outgoing(
        self, options: CopyOptions, names: Sequence[str], zone: str
    ) -> Callable[[ResultShape], ResultRun]:
        return self._run.copied(options, names, zone)

    def begin(self, options: CopyOptions, columns: Sequence[Column]) -> CopyInput:
        found = CopyInput(self._advance)
        binary = options.format is Format.BINARY
        self._ask(copy_in_response(len(columns), binary=binary), found)
        return found
