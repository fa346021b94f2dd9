"""Random subqueries: every shape, anywhere in a statement, correlated over any number of levels.

Scalar subqueries that are not aggregates take one row in a total order, because the engines differ
in what they do with several.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from oracle_generator import Query
from oracle_tables import BY_NAME, WORDS

TABLES = "ffmmmrrhhzzze"
KEYS = {"f": "id", "m": "k", "r": "g", "h": "a, c", "z": "id", "e": "id"}
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
DEPTH_MAX = 3


@dataclass
class Source:
    """A relation in scope: its alias and its columns by kind ("int" or "text")."""

    alias: str
    columns: dict[str, list[str]] = field(default_factory=dict)


Levels = list[list[Source]]
"""The relations in scope, the innermost query last."""


class SubqueryGenerator:
    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.aliases = 0

    def roll(self, probability: float) -> bool:
        return self.chance.random() < probability

    def alias(self) -> str:
        self.aliases += 1
        return f"t{self.aliases}"

    def table(self) -> tuple[Source, str, str]:
        """(its columns, its text, its key)."""
        name = self.chance.choice(TABLES)
        alias = self.alias()
        columns: dict[str, list[str]] = {"int": [], "text": []}
        for column, kind in BY_NAME[name].kinds.items():
            if kind in columns:
                columns[kind].append(f"{alias}.{column}")
        key = ", ".join(f"{alias}.{part.strip()}" for part in KEYS[name].split(","))
        return Source(alias, columns), f"{name} {alias}", key

    # --- values ---

    def column(self, sources: list[Source], kind: str) -> str | None:
        found = [column for source in sources for column in source.columns.get(kind, [])]
        return self.chance.choice(found) if found else None

    def literal(self, kind: str) -> str:
        if kind == "int":
            return str(self.chance.randrange(-5, 25))
        return "'" + self.chance.choice(WORDS[:8]) + "'"

    def value(self, levels: Levels, kind: str, depth: int) -> str:
        """A value of the innermost query, now and then one of a query around it."""
        if kind == "int" and depth < DEPTH_MAX and self.roll(0.08):
            return self.scalar(levels, depth)
        level = levels[-1]
        if len(levels) > 1 and self.roll(0.15):
            level = self.chance.choice(levels[:-1])
        found = self.column(level, kind) or self.literal(kind)
        if kind == "int" and self.roll(0.15):
            return f"({found} {self.chance.choice('+-')} {self.chance.randrange(9)})"
        return found

    # --- conditions ---

    def correlation(self, levels: Levels) -> str | None:
        """A comparison of a column of the innermost query with one of a query around it."""
        if len(levels) < 2:
            return None
        outer = levels[-2] if self.roll(0.8) else self.chance.choice(levels[:-1])
        kind = self.chance.choice(["int", "int", "text"])
        inside, outside = self.column(levels[-1], kind), self.column(outer, kind)
        if inside is None or outside is None:
            return None
        if self.roll(0.06):
            return f"{inside} IS NOT DISTINCT FROM {outside}"
        operator = "=" if self.roll(0.75) else self.chance.choice(COMPARISONS)
        if kind == "int" and self.roll(0.1):
            outside = f"({outside} + {self.chance.randrange(3)})"
        return f"{inside} {operator} {outside}"

    def plain(self, levels: Levels, depth: int) -> str:
        kind = self.chance.choice(["int", "int", "text"])
        left = self.value(levels, kind, depth)
        roll = self.chance.random()
        if roll < 0.2:
            return f"{left} IS {self.chance.choice(['', 'NOT '])}NULL"
        if roll < 0.3:
            values = ", ".join(self.literal(kind) for _ in range(3))
            return f"{left} {self.chance.choice(['', 'NOT '])}IN ({values})"
        right = self.literal(kind) if self.roll(0.6) else self.value(levels, kind, depth)
        return f"{left} {self.chance.choice(COMPARISONS)} {right}"

    def condition(self, levels: Levels, depth: int, share: float = 0.5) -> str:
        """``share``: how often it is, or has in it, a subquery."""
        roll = self.chance.random()
        if roll < 0.2:
            word = self.chance.choice([" AND ", " OR "])
            return f"({word.join(self.condition(levels, depth, share) for _ in range(2))})"
        if roll < 0.27:
            return f"NOT ({self.condition(levels, depth, share)})"
        if roll < 0.32:
            parts = [self.condition(levels, depth, share) for _ in range(3)]
            return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"
        if depth < DEPTH_MAX and self.roll(share):
            return self.test(levels, depth)
        return self.plain(levels, depth)

    def test(self, levels: Levels, depth: int) -> str:
        """A subquery that is a condition."""
        roll = self.chance.random()
        negated = self.chance.choice(["", "NOT "])
        if roll < 0.35:
            return f"{negated}EXISTS ({self.rows(levels, depth, [])})"
        kind = self.chance.choice(["int", "int", "text"])
        left = self.value(levels, kind, DEPTH_MAX)
        if roll < 0.65:
            return f"{left} {negated}IN ({self.rows(levels, depth, [kind])})"
        if roll < 0.75:
            # DuckDB has no correlated IN of several columns.
            query = self.rows([], DEPTH_MAX, [kind, "int"])
            return f"({left}, {self.value(levels, 'int', DEPTH_MAX)}) {negated}IN ({query})"
        if roll < 0.9:
            word = self.chance.choice(["ANY", "ALL"])
            operator = self.chance.choice(COMPARISONS)
            return f"{left} {operator} {word} ({self.rows(levels, depth, [kind])})"
        return (
            f"{self.scalar(levels, depth)} {self.chance.choice(COMPARISONS)} {self.literal('int')}"
        )

    # --- subqueries ---

    def body(self, levels: Levels, depth: int) -> tuple[str, Levels, str]:
        """(FROM ... WHERE ..., the levels inside, the key of its first relation)."""
        first, text, key = self.table()
        inner = [first]
        if self.roll(0.2):
            second, other, _ = self.table()
            kind = self.chance.choice(["int", "text"])
            a, b = self.column([first], kind), self.column([second], kind)
            if a is not None and b is not None:
                word = self.chance.choice(["JOIN", "LEFT JOIN"])
                text = f"{text} {word} {other} ON {a} = {b}"
                inner.append(second)
                key = f"{key}, {', '.join(c for cs in second.columns.values() for c in cs)}"
        inside = [*levels, inner]
        parts = [self.correlation(inside) for _ in range(self.chance.choice([0, 1, 1, 1, 2]))]
        if self.roll(0.4):
            parts.append(self.condition(inside, depth + 1, 0.25))
        known = [part for part in parts if part is not None]
        where = f" WHERE {' AND '.join(known)}" if known else ""
        return f"FROM {text}{where}", inside, key

    def rows(self, levels: Levels, depth: int, kinds: list[str]) -> str:
        """A subquery that puts out columns of ``kinds`` (anything, if there are none)."""
        body, inside, _ = self.body(levels, depth)
        items = [self.value(inside, kind, depth + 1) for kind in kinds] or ["1"]
        roll = self.chance.random()
        if roll < 0.1 and kinds:
            return f"SELECT DISTINCT {', '.join(items)} {body}"
        if roll < 0.2 and kinds:
            other, there, _ = self.body(levels, depth)
            others = [self.value(there, kind, DEPTH_MAX) for kind in kinds]
            word = self.chance.choice(["UNION ALL", "UNION"])
            return f"SELECT {', '.join(items)} {body} {word} SELECT {', '.join(others)} {other}"
        if roll < 0.3 and kinds == ["int"]:
            group = self.column(inside[-1], "text") or self.column(inside[-1], "int")
            items = [self.column(inside[-1], "int") or "1"]
            having = " HAVING count(*) > 1" if self.roll(0.4) else ""
            return f"SELECT max({items[0]}) {body} GROUP BY {group}{having}"
        if roll < 0.36 and kinds == ["int"]:
            own = self.column(inside[-1], "int") or "1"
            return f"SELECT {self.chance.choice(['min', 'max'])}({own}) {body}"
        return f"SELECT {', '.join(items)} {body}"

    def aggregate(self, inside: Levels, depth: int) -> str:
        # Over columns of outer queries alone it would be an aggregate of those.
        value = self.column(inside[-1], "int")
        if value is None:
            return "count(*)"
        if self.roll(0.3):
            value = f"({value} + {self.value(inside, 'int', depth)})"
        return self.chance.choice(
            [
                "count(*)",
                f"count({value})",
                f"sum({value})",
                f"min({value})",
                f"max({value})",
                f"count(DISTINCT {value})",
                f"coalesce(sum({value}), -1)",
                f"count(*) + max({value})",
            ]
        )

    def scalar(self, levels: Levels, depth: int) -> str:
        """A subquery that is a number."""
        body, inside, key = self.body(levels, depth)
        roll = self.chance.random()
        if roll < 0.6:
            having = f" HAVING count(*) > {self.chance.randrange(3)}" if self.roll(0.1) else ""
            return f"(SELECT {self.aggregate(inside, depth + 1)} {body}{having})"
        value = self.column(inside[-1], "int") or self.literal("int")
        if roll < 0.75:
            direction = self.chance.choice(["", " DESC"])
            offset = f" OFFSET {self.chance.randrange(1, 3)}" if self.roll(0.2) else ""
            return f"(SELECT {value} {body} ORDER BY {value}{direction}, {key} LIMIT 1{offset})"
        group = self.column(inside[-1], self.chance.choice(["int", "text"]))
        if roll < 0.85 and group is not None:
            inner = f"SELECT {group} AS g, count(*) AS n, max({value}) AS v {body} GROUP BY {group}"
            item = self.chance.choice(["max(q.n)", "sum(q.v)", "count(*)"])
            return f"(SELECT {item} FROM ({inner}) q)"
        if roll < 0.93:
            other, there, _ = self.body(levels, depth)
            more = self.column(there[-1], "int") or self.literal("int")
            word = self.chance.choice(["UNION ALL", "UNION"])
            inner = f"SELECT {value} AS v {body} {word} SELECT {more} {other}"
            return f"(SELECT {self.chance.choice(['count(*)', 'sum(q.v)'])} FROM ({inner}) q)"
        inner = f"SELECT DISTINCT {value} AS v {body}"
        return f"(SELECT {self.chance.choice(['count(*)', 'sum(q.v)'])} FROM ({inner}) q)"

    # --- statements ---

    def lateral(self, levels: Levels) -> tuple[Source, str]:
        body, inside, key = self.body(levels, 1)
        alias = self.alias()
        value = self.column(inside[-1], "int") or self.literal("int")
        roll = self.chance.random()
        if roll < 0.4:
            text = f"SELECT {self.aggregate(inside, DEPTH_MAX)} AS v {body}"
        elif roll < 0.7:
            text = f"SELECT {value} AS v {body} ORDER BY {value} DESC, {key} LIMIT 2"
        else:
            text = f"SELECT {value} AS v {body}"
        return Source(alias, {"int": [f"{alias}.v"], "text": []}), f"({text}) {alias}"

    def query(self) -> Query:
        source, text, key = self.table()
        level = [source]
        columns = key
        if self.roll(0.15):
            other, right, more = self.table()
            kind = self.chance.choice(["int", "text"])
            a, b = self.column([source], kind), self.column([other], kind)
            if a is not None and b is not None:
                word = self.chance.choice(["JOIN", "LEFT JOIN"])
                text = f"{text} {word} {right} ON {a} = {b}"
                level.append(other)
                columns = f"{key}, {more}"
        if self.roll(0.2):
            made, right = self.lateral([level])
            text += (
                f", LATERAL {right}" if self.roll(0.5) else f" LEFT JOIN LATERAL {right} ON TRUE"
            )
            level = [*level, made]
            columns += f", {made.alias}.v"
        levels = [level]
        where = f" WHERE {self.condition(levels, 0, 0.8)}" if self.roll(0.75) else ""
        if self.roll(0.12):
            return self.grouped(levels, text, where)
        items = [columns]
        for _ in range(self.chance.choice([0, 1, 1, 2])):
            maker = self.chance.choice([self.scalar, self.condition])
            items.append(maker(levels, 0))
        return Query(f"SELECT {', '.join(items)} FROM {text}{where}", (), False)

    def grouped(self, levels: Levels, text: str, where: str) -> Query:
        """Subqueries over the groups: they may use the keys only."""
        kind = self.chance.choice(["int", "text"])
        key = self.column(levels[-1], kind) or self.literal(kind)
        above = [[Source("", {kind: [key], "int" if kind == "text" else "text": []})]]
        having = f" HAVING {self.condition(above, 0, 0.8)}" if self.roll(0.6) else ""
        number = self.value(levels, "int", DEPTH_MAX)
        items = f"{key}, count(*), sum({number}), {self.scalar(above, 0)}"
        return Query(f"SELECT {items} FROM {text}{where} GROUP BY {key}{having}", (), False)
