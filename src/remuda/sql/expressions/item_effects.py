"""Functions that act: ``pg_cancel_backend(pid)``, ``pg_terminate_backend(pid [, timeout])``,
``set_config(name, value, local)``, ``pg_sleep(seconds)``, ``pg_notify(channel, payload)``, those of
advisory locks, and ``statement_statistics_reset()``, also as ``pg_stat_statements_reset()``.

They are no functions of the engine, which may compute a call twice, elsewhere or not at all. A call
is an item of the outermost SELECT: the query gives its argument in its place (the pid, the value,
the seconds), and the member that runs the statement acts once for each row, when all rows are
there, and puts in what became of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from remuda.errors import NotSupported, UndefinedFunction
from remuda.plan.expression import Expression
from remuda.sql.expressions.expressions import ExpressionBinder, register_call
from remuda.sql.scope.context import Context
from remuda.sql.scope.statements import (
    AdvisoryAct,
    AdvisoryTest,
    AdvisoryWait,
    BackendSignal,
    ItemEffect,
    NamedSettingChange,
    NotifyCall,
    SettingChange,
    SignalKind,
    Sleep,
)
from remuda.sql.trees import ast

_CANCEL: Final = "pg_cancel_backend"
_TERMINATE: Final = "pg_terminate_backend"
_SET: Final = "set_config"
_SLEEP: Final = "pg_sleep"
_NOTIFY: Final = "pg_notify"
_RESET: Final = "statement_statistics_reset"
_PG_RESET: Final = "pg_stat_statements_reset"
_UNLOCK_ALL: Final = "pg_advisory_unlock_all"
_ADVISORY: Final = {
    f"pg_{prefix}advisory_{act}{suffix}": (kind, bool(suffix), "xact" in act)
    for prefix, act, kind in (
        ("", "lock", AdvisoryAct.LOCK),
        ("", "xact_lock", AdvisoryAct.LOCK),
        ("try_", "lock", AdvisoryAct.TRY),
        ("try_", "xact_lock", AdvisoryAct.TRY),
        ("", "unlock", AdvisoryAct.UNLOCK),
    )
    for suffix in ("", "_shared")
} | {_UNLOCK_ALL: (AdvisoryAct.UNLOCK_ALL, False, False)}
"""By name: the act, whether the lock is shared, and whether it ends with the transaction."""
_COUNTS: Final = {
    _CANCEL: (1,), _TERMINATE: (1, 2), _SET: (3,), _SLEEP: (1,), _RESET: (0,), _PG_RESET: (0,),
    _NOTIFY: (2,),
    **{name: (0,) if name == _UNLOCK_ALL else (1, 2) for name in _ADVISORY},
}  # fmt: skip
_KINDS: Final = {
    _CANCEL: SignalKind.CANCEL,
    _TERMINATE: SignalKind.TERMINATE,
    _RESET: SignalKind.RESET_STATEMENTS,
    _PG_RESET: SignalKind.RESET_STATEMENTS,
}
_EXAMPLES: Final = {
    _CANCEL: "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE ...",
    _TERMINATE: "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ...",
    _SET: "SELECT set_config('timezone', 'UTC', false)",
    _SLEEP: "SELECT pg_sleep(1.5)",
    _NOTIFY: "SELECT pg_notify('orders', '42')",
    _RESET: "SELECT statement_statistics_reset()",
    _PG_RESET: "SELECT pg_stat_statements_reset()",
    **{name: f"SELECT {name}(42)" for name in _ADVISORY},
    _UNLOCK_ALL: f"SELECT {_UNLOCK_ALL}()",
}


_PLAIN: Final = ("expressions", "from_")


@dataclass(frozen=True, slots=True)
class _Item:
    place: int
    """Among the items of the SELECT."""
    call: ast.Call


class EffectItems:
    """The calls among the items of a SELECT. ``root`` is the query that gives their arguments."""

    def __init__(self, context: Context, root: ast.Node) -> None:
        """Raises UndefinedFunction for a wrong number of arguments, NotSupported."""
        self.root = root = _of_function(root)
        self._context = context
        self._items: list[_Item] = []
        self._stars: list[int] = []
        if not isinstance(root, ast.Select) or not any(map(_called, root.expressions)):
            return
        items = list(root.expressions)
        for place, item in enumerate(root.expressions):
            if item.is_star:
                self._stars.append(place)
            elif call := _called(item):
                items[place] = self._argument(item, call)
                self._items.append(_Item(place, call))
        self.root = root.with_args(expressions=items)
        self._count = len(items)
        self._check_stars()

    def _argument(self, item: ast.Node, call: ast.Call) -> ast.Node:
        arguments, name = call.expressions, _name(call)
        if len(arguments) not in _COUNTS[name]:
            raise self._context.error(
                UndefinedFunction,
                f"function {name} of {len(arguments)} arguments does not exist",
                call,
            )
        alias = item.args["alias"] if isinstance(item, ast.Alias) else ast.name(name)
        if name in _ADVISORY:
            return ast.Alias(this=_lock_key(arguments), alias=alias)
        if name == _NOTIFY:
            texts = [ast.Cast(operand=a, to=ast.TypeName(this="text")) for a in arguments]
            return ast.Alias(this=_array(texts), alias=alias)
        if name == _SET and not _is_text(arguments[0]):
            texts = [ast.Cast(operand=a, to=ast.TypeName(this="text")) for a in arguments[:2]]
            return ast.Alias(this=_array(texts), alias=alias)
        if not arguments:
            value: ast.Node = ast.Literal.number(0)
        else:
            value = arguments[1] if name == _SET else arguments[0]
        to = {_SET: "text", _SLEEP: "double precision"}.get(name, "int")
        given = ast.Cast(operand=value, to=ast.TypeName(this=to))
        return ast.Alias(this=given, alias=alias)

    def _check_stars(self) -> None:
        for item in self._items:
            if any(star < item.place for star in self._stars) and any(
                star > item.place for star in self._stars
            ):
                _refuse(self._context, item.call, "between two stars")

    def effects(self, columns: int) -> tuple[ItemEffect, ...]:
        """With their places among so many columns of the result."""
        return tuple(
            self._effect(
                item.call,
                columns - self._count + item.place
                if any(star < item.place for star in self._stars)
                else item.place,
            )
            for item in self._items
        )

    def _effect(self, call: ast.Call, column: int) -> ItemEffect:
        name = _name(call)
        if name == _SLEEP:
            return Sleep(column)
        if name == _NOTIFY:
            return NotifyCall(column)
        if name in _ADVISORY:
            act, shared, of_transaction = _ADVISORY[name]
            tests = act in (AdvisoryAct.TRY, AdvisoryAct.UNLOCK)
            made = AdvisoryTest if tests else AdvisoryWait
            return made(column, act, shared, of_transaction)
        if name != _SET:
            return BackendSignal(column, _KINDS[name])
        setting, _, local = call.expressions
        if not isinstance(local, ast.Boolean):
            raise self._context.error(
                NotSupported,
                "is_local in set_config must be a constant",
                local,
                hint=f"Write {_EXAMPLES[_SET]}. Name and value may be computed.",
            )
        if not _is_text(setting):
            return NamedSettingChange(column, bool(local.this))
        return SettingChange(column, str(setting.this), bool(local.this))


def _of_function(root: ast.Node) -> ast.Node:
    """``SELECT * FROM pg_sleep(1)``, as drivers write calls, as ``SELECT pg_sleep(1)``."""
    if not isinstance(root, ast.Select) or len(root.expressions) != 1:
        return root
    if not root.expressions[0].is_star or any(root.args[n] for n in root.args if n not in _PLAIN):
        return root
    source = root.args["from_"].this if root.args.get("from_") else None
    if not isinstance(source, ast.Table) or not isinstance(source.this, ast.Call):
        return root
    if _name(source.this) not in _COUNTS:
        return root
    alias = source.args.get("alias")
    if any(source.args[n] for n in source.args if n not in ("this", "alias")):
        return root
    if alias is not None and alias.args.get("columns"):
        return root
    name = ast.name(_name(source.this)) if alias is None else alias.this
    item = ast.Alias(this=source.this, alias=name)
    return ast.Select(root.start, root.end, expressions=[item])


def _is_text(node: ast.Node) -> bool:
    return isinstance(node, ast.Literal) and bool(node.is_string)


def _array(items: Sequence[ast.Node]) -> ast.Node:
    return ast.Array(expressions=list(items))


def _lock_key(arguments: Sequence[ast.Node]) -> ast.Node:
    """The key of an advisory lock as text; NULL if one of its numbers is NULL."""
    if not arguments:
        return ast.Literal(this="", is_string=True)
    width = "bigint" if len(arguments) == 1 else "int"
    text = ast.TypeName(this="text")
    key, *rest = [
        ast.Cast(operand=ast.Cast(operand=each, to=ast.TypeName(this=width)), to=text)
        for each in arguments
    ]
    if not rest:
        return key
    comma = ast.Literal(this=",", is_string=True)
    return ast.DPipe(this=ast.DPipe(this=key, expression=comma), expression=rest[0])


def _called(item: ast.Node) -> ast.Call | None:
    node = item.this if isinstance(item, ast.Alias) else item
    return node if isinstance(node, ast.Call) and _name(node) in _COUNTS else None


def _name(call: ast.Call) -> str:
    return str(call.this).lower()


def _refuse(context: Context, call: ast.Call, where: str) -> NoReturn:
    raise context.error(
        NotSupported,
        f"{_name(call)} cannot stand {where}",
        call,
        hint="A call is an item of the SELECT list of the whole statement: "
        f"{_EXAMPLES[_name(call)]}.",
    )


def _elsewhere(binder: ExpressionBinder, node: ast.Call) -> Expression:
    _refuse(binder.context, node, "here")


for _function in _COUNTS:
    register_call(_function, _elsewhere)
