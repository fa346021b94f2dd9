"""Effects of the session machine, and the portals that they name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from remuda.errors import RemudaError
from remuda.postgres import messages as m
from remuda.postgres.copy_messages import CopyEnd, CopyRows
from remuda.postgres.prepared import Prepared


@dataclass(eq=False, slots=True)
class Portal:
    """A statement with its parameters. ``formats`` has one entry per column of the result."""

    name: str
    prepared: Prepared
    formats: tuple[int, ...]
    token: Any
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Write:
    data: bytes


@dataclass(frozen=True, slots=True)
class Prepare:
    """Plan a statement; ``prepared`` or ``failed``. Without a name it replaces the last one."""

    text: str
    types: tuple[int, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class BindValues:
    """Read the parameters of a statement; ``bound`` or ``failed``."""

    prepared: Prepared
    message: m.Bind


@dataclass(frozen=True, slots=True)
class RunPortal:
    """Send rows of a portal, at most ``limit`` (0: all); ``completed``, ``suspended`` or
    ``failed``."""

    portal: Portal
    limit: int


@dataclass(frozen=True, slots=True)
class DropPortal:
    """The portal is closed: its query ends."""

    portal: Portal


@dataclass(frozen=True, slots=True)
class UseCursor:
    """Of a cursor that SQL has declared find the columns (``described``), or with a ``limit`` send
    that many rows (0: all; ``completed``, ``suspended``); or ``failed``."""

    name: str
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class CloseCursor:
    """Close a cursor that SQL has declared, if there is one of this name; ``closed``."""

    name: str


@dataclass(frozen=True, slots=True)
class Split:
    """Cut a text into its statements; ``split`` or ``failed``."""

    text: str


@dataclass(frozen=True, slots=True)
class Look:
    """Say the manner of a statement; ``looked`` or ``failed``."""

    text: str


@dataclass(frozen=True, slots=True)
class RunText:
    """Run a statement and send its result, with its columns; ``completed`` or ``failed``."""

    text: str


@dataclass(frozen=True, slots=True)
class Control:
    """Run BEGIN, COMMIT or ROLLBACK for an implicit transaction, and send nothing; ``completed`` or
    ``failed``."""

    what: str


@dataclass(frozen=True, slots=True)
class FailTransaction:
    """An error has reached the client while its transaction was in order: only ROLLBACK is possible
    from now on, as in PostgreSQL."""

    error: RemudaError


@dataclass(frozen=True, slots=True)
class Ready:
    """Tell the client that the next query may come; ``status`` is that of its transaction."""

    status: bytes


@dataclass(frozen=True, slots=True)
class End:
    """Close the connection."""

    error: RemudaError | None


Effect: TypeAlias = (
    Write
    | Prepare
    | BindValues
    | RunPortal
    | DropPortal
    | UseCursor
    | CloseCursor
    | Split
    | Look
    | RunText
    | Control
    | CopyRows
    | CopyEnd
    | FailTransaction
    | Ready
    | End
)
Effects: TypeAlias = list[Effect]
