"""Expressions: operators by their precedence, from the loosest to the tightest.

The method is Pratt's: ``expression(least)`` reads an operand, then operators as long as they bind
at least as tightly as ``least``. The levels are those of PostgreSQL's manual (4.1.6).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Final

from remuda.errors import NotSupported
from remuda.sql.parsing.grammar.cursor import Cursor
from remuda.sql.parsing.grammar.types import TypeGrammar
from remuda.sql.parsing.option_settings import COLLATIONS
from remuda.sql.text.keywords import NOT_COLUMNS
from remuda.sql.text.lexemes import TokenKind, position_of_token
from remuda.sql.trees import ast

OR, AND, NOT, IS, COMPARISON, RANGE, OPERATOR, SUM, PRODUCT, POWER, AT, COLLATE, SIGN, POSTFIX = (
    range(1, 15)
)
"""Levels: those of BETWEEN, IN and LIKE are ``RANGE``, of all operators that are not named
``OPERATOR``, of ``::``, subscripts and fields ``POSTFIX``."""

_WORD, _NUMBER, _STRING = TokenKind.WORD, TokenKind.NUMBER, TokenKind.STRING
"""All text is compared by its code points, which is what these are here."""
_LEFT: Final[dict[str, tuple[int, Callable[..., ast.Node]]]] = {
    "or": (OR, ast.Or),
    "and": (AND, ast.And),
    "+": (SUM, ast.Add),
    "-": (SUM, ast.Sub),
    "*": (PRODUCT, ast.Mul),
    "/": (PRODUCT, ast.Div),
    "%": (PRODUCT, ast.Mod),
    "^": (POWER, ast.Pow),
    "||": (OPERATOR, ast.DPipe),
    "&": (OPERATOR, ast.BitwiseAnd),
    "|": (OPERATOR, ast.BitwiseOr),
    "#": (OPERATOR, ast.BitwiseXor),
    "<<": (OPERATOR, ast.BitwiseLeftShift),
    ">>": (OPERATOR, ast.BitwiseRightShift),
    "->": (OPERATOR, ast.JSONExtract),
    "->>": (OPERATOR, ast.JSONExtractScalar),
    "#>": (OPERATOR, ast.JSONBExtract),
    "#>>": (OPERATOR, ast.JSONBExtractScalar),
    "#-": (OPERATOR, ast.JSONBDeleteAtPath),
    "?": (OPERATOR, ast.JSONBContainsTopKey),
    "?|": (OPERATOR, ast.JSONBContainsAnyTopKeys),
    "?&": (OPERATOR, ast.JSONBContainsAllTopKeys),
    "@?": (OPERATOR, ast.JSONBPathExists),
    "@@": (OPERATOR, ast.JSONBPathMatches),
    "@>": (OPERATOR, ast.ArrayContainsAll),
    "<@": (OPERATOR, ast.ArrayContainedBy),
    "&&": (OPERATOR, ast.ArrayOverlaps),
    "^@": (OPERATOR, ast.StartsWith),
    "~": (OPERATOR, ast.RegexpLike),
    "~*": (OPERATOR, ast.RegexpILike),
    "~~": (OPERATOR, ast.Like),
    "~~*": (OPERATOR, ast.ILike),
    "=": (COMPARISON, ast.EQ),
    "<>": (COMPARISON, ast.NEQ),
    "!=": (COMPARISON, ast.NEQ),
    "<": (COMPARISON, ast.LT),
    "<=": (COMPARISON, ast.LTE),
    ">": (COMPARISON, ast.GT),
    ">=": (COMPARISON, ast.GTE),
}
"""Operators between two operands."""
_NEGATED: Final = {"!~": "~", "!~*": "~*", "!~~": "~~", "!~~*": "~~*"}
_PREFIXES: Final = {"@": "abs", "|/": "sqrt", "||/": "cbrt"}
"""Operators before an operand, and the functions that they are."""
_TESTS: Final[dict[str, Callable[[], ast.Node]]] = {
    "null": ast.Null,
    "unknown": ast.Null,
    "true": lambda: ast.Boolean(this=True),
    "false": lambda: ast.Boolean(this=False),
}
_JSON_KINDS: Final = frozenset({"array", "object", "scalar", "value"})
_RANGES: Final = frozenset({"between", "in", "like", "ilike", "similar"})


def _negated_match(kind: str) -> Callable[..., ast.Node]:
    make = _LEFT[kind][1]
    if make in (ast.Like, ast.ILike):
        return lambda **args: make(**args, negate=True)
    return lambda **args: ast.Not(this=make(**args))


def _nothing(_grammar: Cursor, _left: ast.Node) -> None:
    return None


_SYMBOLS: Final = {word: (level, make, _nothing) for word, (level, make) in _LEFT.items()}
_AFTER_COLUMN: Final = frozenset(_LEFT) - {"?"} | frozenset(
    {",", ")", "::", "[", "]", "as", "from", "where", "group", "order", "is", "then", "in", "like"}
    | {"between", "desc", "asc", "when", "else", "end", "not"}
)
"""Behind a bare word these make it a column; the other cases take a closer look."""


class ExpressionGrammar(TypeGrammar):
    def expression(self, least: int = OR) -> ast.Node:
        """Raises SqlSyntaxError where nothing fits that binds as tightly as ``least``."""
        token = self.token
        kind = token.kind
        if kind is _WORD:
            read = self._operands.get(token.word)
            if read is not None:
                node = read(self, least)
            elif (
                self.tokens[self.index + 1].word in _AFTER_COLUMN and token.word not in NOT_COLUMNS
            ):
                self.advance()
                start, end = token.start, token.end
                name = ast.Identifier(start, end, this=token.text)
                node = ast.Column(this=name)
            else:
                node = self.named()
        elif kind is _NUMBER or kind is _STRING:
            self.advance()
            node = ast.Literal(token.start, token.end, this=token.text, is_string=kind is _STRING)
        else:
            read = self._operands.get(token.word or kind)
            node = self.quoted_operand() if read is None else read(self, least)
        while True:
            entry = self._infix.get(self.token.word)
            if entry is None or entry[0] < least:
                return node
            level, make, read_rest = entry
            if make is None:
                rest = read_rest(self, node)
                if rest is None:
                    return node
                node = rest
                continue
            self.index += 1
            self.token = self.tokens[self.index]
            node = make(this=node, expression=self.expression(level + 1))
            if level == COMPARISON:
                following = self._infix.get(self.token.word)
                if following is not None and following[0] == COMPARISON:
                    self.fail()

    def expressions(self) -> list[ast.Node]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return found

    # --- what other rooms of the grammar read ---

    @abstractmethod
    def query(self) -> ast.Node:
        """A query without parentheses around it."""

    @abstractmethod
    def query_from(self, left: ast.Node) -> ast.Node:
        """The rest of a query whose first term is read."""

    @abstractmethod
    def named(self) -> ast.Node:
        """An operand that begins with a word: a column, a call, a typed literal."""

    @abstractmethod
    def begins_query(self) -> bool:
        """Whether a query begins here."""

    @abstractmethod
    def continues_query(self) -> bool:
        """Whether what follows makes a longer query of one in parentheses."""

    # --- operands ---

    def quoted_operand(self) -> ast.Node:
        kind = self.token.kind
        if kind in (TokenKind.NAME, TokenKind.UNICODE_NAME):
            return self.named()
        if kind is TokenKind.UNICODE_STRING:
            return self.unicode_string()
        if self.token.word in (":", "$"):
            self.refuse_named_parameter()
        return self.fail()

    def _not(self, least: int) -> ast.Node:
        if least > NOT:
            self.fail()
        self.advance()
        self.deeper()
        node = ast.Not(this=self.expression(NOT))
        self.depth -= 1
        return node

    def _minus(self, _least: int) -> ast.Node:
        self.advance()
        self.deeper()
        node = ast.Neg(this=self.expression(SIGN))
        self.depth -= 1
        return node

    def _plus(self, _least: int) -> ast.Node:
        self.advance()
        self.deeper()
        node = self.expression(SIGN)
        self.depth -= 1
        return node

    def _prefix(self, _least: int) -> ast.Node:
        token = self.advance()
        self.deeper()
        operand = self.expression(OPERATOR + 1)
        self.depth -= 1
        if token.word == "~":
            return ast.BitwiseNot(this=operand)
        call = _PREFIXES[token.word]
        return ast.Call(token.start, token.end, this=call, expressions=[operand])

    def _parenthesis(self, _least: int) -> ast.Node:
        """A query, a value or a row of values in parentheses."""
        opening = self.advance()
        self.deeper()
        if self.begins_query():
            node: ast.Node = ast.Subquery(this=self.query())
        elif self.token.word == ")":
            node = ast.Tuple(opening.start, opening.end, expressions=[])
        else:
            node = self._in_parentheses()
        self.depth -= 1
        self.expect(")")
        return node

    def _in_parentheses(self) -> ast.Node:
        first = self.expression()
        if isinstance(first, ast.Subquery):
            if self.continues_query():
                return ast.Subquery(this=self.query_from(first))
            if self.token.word == ")":
                return ast.Subquery(this=first)
        if self.token.word != ",":
            return ast.Paren(this=first)
        parts = [first]
        while self.accept(","):
            parts.append(self.expression())
        return ast.Tuple(expressions=parts)

    def _constant(self, _least: int) -> ast.Node:
        token = self.advance()
        if token.kind is TokenKind.HEX:
            return ast.HexString(token.start, token.end, this=token.text)
        return ast.BitString(token.start, token.end, this=token.text)

    def _value(self, _least: int) -> ast.Node:
        token = self.advance()
        if token.word == "null":
            return ast.Null(token.start, token.end)
        return ast.Boolean(token.start, token.end, this=token.word == "true")

    def _default(self, _least: int) -> ast.Node:
        token = self.advance()
        return ast.Var(token.start, token.end, this="DEFAULT")

    def _parameter(self, _least: int) -> ast.Node:
        return self.parameter()

    def _case(self, _least: int) -> ast.Node:
        self.advance()
        self.deeper()
        operand = None if self.token.word == "when" else self.expression()
        branches: list[ast.Branch] = []
        while self.accept("when"):
            condition = self.expression()
            self.expect("then")
            branches.append(ast.Branch(condition=condition, result=self.expression()))
        if not branches:
            self.fail()
        otherwise = self.expression() if self.accept("else") else None
        self.expect("end")
        self.depth -= 1
        return ast.Case(operand=operand, branches=branches, otherwise=otherwise)

    def _array(self, _least: int) -> ast.Node:
        word = self.advance()
        if self.token.word == "(":
            self.advance()
            self.deeper()
            query = self.query() if self.begins_query() else self._in_parentheses()
            self.depth -= 1
            self.expect(")")
            return ast.ArrayQuery(word.start, word.end, this=query)
        return self._array_list(word.start, word.end)

    def _array_list(self, start: int, end: int) -> ast.Node:
        self.expect("[")
        self.deeper()
        parts: list[ast.Node] = []
        while self.token.word != "]":
            if parts:
                self.expect(",")
            inner = self.token
            if inner.word == "[":
                parts.append(self._array_list(inner.start, inner.end))
            else:
                parts.append(self.expression())
        self.depth -= 1
        self.expect("]")
        if parts:
            return ast.Array(expressions=parts)
        return ast.Array(start, end, expressions=[])

    def _quantifier(self, _least: int) -> ast.Node:
        word = self.advance().word
        if self.token.word != "(":
            self.fail()
        operand = self._parenthesis(OR)
        return ast.AllOf(this=operand) if word == "all" else ast.AnyOf(this=operand)

    def _exists(self, least: int) -> ast.Node:
        if self.ahead().word != "(":
            return self.named()
        self.advance()
        node = self._parenthesis(least)
        if not isinstance(node, ast.Subquery):
            self.index -= 1
            self.token = self.tokens[self.index]
            self.fail()
        inner = node.this if not node.args.get("alias") else node
        return ast.Exists(this=inner)

    # --- operators that are more than a symbol ---

    def _is(self, left: ast.Node) -> ast.Node:
        self.advance()
        negate = self.accept("not")
        token = self.token
        make = _TESTS.get(token.word)
        if make is not None:
            self.advance()
            test = make()
            if token.word in ("null", "unknown"):
                return ast.Is(this=left, expression=test, negate=negate)
            found = ast.Is(this=left, expression=test)
            return ast.Not(this=found) if negate else found
        if self.accept("distinct", "from"):
            kind = ast.NullSafeEQ if negate else ast.NullSafeNEQ
            return kind(this=left, expression=self.expression(IS + 1))
        if token.word in ("json", "document", "normalized"):
            self.advance()
            self.accept_any(_JSON_KINDS)
            return ast.Is(this=left, expression=ast.Var(token.start, token.end, this=token.text))
        return self.fail()

    def _is_null(self, left: ast.Node) -> ast.Node:
        return ast.Is(this=left, expression=ast.Null(), negate=self.advance().word == "notnull")

    def _range(self, left: ast.Node) -> ast.Node | None:
        negate = self.token.word == "not"
        if negate:
            if self.ahead().word not in _RANGES:
                return None
            self.advance()
        word = self.advance().word
        if word == "in":
            found = self._in(left)
            return ast.Not(this=found) if negate else found
        if word == "between":
            found = self._between(left)
        elif word == "similar":
            self.expect("to")
            found = self._escaped(ast.SimilarTo(this=left, expression=self.expression(OPERATOR)))
        else:
            kind = ast.Like if word == "like" else ast.ILike
            args: dict[str, Any] = {"negate": True} if negate else {}
            match = kind(this=left, expression=self.expression(OPERATOR), **args)
            found, negate = self._escaped(match), False
        following = self._infix.get(self.token.word)
        if following is not None and following[0] == RANGE and self._is_range():
            self.fail()
        return ast.Not(this=found) if negate else found

    def _is_range(self) -> bool:
        return self.token.word != "not" or self.ahead().word in _RANGES

    def _escaped(self, match: ast.Node) -> ast.Node:
        if not self.accept("escape"):
            return match
        return ast.Escape(this=match, expression=self.expression(OPERATOR))

    def _between(self, left: ast.Node) -> ast.Node:
        symmetric = self.accept("symmetric")
        if not symmetric:
            self.accept("asymmetric")
        low = self.expression(OPERATOR)
        self.expect("and")
        high = self.expression(OPERATOR)
        return ast.Between(operand=left, low=low, high=high, symmetric=symmetric)

    def _in(self, left: ast.Node) -> ast.Node:
        self.expect("(")
        self.deeper()
        if self.begins_query():
            found: ast.Node = ast.In(operand=left, query=ast.Subquery(this=self.query()))
        elif self.token.word == ")":
            found = ast.In(operand=left)
        else:
            found = self._in_list(left)
        self.depth -= 1
        self.expect(")")
        return found

    def _in_list(self, left: ast.Node) -> ast.Node:
        first = self.expression()
        if isinstance(first, ast.Subquery):
            if self.continues_query():
                return ast.In(operand=left, query=ast.Subquery(this=self.query_from(first)))
            if self.token.word == ")":
                return ast.In(operand=left, query=ast.Subquery(this=first))
        values = [first]
        while self.accept(","):
            values.append(self.expression())
        return ast.In(operand=left, values=values)

    def _overlaps(self, left: ast.Node) -> ast.Node:
        self.advance()
        return ast.Overlaps(this=left, expression=self.expression(OPERATOR))

    def _negated(self, left: ast.Node) -> ast.Node:
        make = _negated_match(_NEGATED[self.advance().word])
        return make(this=left, expression=self.expression(OPERATOR + 1))

    def _named_operator(self, left: ast.Node) -> ast.Node | None:
        """``OPERATOR(pg_catalog.+)`` binds like any operator that is not named."""
        if self.ahead().word != "(":
            return None
        self.advance()
        self.advance()
        if self.token.kind is _WORD:
            if self.token.word != "pg_catalog":
                raise NotSupported(
                    "only operators of the schema pg_catalog are supported",
                    position=position_of_token(self.text, self.token),
                    hint="Write OPERATOR(pg_catalog.+), or the operator alone.",
                )
            self.advance()
            self.expect(".")
        symbol = self.token.word
        if symbol in _LEFT:
            make = _LEFT[symbol][1]
        elif symbol in _NEGATED:
            make = _negated_match(_NEGATED[symbol])
        else:
            self.fail()
        self.advance()
        self.expect(")")
        return make(this=left, expression=self.expression(OPERATOR + 1))

    def _at_time_zone(self, left: ast.Node) -> ast.Node | None:
        if self.ahead().word != "time":
            return None
        self.advance()
        self.advance()
        self.expect("zone")
        return ast.AtTimeZone(moment=left, zone=self.expression(AT + 1))

    def _collate(self, left: ast.Node) -> ast.Node:
        self.advance()
        token = self.token
        if self.accept("pg_catalog", "."):
            token = self.token
        name = self.label()
        while self.accept("."):
            name = self.label()
        if token.text.lower() in COLLATIONS:
            return left
        return ast.Collate(this=left, expression=name)

    def _cast(self, left: ast.Node) -> ast.Node:
        self.advance()
        return ast.Cast(operand=left, to=self.type_name())

    def _subscript(self, left: ast.Node) -> ast.Node:
        self.advance()
        self.deeper()
        lower = upper = None
        if self.token.word != ":":
            lower = self.expression()
        if self.token.word != ":":
            part: ast.Node = lower if lower is not None else ast.Slice()
        else:
            self.advance()
            if self.token.word != "]":
                upper = self.expression()
            part = ast.Slice(lower=lower, upper=upper)
        self.depth -= 1
        self.expect("]")
        return ast.Bracket(operand=left, subscript=part)

    def _field(self, left: ast.Node) -> ast.Node:
        self.advance()
        token = self.token
        if token.word == "*":
            self.advance()
            return ast.Dot(this=left, expression=ast.Star(token.start, token.end))
        return ast.Dot(this=left, expression=self.label())

    # --- what begins an operand, and what follows one ---

    _operands: ClassVar[dict[str | TokenKind, Callable[..., ast.Node]]] = {
        "not": _not,
        "-": _minus,
        "+": _plus,
        "~": _prefix,
        "@": _prefix,
        "|/": _prefix,
        "||/": _prefix,
        "(": _parenthesis,
        "null": _value,
        "true": _value,
        "false": _value,
        "default": _default,
        "case": _case,
        "array": _array,
        "any": _quantifier,
        "some": _quantifier,
        "all": _quantifier,
        "exists": _exists,
        "?": _parameter,
        TokenKind.PARAMETER: _parameter,
        TokenKind.BITS: _constant,
        TokenKind.HEX: _constant,
    }

    _infix: ClassVar[
        dict[str, tuple[int, Callable[..., ast.Node] | None, Callable[..., ast.Node | None]]]
    ] = {
        **_SYMBOLS,
        **dict.fromkeys(_NEGATED, (OPERATOR, None, _negated)),
        **dict.fromkeys((*_RANGES, "not"), (RANGE, None, _range)),
        "is": (IS, None, _is),
        "isnull": (IS, None, _is_null),
        "notnull": (IS, None, _is_null),
        "overlaps": (RANGE, None, _overlaps),
        "operator": (OPERATOR, None, _named_operator),
        "at": (AT, None, _at_time_zone),
        "collate": (COLLATE, None, _collate),
        "::": (POSTFIX, None, _cast),
        "[": (POSTFIX, None, _subscript),
        ".": (POSTFIX, None, _field),
    }
