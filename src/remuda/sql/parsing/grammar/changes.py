"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE; SINK INTO and REPLACE INTO are forms of INSERT."""

from __future__ import annotations

from typing import Any

from remuda.errors import NotSupported, SqlSyntaxError
from remuda.sql.parsing.alternatives import REPLACE
from remuda.sql.parsing.grammar.queries import QueryGrammar
from remuda.sql.text.lexemes import TokenKind, position_of_token
from remuda.sql.trees import ast


class Grammar(QueryGrammar):
    """The whole grammar of queries, changes and expressions."""

    def statement(self) -> ast.Node:
        """All tokens as one query or change of data."""
        word = self.token.word
        if word == "truncate":
            node = self._truncate()
        elif word in ("replace", "insert", "update", "delete", "merge", "sink"):
            node = self.change()
        else:
            node = self.statement_in_with()
        self.end()
        return node

    def whole_query(self) -> ast.Node:
        """All tokens as one query."""
        if self.token.word not in ("select", "with", "values", "table", "("):
            self.fail("A query is expected here.")
        node = self.query()
        self.end()
        return node

    def whole_expression(self) -> ast.Node:
        """All tokens as one expression."""
        first = self.token
        node = self.expression()
        if self.token.word == ",":
            raise SqlSyntaxError(
                "one expression is expected here", position=position_of_token(self.text, first)
            )
        self.end()
        return node

    def change(self) -> ast.Node:
        match self.token.word:
            case "insert" | "sink" | "replace":
                return self._insert()
            case "update":
                return self._update()
            case "delete":
                return self._delete()
            case _:
                return self._merge()

    # --- INSERT ---

    def _insert(self) -> ast.Node:
        args: dict[str, Any] = {}
        if self.advance().word == "replace":
            args["alternative"] = REPLACE
        elif self.accept("or"):
            args["alternative"] = self.label().name.upper()
        self.expect("into")
        target = self.table_name()
        if self.accept("as"):
            target.args["alias"] = ast.TableAlias(this=self.name())
        args["this"] = target
        if self.token.word == "(" and not self._is_query_ahead():
            args["columns"] = self._insert_columns()
        if overriding := self._overriding():
            args["overriding"] = overriding
        if self.accept("default", "values"):
            args["default"] = True
        elif self.begins_query() or self.token.word == "(":
            args["expression"] = self._inserted_rows()
        if self.token.word == "on":
            args["conflict"] = self._conflict()
        self._read_returning(args)
        return ast.Insert(**args)

    def _overriding(self) -> str:
        """The word of OVERRIDING USER or SYSTEM VALUE."""
        if not self.accept("overriding"):
            return ""
        word = "USER" if self.accept("user") else "SYSTEM"
        if word == "SYSTEM":
            self.expect("system")
        self.expect("value")
        return word

    def _is_query_ahead(self) -> bool:
        place = 1
        while self.ahead(place).word == "(":
            place += 1
        word = self.ahead(place).word
        if word == "values":  # also a name that a column may have
            return self.ahead(place + 1).word == "("
        return word in ("select", "with", "table")

    def _inserted_rows(self) -> ast.Node:
        """``(VALUES ...)`` are the rows, without the parentheses."""
        query = self.query()
        if isinstance(query, ast.Subquery) and isinstance(query.this, ast.Values):
            plain = len(query.args) == 1 and set(query.this.args) == {"expressions"}
            return query.this if plain else query
        return query

    def _insert_columns(self) -> list[ast.Node]:
        self.expect("(")
        found: list[ast.Node] = []
        while not found or self.accept(","):
            found.append(self.name())
        self.expect(")")
        return found

    def _conflict(self) -> ast.Node:
        self.expect("on", "conflict")
        args: dict[str, Any] = {}
        if self.accept("on"):
            self.expect("constraint")
            args["constraint"] = self.name()
        elif self.accept("("):
            keys: list[ast.Node] = [self.ordered()]
            while self.accept(","):
                keys.append(self.ordered())
            self.expect(")")
            args["conflict_keys"] = keys
            if self.accept("where"):
                args["index_where"] = ast.Where(this=self.expression())
        if self.accept("do"):
            word = self.token
            if self.accept("nothing"):
                args["action"] = ast.Var(word.start, word.end, this="DO NOTHING")
                return ast.OnConflict(**args)
            self.expect("update")
            args["action"] = ast.Var(word.start, word.end, this="DO UPDATE")
            self.expect("set")
            args["expressions"] = self._assignments()
            if self.accept("where"):
                args["where"] = ast.Where(this=self.expression())
        elif self.token.kind is not TokenKind.END:
            self.fail()
        return ast.OnConflict(**args)

    def _read_returning(self, args: dict[str, Any]) -> None:
        if self.accept("returning"):
            args["returning"] = ast.Returning(expressions=self.items())

    # --- UPDATE and DELETE ---

    def _aliased_target(self) -> ast.Table:
        target = self.target()
        alias = self.alias()
        if alias is not None:
            target.args["alias"] = alias
        return target

    def _update(self) -> ast.Node:
        self.expect("update")
        args: dict[str, Any] = {"this": self._aliased_target()}
        self.expect("set")
        args["expressions"] = self._assignments()
        if self.accept("from"):
            args["from_"] = ast.From(this=self.attached_list())
        if self.accept("where"):
            self._refuse_position()
            args["where"] = ast.Where(this=self.expression())
        self._read_returning(args)
        return ast.Update(**args)

    def _refuse_position(self) -> None:
        """WHERE CURRENT OF a cursor."""
        if self.token.word == "current" and self.ahead().word == "of":
            raise NotSupported(
                "WHERE CURRENT OF is not supported",
                hint="Fetch the key of the row with the cursor, and name it: WHERE key = ...",
                position=position_of_token(self.text, self.token),
            )

    def _assignments(self) -> list[ast.Node]:
        if self.token.kind is TokenKind.END:
            return []
        found = [self._assignment()]
        while self.accept(","):
            found.append(self._assignment())
        return found

    def _assignment(self) -> ast.Node:
        """``column = value``, ``column[1] = value`` or ``(column, ...) = row``"""
        if self.token.word == "(":
            self.advance()
            columns = [self._assigned_column()]
            while self.accept(","):
                columns.append(self._assigned_column())
            self.expect(")")
            target: ast.Node = ast.Tuple(expressions=columns)
            if len(columns) == 1:
                target = ast.Paren(this=columns[0])
        else:
            target = self._assigned_column()
        if self.token.word != "=":
            self.fail()
        self.advance()
        return ast.EQ(this=target, expression=self.expression())

    def _assigned_column(self) -> ast.Node:
        parts: list[ast.Node] = [self.name()]
        while self.accept("."):
            parts.append(self.label())
        names = ("this", "table", "db", "catalog")
        if len(parts) > len(names):
            self.fail()
        target: ast.Node = ast.Column(**dict(zip(names, reversed(parts), strict=False)))
        while self.token.word == "[":
            target = self._subscript(target)
        return target

    def _delete(self) -> ast.Node:
        self.expect("delete")
        if not self.accept("from"):
            token = self.token
            if token.kind is TokenKind.END:
                self.fail()
            raise SqlSyntaxError(
                "DELETE needs FROM",
                position=position_of_token(self.text, token),
                hint="Write DELETE FROM.",
            )
        args: dict[str, Any] = {"this": self._aliased_target()}
        if self.accept("using"):
            args["using"] = [self.attached_list()]
        if self.accept("where"):
            self._refuse_position()
            args["where"] = ast.Where(this=self.expression())
        self._read_returning(args)
        return ast.Delete(**args)

    def _truncate(self) -> ast.Node:
        self.expect("truncate")
        self.accept("table")
        found: list[ast.Node] = [self.target()]
        while self.accept(","):
            found.append(self.target())
        args: dict[str, Any] = {}
        if self.accept("restart", "identity"):
            args["identity"] = "RESTART"
        elif self.accept("continue", "identity"):
            args["identity"] = "CONTINUE"
        if self.accept("cascade"):
            args["option"] = "CASCADE"
        elif self.accept("restrict"):
            args["option"] = "RESTRICT"
        return ast.Truncate(expressions=found, **args)

    # --- MERGE ---

    def _merge(self) -> ast.Node:
        self.expect("merge", "into")
        args: dict[str, Any] = {"this": self._aliased_target()}
        self.expect("using")
        args["using"] = self._relation()
        self.expect("on")
        args["on"] = self.expression()
        whens: list[ast.Node] = []
        while self.token.word == "when":
            whens.append(self._when())
        if not whens:
            self.fail()
        args["whens"] = whens
        self._read_returning(args)
        return ast.Merge(**args)

    def _when(self) -> ast.Node:
        word = self.token
        self.expect("when")
        args: dict[str, Any] = {"matched": not self.accept("not")}
        self.expect("matched")
        if self.accept("by"):
            args["source"] = self.accept("source")
            if not args["source"]:
                self.expect("target")
        if self.accept("and"):
            args["condition"] = self.expression()
        self.expect("then")
        args["then"] = self._merge_action()
        return ast.When(word.start, word.end, **args)

    def _merge_action(self) -> ast.Node:
        token = self.token
        if self.accept("update"):
            self.expect("set")
            return ast.Update(expressions=self._assignments())
        if self.accept("delete"):
            return ast.Var(token.start, token.end, this="DELETE")
        if self.accept("do"):
            self.expect("nothing")
            return ast.Var(token.start, token.end, this="DO NOTHING")
        self.expect("insert")
        args: dict[str, Any] = {}
        if self.token.word == "(":
            args["columns"] = self._insert_columns()
        args["overriding"] = self._overriding()
        if self.accept("default", "values"):
            args["default"] = True
            return ast.Insert(**args)
        self.expect("values")
        args["expression"] = self._row()
        return ast.Insert(**args)
