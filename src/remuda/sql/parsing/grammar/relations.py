"""FROM: relations, functions, joins, aliases, samples."""

from __future__ import annotations

from typing import Any, Final

from remuda.errors import SqlSyntaxError
from remuda.sql.parsing.grammar.calls import CallGrammar
from remuda.sql.text.keywords import NOT_ALIASES, NOT_COLUMNS
from remuda.sql.text.lexemes import NAMES, TokenKind, position_of_token
from remuda.sql.trees import ast

_WORD = TokenKind.WORD
_JOINS: Final = frozenset({"join", "inner", "left", "right", "full", "cross", "natural"})
_SIDES: Final = frozenset({"left", "right", "full"})
_QUERY_WORDS: Final = frozenset({"select", "values", "with", "table"})
_MORE_QUERY: Final = frozenset(
    {"union", "intersect", "except", "order", "limit", "offset", "fetch", "for"}
)


class RelationGrammar(CallGrammar):
    def begins_query(self) -> bool:
        word = self.token.word
        if word not in _QUERY_WORDS:
            return False
        following = self.ahead()
        if word == "values":
            return following.word == "("
        return word != "table" or following.kind in (_WORD, *NAMES)

    def continues_query(self) -> bool:
        return self.token.word in _MORE_QUERY

    def from_list(self) -> tuple[ast.Node, list[ast.Node]]:
        """The first relation, and the joins and commas behind it."""
        first = self._relation()
        joins: list[ast.Node] = []
        self._read_joins(joins)
        while self.accept(","):
            joins.append(ast.Join(this=self._relation()))
            self._read_joins(joins)
        return first, joins

    def attached_list(self) -> ast.Node:
        """The first relation, with all others as its joins."""
        first, joins = self.from_list()
        return self._with_joins(first, joins)

    def _with_joins(self, first: ast.Node, joins: list[ast.Node]) -> ast.Node:
        if joins:
            first.args["joins"] = [*(first.args.get("joins") or ()), *joins]
        return first

    # --- joins ---

    def _read_joins(self, joins: list[ast.Node]) -> None:
        while self.token.word in _JOINS:
            joins.append(self._join())

    def _join(self) -> ast.Node:
        args: dict[str, Any] = {}
        if self.accept("natural"):
            args["method"] = "NATURAL"
        word = self.token.word
        if word in _SIDES:
            args["side"] = self.advance().word.upper()
            if self.accept("outer"):
                args["kind"] = "OUTER"
        elif word in ("inner", "cross"):
            args["kind"] = self.advance().word.upper()
        elif "method" not in args:
            args["kind"] = "INNER"
        self.expect("join")
        right = self._relation()
        if "method" not in args and args.get("kind") != "CROSS":
            inner: list[ast.Node] = []
            self._read_joins(inner)  # a JOIN b JOIN c ON ... ON ...
            right = self._with_joins(right, inner)
        if self.accept("on"):
            args["on"] = self.expression()
        elif self.token.word == "using" and self.ahead().word == "(":
            self.advance()
            args["using"] = self.names()
            if self.accept("as"):
                args["using_alias"] = self.name()
        return ast.Join(this=right, **args)

    # --- one relation ---

    def _relation(self) -> ast.Node:
        token = self.token
        if token.word == "(":
            return self._aliased(self._in_parentheses_of_from())
        if token.word == "lateral":
            return self._lateral()
        if token.word == "rows" and self.ahead().word == "from" and self.ahead(2).word == "(":
            return self._rows_from()
        if token.kind is _WORD and self.ahead().word == "(" and token.word != "only":
            return self._function()
        return self._table()

    def _in_parentheses_of_from(self) -> ast.Node:
        """A query or a join in parentheses, without an alias."""
        self.expect("(")
        self.deeper()
        if self.begins_query():
            inner = self.query()
        elif self.token.word == "(":
            first = self._in_parentheses_of_from()
            if (
                isinstance(first, ast.Subquery)
                and not first.args.get("alias")
                and (self.continues_query())
            ):
                inner = self.query_from(first)
            else:
                joins: list[ast.Node] = []
                inner = self._aliased(first)
                self._read_joins(joins)
                inner = self._with_joins(inner, joins)
        else:
            joins = []
            inner = self._relation()
            self._read_joins(joins)
            inner = self._with_joins(inner, joins)
        self.depth -= 1
        self.expect(")")
        return ast.Subquery(this=inner)

    def _lateral(self) -> ast.Node:
        self.expect("lateral")
        if self.token.word != "(":
            if self.token.word == "rows" and self.ahead().word == "from":
                return self._rows_from()
            return self._function()
        self.advance()
        self.deeper()
        if not self.begins_query() and self.token.word != "(":
            self.fail()
        query = self.query()
        self.depth -= 1
        self.expect(")")
        return self._aliased(ast.Lateral(this=ast.Subquery(this=query)))

    def _rows_from(self) -> ast.Node:
        self.expect("rows", "from", "(")
        parts = [ast.Table(this=self._function_call())]
        while self.accept(","):
            parts.append(ast.Table(this=self._function_call()))
        self.expect(")")
        return self._with_ordinality(ast.Table(rows_from=parts))

    def _function(self) -> ast.Node:
        return self._with_ordinality(ast.Table(this=self._function_call()))

    def _function_call(self) -> ast.Node:
        token = self.token
        if token.kind not in (_WORD, *NAMES):
            self.fail()
        call = self.named()
        if isinstance(call, ast.Column):
            self.fail()
        return call

    def _with_ordinality(self, node: ast.Node) -> ast.Node:
        if self.accept("with", "ordinality"):
            node.args["ordinality"] = True
        return self._aliased(node, of_function=True)

    def table_name(self) -> ast.Table:
        """``[[catalog.]schema.]name``"""
        parts: list[ast.Node] = [self.name()]
        while self.token.word == ".":
            self.advance()
            parts.append(self.label())
        if len(parts) > 3:
            raise SqlSyntaxError(
                "improper qualified name (too many dotted names)",
                position=position_of_token(self.text, self.tokens[self.index - 1]),
            )
        names = ("this", "db", "catalog")
        return ast.Table(**dict(zip(names, reversed(parts), strict=False)))

    def target(self) -> ast.Table:
        """The map that a statement changes: ``[ONLY] name [*]``; maps have no heirs."""
        only = self.accept("only")
        enclosed = only and self.accept("(")
        found = self.table_name()
        if enclosed:
            self.expect(")")
        if only:
            found.args["only"] = True
        elif self.token.word == "*":
            self.advance()
        return found

    def _table(self) -> ast.Node:
        found = self.target()
        if self.token.word == "(":
            # A function behind the name of a schema.
            return self._schema_function(found)
        if self.token.word == "with" and self.ahead().word == "ordinality":
            self.fail()
        node = self._aliased(found)
        if self.token.word == "tablesample":
            node.args["sample"] = self._sample()
        return node

    def _schema_function(self, found: ast.Table) -> ast.Node:
        name, db = found.this, found.args.get("db")
        shown = name.name
        if db is not None and db.name.lower() not in ("pg_catalog", "information_schema"):
            shown = f"{db.name}.{shown}"
        quoted = bool(name.args.get("quoted"))
        call = self.call(name.start, name.end, shown, quoted=quoted)
        return self._with_ordinality(ast.Table(this=call))

    def _sample(self) -> ast.Node:
        self.expect("tablesample")
        method, seed = self.label(), None
        self.expect("(")
        percent = self.expression()
        self.expect(")")
        if self.accept("repeatable"):
            self.expect("(")
            seed = self.expression()
            self.expect(")")
        return ast.TableSample(method=method, percent=percent, seed=seed)

    # --- aliases ---

    def _aliased(self, node: ast.Node, *, of_function: bool = False) -> ast.Node:
        alias = self.alias(of_function=of_function)
        if alias is not None:
            node.args["alias"] = alias
        return node

    def alias(self, *, of_function: bool = False) -> ast.TableAlias | None:
        """``[AS] name [(columns)]``; of functions the columns may have types."""
        written = self.accept("as")
        token = self.token
        name = None
        if token.kind is _WORD:
            if written or token.word not in NOT_ALIASES:
                name = self.name(NOT_COLUMNS)
        elif token.kind in NAMES:
            name = self.quoted_name()
        if name is None and not (written and of_function and token.word == "("):
            if written:
                self.fail()
            return None
        columns: list[ast.Node] = []
        if self.token.word == "(":
            columns = self._alias_columns(of_function)
        args: dict[str, Any] = {} if name is None else {"this": name}
        if columns:
            args["columns"] = columns
        return ast.TableAlias(**args)

    def _alias_columns(self, of_function: bool) -> list[ast.Node]:
        self.expect("(")
        found: list[ast.Node] = []
        while not found or self.accept(","):
            column: ast.Node = self.name()
            if of_function and self.token.word not in (",", ")"):
                column = ast.ColumnDef(this=column, kind=self.type_name())
            found.append(column)
        self.expect(")")
        return found
