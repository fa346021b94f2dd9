"""``Statement``: a statement that is parsed and planned once and run many times."""

from __future__ import annotations

from typing import Any

from remuda.client.asynchronous import prepared as asynchronous
from remuda.client.blocking.cursor import Cursor
from remuda.client.core.core import Core
from remuda.client.network.driving import finish
from remuda.datatypes.sql import SqlType


class Statement:
    """A prepared statement: call it with its parameters. Thread-safe; needs no closing.

    A statement that reads or changes one key of one map goes straight to the member that owns the
    key.
    """

    def __init__(self, core: Core, text: str) -> None:
        self._statement = finish(asynchronous.Statement(core, text).prepare())

    @property
    def text(self) -> str:
        """The statement as it was given."""
        return self._statement.text

    @property
    def parameter_types(self) -> tuple[SqlType, ...]:
        """The SQL types of the parameters, as the member inferred them."""
        return self._statement.parameter_types

    def __call__(self, *params: Any, timeout: float | None = None) -> Cursor:
        """Run it; parameters one by one or as one sequence. Else as ``Client.sql``."""
        return Cursor(finish(self._statement.run(params, timeout)))

    def __repr__(self) -> str:
        return f"<Statement {self.text!r}>"
