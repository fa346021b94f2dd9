"""Random SELECT statements inside the dialect that Remuda and its oracle share.

What the two engines define differently is not generated: division by zero, ``round`` of floats,
overflow, results that depend on the order of rows. Integer division is written for each engine.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

from oracle_expressions import (
    INTEGER_DIVISION,
    NUMBERS,
    ExpressionGenerator,
    Relation,
    Scope,
)
from oracle_tables import BY_NAME

_COLUMN = re.compile(r"\bt\d+\.")
_PARAMETER = re.compile(r"\?(\d+)\?")
JOIN_COLUMNS = {
    "f": ["k", "g", "q", "id", "d"],
    "m": ["k", "g", "d"],
    "r": ["g", "n"],
    "h": ["a", "c"],
    "z": ["k", "g", "n", "id"],
    "e": ["k", "g", "id"],
}


@dataclass(frozen=True)
class Query:
    """``text`` with ``?`` for each of ``parameters``; ``ordered``: its row order is defined."""

    text: str
    parameters: tuple[object, ...]
    ordered: bool

    def remuda(self) -> str:
        return self.text.replace(INTEGER_DIVISION, " / ")

    def duckdb(self) -> str:
        return self.text.replace(INTEGER_DIVISION, " // ")


Item = tuple[str, str]
"""An expression of a select list and its kind."""


class Generator(ExpressionGenerator):
    def __init__(self, chance: random.Random, parameters: bool = False) -> None:
        super().__init__(chance, parameters)
        self.common: list[tuple[str, dict[str, str]]] = []

    # --- subqueries as conditions of WHERE ---

    def subquery_condition(self, scope: Scope) -> str:
        inner, text = self.table()
        local = f" AND {self.condition(Scope([inner]), 1)}" if self.roll(0.5) else ""
        roll = self.chance.random()
        negated = self.pick(["", "NOT "])
        kind = self.pick(["int", "text"])
        theirs = self.column(Scope([inner]), kind)
        ours = self.column(scope, kind)
        if roll < 0.35:
            known = f" WHERE {theirs} IS NOT NULL{local}"
            where = self.pick(["", known, known, f" WHERE TRUE{local}"])
            return f"{ours} {negated}IN (SELECT {theirs} FROM {text}{where})"
        if roll < 0.45:
            other = self.column(Scope([inner]), "int")
            mine = self.column(scope, "int")
            return f"{ours} {negated}IN (SELECT {theirs} FROM {text} WHERE {other} = {mine}{local})"
        if roll < 0.8:
            more = ""
            if self.roll(0.3):
                both = Scope([inner, *scope.relations])
                more = f" AND {self.condition(both, 1)}"
            return f"{negated}EXISTS (SELECT 1 FROM {text} WHERE {theirs} = {ours}{local}{more})"
        if roll < 0.85:
            return f"{negated}EXISTS (SELECT * FROM {text} WHERE TRUE{local})"
        if roll < 0.92:
            number = self.column(Scope([inner]), "int")
            call = self.pick(["max", "min", "avg", "count", "sum"])
            value = f"(SELECT {call}({number}) FROM {text} WHERE TRUE{local})"
        else:
            value = self.scalar(scope)
        return f"{self.column(scope, 'int')} {self.pick(['<', '>', '='])} {value}"

    def scalar(self, scope: Scope) -> str:
        """A correlated aggregate."""
        inner, text = self.table()
        here = Scope([inner])
        local = f" AND {self.condition(here, 1)}" if self.roll(0.4) else ""
        kind = self.pick(["int", "text"])
        link = f"{self.column(here, kind)} = {self.column(scope, kind)}"
        if not here.columns(kind) or not scope.columns(kind):
            link = "TRUE"
        call = self.pick(["max", "min", "count", "sum"])
        return f"(SELECT {call}({self.column(here, 'int')}) FROM {text} WHERE {link}{local})"

    # --- FROM ---

    def table(self) -> tuple[Relation, str]:
        table = BY_NAME["e" if self.roll(0.03) else self.pick("fffmmmrrhhzzz")]
        alias = self.alias()
        return Relation(alias, table.kinds, table.name), f"{table.name} {alias}"

    def relation(self, depth: int) -> tuple[Relation, str]:
        if depth < 2 and self.roll(0.12):
            text, items, _ = self.block(depth + 1)
            alias = self.alias()
            return Relation(
                alias, {f"c{i}": k for i, (_, k) in enumerate(items)}
            ), f"({text}) {alias}"
        if self.common and self.roll(0.5):
            name, kinds = self.chance.choice(self.common)
            alias = self.alias()
            return Relation(alias, kinds), f"{name} {alias}"
        return self.table()

    def source(self, depth: int) -> tuple[Scope, str, list[str]]:
        first, text = self.relation(depth)
        scope = Scope([first])
        links: list[str] = []
        commas = self.roll(0.15)
        here = Scope([first]) if commas else scope
        """What conditions of JOIN see: only what comes after the last comma."""
        for _ in range(
            self.chance.choice([0, 0, 1, 1, 1, 2, 3]) if depth < 2 else self.chance.randrange(2)
        ):
            other, other_text = self.relation(depth)
            if other.table == "f" and sum(r.table in ("f", "") for r in scope.relations) > 1:
                continue
            kind = self.pick(["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
            link = self.link(here, other)
            small = len(scope.relations) == 1 and {first.table, other.table}.isdisjoint({"f", ""})
            if small and self.roll(0.2):
                text += f" CROSS JOIN {other_text}"
                scope.relations.append(other)
                if here is not scope:
                    here.relations.append(other)
                continue
            across = self.link(scope, other) if commas else ""
            if across and self.roll(0.6):
                text += f", {other_text}"
                links.append(across)
                scope.relations.append(other)
                here = Scope([other])
                continue
            if not link:
                link = f"{self.column(here, 'int')} = {self.column(Scope([other]), 'int')}"
            elif small and self.roll(0.2):
                link = link.replace(" = ", self.pick([" < ", " >= ", " <> "]))
                kind = kind.replace("FULL", "LEFT")
            scope.relations.append(other)
            if here is not scope:
                here.relations.append(other)
            if self.roll(0.3) and kind != "FULL JOIN":
                pool = self.chance.choice([here, Scope([other]), Scope(here.relations[:1])])
                link += f" AND {self.condition(pool, 1)}"
            text += f" {kind} {other_text} ON {link}"
        return scope, text, links

    def link(self, scope: Scope, other: Relation) -> str:
        """One or two equalities of columns of one kind."""
        pairs: list[str] = []
        for relation in scope.relations:
            for mine in self.join_columns(relation):
                for theirs in self.join_columns(other):
                    if relation.kinds[mine] == other.kinds[theirs]:
                        pairs.append(f"{relation.alias}.{mine} = {other.alias}.{theirs}")  # noqa: PERF401
        if not pairs:
            return ""
        return " AND ".join(self.chance.sample(pairs, min(len(pairs), 1 + self.roll(0.3))))

    def join_columns(self, relation: Relation) -> list[str]:
        if relation.table:
            return JOIN_COLUMNS[relation.table]
        return [name for name, kind in relation.kinds.items() if kind in ("int", "text", "date")]

    # --- SELECT ---

    def where(self, scope: Scope, links: list[str]) -> str:
        parts = [self.likely(scope) for _ in range(self.chance.choice([0, 0, 1, 1, 2]))] + links
        if self.roll(0.2):
            parts.append(self.subquery_condition(scope))
        if self.roll(0.05):
            parts.append(self.key_lookup(scope))
        self.chance.shuffle(parts)
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def key_lookup(self, scope: Scope) -> str:
        relation = scope.relations[0]
        numbers = ", ".join(self.operand("int") for _ in range(3))
        if relation.table in ("f", "z", "e"):
            return f"{relation.alias}.id IN ({numbers})"
        if relation.table == "m":
            return f"{relation.alias}.k IN ({numbers})"
        if relation.table == "h":
            number, text = self.operand("int"), self.operand("text")
            return f"{relation.alias}.a = {number} AND {relation.alias}.c = {text}"
        return "TRUE"

    def any_item(self, scope: Scope) -> Item:
        kinds = [
            k for k in (*NUMBERS, "text", "date", "bool", "big", "special", "time")
            if scope.columns(k)
        ]  # fmt: skip
        kind = self.pick(kinds or ["int"])
        return self.expression(scope, kind, 1), kind

    def call(self, scope: Scope) -> Item:
        condition = f" FILTER (WHERE {self.condition(scope, 1)})" if self.roll(0.25) else ""
        distinct = "DISTINCT " if self.roll(0.25) else ""
        roll = self.chance.random()
        if roll < 0.15:
            return f"count(*){condition}", "int"
        if roll < 0.3:
            return f"count({distinct}{self.any_item(scope)[0]}){condition}", "int"
        if roll < 0.5:
            name = self.pick(["min", "max"])
            text, kind = self.any_item(scope)
            if kind == "bool":
                return f"count({text}){condition}", "int"
            return f"{name}({distinct}{text}){condition}", kind
        kind = self.pick([k for k in (*NUMBERS, "big") if scope.columns(k)] or ["int"])
        name = self.pick(["sum", "sum", "avg"])
        result = "float" if kind == "float" else "big"
        text = f"{name}({distinct}{self.expression(scope, kind, 1)}){condition}"
        return text, "average" if name == "avg" else result

    def block(self, depth: int) -> tuple[str, list[Item], bool]:
        """One query whose columns are called c0, c1, ...; its items; whether rows are ordered."""
        if depth and self.roll(0.15):
            return self.union(depth)
        scope, source, links = self.source(depth)
        where = self.where(scope, links)
        if self.roll(0.4):
            return self.grouped(scope, source + where, depth)
        items = [self.any_item(scope) for _ in range(self.chance.randrange(1, 5))]
        if not depth and self.roll(0.08):
            items.append((self.scalar(scope), "int"))
        if not depth and self.roll(0.08):
            inner, text = self.table()
            items.append((f"(SELECT max({self.column(Scope([inner]), 'int')}) FROM {text})", "int"))
        distinct = "DISTINCT " if self.roll(0.2) else ""
        order, ordered = self.order(items, scope if not distinct else None, depth)
        listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
        return f"SELECT {distinct}{listed} FROM {source}{where}{order}", items, ordered

    def order(self, items: list[Item], scope: Scope | None, depth: int) -> tuple[str, bool]:
        """ORDER BY all items, so that the order is total; LIMIT only then."""
        if not self.roll(0.35):
            return "", False
        places = list(range(1, len(items) + 1))
        self.chance.shuffle(places)
        keys = [str(place) for place in places]
        if scope is not None and self.roll(0.3) and not depth:
            by_expression = (
                self.roll(0.5) and _COLUMN.search(items[0][0]) and "?" not in items[0][0]
            )
            keys.insert(0, items[0][0] if by_expression else f"c{places[0] - 1}")
        nulls = ["", " NULLS FIRST", " NULLS LAST"]
        text = ", ".join(key + self.pick(["", " DESC", " ASC"]) + self.pick(nulls) for key in keys)
        limit = ""
        if self.roll(0.6):
            limit += f" LIMIT {self.chance.choice([0, 1, 3, 3, 10, 10, 40, 40])}"
        if self.roll(0.3):
            limit += f" OFFSET {self.chance.randrange(6)}"
        return f" ORDER BY {text}{limit}", not depth

    def grouped(self, scope: Scope, source: str, depth: int) -> tuple[str, list[Item], bool]:
        keys = [self.any_item(scope) for _ in range(self.chance.choice([0, 1, 1, 2, 3]))]
        keys = [(text, kind) for text, kind in keys if _COLUMN.search(text) and "?" not in text]
        calls = [self.call(scope) for _ in range(self.chance.randrange(1, 4))]
        shown = keys[: self.chance.randrange(len(keys) + 1)] if self.roll(0.2) else keys
        items = [*shown, *calls]
        if calls[0][1] == "int" and self.roll(0.15):
            items.append((f"{calls[0][0]} * 2 - 1", "int"))
        group_by = ""
        if keys:
            names = [
                str(i + 1) if i < len(shown) and self.roll(0.3) else text
                for i, (text, _) in enumerate(keys)
            ]
            group_by = f" GROUP BY {', '.join(names)}"
        having = f" HAVING {self.having(scope)}" if self.roll(0.25) else ""
        order, ordered = self.order(items, None, depth)
        listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
        return f"SELECT {listed} FROM {source}{group_by}{having}{order}", items, ordered

    def having(self, scope: Scope) -> str:
        number = self.column(scope, "int")
        return self.pick(
            [
                "count(*) > 2",
                f"count({number}) BETWEEN 1 AND 9 OR max({number}) IS NULL",
                f"sum({number}) > {self.chance.randrange(-50, 200)}",
                f"min({number}) < max({number}) - 3 AND count(DISTINCT {number}) < 20",
                f"NOT (avg({number}) > 5)",
            ]
        )

    def union(self, depth: int) -> tuple[str, list[Item], bool]:
        kinds = [
            self.pick(["int", "dec", "text", "date", "float"])
            for _ in range(self.chance.randrange(1, 4))
        ]
        blocks: list[str] = []
        for _ in range(self.chance.choice([2, 2, 3])):
            scope, source, links = self.source(2)
            items = [(self.expression(scope, kind, 1), kind) for kind in kinds]
            listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
            where = self.where(scope, links)
            blocks.append(f"SELECT {listed} FROM {source}{where}")
        text = self.pick([" UNION ", " UNION ALL "]).join(blocks)
        items = [("", kind) for kind in kinds]
        order, ordered = self.order(items, None, depth)
        return text + order, items, ordered

    def query(self) -> Query:
        head = ""
        if self.roll(0.15):
            text, items, _ = self.block(1)
            name = "w"
            head = f"WITH {name} AS ({text}) "
            self.common.append((name, {f"c{i}": kind for i, (_, kind) in enumerate(items)}))
        make = self.union if self.roll(0.1) else self.block
        text, _, ordered = make(0)
        text = head + text
        # parameters are numbered as they are made, which is not where they stand
        places = [int(place) for place in _PARAMETER.findall(text)]
        parameters = tuple(self.values[place] for place in places)
        return Query(_PARAMETER.sub("?", text), parameters, ordered)
