"""Random set operations, grouping sets and DISTINCT ON, for ``test_random_sets``."""

from __future__ import annotations

from oracle_expressions import Scope
from oracle_generator import Generator, Item, Query

OPERATIONS = ["UNION", "UNION ALL", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"]
KINDS = ["int", "int", "text", "dec", "date", "float", "special"]


class SetGenerator(Generator):
    def set_query(self) -> Query:
        make = self.chance.choice([self.operations, self.operations, self.sets, self.first_of_each])
        text, ordered = make()
        return Query(text, (), ordered)

    # --- INTERSECT, EXCEPT, UNION ---

    def operations(self) -> tuple[str, bool]:
        kinds = [self.pick(KINDS) for _ in range(self.chance.randrange(1, 4))]
        text = self.chain(kinds, 0)
        roll = self.chance.random()
        if roll < 0.3:
            items: list[Item] = [("", kind) for kind in kinds]
            order, ordered = self.order(items, None, 0)
            return text + order, ordered
        if roll < 0.45:
            alias = self.alias()
            return f"SELECT count(*) AS c0, count(c0) AS c1 FROM ({text}) {alias}", False
        if roll < 0.55 and kinds[0] == "int":
            alias = self.alias()
            return f"SELECT * FROM ({text}) {alias} WHERE {alias}.c0 > 3", False
        return text, False

    def chain(self, kinds: list[str], depth: int) -> str:
        parts = [self.branch(kinds, depth) for _ in range(self.chance.choice([2, 2, 3]))]
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.pick(OPERATIONS)} {part}"
        return text

    def branch(self, kinds: list[str], depth: int) -> str:
        if depth < 2 and self.roll(0.2):
            return f"({self.chain(kinds, depth + 1)})"
        first, source = self.table()
        scope = Scope([first])
        items = [
            self.column(scope, kind) if self.roll(0.7) else self.expression(scope, kind, 2)
            for kind in kinds
        ]
        listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(items))
        where = f" WHERE {self.likely(scope)}" if self.roll(0.3) else ""
        if self.roll(0.2):
            return f"SELECT DISTINCT {listed} FROM {source}{where}"
        if self.roll(0.1):
            places = ", ".join(str(i + 1) for i in range(len(items)))
            limit = self.chance.choice([1, 5, 20])
            return f"(SELECT {listed} FROM {source}{where} ORDER BY {places} LIMIT {limit})"
        return f"SELECT {listed} FROM {source}{where}"

    # --- GROUPING SETS, ROLLUP, CUBE ---

    def sets(self) -> tuple[str, bool]:
        scope, source, links = self.source(1)
        columns = [(c, k) for k in ("int", "text", "date", "dec", "bool") for c in scope.columns(k)]
        keys = self.chance.sample(columns, min(len(columns), self.chance.randrange(1, 4)))
        if self.roll(0.2):
            text = f"({self.column(scope, 'int')} % 3)"
            if "." in text:
                keys[0] = (text, "int")
        names = list(dict.fromkeys(text for text, _ in keys))
        calls = [self.call(scope)[0] for _ in range(self.chance.randrange(1, 4))]
        shown = [*names, *calls]
        shown += [f"grouping({', '.join(names)})"] if self.roll(0.6) else []
        shown += [f"grouping({name}) * 2" for name in names if self.roll(0.2)]
        listed = ", ".join(f"{text} AS c{i}" for i, text in enumerate(shown))
        having = f" HAVING {self.having(scope)}" if self.roll(0.2) else ""
        where = self.where(scope, links)
        text = f"SELECT {listed} FROM {source}{where} GROUP BY {self.elements(names)}{having}"
        if self.roll(0.2):
            alias = self.alias()
            text = f"SELECT * FROM ({text}) {alias} WHERE c0 IS NOT NULL"
        return text, False

    def elements(self, names: list[str]) -> str:
        """The GROUP BY list; no set occurs twice, because DuckDB would keep only one of them."""
        listed = ", ".join(names)
        roll = self.chance.random()
        if roll < 0.3:
            return f"ROLLUP ({listed})"
        if roll < 0.5:
            return f"CUBE ({listed})"
        if roll < 0.6 and len(names) > 1:
            return f"{names[0]}, ROLLUP ({', '.join(names[1:])})"
        if roll < 0.7 and len(names) > 2:
            return f"ROLLUP (({names[0]}, {names[1]}), {names[2]})"
        if roll < 0.8 and len(names) > 1:
            return f"CUBE ({names[0]}), ROLLUP ({', '.join(names[1:])})"
        sets = [f"({listed})", *names[: self.chance.randrange(len(names) + 1)], "()"]
        if len(names) == 1:
            sets = [f"({names[0]})", "()"]
        self.chance.shuffle(sets)
        return f"GROUPING SETS ({', '.join(sets)})"

    # --- DISTINCT ON ---

    def first_of_each(self) -> tuple[str, bool]:
        scope, source, links = self.source(1)
        items = [(self.column(scope, kind), kind) for kind in self.chance.sample(KINDS[1:], 3)]
        listed = ", ".join(f"{text} AS c{i}" for i, (text, _) in enumerate(items))
        count = self.chance.choice([1, 1, 2])
        on = ", ".join(f"c{i}" for i in range(count))
        directions = [self.pick(["", " DESC", " NULLS FIRST"]) for _ in items]
        order = ", ".join(f"c{i}{directions[i]}" for i in range(len(items)))
        where = self.where(scope, links)
        return f"SELECT DISTINCT ON ({on}) {listed} FROM {source}{where} ORDER BY {order}", True
