"""Random SELECT statements inside the dialect that Remuda and its oracle share.

What the two engines define differently is not generated: division by zero, ``round`` of floats,
overflow, results that depend on the order of rows. Integer division is written for each engine.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oracle_tables import BY_NAME, WORDS

INTEGER_DIVISION = " DIV "
_COLUMN = re.compile(r"\bt\d+\.")
_PARAMETER = re.compile(r"\?(\d+)\?")
COMPARISONS = ["=", "<>", "<>", "<", "<=", ">", ">="]
NUMBERS = ("int", "dec", "float")
PATTERNS = ["%a%", "b%", "_o_", "%t", "%", "", "a!%b", "%n%e%", "___"]
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


@dataclass
class Relation:
    alias: str
    kinds: dict[str, str]
    table: str = ""

    def columns(self, kind: str) -> list[str]:
        return [f"{self.alias}.{name}" for name, k in self.kinds.items() if k == kind]


@dataclass
class Scope:
    relations: list[Relation] = field(default_factory=list)

    def columns(self, kind: str) -> list[str]:
        return [column for relation in self.relations for column in relation.columns(kind)]


Item = tuple[str, str]
"""An expression of a select list and its kind."""


class Generator:
    def __init__(self, chance: random.Random, parameters: bool = False) -> None:
        self.chance = chance
        self.with_parameters = parameters
        self.values: list[object] = []
        self.aliases = 0
        self.common: list[tuple[str, dict[str, str]]] = []

    # --- small choices ---

    def roll(self, probability: float) -> bool:
        return self.chance.random() < probability

    def pick(self, choices: Sequence[str]) -> str:
        return self.chance.choice(choices)

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def value(self, kind: str) -> object:
        if kind == "int":
            return self.chance.randrange(-9, 30)
        if kind == "text":
            return self.pick(WORDS)
        return dt.date(2020, self.chance.randrange(1, 13), self.chance.randrange(1, 29))

    def literal(self, kind: str) -> str:
        if kind == "dec":
            number = self.chance.randrange(-9000, 9000) / 100
            return f"{number:.{self.chance.randrange(1, 3)}f}"
        if kind in ("float", "special"):
            return f"CAST({self.chance.randrange(-100, 100) / 4} AS DOUBLE PRECISION)"
        if kind == "big":
            return str(self.chance.randrange(-(10**12), 10**12))
        if kind == "time":
            return f"TIMESTAMP '2020-0{self.chance.randrange(1, 6)}-15 12:00:00'"
        if kind == "bool":
            return self.pick(["TRUE", "FALSE"])
        value = self.value(kind)
        return {"int": f"{value}", "text": f"'{value}'", "date": f"DATE '{value}'"}[kind]

    def operand(self, kind: str) -> str:
        """What a column is compared with: a literal, or a parameter (numbered as it is made)."""
        if self.with_parameters and self.roll(0.5) and kind in ("int", "text", "date"):
            self.values.append(self.value(kind))
            return f"?{len(self.values) - 1}?"
        return self.literal(kind)

    # --- expressions ---

    def column(self, scope: Scope, kind: str) -> str:
        columns = scope.columns(kind)
        return self.pick(columns) if columns else self.literal(kind)

    def expression(self, scope: Scope, kind: str, depth: int = 0) -> str:
        if depth > 2 or self.roll(0.5):
            return self.column(scope, kind)
        if self.roll(0.1):
            return self.literal(kind)
        if self.roll(0.12) and kind not in ("big", "special"):
            return self.conditional(scope, kind, depth)
        if kind == "special":
            return self.column(scope, kind)
        makers: dict[str, Callable[[Scope, int], str]] = {
            "int": self.int_expression,
            "dec": self.dec_expression,
            "float": self.float_expression,
            "big": self.big_expression,
            "text": self.text_expression,
            "date": self.date_expression,
            "time": self.time_expression,
            "bool": self.bool_expression,
        }
        return makers[kind](scope, depth)

    def conditional(self, scope: Scope, kind: str, depth: int) -> str:
        a, b = (self.expression(scope, kind, depth + 1) for _ in range(2))
        roll = self.chance.random()
        if roll < 0.3:
            return f"coalesce({a}, {b})"
        if roll < 0.5:
            return f"nullif({a}, {b})"
        if roll < 0.7 and kind != "bool":
            return f"{self.pick(['greatest', 'least'])}({a}, {b})"
        if roll < 0.8:
            subject, value = self.column(scope, "int"), self.chance.randrange(20)
            return f"CASE {subject} WHEN {value} THEN {a} WHEN {value + 1} THEN {b} END"
        otherwise = f" ELSE {b}" if self.roll(0.7) else ""
        return f"CASE WHEN {self.condition(scope, depth + 1)} THEN {a}{otherwise} END"

    def int_expression(self, scope: Scope, depth: int) -> str:
        def inner(kind: str = "int") -> str:
            return self.expression(scope, kind, depth + 1)

        roll = self.chance.random()
        if roll < 0.4:
            return f"({inner()} {self.pick('+-')} {inner()})"
        if roll < 0.5:
            return f"({self.column(scope, 'int')} * {self.column(scope, 'int')})"
        if roll < 0.55:
            return f"({inner()}{INTEGER_DIVISION}nullif({self.column(scope, 'int')}, 0))"
        if roll < 0.63:
            return f"({inner()} % {self.chance.randrange(2, 9)})"
        if roll < 0.7:
            return f"{self.pick(['abs', '-'])}({inner()})"
        if roll < 0.78:
            return f"length({inner('text')})"
        if roll < 0.82:
            return f"position('{self.pick(['a', 'e', 'nt'])}' IN {inner('text')})"
        if roll < 0.92:
            part = self.pick(["year", "quarter", "month", "week", "day", "dow", "isodow", "doy"])
            return f"CAST(extract({part} FROM {inner('date')}) AS INTEGER)"
        return f"({inner('date')} - {self.literal('date')})"

    def dec_expression(self, scope: Scope, depth: int) -> str:
        def inner(kind: str = "dec") -> str:
            return self.expression(scope, kind, depth + 1)

        roll = self.chance.random()
        if roll < 0.5:
            return f"({inner(self.pick(['int', 'dec']))} {self.pick('+-')} {inner()})"
        if roll < 0.7:
            return (
                f"({self.column(scope, 'dec')} * {self.pick([self.column(scope, 'int'), '1.5'])})"
            )
        if roll < 0.8:
            return f"CAST({inner()} AS DECIMAL(14,2))"
        if roll < 0.9:
            return f"round({self.column(scope, 'dec')}, {self.chance.randrange(3)})"
        return f"{self.pick(['floor', 'ceil', 'abs', '-'])}({inner()})"

    def float_expression(self, scope: Scope, depth: int) -> str:
        def inner(kind: str = "float") -> str:
            return self.expression(scope, kind, depth + 1)

        roll = self.chance.random()
        if roll < 0.4:
            return f"({inner(self.pick(['int', 'float']))} {self.pick('+-')} {inner()})"
        if roll < 0.6:
            return f"({self.column(scope, 'float')} * 0.5)"
        if roll < 0.8:
            return f"CAST({inner(self.pick(['int', 'dec']))} AS DOUBLE PRECISION)"
        return f"{self.pick(['floor', 'ceil', 'abs', '-'])}({inner()})"

    def big_expression(self, scope: Scope, depth: int) -> str:
        return f"({self.column(scope, 'big')} {self.pick('+-')} {self.column(scope, 'int')})"

    def text_expression(self, scope: Scope, depth: int) -> str:
        text = self.expression(scope, "text", depth + 1)
        number = self.chance.randrange(1, 5)
        return self.pick(
            [
                f"upper({text})",
                f"lower({text})",
                f"substring({text}, {number}, {number + 1})",
                f"substring({text} FROM {number})",
                f"left({text}, {number})",
                f"right({text}, {number})",
                f"trim({text})",
                f"ltrim({text}, 'abc')",
                f"rtrim({text}, 'tel')",
                f"replace({text}, 'a', 'oo')",
                f"lpad({text}, {number + 2}, '*')",
                f"rpad({text}, {number + 2}, 'xy')",
                f"reverse({text})",
                f"repeat({text}, 2)",
                f"({text} || {self.expression(scope, 'text', depth + 1)})",
                f"concat({text}, '-', {self.expression(scope, 'text', depth + 1)})",
                f"split_part({text}, 'e', {number % 2 + 1})",
                f"CAST({self.expression(scope, 'int', depth + 1)} AS VARCHAR)",
                f"CAST({self.column(scope, 'date')} AS VARCHAR)",
            ]
        )

    def date_expression(self, scope: Scope, depth: int) -> str:
        date = self.expression(scope, "date", depth + 1)
        number = self.chance.randrange(-40, 40)
        unit = self.pick(["day", "month", "year"])
        sign = self.pick("+-")
        field = self.pick(["month", "year", "week", "quarter"])
        return self.pick(
            [
                f"({date} + CAST({self.column(scope, 'int')} AS INTEGER))",
                f"({date} - {self.chance.randrange(99)})",
                f"CAST({date} {sign} INTERVAL '{abs(number)}' {unit} AS DATE)",
                f"CAST(date_trunc('{field}', {date}) AS DATE)",
            ]
        )

    def time_expression(self, scope: Scope, depth: int) -> str:
        time = self.column(scope, "time")
        field, unit = (self.pick(["minute", "hour", "day", "month"]) for _ in range(2))
        return self.pick(
            [
                f"date_trunc('{field}', {time})",
                f"({time} + INTERVAL '{self.chance.randrange(1, 90)}' {unit})",
            ]
        )

    def bool_expression(self, scope: Scope, depth: int) -> str:
        return f"({self.condition(scope, depth + 1)})"

    # --- conditions ---

    def condition(self, scope: Scope, depth: int = 0) -> str:
        roll = self.chance.random()
        if depth < 2 and roll < 0.25:
            parts = [self.condition(scope, depth + 1) for _ in range(self.chance.randrange(2, 4))]
            return "(" + self.pick([" AND ", " OR "]).join(parts) + ")"
        if depth < 2 and roll < 0.32:
            return f"NOT ({self.condition(scope, depth + 1)})"
        kinds = [
            k for k in (*NUMBERS, "text", "date", "big", "special", "time") if scope.columns(k)
        ]
        kind = self.pick(kinds or ["int"])
        if roll < 0.5:
            right = self.expression(scope, kind, depth + 1)
            if kind in NUMBERS:
                right = self.expression(scope, self.pick(NUMBERS), depth + 1)
            left = self.expression(scope, kind, depth + 1)
            if self.roll(0.1):
                return f"{left} IS {self.pick(['', 'NOT '])}DISTINCT FROM {right}"
            return f"{left} {self.pick(COMPARISONS)} {right}"
        if roll < 0.62:
            return f"{self.column(scope, kind)} {self.pick(COMPARISONS)} {self.operand(kind)}"
        if roll < 0.7:
            negated = self.pick(["", "NOT "])
            text = self.expression(scope, "text", depth + 1)
            pattern = self.pick(PATTERNS)
            like = self.pick(["LIKE", "LIKE", "ILIKE"])
            escape = " ESCAPE '!'" if "!" in pattern or self.roll(0.3) else ""
            return f"{text} {negated}{like} '{pattern}'{escape}"
        if roll < 0.8:
            kind = self.pick(["int", "int", "text", "date", "dec"])
            subject = self.expression(scope, kind, depth + 1)
            values = ", ".join(self.operand(kind) for _ in range(self.chance.randrange(1, 5)))
            if self.roll(0.05):
                values += ", NULL"
            return f"{subject} {self.pick(['IN', 'NOT IN'])} ({values})"
        if roll < 0.87:
            subject = self.expression(scope, kind, depth + 1)
            negated = self.pick(["", "NOT "])
            if kind == "int" and self.roll(0.7):
                low = self.chance.randrange(-9, 15)
                return f"{subject} {negated}BETWEEN {low} AND {low + self.chance.randrange(30)}"
            return f"{subject} {negated}BETWEEN {self.operand(kind)} AND {self.operand(kind)}"
        if roll < 0.94:
            return f"{self.expression(scope, kind, depth + 1)} IS {self.pick(['', 'NOT '])}NULL"
        if scope.columns("bool"):
            return self.column(scope, "bool") + self.pick(["", "", " IS TRUE", " IS NOT FALSE"])
        return f"starts_with({self.expression(scope, 'text', depth + 1)}, '{self.pick('abc')}')"

    def likely(self, scope: Scope) -> str:
        """A condition that holds for some rows more often than not."""
        condition = self.condition(scope)
        if self.roll(0.5):
            return condition
        kinds = [k for k in (*NUMBERS, "text", "date") if scope.columns(k)]
        kind = self.pick(kinds or ["int"])
        operator = self.pick(["<>", ">", "<="])
        return f"({condition} OR {self.column(scope, kind)} {operator} {self.operand(kind)})"

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
