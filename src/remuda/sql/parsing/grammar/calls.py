"""Operands that begin with a word: columns, calls, and literals behind the name of their type."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from remuda.datatypes.times.intervaltext import FIELDS, is_unit
from remuda.errors import SqlSyntaxError
from remuda.sql.parsing.grammar.expressions import OPERATOR, POSTFIX, ExpressionGrammar
from remuda.sql.text.keywords import NOT_COLUMNS, RESERVED
from remuda.sql.text.lexemes import NAMES, STRINGS, TokenKind, position_of_token
from remuda.sql.trees import ast

_WORD, _STRING = TokenKind.WORD, TokenKind.STRING
_SYSTEM_SCHEMAS: Final = frozenset({"pg_catalog", "information_schema"})
"""Tools write them before the names of functions, where they say nothing."""
_BARE: Final[dict[str, type[ast.Node]]] = {
    "current_date": ast.CurrentDate,
    "current_timestamp": ast.CurrentTimestamp,
    "current_time": ast.CurrentTime,
    "localtimestamp": ast.Localtimestamp,
    "localtime": ast.Localtime,
    "current_user": ast.CurrentUser,
    "session_user": ast.SessionUser,
    "current_catalog": ast.CurrentCatalog,
    "current_schema": ast.CurrentSchema,
}
"""Functions without parentheses; empty ones may stand behind them."""
_WITH_DIGITS: Final = frozenset(
    {ast.CurrentTimestamp, ast.CurrentTime, ast.Localtimestamp, ast.Localtime}
)
_SIDES: Final = frozenset({"both", "leading", "trailing"})
_NULL_TREATMENTS: Final = frozenset({"ignore", "respect"})
_FRAMES: Final = frozenset({"range", "rows", "groups"})
_SIDE_WORDS: Final = frozenset({"preceding", "following"})
_WINDOW_PARTS: Final = _FRAMES | {"partition", "order", ")"}


_AFTER_CALL: Final = frozenset({"within", "filter", "over", *_NULL_TREATMENTS})


class CallGrammar(ExpressionGrammar):
    def named(self) -> ast.Node:
        token, following = self.token, self.ahead()
        if token.kind is _WORD:
            found = self._typed_literal()
            if found is not None:
                return found
            if following.word == "(":
                read = self._calls.get(token.word)
                if read is not None:
                    return read(self)
            bare = _BARE.get(token.word)
            if bare is not None:
                return self._bare_function(bare)
            if token.word in RESERVED or (token.word in NOT_COLUMNS and following.word != "("):
                self.fail()
            if following.word == "(":
                self.advance()
                return self.call(token.start, token.end, token.text)
        return self._qualified()

    def _qualified(self) -> ast.Node:
        """``[[catalog.]schema.]relation.column``, or a call behind the name of a schema."""
        parts: list[ast.Node] = [self.label()]
        while self.token.word == ".":
            self.advance()
            token = self.token
            if token.word == "*":
                self.advance()
                parts.append(ast.Star(token.start, token.end))
                break
            parts.append(self.label())
        last = parts[-1]
        if self.token.word == "(" and isinstance(last, ast.Identifier):
            return self._qualified_call(parts)
        if self.token.kind in STRINGS and len(parts) == 2 and parts[0].name in _SYSTEM_SCHEMAS:
            text = self.expression(POSTFIX)
            to = ast.TypeName(this=last.name.lower(), place=(last.start, last.end))
            return ast.Cast(operand=text, to=to)
        if len(parts) > 4:
            raise SqlSyntaxError(
                "improper qualified name (too many dotted names)",
                position=position_of_token(self.text, self.tokens[self.index - 1]),
            )
        if len(parts) == 1:
            return ast.Column(this=last)
        names = ("this", "table", "db", "catalog")
        return ast.Column(**dict(zip(names, reversed(parts), strict=False)))

    def _qualified_call(self, parts: list[ast.Node]) -> ast.Node:
        *schemas, name = parts
        if schemas and (len(schemas) > 1 or schemas[0].name.lower() not in _SYSTEM_SCHEMAS):
            shown = ".".join(part.name for part in parts)
            return self.call(name.start, name.end, shown)
        quoted = bool(name.args.get("quoted"))
        read = None if quoted else self._calls.get(name.name.lower())
        if schemas and read is not None:
            self.index -= 1
            self.token = self.tokens[self.index]
            return read(self)
        return self.call(name.start, name.end, name.name, quoted=quoted)

    # --- literals with a type ---

    def _typed_literal(self) -> ast.Node | None:
        """``DATE '...'``, ``INTERVAL '...' DAY``; None: the word is no type."""
        word, following = self.token.word, self.ahead()
        if word == "interval":
            return self._interval()
        if following.kind in STRINGS:
            if word in RESERVED:
                self.fail()
        elif not self._is_long_type(word):
            return None
        to = self.type_name()
        token = self.token
        if token.kind not in STRINGS:
            self.fail()
        return ast.Cast(operand=self._text(), to=to)

    def _is_long_type(self, word: str) -> bool:
        """Whether a type of several tokens, and a text behind it, begin here."""
        following = self.ahead().word
        if word == "double":
            return following == "precision"
        if word not in ("timestamp", "time", "character", "char", "numeric", "decimal", "varchar"):
            return False
        at = 1
        if following == "(" and self.ahead(2).kind is TokenKind.NUMBER:
            while self.ahead(at).word not in (")", ""):
                at += 1
                if self.ahead(at).kind is TokenKind.NUMBER:
                    at += 1
            at += 1
        if word in ("timestamp", "time") and self.ahead(at).word in ("with", "without"):
            if self.ahead(at + 1).word != "time":
                return False
            at += 3
        elif self.ahead(at).word == "varying":
            at += 1
        return self.ahead(at).kind in STRINGS

    def _text(self) -> ast.Node:
        if self.token.kind is not _STRING:
            return self.unicode_string()
        token = self.advance()
        return ast.Literal(token.start, token.end, this=token.text, is_string=True)

    def _interval(self) -> ast.Node | None:
        following = self.ahead()
        if following.kind is _STRING:
            self.advance()
            digits = ""
        elif following.word == "(" and self.ahead(3).word == ")" and self.ahead(4).kind is _STRING:
            self.advance()
            digits = self.interval_digits()
        elif self._is_bare_interval():
            self.advance()
            operand = self.expression(POSTFIX)
            return ast.Interval(amount=operand, unit=self.advance().text)
        else:
            return None
        text = self._text()
        fields = ""
        word = self.token.word
        if word in FIELDS:
            fields, given = self.interval_fields()
            digits = given or digits
        elif word and self.token.kind is _WORD and is_unit(word):
            fields = self.advance().word
        return ast.IntervalLiteral(text=text, fields=fields, digits=digits)

    def _is_bare_interval(self) -> bool:
        """Whether ``INTERVAL value unit`` stands here."""
        following, unit = self.ahead(), self.ahead(2)
        value = following.kind in (_WORD, TokenKind.NUMBER, TokenKind.PARAMETER, *NAMES)
        value = value or following.word == "?"
        return value and unit.kind is _WORD and is_unit(unit.word) and following.word != "as"

    # --- calls ---

    def _bare_function(self, kind: type[ast.Node]) -> ast.Node:
        token = self.advance()
        digits = None
        if self.accept("("):
            if self.token.word != ")" and kind in _WITH_DIGITS:
                digits = self.expression()
            self.expect(")")
        return kind(token.start, token.end, **({} if digits is None else {"this": digits}))

    def call(self, start: int, end: int, name: str, *, quoted: bool = False) -> ast.Node:
        """From the parenthesis on."""
        self.expect("(")
        self.deeper()
        arguments: list[ast.Node] = []
        if self.token.word == "*":
            star = self.advance()
            arguments.append(ast.Star(star.start, star.end))
        elif self.token.word != ")":
            arguments = self._arguments()
        self.depth -= 1
        self.expect(")")
        node: ast.Node = ast.Call(start, end, this=name, expressions=arguments)
        if quoted:
            node.args["quoted"] = True
        if self.token.word in _AFTER_CALL:
            return self._with_clauses(node)
        return node

    def _arguments(self) -> list[ast.Node]:
        distinct = self.accept("distinct")
        if not distinct:
            self.accept("all")
        found = [self._argument()]
        while self.accept(","):
            found.append(self._argument())
        if distinct:
            found = [ast.Distinct(expressions=found)]
        if self.token.word == "order":
            order = self.order()
            found[-1] = ast.Order(this=found[-1], expressions=order.expressions)
        return found

    def _argument(self) -> ast.Node:
        if self.token.word == "variadic":
            self.advance()
            return ast.Variadic(this=self.expression())
        if self.ahead().word in ("=>", ":=") and self.token.kind in (_WORD, *NAMES):
            name = self.label()
            self.advance()
            return ast.Kwarg(keyword=name, value=self.expression())
        value = self.expression()
        return self._null_treatment(value)

    def _null_treatment(self, node: ast.Node) -> ast.Node:
        if self.token.word not in _NULL_TREATMENTS or self.ahead().word != "nulls":
            return node
        word = self.advance().word
        self.advance()
        return ast.IgnoreNulls(this=node) if word == "ignore" else ast.RespectNulls(this=node)

    def _with_clauses(self, node: ast.Node) -> ast.Node:
        """WITHIN GROUP, FILTER, IGNORE NULLS, OVER behind a call."""
        if self.accept("within", "group"):
            self.expect("(")
            node = ast.WithinGroup(this=node, expression=self.order())
            self.expect(")")
        if self.token.word == "filter" and self.ahead().word == "(":
            self.advance()
            self.advance()
            self.expect("where")
            node = ast.Filter(this=node, expression=ast.Where(this=self.expression()))
            self.expect(")")
        node = self._null_treatment(node)
        if not self.accept("over"):
            return node
        if self.token.word != "(":
            return ast.Window(this=node, alias=self.name())
        return self.window(node)

    def _words_inside(self) -> tuple[int, int]:
        """Skips the name of a function and its parenthesis; where the name stands."""
        token = self.advance()
        self.expect("(")
        self.deeper()
        return token.start, token.end

    def _closed(self, node: ast.Node) -> ast.Node:
        self.depth -= 1
        self.expect(")")
        return node

    def _cast_call(self) -> ast.Node:
        self._words_inside()
        value = self.expression()
        self.expect("as")
        return self._closed(ast.Cast(operand=value, to=self.type_name()))

    def _extract(self) -> ast.Node:
        start, end = self._words_inside()
        field = self.token
        if field.kind in (_WORD, _STRING, TokenKind.NAME) and self.ahead().word == "from":
            self.advance()
            self.advance()
            part = ast.Var(field.start, field.end, this=field.text.lower())
            return self._closed(ast.Extract(field=part, source=self.expression()))
        parts = self.expressions()
        return self._closed(ast.Call(start, end, this="extract", expressions=parts))

    def _position(self) -> ast.Node:
        self._words_inside()
        needle = self.expression(OPERATOR)
        if not self.accept(","):
            self.expect("in")
        return self._closed(ast.StrPosition(part=needle, text=self.expression()))

    def _substring(self) -> ast.Node:
        self._words_inside()
        text = self.expression(OPERATOR)
        first = length = None
        if self.accept("similar"):
            first = self.expression()
            self.expect("escape")
            length = self.expression()
        elif self.accept(","):
            first = self.expression()
            if self.accept(","):
                length = self.expression()
        else:
            while self.token.word in ("from", "for"):
                if first is None and self.accept("from"):
                    first = self.expression()
                elif length is None and self.accept("for"):
                    length = self.expression()
                else:
                    break
        return self._closed(ast.Substring(text=text, first=first, length=length))

    def _trim(self) -> ast.Node:
        self._words_inside()
        side = self.advance().word.upper() if self.token.word in _SIDES else ""
        if self.accept("from"):
            return self._closed(ast.Trim(text=self.expression(), side=side))
        text, characters = self.expression(), None
        if self.accept("from"):
            characters, text = text, self.expression()
        if self.accept(","):
            characters = self.expression()
        return self._closed(ast.Trim(text=text, side=side, characters=characters))

    def _overlay(self) -> ast.Node:
        self._words_inside()
        text, parts = self.expression(), list[ast.Node | None]()
        for word in ("placing", "from", "for"):
            if not (self.accept(word) or self.accept(",")):
                break
            parts.append(self.expression())
        replacement, first, length = (*parts, None, None, None)[:3]
        node = ast.Overlay(text=text, replacement=replacement, first=first, length=length)
        return self._closed(node)

    def _date(self) -> ast.Node:
        token = self.advance()
        call = self.call(token.start, token.end, token.text)
        if len(call.expressions) != 1:
            return call
        return ast.Date(token.start, token.end, this=call.expressions[0])

    # --- ORDER BY and windows ---

    def order(self) -> ast.Order:
        self.expect("order", "by")
        return ast.Order(expressions=self._ordered_list())

    def _ordered_list(self) -> list[ast.Node]:
        found: list[ast.Node] = [self.ordered()]
        while self.accept(","):
            found.append(self.ordered())
        return found

    def ordered(self) -> ast.Ordered:
        """``expression [ASC | DESC | USING operator] [NULLS FIRST | LAST]``"""
        value = self.expression()
        descending = False
        word = self.token.word
        if word in ("asc", "desc"):
            self.advance()
            descending = word == "desc"
        elif word == "using":
            self.advance()
            if self.token.word not in ("<", ">"):
                self.fail()
            descending = self.advance().word == ">"
        first = descending
        if self.token.word == "nulls":
            self.advance()
            first = self.token.word == "first"
            if not first and self.token.word != "last":
                self.fail()
            self.advance()
        return ast.Ordered(this=value, desc=descending, nulls_first=first)

    def window(self, node: ast.Node) -> ast.Window:
        """``([name] [PARTITION BY ...] [ORDER BY ...] [frame])``"""
        self.expect("(")
        self.deeper()
        args: dict[str, object] = {"this": node}
        if self.token.word not in _WINDOW_PARTS:
            args["alias"] = self.name()
        if self.accept("partition"):
            self.expect("by")
            args["partition_by"] = self.expressions()
        if self.token.word == "order":
            args["order"] = self.order()
        if self.token.word in _FRAMES:
            args["spec"] = self._frame()
        self.depth -= 1
        self.expect(")")
        return ast.Window(**args)

    def _frame(self) -> ast.WindowSpec:
        kind = self.advance().word.upper()
        upper, upper_side = None, ""
        if self.accept("between"):
            lower, lower_side = self._frame_bound()
            self.expect("and")
            upper, upper_side = self._frame_bound()
        else:
            lower, lower_side = self._frame_bound()
        return ast.WindowSpec(
            kind=kind,
            lower=lower,
            lower_side=lower_side,
            upper=upper,
            upper_side=upper_side,
            exclude=self._exclusion() if self.accept("exclude") else "",
        )

    def _exclusion(self) -> str:
        for words in (("current", "row"), ("no", "others"), ("group",), ("ties",)):
            if self.accept(*words):
                return " ".join(words).upper()
        return self.fail()

    def _frame_bound(self) -> tuple[ast.Node | str, str]:
        if self.accept("current", "row"):
            return "CURRENT ROW", ""
        value: ast.Node | str = "UNBOUNDED"
        if not (self.token.word == "unbounded" and self.ahead().word in _SIDE_WORDS):
            value = self.expression()
        else:
            self.advance()
        if self.token.word not in _SIDE_WORDS:
            self.fail()
        return value, self.advance().word.upper()

    _calls: ClassVar[dict[str, Callable[..., ast.Node]]] = {
        "cast": _cast_call,
        "extract": _extract,
        "position": _position,
        "substring": _substring,
        "trim": _trim,
        "overlay": _overlay,
        "date": _date,
    }
