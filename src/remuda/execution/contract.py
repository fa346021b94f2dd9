"""The contract between operators, batches and the fragment that drives them (design D5)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum, auto

from remuda.execution.batch import Batch


class Progress(Enum):
    """The result of one call of ``advance``."""

    FETCHED = auto()
    """``current_batch`` holds rows, possibly none; call again for more. An operator that only
    gathers its input answers so after every input batch, which keeps time slices short."""
    FETCHED_DONE = auto()
    """``current_batch`` holds the last rows (possibly none); do not call again."""
    WAIT = auto()
    """Nothing can be done before data, credit or demand arrives; the fragment is scheduled then."""


class Operator(ABC):
    """A synchronous operator that never blocks; one thread at a time calls it."""

    @abstractmethod
    def advance(self) -> Progress: ...

    @abstractmethod
    def current_batch(self) -> Batch:
        """The batch of the last FETCHED or FETCHED_DONE; valid until the next ``advance``."""

    def restart(self) -> bool:
        """Begin again with what the inputs give now, whether or not the end was reached. False: it
        cannot, and must be built anew over inputs that are restarted. Only after ``advance``."""
        return False

    def close(self) -> None:  # noqa: B027 - most operators hold nothing
        """Release what is held; called once, also when the query is cancelled in the middle."""
