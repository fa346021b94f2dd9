"""Random scalar expressions and conditions, for the SELECT statements of ``oracle_generator``."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from oracle_tables import WORDS

INTEGER_DIVISION = " DIV "
COMPARISONS = ["=", "<>", "<>", "<", "<=", ">", ">="]
NUMBERS = ("int", "dec", "float")
PATTERNS = ["%a%", "b%", "_o_", "%t", "%", "", "a!%b", "%n%e%", "___"]


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


class ExpressionGenerator:
    def __init__(self, chance: random.Random, parameters: bool = False) -> None:
        self.chance = chance
        self.with_parameters = parameters
        self.values: list[object] = []
        self.aliases = 0

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
