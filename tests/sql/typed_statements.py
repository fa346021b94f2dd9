"""Random statements whose names exist and whose types fit: most of them run.

``random_statements`` writes anything that the grammar may meet, and most of that is refused before
it is run. Here each query knows its relations and the kinds of their columns, so expressions are
made for the kind that is wanted, and planner and execution see what comes of them.
"""

# ruff: noqa: E501 (texts of SQL)
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from random_statements import (
    CALLS_GIVING,
    COLUMNS,
    EXPLAINS,
    GIVING,
    LITERALS,
    SETUP,
    TYPES,
    Statements,
)

Scope: TypeAlias = dict[str, dict[str, str]]
"""Names of relations -> the kinds of their columns."""

KINDS: Final = tuple(TYPES)
ORDERED: Final = tuple(kind for kind in KINDS if kind != "json")
TABLES: Final = {"t": COLUMNS, "w": COLUMNS, "e": {"id": "integer", "i": "integer", "s": "varchar"},
                 "v": {"id": "integer", "i": "integer", "s": "varchar", "n": "decimal"}}  # fmt: skip
FRAMES: Final = (
    "rows between 1 preceding and 1 following", "rows unbounded preceding",
    "range between unbounded preceding and current row", "groups between 1 preceding and current row",
    "rows between 2 preceding and 1 preceding exclude current row", "rows current row",
    "groups between unbounded preceding and unbounded following exclude ties",
)  # fmt: skip
_EXPLAINS: Final = tuple(text for text in EXPLAINS if "(plan for)" not in text)
SETS: Final = ("union", "union all", "intersect", "intersect all", "except", "except all")
_PARTICULAR: Final = re.compile(
    r"jsonb_path|@[?@]|\b(date_trunc|date_bin|similar_to|and|or|array_fill|regexp_|encode|decode"
    r"|convert|timezone|normalize|is_normalized|json_build_object|setseed|lcm|extract|date_part)\w*\("
    r"|\)::(boolean|tinyint|smallint|json|uuid|bytea|date|time|timestamp|interval|integer\[|text\[)"
)
LITTLE: Final = (
    "generate_series(1, 4)", "generate_series(3, 1, -1)", "unnest(array[1, null, 3])",
    "generate_subscripts(array[7, 8], 1)", "generate_series(2::bigint, 3)",
)  # fmt: skip


class TypedStatements(Statements):
    """Statements from ``seed``, one by one; ``random_statements.SETUP`` has run."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._scopes: list[Scope] = [{}]
        self._aliases = 0
        self._within = False
        """Inside of an aggregate: no other one."""

    # --- values -------------------------------------------------------------------------------

    def value(self, kind: str) -> str:
        if self._often(0.7):
            names = [
                f"{alias}.{name}"
                for alias, columns in self._scopes[-1].items()
                for name, of in columns.items()
                if of == kind
            ]
            if names:
                return self._pick(names)
        if kind == "row":
            return "row(1, 'a')"
        if kind not in TYPES:
            return "null"
        text = self._pick(LITERALS[kind])
        return f"({text if self._often(0.1) or 'infinity' not in text else 'null'})"

    def typed(self, kind: str, depth: int) -> str:
        """Calls that are refused unless an argument is one of few texts are seldom made, and
        casts are those between numbers, or to text."""
        if depth > 0 and kind in GIVING and self._often(0.08):
            return self._nested(kind, depth - 1)
        for _ in range(9):
            text = super().typed(kind, depth)
            if not _PARTICULAR.search(text) or self._often(0.02):
                break
        return text

    def column(self) -> str:
        """One of those that are in reach, if there are any."""
        names = [f"{alias}.{name}" for alias, columns in self._scopes[-1].items()
                 for name, kind in columns.items() if kind in ORDERED]  # fmt: skip
        return self._pick(names) if names else "()"

    def _nested(self, kind: str, depth: int) -> str:
        """A subquery, which sees the relations around it."""
        around = self._scopes[-1]
        if kind == "boolean" and self._often(0.6):
            other = self._pick(ORDERED)
            inner = self.select([other], depth, around)
            left = self.value(other)
            return self._pick((
                f"exists ({inner})", f"({left} in ({inner}))", f"({left} not in ({inner}))",
                f"({left} = any ({inner}))", f"({left} <= all ({inner}))",
            ))  # fmt: skip
        if kind in ("integer[]", "text[]"):
            inner = self.select(["integer" if kind == "integer[]" else "varchar"], depth, around)
            return f"array({inner})"
        inner = self.select([kind], depth, around)
        return f"(select * from ({inner}) {self._alias()} limit 1)"

    def _alias(self) -> str:
        self._aliases += 1
        return f"a{self._aliases}"

    # --- queries ------------------------------------------------------------------------------

    def kinds(self, count: int | None = None) -> list[str]:
        return [self._pick(KINDS) for _ in range(count or self._random.choice((1, 1, 2, 3)))]

    def rows_of(self, kinds: Sequence[str], depth: int, around: Scope | None = None) -> str:
        """A query whose columns are of these kinds."""
        roll = self._random.random()
        if depth > 0 and roll < 0.12:
            sides = [f"({self.rows_of(kinds, depth - 1, around)})" for _ in range(2)]
            tail = " order by 1" if kinds[0] in ORDERED and self._often(0.5) else ""
            word = self._pick(SETS if all(k in ORDERED for k in kinds) else ("union all",))
            return f"{sides[0]} {word} {sides[1]}{tail}{self._cut()}"
        if roll < 0.2:
            self._scopes.append(around or {})
            rows = [", ".join(self.typed(k, depth) for k in kinds) for _ in range(2)]
            self._scopes.pop()
            return f"values ({rows[0]}), ({rows[1]}){self._cut()}"
        if depth > 0 and roll < 0.3:
            name, inner = self._alias(), self.kinds()
            text = self.rows_of(inner, depth - 1)
            names = [f"c{i}" for i in range(len(inner))]
            self._with[name] = dict(zip(names, inner, strict=True))
            how = self._pick(("", "materialized ", "not materialized "))
            query = self.select(kinds, depth - 1, around)
            del self._with[name]
            return f"with {name}({', '.join(names)}) as {how}({text}) {query}"
        if depth > 0 and roll < 0.34:
            return self._recursive(kinds, depth - 1, around)
        return self.select(kinds, depth, around)

    @property
    def _with(self) -> dict[str, dict[str, str]]:
        return self.__dict__.setdefault("_common", {})

    def _recursive(self, kinds: Sequence[str], depth: int, around: Scope | None) -> str:
        name = self._alias()
        other = self._pick(ORDERED)
        word = self._pick(("union", "union all"))
        base = self.typed(other, 1)
        self._scopes.append({"x": {"n": "integer", "m": other}})
        step = self.typed(other, depth)
        more = self._pick(("", f" join {self._pick(('t', 'w'))} y on y.id = x.n"))
        self._scopes.pop()
        self._with[name] = {"n": "integer", "m": other}
        search = self._pick(
            ("", "", f" search depth first by n set o{name}", f" cycle n set c{name} using p{name}")
        )
        query = self.select(kinds, depth, around)
        del self._with[name]
        return (
            f"with recursive {name}(n, m) as (select 1, {base}::{_declared(other)} {word} select x.n + 1,"
            f" ({step})::{_declared(other)} from {name} x{more} where x.n < 4){search} {query}"
        )  # fmt: skip

    def source(self, depth: int, around: Scope | None = None) -> tuple[str, Scope]:  # type: ignore[override]
        """What stands behind FROM, and what it gives."""
        scope: Scope = {}
        text = ""
        for place in range(self._random.choice((1, 1, 1, 2, 2, 3))):
            lateral = bool(scope) and self._often(0.3)
            relation, alias, columns = self._relation(depth, scope if lateral else None, around)
            visible = {**(around or {}), **scope, alias: columns}
            if place == 0:
                text = relation
            elif self._often(0.25):
                text += self._pick((", ", " cross join ")) + relation
            else:
                self._scopes.append(visible)
                kind = self._pick(ORDERED)
                condition = self._pick((
                    self.typed("boolean", min(depth, 1)), f"{self.value(kind)} = {self.value(kind)}",
                    f"{self.value('integer')} = {self.value('integer')}",
                ))  # fmt: skip
                self._scopes.pop()
                joins = (
                    ("join", "left join")
                    if lateral
                    else ("join", "left join", "right join", "full join")
                )
                text += f" {self._pick(joins)} {relation} on {condition}"
            scope[alias] = columns
        return text, scope

    def _relation(
        self, depth: int, lateral: Scope | None, around: Scope | None
    ) -> tuple[str, str, dict[str, str]]:
        alias = self._alias()
        roll = self._random.random()
        if depth > 0 and roll < 0.2:
            kinds = self.kinds()
            seen = None if lateral is None and not around else {**(around or {}), **(lateral or {})}
            query = self.rows_of(kinds, depth - 1, seen if lateral is not None else None)
            names = [f"c{i}" for i in range(len(kinds))]
            word = "lateral " if lateral is not None else ""
            return (
                f"{word}({query}) {alias}({', '.join(names)})",
                alias,
                dict(zip(names, kinds, strict=True)),
            )
        if roll < 0.3:
            more, columns = self._pick(((" with ordinality", "m"), ("", ""))), {"n": "integer"}
            listed = "n, m" if more[0] else "n"
            if more[0]:
                columns["m"] = "bigint"
            return f"{self._pick(LITTLE)}{more[0]} as {alias}({listed})", alias, columns
        if self._with and roll < 0.6:
            name = self._pick(tuple(self._with))
            return f"{name} {alias}", alias, self._with[name]
        name = self._pick(("t", "t", "t", "w", "w", "e", "v"))
        return f"{name} {alias}", alias, dict(TABLES[name])

    def select(self, kinds: Sequence[str], depth: int, around: Scope | None = None) -> str:
        text, scope = self.source(depth, around) if self._often(0.9) else ("", {})
        self._scopes.append({**(around or {}), **scope})
        try:
            if scope and self._often(0.25):
                return self._grouped(kinds, depth, text)
            return self._plain(kinds, depth, text, bool(scope))
        finally:
            self._scopes.pop()

    def _plain(self, kinds: Sequence[str], depth: int, source: str, rows: bool) -> str:
        items = [
            self._over(kind, depth) if rows and self._often(0.1) else self.typed(kind, depth)
            for kind in kinds
        ]
        ordered = all(kind in ORDERED for kind in kinds)
        distinct = "distinct " if ordered and self._often(0.1) else ""
        text = f"select {distinct}{', '.join(items)}" + (f" from {source}" if source else "")
        if rows and self._often(0.4):
            text += f" where {self.typed('boolean', min(depth, 1))}"
        if ordered and self._often(0.25):
            text += f" order by {self._random.randrange(len(kinds)) + 1}{self._pick(('', ' desc', ' nulls first'))}"
            if rows and not distinct and self._often(0.2):
                return f"{text} fetch first {self._random.randrange(1, 4)} rows with ties"
        return text + self._cut()

    def _cut(self) -> str:
        if self._often(0.8):
            return ""
        return self._pick((" limit 2", " limit 0", " offset 1", " limit 3 offset 1", " limit all"))

    def _called(self, catalog: str, kind: str, depth: int) -> str | None:
        """A call of the catalog that gives this kind."""
        known = CALLS_GIVING[catalog].get(kind)
        if not known:
            return None
        name = self._pick(tuple(known))
        arguments = [self.typed(k, depth) for k in self._random.choice(known[name])]
        return f"{name}({', '.join(arguments)})"

    def _over(self, kind: str, depth: int) -> str:
        """A window function, or an aggregate over a window."""
        call = self._called(self._pick(("window", "aggregate")), kind, min(depth - 1, 1))
        if call is None:
            return self.typed(kind, depth)
        parts = []
        if self._often(0.6):
            parts.append(f"partition by {self.value(self._pick(ORDERED))}")
        parts.append(f"order by {self.value(self._pick(ORDERED))}{self._pick(('', ' desc'))}")
        if self._often(0.4):
            parts.append(self._pick(FRAMES))
        return f"{call} over ({' '.join(parts)})"

    def _aggregate_of(self, kind: str, depth: int) -> str:
        call = self._called("aggregate", kind, min(depth - 1, 1))
        if call is None:
            return f"min({self._pick(LITERALS[kind])})" if kind in ("date", "varchar") else "null"
        where = f" filter (where {self.typed('boolean', 1)})" if self._often(0.15) else ""
        return call + where

    def _grouped(self, kinds: Sequence[str], depth: int, source: str) -> str:
        keys = [self.column() for _ in range(self._random.choice((0, 1, 1, 2)))]
        items = [self._aggregate_of(kind, depth) for kind in kinds]
        text = f"select {', '.join(items)} from {source}"
        if self._often(0.3):
            text += f" where {self.typed('boolean', 1)}"
        if keys:
            listed = ", ".join(keys)
            text += " group by " + self._pick((
                listed, listed, f"rollup ({listed})", f"cube ({listed})",
                f"grouping sets (({listed}), ())", f"grouping sets (({keys[0]}), ({listed}), ())",
            ))  # fmt: skip
        if self._often(0.25):
            text += f" having {self._pick(('count(*) > 1', 'bool_and(true)', 'max(1) = 1'))}"
        return text + self._cut()

    def query(self, depth: int) -> str:
        return self.rows_of(self.kinds(), depth)

    # --- statements ---------------------------------------------------------------------------

    def statement(self) -> str:
        roll = self._random.random()
        self._scopes = [{}]
        if roll < 0.72:
            return self.query(2)
        if roll < 0.8:
            return f"{self._pick(_EXPLAINS)} {self._pick((self.query(2), self.change()))}"
        if roll < 0.92:
            return self.change()
        if roll < 0.96:
            return self.definition()
        return self._session()

    def _row(self, kinds: Sequence[str], depth: int = 1) -> str:
        return ", ".join(self.typed(kind, depth) for kind in kinds)

    def change(self) -> str:
        """Changes of ``t`` that meet no row, and of ``e``, which may have any."""
        name = self._pick(tuple(COLUMNS)[1:])
        kind = COLUMNS[name]
        self._scopes.append({"t": dict(COLUMNS)})
        where = f"t.id = -1 and {self.typed('boolean', 1)}"
        change = f"{name} = {self.typed(kind, 2)}"
        other = f"(i, s) = (select {self.typed('integer', 1)}, {self.typed('varchar', 1)})"
        returned = f" returning {self.typed(self._pick(KINDS), 1)}" if self._often(0.4) else ""
        self._scopes.pop()
        number = self._random.randrange(30)
        entry = ("integer", "integer", "varchar")
        conflict = self._pick((
            " on conflict do nothing", " on conflict (id) do update set i = excluded.i, s = e.s",
            " on conflict (id) do update set s = excluded.s where e.i < excluded.i returning id, i, s",
            " on conflict (id) do nothing returning *",
        ))  # fmt: skip
        return self._pick((
            f"update t set {change} where {where}{returned}", f"delete from t where {where}{returned}",
            f"update t set {other} where {where}{returned}",
            f"update t set {change} from w where w.id = t.id and {where}{returned}",
            f"delete from t using w where w.id = t.id and {where}{returned}",
            f"insert into e values ({number}, {self._row(entry[1:])}){conflict}",
            f"insert into e {self.select(entry, 1)}{conflict}",
            f"insert into e (id, s) values ({number}, {self.typed('varchar', 2)}), (31, null){conflict}",
            f"update e set i = {self.value('integer')}, s = {self.value('varchar')} where id < {number} returning *",
            f"delete from e where id = {number} returning i, s",
            (f"merge into e using ({self.select(entry, 1)}) q(a, b, c) on e.id = q.a when matched and q.b > 0"
             " then update set i = q.b when matched then delete when not matched and q.a is not null"
             " then insert (id, i, s) values (q.a, q.b, q.c)"),
            f"with x as (update e set i = {self.value('integer')} where id = {number} returning *) select * from x",
        ))  # fmt: skip

    def definition(self) -> str:
        number = self._random.randrange(3)
        kind = self._pick(KINDS)
        declared = _declared(kind)
        constant = self._pick(LITERALS[kind])
        return self._pick((
            f"create or replace view z{number} as select 1 as a, {self.typed(kind, 2)} as b",
            f"drop view if exists z{number}", f"select * from z{number}", f"drop table if exists y{number} cascade",
            f"create table if not exists y{number} (id integer primary key, a {declared} default {constant}, b integer check (b > 0))",
            f"create table if not exists y{number} (id bigint primary key, a {declared}, u varchar unique)",
            f"insert into y{number} (id, a) values ({self._random.randrange(9)}, {self.typed(kind, 1)}) on conflict do nothing",
            f"create index if not exists y{number}a on y{number} (a)", f"drop index if exists y{number}a",
            f"alter table y{number} add column if not exists c {declared} default {constant}",
            f"alter table y{number} drop column if exists c", f"select a, count(*) from y{number} group by a order by a",
            f"alter table y{number} add constraint k{number} check (id > -{number + 1})", f"analyze y{number}",
            f"create index if not exists tx on t ({self._pick(tuple(COLUMNS))})", "drop index if exists tx",
        ))  # fmt: skip

    def _session(self) -> str:
        kind = self._pick(KINDS)
        return self._pick((
            "begin", "savepoint a", "rollback to savepoint a", "rollback", "rollback", "commit", "begin read only",
            f"prepare p as select $1::{_declared(kind)}, {self.typed(kind, 1)}", f"execute p({self._pick(LITERALS[kind])})",
            "deallocate all", "prepare q(integer, text) as select id from t where id = $1 or s = $2", "execute q(1, 'a')",
            "set timezone = 'UTC'", "reset all", "show all", "show tables", "describe t",
        ))  # fmt: skip


def _declared(kind: str) -> str:
    return {"decimal": "decimal(20, 4)", "double": "double precision", "char": "char(4)"}.get(
        kind, kind
    )


__all__ = ["SETUP", "TypedStatements"]
