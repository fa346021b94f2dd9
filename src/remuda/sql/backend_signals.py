"""``pg_cancel_backend(pid)`` and ``pg_terminate_backend(pid [, timeout])``: they act on clients.

They are no functions of the engine, which may compute a call twice, elsewhere or not at all. A call
is an item of the outermost SELECT: the query gives the pid in its place, and the member that runs
the statement signals each client once, when all rows are there, and puts in what became of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NoReturn

from sqlglot import exp

from remuda.errors import NotSupported, UndefinedFunction
from remuda.plan.expression import Expression
from remuda.sql.context import Context
from remuda.sql.expressions import ExpressionBinder, register_call
from remuda.sql.statements import BackendSignal
from remuda.sql.tokens import CALL_MARK

_CANCEL: Final = "pg_cancel_backend"
_TERMINATE: Final = "pg_terminate_backend"
_COUNTS: Final = {_CANCEL: (1,), _TERMINATE: (1, 2)}


@dataclass(frozen=True, slots=True)
class _Item:
    place: int
    """Among the items of the SELECT."""
    terminate: bool


class SignalItems:
    """The calls among the items of a SELECT. ``root`` is the query that gives the pids instead."""

    def __init__(self, context: Context, root: exp.Expr) -> None:
        """Raises UndefinedFunction for a wrong number of arguments, NotSupported."""
        self.root = root
        self._context = context
        self._items: list[_Item] = []
        self._stars: list[int] = []
        if not isinstance(root, exp.Select) or not any(map(_called, root.expressions)):
            return
        self.root = root = root.copy()
        for place, item in enumerate(root.expressions):
            if item.is_star:
                self._stars.append(place)
            elif call := _called(item):
                root.expressions[place] = self._pid(item, call)
                self._items.append(_Item(place, _name(call) == _TERMINATE))
        self._count = len(root.expressions)
        self._check_stars()

    def _pid(self, item: exp.Expr, call: exp.Anonymous) -> exp.Expr:
        arguments, name = call.expressions, _name(call)
        if len(arguments) not in _COUNTS[name]:
            raise self._context.error(
                UndefinedFunction,
                f"function {name} of {len(arguments)} arguments does not exist",
                call,
            )
        alias = item.args["alias"] if isinstance(item, exp.Alias) else exp.to_identifier(name)
        pid = exp.Cast(this=arguments[0], to=exp.DataType.build("int"))
        return exp.Alias(this=pid, alias=alias)

    def _check_stars(self) -> None:
        for item in self._items:
            if any(star < item.place for star in self._stars) and any(
                star > item.place for star in self._stars
            ):
                _refuse(self._context, self.root, "between two stars")

    def signals(self, columns: int) -> tuple[BackendSignal, ...]:
        """With their places among so many columns of the result."""
        return tuple(
            BackendSignal(
                columns - self._count + item.place
                if any(star < item.place for star in self._stars)
                else item.place,
                item.terminate,
            )
            for item in self._items
        )


def _called(item: exp.Expr) -> exp.Anonymous | None:
    node = item.this if isinstance(item, exp.Alias) else item
    return node if isinstance(node, exp.Anonymous) and _name(node) in _COUNTS else None


def _name(call: exp.Anonymous) -> str:
    return str(call.this).removeprefix(CALL_MARK).lower()


def _refuse(context: Context, node: exp.Expr, where: str) -> NoReturn:
    raise context.error(
        NotSupported,
        f"pg_cancel_backend and pg_terminate_backend cannot stand {where}",
        node,
        hint="A call is an item of the SELECT list of the whole statement: SELECT "
        "pg_cancel_backend(pid) FROM pg_stat_activity WHERE ...",
    )


def _elsewhere(binder: ExpressionBinder, node: exp.Anonymous) -> Expression:
    _refuse(binder.context, node, "here")


for _function in _COUNTS:
    register_call(_function, _elsewhere)
