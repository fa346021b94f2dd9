"""Queries: WITH, SELECT, VALUES, TABLE, set operations, and the clauses behind them."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Final

from remuda.errors import SqlSyntaxError
from remuda.sql.parsing.grammar.relations import RelationGrammar
from remuda.sql.text.keywords import NOT_LABELS
from remuda.sql.text.lexemes import NAMES, TokenKind
from remuda.sql.trees import ast
from remuda.sql.trees.places import position_of

_WORD = TokenKind.WORD
_SETS: Final = {
    "union": (1, ast.Union),
    "except": (1, ast.Except),
    "intersect": (2, ast.Intersect),
}
_AFTER_ITEMS: Final = frozenset(
    {"into", "from", "where", "group", "having", "window", "order", "limit", "offset", "fetch"}
    | {"for", "union", "except", "intersect", ")", "", "on", "returning"}
)
"""A SELECT may have no items at all."""
_TAIL: Final = frozenset({"order", "limit", "offset", "fetch", "for"})
_CHANGES: Final = frozenset({"insert", "update", "delete", "merge", "sink"})


class QueryGrammar(RelationGrammar):
    @abstractmethod
    def change(self) -> ast.Node:
        """INSERT, UPDATE, DELETE or MERGE."""

    def query(self) -> ast.Node:
        common = self.with_clause() if self.token.word == "with" else None
        node = self.query_from(self._term())
        return node if common is None else self._under(common, node)

    def _under(self, common: ast.With, node: ast.Node) -> ast.Node:
        if node.args.get("with_") is not None:
            node = ast.Subquery(this=node)
        node.args["with_"] = common
        return node

    def query_from(self, left: ast.Node) -> ast.Node:
        node = self._set_operations(left, 1)
        if self.token.word in _TAIL:
            self._read_tail(node)
            if self.token.word in _SETS:
                clause = node.args.get("order") or node.args.get("limit")
                raise SqlSyntaxError(
                    f"ORDER BY and LIMIT before {self.token.word.upper()} need parentheses around "
                    "their query",
                    position=position_of(self.text, clause or node),
                )
        return node

    def _set_operations(self, left: ast.Node, least: int) -> ast.Node:
        while (entry := _SETS.get(self.token.word)) is not None and entry[0] >= least:
            level, kind = entry
            self.advance()
            distinct = not self.accept("all")
            if distinct:
                self.accept("distinct")
            right = self._set_operations(self._term(), level + 1)
            left = kind(this=left, expression=right, distinct=distinct)
        return left

    def _term(self) -> ast.Node:
        word = self.token.word
        if word == "select":
            return self._select()
        if word == "values":
            return self._values()
        if word == "table":
            self.advance()
            source = ast.From(this=self.target())
            return ast.Select(expressions=[ast.Star()], from_=source)
        if word != "(":
            self.fail()
        self.advance()
        self.deeper()
        query = self.query()
        self.depth -= 1
        self.expect(")")
        return ast.Subquery(this=query)

    def _values(self) -> ast.Node:
        self.expect("values")
        rows = [self._row()]
        while self.accept(","):
            rows.append(self._row())
        return ast.Values(expressions=rows)

    def _row(self) -> ast.Node:
        opening = self.token
        self.expect("(")
        if self.token.word == ")":
            self.fail()
        cells = self.expressions()
        self.expect(")")
        return ast.Tuple(opening.start, opening.end, expressions=cells)

    # --- WITH ---

    def with_clause(self) -> ast.With:
        self.expect("with")
        recursive = self.accept("recursive")
        entries = [self._common_table()]
        while self.accept(","):
            entries.append(self._common_table())
        return ast.With(expressions=entries, recursive=recursive)

    def _common_table(self) -> ast.Node:
        name: dict[str, Any] = {"this": self.name()}
        if self.token.word == "(":
            name["columns"] = self.names()
        self.expect("as")
        args: dict[str, Any] = {}
        if self.accept("not", "materialized"):
            args["materialized"] = False
        elif self.accept("materialized"):
            args["materialized"] = True
        self.expect("(")
        self.deeper()
        inner = self.statement_in_with()
        self.depth -= 1
        self.expect(")")
        if self.token.word in ("search", "cycle"):
            args["search"] = self._search()
        return ast.CTE(this=inner, alias=ast.TableAlias(**name), **args)

    def statement_in_with(self) -> ast.Node:
        word = self.token.word
        if word in _CHANGES:
            return self.change()
        if word != "with":
            return self.query()
        common = self.with_clause()
        if self.token.word in _CHANGES:
            node = self.change()
            node.args["with_"] = common
            return node
        return self._under(common, self.query())

    def _search(self) -> ast.Node:
        if self.accept("search"):
            kind = self.token.word.upper()
            if kind not in ("DEPTH", "BREADTH"):
                self.fail()
            self.advance()
            self.expect("first", "by")
            columns = self._name_list()
            self.expect("set")
            return ast.Search(kind=kind, columns=columns, set_=self.name())
        self.expect("cycle")
        columns = self._name_list()
        self.expect("set")
        mark, to, default = self.name(), None, None
        if self.accept("to"):
            to = self.expression()
            self.expect("default")
            default = self.expression()
        self.expect("using")
        return ast.Search(
            kind="CYCLE", columns=columns, set_=mark, to=to, default=default, using=self.name()
        )

    def _name_list(self) -> list[ast.Node]:
        found: list[ast.Node] = [self.name()]
        while self.accept(","):
            found.append(self.name())
        return found

    # --- SELECT ---

    def _select(self) -> ast.Node:
        word = self.advance()
        args: dict[str, Any] = {}
        if self.accept("distinct"):
            args["distinct"] = self._distinct()
        else:
            self.accept("all")
        args["expressions"] = (
            [] if self.token.word in _AFTER_ITEMS and self._is_bare() else (self.items())
        )
        if self.token.word == "into":
            args["into"] = self._into()
        if self.accept("from"):
            first, joins = self.from_list()
            args["from_"] = ast.From(this=first)
            if joins:
                args["joins"] = joins
        if self.accept("where"):
            args["where"] = ast.Where(this=self.expression())
        if self.token.word == "group":
            args["group"] = self._group()
        if self.accept("having"):
            args["having"] = ast.Having(this=self.expression())
        if self.token.word == "window":
            args["windows"] = self._windows()
        if not args["expressions"]:
            return ast.Select(word.start, word.end, **args)
        return ast.Select(**args)

    def _into(self) -> ast.Into:
        """``INTO [TEMPORARY | TEMP | UNLOGGED] [TABLE] name``"""
        start = self.advance().start
        if self.accept("local") or self.accept("global"):
            temporary = self.accept("temporary") or self.accept("temp")
        else:
            temporary = self.accept("temporary") or self.accept("temp")
            if not temporary:
                self.accept("unlogged")
        self.accept("table")
        name = self.table_name()
        return ast.Into(start, self.tokens[self.index - 1].end, this=name, temporary=temporary)

    def _is_bare(self) -> bool:
        kind = self.token.kind
        return kind in (_WORD, TokenKind.END) or self.token.word == ")"

    def _distinct(self) -> ast.Node:
        if not self.accept("on"):
            return ast.Distinct()
        self.expect("(")
        keys = self.expressions()
        self.expect(")")
        return ast.Distinct(on=ast.Tuple(expressions=keys))

    def items(self) -> list[ast.Node]:
        found = [self._item()]
        while self.accept(","):
            found.append(self._item())
        return found

    def _item(self) -> ast.Node:
        token = self.token
        if token.word == "*":
            self.advance()
            return ast.Star(token.start, token.end)
        value = self.expression()
        token = self.token
        kind = token.kind
        if kind is _WORD:
            if token.word == "as":
                self.advance()
                return ast.Alias(this=value, alias=self.label())
            if token.word not in NOT_LABELS:
                self.advance()
                label = ast.Identifier(token.start, token.end, this=token.text)
                return ast.Alias(this=value, alias=label)
        elif kind in NAMES:
            return ast.Alias(this=value, alias=self.quoted_name())
        return value

    # --- GROUP BY ---

    def _group(self) -> ast.Node:
        self.expect("group", "by")
        args: dict[str, Any] = {}
        if self.accept("distinct"):
            args["all"] = False
        elif self.accept("all"):
            args["all"] = True
        return ast.Group(expressions=self._grouping_elements(), **args)

    def _grouping_elements(self) -> list[ast.Node]:
        found = [self._grouping_element()]
        while self.accept(","):
            found.append(self._grouping_element())
        return found

    def _grouping_element(self) -> ast.Node:
        word = self.token.word
        if word in ("rollup", "cube") and self.ahead().word == "(":
            self.advance()
            kind = ast.Rollup if word == "rollup" else ast.Cube
            self.advance()
            parts = self.expressions()
            self.expect(")")
            return kind(expressions=parts)
        if word == "grouping" and self.ahead().word == "sets":
            self.advance()
            self.advance()
            self.expect("(")
            self.deeper()
            parts = self._grouping_elements()
            self.depth -= 1
            self.expect(")")
            return ast.GroupingSets(expressions=parts)
        return self.expression()

    def _windows(self) -> list[ast.Node]:
        self.expect("window")
        found: list[ast.Node] = []
        while not found or self.accept(","):
            name = self.name()
            self.expect("as")
            found.append(self.window(name))
        return found

    # --- behind a query ---

    def _read_tail(self, node: ast.Node) -> None:
        args = node.args
        if self.token.word == "order":
            self._refuse_second(args, "order")
            args["order"] = self.order()
        while (word := self.token.word) in _TAIL:
            if word == "offset":
                self._refuse_second(args, "offset")
                args["offset"] = self._offset()
            elif word == "for":
                locks = args.setdefault("locks", [])
                lock = self._lock()
                if lock is not None:
                    locks.append(lock)
            elif word == "order":
                self.fail()
            else:
                self._refuse_second(args, "limit")
                args["limit"] = self._limit() if word == "limit" else self._fetch()

    def _refuse_second(self, args: dict[str, Any], name: str) -> None:
        if args.get(name) is not None:
            self.fail()

    def _limit(self) -> ast.Node:
        self.expect("limit")
        token = self.token
        if token.word == "all":
            self.advance()
            return ast.Limit(expression=ast.Var(token.start, token.end, this="ALL"))
        return ast.Limit(expression=self.expression())

    def _offset(self) -> ast.Node:
        self.expect("offset")
        value = self.expression()
        self.accept("rows") or self.accept("row")
        return ast.Offset(expression=value)

    def _fetch(self) -> ast.Node:
        word = self.advance()
        if not self.accept("first"):
            self.expect("next")
        args: dict[str, Any] = {}
        if self.token.word not in ("row", "rows"):
            args["count"] = self.expression()
        if not self.accept("rows"):
            self.expect("row")
        if self.accept("with", "ties"):
            args["with_ties"] = True
        else:
            self.expect("only")
        if "count" not in args:
            return ast.Fetch(word.start, word.end, **args)
        return ast.Fetch(**args)

    def _lock(self) -> ast.Node | None:
        """``FOR UPDATE [OF name, ...] [NOWAIT | SKIP LOCKED]``; FOR READ ONLY says nothing."""
        self.expect("for")
        if self.accept("read"):
            self.expect("only")
            return None
        strengths = (("no", "key", "update"), ("key", "share"), ("update",))
        if not any(self.accept(*words) for words in strengths):
            self.expect("share")
        tables: list[ast.Node] = []
        if self.accept("of"):
            tables.append(self.table_name())
            while self.accept(","):
                tables.append(self.table_name())
        skip = self.accept("skip", "locked")
        if not skip:
            self.accept("nowait")
        return ast.Lock(expressions=tables, skip_locked=skip)
