"""Methods of a map that depend on the present entry: computed values, versions, expected values."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from remuda.client.asynchronous.handle import AGAIN, Handle
from remuda.client.core.tries import STALE, Tries
from remuda.client.network.deadline import Deadline
from remuda.client.operations.binding import KEYS_PER_REQUEST, Binding, worst
from remuda.client.requests.changes import ChangeRequests, Computation
from remuda.client.values.objects import PhysicalRow
from remuda.client.values.predicate import Condition, Operand, assignments_of
from remuda.client.values.values import parameters_of, statement_text
from remuda.errors import InputError, ObjectMismatch, RemudaError

T = TypeVar("T")


class _NotGiven:
    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN: Final[Any] = _NotGiven()
"""The value of what a call does not say, where None would be a mistake."""

Where: TypeAlias = Condition | Operand | str | None
Expression: TypeAlias = str | Mapping[str, Any]


class ChangedEntries(Handle):
    """Part of ``Map``."""

    # --- computed values ---

    async def compute(
        self,
        key: Any,
        expression: Expression,
        *params: Any,
        where: Where = None,
        insert: Any = None,
        return_old: bool = False,
    ) -> Any:
        """Change an entry where it is, in one step, and return its new value.

        ``expression`` is what follows SET in an UPDATE, ``"balance = balance + ?, at = now()"``,
        with the values of ``params``; or a mapping of columns to what they become:
        ``{"balance": col("balance") + 5}``. It may use all columns of the row, no subqueries, and
        leaves the key as it is. The change happens only if ``where`` holds: a condition over
        ``remuda.col``, or SQL, whose parameters follow those of the expression. ``insert`` is the
        value to store when the key is absent. None when the entry is absent, or ``where`` does not
        hold. With ``return_old`` the value before, None also when there was none.

        Raises what the expression raises (DivisionByZero, NumericOverflow, ...), NotNullViolation
        and CheckViolation for what the new value may not be; nothing has changed then.
        """
        what = computation(expression, params, where, return_old)
        deadline = Deadline(self._core.patience)
        if insert is not None:
            await self._bind_for(key, insert, deadline)

        def ask(binding: Binding) -> Coroutine[Any, Any, list[PhysicalRow | None]]:
            physical = binding.codec.key(key)
            inserted = () if insert is None else (binding.codec.row(key, insert),)
            call = ChangeRequests(binding.requests).compute((physical,), what, inserted)
            return self._core.write(binding.router.owner(physical), call, deadline, self.name)

        binding, rows = await self._changing(ask, deadline)
        return None if rows[0] is None else binding.codec.value(rows[0])

    async def compute_all(
        self,
        keys: Iterable[Any],
        expression: Expression,
        *params: Any,
        where: Where = None,
        insert: Any = None,
        return_old: bool = False,
    ) -> dict[Any, Any]:
        """``compute`` for many keys, each for itself; the values of those that have changed, by
        key. After an error some may have changed and others not: to change all or none, use a
        transaction."""
        wanted = list(keys)
        if not wanted:
            return {}
        what = computation(expression, params, where, return_old)
        deadline = self._core.deadline()
        if insert is not None:
            await self._bind_for(wanted[0], insert, deadline)
        found: dict[Any, Any] = {}
        tries: Tries | None = None
        left: Sequence[Any] = wanted
        while left:
            binding = await self._bound_now(deadline)
            try:
                left, errors = await self._compute_some(
                    binding, left, what, insert, found, deadline=deadline
                )
            except ObjectMismatch as error:
                await self._newer(binding, error, deadline)
                continue
            if errors:
                cause = worst(errors)
                tries = tries or self._core.tries(0, deadline)
                await tries.after(cause)
                await self._bind_again(cause, deadline)
        return found

    async def _compute_some(
        self,
        binding: Binding,
        keys: Sequence[Any],
        what: Computation,
        insert: Any,
        found: dict[Any, Any],
        *,
        deadline: Deadline,
    ) -> tuple[list[Any], list[RemudaError]]:
        """Put results into ``found``; the keys that were not served, and why."""
        codec, requests = binding.codec, ChangeRequests(binding.requests)
        by_key = {codec.key(key): key for key in keys}
        rows = (
            {k: codec.row(key, insert) for k, key in by_key.items()} if insert is not None else {}
        )
        by_owner: dict[int, list[PhysicalRow]] = defaultdict(list)
        for physical in by_key:
            by_owner[binding.router.owner(physical)].append(physical)
        unserved: list[Any] = []
        errors: list[RemudaError] = []
        while by_owner and not errors:
            parts = {owner: some[:KEYS_PER_REQUEST] for owner, some in by_owner.items()}
            calls = [
                (owner, requests.compute(part, what, [rows[key] for key in part] if rows else ()))
                for owner, part in parts.items()
            ]
            answers = await self._core.scatter(calls, deadline)
            self._core.wrote(self.name)
            for (owner, part), answer in zip(parts.items(), answers, strict=True):
                if isinstance(answer, RemudaError):
                    errors.append(answer)
                    continue
                for key, row in zip(part, answer, strict=True):
                    if row is not None:
                        found[by_key[key]] = codec.value(row)
                del by_owner[owner][: len(part)]
            by_owner = defaultdict(list, {o: some for o, some in by_owner.items() if some})
        for some in by_owner.values():
            unserved += [by_key[key] for key in some]
        return unserved, errors

    # --- versions and expected values ---

    async def get_versioned(self, key: Any, default: Any = None) -> tuple[Any, int]:
        """(value, version) of an entry; (``default``, 0) when there is none. The version is the
        timestamp of the write that the entry comes from: another write, another version. Not in
        transactions, whose commit checks what they have read."""
        tries: Tries | None = None
        deadline = self._core.deadline()
        while True:
            binding = await self._bound_now(deadline)
            try:
                physical = binding.codec.key(key)
                call = ChangeRequests(binding.requests).get_versioned((physical,))
                owner = binding.router.owner(physical)
                found = (await self._core.ask(owner, call, deadline))[0]
            except AGAIN as error:
                repeats = self._core.settings.retry_reads
                tries = tries or self._core.tries(repeats, deadline, reads=True)
                await tries.after(error)
                await self._bind_again(error, deadline)
            else:
                return (default, 0) if found is None else (binding.codec.value(found[0]), found[1])

    async def replace_if(self, key: Any, old: Any, new: Any) -> bool:
        """Store ``new`` if the value is ``old``, in all columns; whether it was stored."""
        _, found = await self._replace(key, new, None, old, want_old=False)
        return found is not None

    async def get_and_replace(
        self,
        key: Any,
        value: Any,
        default: Any = None,
        *,
        if_version: int | None = None,
        if_value: Any = NOT_GIVEN,
    ) -> Any:
        """``replace``, but it returns the value before; ``default`` when nothing was stored."""
        binding, old = await self._replace(key, value, if_version, if_value, want_old=True)
        return default if old is None else binding.codec.value(old)

    def _replace(
        self, key: Any, value: Any, if_version: int | None, if_value: Any, *, want_old: bool
    ) -> Coroutine[Any, Any, tuple[Binding, PhysicalRow | None]]:
        version = checked_version(if_version)
        deadline = self._core.deadline()

        def ask(binding: Binding) -> Coroutine[Any, Any, list[PhysicalRow | None]]:
            codec, physical = binding.codec, binding.codec.key(key)
            call = ChangeRequests(binding.requests).checked(
                physical,
                codec.row(key, value),
                version=version,
                expected=None if if_value is NOT_GIVEN else codec.row(key, if_value),
                want_old=want_old,
            )
            return self._core.write(binding.router.owner(physical), call, deadline, self.name)

        return self._first_of(ask, deadline)

    def _remove_checked(
        self, key: Any, if_version: int | None, if_value: Any, *, want_old: bool
    ) -> Coroutine[Any, Any, tuple[Binding, PhysicalRow | None]]:
        """Remove an entry that has the version and the value, where these are given; its row."""
        version = checked_version(if_version)
        deadline = self._core.deadline()

        def ask(binding: Binding) -> Coroutine[Any, Any, list[PhysicalRow | None]]:
            codec, physical = binding.codec, binding.codec.key(key)
            call = ChangeRequests(binding.requests).checked(
                physical,
                None,
                version=version,
                expected=None if if_value is NOT_GIVEN else codec.row(key, if_value),
                want_old=want_old,
            )
            return self._core.write(binding.router.owner(physical), call, deadline, self.name)

        return self._first_of(ask, deadline)

    # --- inside ---

    async def _first_of(
        self,
        ask: Callable[[Binding], Coroutine[Any, Any, list[PhysicalRow | None]]],
        deadline: Deadline,
    ) -> tuple[Binding, PhysicalRow | None]:
        binding, rows = await self._changing(ask, deadline)
        return binding, rows[0]

    async def _changing(
        self, ask: Callable[[Binding], Coroutine[Any, Any, T]], deadline: Deadline
    ) -> tuple[Binding, T]:
        """``ask`` until a member serves it; a request that may have run is not sent again."""
        binding = await self._bound_now(deadline)
        tries: Tries | None = None
        while True:
            try:
                return binding, await ask(binding)
            except ObjectMismatch as error:
                binding = await self._newer(binding, error, deadline)
            except AGAIN as error:
                tries = tries or self._core.tries(0, deadline)
                await tries.after(error)
                if isinstance(error, STALE):
                    self._unbind()
                binding = await self._bind_again(error, deadline)


def computation(
    expression: Expression, params: Sequence[Any], where: Where, want_old: bool
) -> Computation:
    """Raises InputError, TypeMismatch."""
    values = tuple(params)
    if isinstance(expression, Mapping):
        if values and not isinstance(where, str):
            raise InputError("a mapping of columns holds its values itself and takes no parameters")
        text, before = assignments_of(expression)
        values = before + values
    else:
        text = statement_text(expression)
    condition = ""
    if isinstance(where, Condition | Operand):
        condition, values = where.sql, values + where.parameters
    elif where is not None:
        condition = statement_text(where)
    physical, types = parameters_of(values)
    return Computation(text, condition, physical, types, want_old)


def checked_version(version: Any) -> int | None:
    """Raises InputError."""
    if version is not None and (isinstance(version, bool) or not isinstance(version, int)):
        raise InputError(f"a version is a number from get_versioned, found {version!r}")
    if version is not None and not 0 <= version < 1 << 63:
        raise InputError(f"a version is a number from get_versioned, found {version}")
    return version
