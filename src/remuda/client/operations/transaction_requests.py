"""The requests that begin, divide, suspend and end a transaction: pure, shared by both faces."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from remuda.client.core.held import Held
from remuda.client.requests.requests import Call, Clock
from remuda.client.requests.unsent import Unsent
from remuda.errors import InputError
from remuda.rpc.messages import user_pb2
from remuda.rpc.messages.user_pb2 import RpcType
from remuda.transaction.isolation import NO_MODES, Isolation, Modes

ISOLATIONS: Final = {
    "read committed": user_pb2.READ_COMMITTED,
    "repeatable read": user_pb2.REPEATABLE_READ,
    "serializable": user_pb2.SERIALIZABLE,
}
PESSIMISTIC: Final = "pessimistic"
_END: Final = RpcType.TRANSACTION_END
CONCURRENCIES: Final = ("optimistic", PESSIMISTIC)


class TransactionOptions(NamedTuple):
    """The arguments of ``transaction``."""

    concurrency: str = "optimistic"
    isolation: str = ""
    timeout: float | None = None
    read_only: bool = False
    label: str = ""


def checked_options(
    *, concurrency: Any, isolation: Any, timeout: Any, read_only: Any, label: Any
) -> TransactionOptions:
    """InputError for what makes no sense; NotSupported for a level that pessimistic transactions do
    not have."""
    if concurrency not in CONCURRENCIES:
        raise InputError(
            f"concurrency is {' or '.join(map(repr, CONCURRENCIES))}, found {concurrency!r}"
        )
    level = isolation.lower().replace("_", " ") if isinstance(isolation, str) else isolation
    if level is None:
        level = "serializable" if concurrency == "optimistic" else "repeatable read"
    if level not in ISOLATIONS:
        raise InputError(f"isolation is one of {', '.join(ISOLATIONS)}; found {isolation!r}")
    if concurrency == "pessimistic":
        Modes(Isolation(level)).locking(NO_MODES)
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0
    ):
        raise InputError(f"timeout is a number of seconds above 0, found {timeout!r}")
    if not isinstance(label, str):
        raise InputError(f"label is a text, found {label!r}")
    return TransactionOptions(concurrency, level, timeout, bool(read_only), label)


def begin(options: TransactionOptions, clock: Clock, view: int) -> Call[Held]:
    def parse(pbody: bytes) -> Held:
        status = user_pb2.TransactionStatus.FromString(pbody)
        return Held(status.transaction, status.member, status.state, status.catalog_version)

    body = beginning(options)
    clock.stamp(body.context, view)
    return Call(RpcType.TRANSACTION_BEGIN, body, parse)


def beginning(options: TransactionOptions) -> user_pb2.TransactionBegin:
    return user_pb2.TransactionBegin(
        isolation=ISOLATIONS[options.isolation],
        read_only=options.read_only,
        pessimistic=options.concurrency == "pessimistic",
        timeout=options.timeout,
        label=options.label,
    )


@lru_cache(maxsize=64)
def first_part(options: TransactionOptions) -> bytes:
    """The description of a transaction that its first request carries."""
    return beginning(options).SerializeToString()


def end(
    held: Held,
    unsent: Unsent | None,
    clock: Clock,
    view: int,
    timeout: float | None = None,
    *,
    begins: TransactionOptions | None = None,
) -> Call[int | None]:
    """Commit, with what is ``unsent``; None: roll back. The commit timestamp; None when nothing was
    written. ``timeout``: seconds that the member has to commit. ``begins``: the transaction begins
    with this request, as these say."""

    def parse(pbody: bytes) -> int | None:
        message = user_pb2.TransactionEnded.FromString(pbody)
        clock.observe(message.context)
        if begins is not None:
            held.name = message.transaction
        return message.commit_timestamp if message.HasField("commit_timestamp") else None

    body = user_pb2.TransactionEnd(transaction=held.name, commit=unsent is not None)
    if unsent is not None:
        unsent.fill(body)
    if begins is not None:
        body.begin.MergeFromString(first_part(begins))
    if timeout is not None:
        body.timeout = timeout
    clock.stamp(body.context, view)
    return Call(_END, body, parse)


def savepoint(held: Held, action: int, name: str) -> Call[None]:
    if not isinstance(name, str) or not name:
        raise InputError(f"the name of a savepoint is a text, found {name!r}")
    body = user_pb2.TransactionSavepoint(
        transaction=held.name,
        action=user_pb2.TransactionSavepoint.Action.Name(action),
        name=name,
    )
    return Call(RpcType.TRANSACTION_SAVEPOINT, body, _state_of(held))


def suspend(held: Held, resume: bool) -> Call[None]:
    body = user_pb2.TransactionSuspend(transaction=held.name, resume=resume)
    return Call(RpcType.TRANSACTION_SUSPEND, body, _state_of(held))


def _state_of(held: Held) -> Any:
    def parse(pbody: bytes) -> None:
        held.state = user_pb2.TransactionStatus.FromString(pbody).state

    return parse
