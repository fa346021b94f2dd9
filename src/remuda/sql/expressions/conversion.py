"""Typed construction of expressions: implicit conversions become explicit casts here.

An expression is *untyped* while its type is Kind.NULL: a string literal, NULL, or a parameter
that nothing has told its type yet. Its neighbours type it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from remuda.catalog.pg_types import OBJECTS, VECTORS
from remuda.datatypes.coercion import (
    common_type,
    is_assignable,
    is_explicit,
    is_implicit,
    same_representation,
)
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    DATE,
    FRACTION_MAX,
    INTEGER,
    INTERVAL_FIELDS,
    JSON,
    VARCHAR,
    Kind,
    SqlType,
    aliased,
    decimal,
    unrestricted,
)
from remuda.datatypes.texts.text import check_length, parse_text, type_name
from remuda.datatypes.times.text_forms import PLAIN_FORMS
from remuda.datatypes.times.time_digits import fit_of
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    AmbiguousFunction,
    CannotCoerce,
    DataError,
    InternalError,
    NotSupported,
    TypeMismatch,
    UndefinedFunction,
)
from remuda.plan.expression import Call, Cast, Expression, Literal, Parameter
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS, Signature, with_digits, with_exponent
from remuda.plan.functions.dates import number_signature
from remuda.sql.expressions.constant_numbers import folded_quotient
from remuda.sql.expressions.constants import exactly, folded_cast, minimal_decimal, special_moment
from remuda.sql.scope.context import Context
from remuda.sql.scope.object_names import (
    as_number,
    as_text,
    is_written,
    object_literal,
    of_objects,
    retyped,
)
from remuda.sql.trees import ast

COMPARISONS: Final = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "is_distinct_from", "is_not_distinct_from"}
)
_SAME_TYPE: Final = COMPARISONS | {"coalesce", "nullif", "greatest", "least"}
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})
_COMPUTED: Final = _ARITHMETIC | {"neg", "abs", "&", "|", "#", "<<", ">>", "bit_not"}
"""Functions that give plain numbers: the sum of an OID and a number is the name of no object."""
FREE_DECIMAL: Final = decimal(28, 10)
"""The type of a parameter of which only ``some exact number`` is known."""
_TO_TEXT: Final = frozenset(
    {"||", "concat", "concat_ws", "format", "quote_literal", "quote_nullable"}
)
"""Functions that turn any argument into text."""
_SYMBOLS: Final = frozenset(
    {"+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">="}
    | {"~", "~*", "&", "|", "#", "<<", ">>", "@>", "<@", "&&"}
)
_WORDS: Final = {
    "is_distinct_from": "IS DISTINCT FROM",
    "is_not_distinct_from": "IS NOT DISTINCT FROM",
    "similar_to": "SIMILAR TO",
    "bit_not": "~",
    "neg": "-",
}


def is_untyped(expression: Expression) -> bool:
    return expression.type.kind is Kind.NULL


class Converter:
    """Builds calls and casts with the catalog's types; errors carry the place of ``node``."""

    def __init__(self, context: Context) -> None:
        self.context = context

    # --- one expression to one type ---

    def implicit(
        self, expression: Expression, target: SqlType, node: ast.Node | None, what: str = ""
    ) -> Expression:
        """``expression`` as ``target``; TypeMismatch unless that goes without a CAST."""
        target = unrestricted(target)  # only a CAST and a column round
        if is_untyped(expression):
            return self.typed(expression, target, node)
        if same_representation(expression.type, target):
            return expression
        if not is_implicit(expression.type, target):
            raise self.mismatch(expression, target, node, what)
        return self.cast(expression, target, node)

    def assigned(
        self, expression: Expression, target: SqlType, node: ast.Node | None, what: str
    ) -> Expression:
        """``expression`` as it is stored in a column of ``target``: exactly of that type, with the
        digits of a second that the column keeps."""
        if is_untyped(expression):
            expression = self.typed(expression, target, node)
        if expression.type == target:
            return self.kept(expression, target, node)
        if not is_assignable(expression.type, target):
            raise self.context.error(
                TypeMismatch,
                f"{what} is of type {type_name(target)} but expression is of type "
                f"{type_name(expression.type)}",
                node,
                hint="Rewrite the expression or convert it with CAST.",
            )
        if target.is_text and target.length is not None:
            return self._fitting(expression, target, node)
        return self.kept(self.cast(expression, unrestricted(target), node), target, node)

    def kept(self, expression: Expression, target: SqlType, node: ast.Node | None) -> Expression:
        """The part of an expression of this type that a column, or a CAST, of ``target`` keeps: the
        digits of TIMESTAMP(3), the fields of INTERVAL DAY TO HOUR."""
        fit = fit_of(target)
        if fit is None:
            return expression
        if isinstance(expression, Literal):
            try:
                value = None if expression.value is None else fit(expression.value)
            except DataError as error:
                raise self.context.located(error, node) from None
            return Literal(target, value)
        inner = target.element or target
        if inner.span and inner.span[-1] != INTERVAL_FIELDS[-1]:
            place = Literal(INTEGER, INTERVAL_FIELDS.index(inner.span[-1]))
            expression = Call(expression.type, "interval_fields", (expression, place))
        if inner.fraction is not None and inner.fraction < FRACTION_MAX:
            digits = Literal(INTEGER, inner.fraction)
            expression = Call(expression.type, "round_fraction", (expression, digits))
        return expression

    def _fitting(
        self, expression: Expression, target: SqlType, node: ast.Node | None
    ) -> Expression:
        """Text for a column VARCHAR(n): a longer one is an error, and not cut as by CAST."""
        limit = target.length
        assert limit is not None
        source = expression.type
        if source.is_text and source.length is not None and source.length <= limit:
            return self.cast(expression, target, node)
        text = expression if source.is_text else self.cast(expression, VARCHAR, node)
        if isinstance(text, Literal):
            try:
                fitting = None if text.value is None else check_length(str(text.value), target)
            except DataError as error:
                raise self.context.located(error, node) from None
            return Literal(target, fitting)
        return Call(target, "check_length", (text, Literal(INTEGER, limit)))

    def mismatch(
        self, expression: Expression, target: SqlType, node: ast.Node | None, what: str
    ) -> TypeMismatch:
        return self.context.error(
            TypeMismatch,
            f"{what or 'expression'} is of type {type_name(expression.type)}, "
            f"but {type_name(target)} is needed",
            node,
            hint="Rewrite the expression or convert it with CAST.",
        )

    def explicit(
        self, expression: Expression, target: SqlType, node: ast.Node | None
    ) -> Expression:
        """``CAST(expression AS target)``."""
        if is_untyped(expression):
            expression = self.typed(expression, target, node)
        if expression.type == target:
            return self.kept(retyped(expression, target), target, node)
        if not is_explicit(expression.type, target):
            raise self.context.error(
                CannotCoerce,
                f"cannot cast type {type_name(expression.type)} to {type_name(target)}",
                node,
            )
        return self.kept(self.cast(expression, unrestricted(target), node), target, node)

    def cast(self, expression: Expression, target: SqlType, node: ast.Node | None) -> Expression:
        """A Cast, folded if the operand is a constant. OIDs of objects become their names, and
        names become OIDs."""
        if target.is_text and is_written(expression.type):
            expression = as_text(self.context, expression)
            if expression.type == target:
                return expression
        elif target.alias in OBJECTS and expression.type.is_text:
            return self._object(expression, target, node)
        if isinstance(expression, Literal):
            moment = special_moment(str(expression.value), target)
            if moment is not None and expression.type.is_text:
                return moment
            try:
                if expression.type.is_text and expression.value is not None and not target.is_text:
                    return Literal(target, self.read(str(expression.value), target, node))
                folded = folded_cast(expression, target, self.context.zone)
            except DataError as error:
                raise self.context.located(error, node) from None
            if folded is not None:
                return folded
        return Cast(target, expression)

    def _object(self, text: Expression, target: SqlType, node: ast.Node | None) -> Expression:
        if isinstance(text, Literal) and text.value is not None:
            return object_literal(self.context, str(text.value), target, node)
        return as_number(self.context, target.alias, text, required=True)

    def read(self, text: str, target: SqlType, node: ast.Node | None) -> PhysicalValue:
        """The value that a constant text is. Raises what ``parse_text`` raises, and NotSupported in
        a definition if sessions with other settings would read another value."""
        zone = self.context.zone
        value = parse_text(text, target, zone)
        if self.context.kept is None or zone is None or not zone.forms.reads(target):
            return value
        try:
            same = parse_text(text, target, zone.with_forms(PLAIN_FORMS)) == value
        except DataError:
            same = False
        if same:
            return value
        raise self.context.error(
            NotSupported,
            f'"{text}" in a definition would have another meaning in sessions with the usual '
            "DateStyle and IntervalStyle",
            node,
            hint="Write dates as 2003-12-31, and intervals with a sign for each part.",
        )

    def typed(self, expression: Expression, target: SqlType, node: ast.Node | None) -> Expression:
        """An untyped expression takes the type ``target``, text without a limit of length."""
        wanted = VARCHAR if target.is_text else target
        bare = unrestricted(wanted)
        if isinstance(expression, Literal):
            if expression.value is None:
                return Literal(unrestricted(target), None)
            if of_objects(target):
                return object_literal(self.context, str(expression.value), bare, node)
            moment = special_moment(str(expression.value), bare)
            if moment is not None:
                return moment
            text = str(expression.value)
            if target.alias in VECTORS and not text.lstrip().startswith("{"):
                text = f"{{{','.join(text.split())}}}"  # they are written with blanks
            try:
                value = self.read(text, wanted, node)
            except DataError as error:
                raise self.context.located(error, node) from None
            if target.kind is Kind.CHAR:
                value = str(value).rstrip(" ")  # blanks at the end mean nothing beside CHAR
            return Literal(wanted, value)
        assert isinstance(expression, Parameter)
        known = self.context.parameter_types
        found = known[expression.index]
        if target.alias in OBJECTS and (found is None or found.kind is Kind.NULL):
            name = self.typed(expression, VARCHAR, node)
            return as_number(self.context, target.alias, name, required=True)
        if found is None or found.kind is Kind.NULL:
            known[expression.index] = bare
            return Parameter(bare, expression.index)
        return self.implicit(
            Parameter(found, expression.index), target, node, f"parameter ${expression.index + 1}"
        )

    def settled(self, expression: Expression, node: ast.Node | None) -> Expression:
        """An expression that nothing will type any more: literals become VARCHAR."""
        if not is_untyped(expression):
            return expression
        if isinstance(expression, Parameter):
            found = self.context.parameter_types[expression.index]
            if found is None:
                raise self.context.undetermined(expression.index, node)
            if found.kind is Kind.NULL:
                found = self.context.parameter_types[expression.index] = VARCHAR
            return Parameter(found, expression.index)
        return self.typed(expression, VARCHAR, node)

    def condition(self, expression: Expression, node: ast.Node, clause: str) -> Expression:
        if not is_untyped(expression) and expression.type != BOOLEAN:
            raise self.context.error(
                TypeMismatch,
                f"argument of {clause} must be type boolean, not type {type_name(expression.type)}",
                node,
            )
        return self.implicit(expression, BOOLEAN, node)

    # --- several expressions to one type ---

    def unified(
        self,
        expressions: Sequence[Expression],
        nodes: Sequence[ast.Node | None],
        what: str,
    ) -> tuple[Expression, ...]:
        """All as their common type: CASE, IN, UNION."""
        adapted = self.adapt(expressions)
        self._require_some_type(adapted, nodes)
        self._widen_parameters(adapted)
        common = common_type(e.type for e in adapted)
        if common is None:
            before, other = _unmatched([e.type for e in adapted if not is_untyped(e)])
            raise self.context.error(
                TypeMismatch,
                f"{what} types {type_name(before)} and {type_name(other)} cannot be matched",
                _last_of(nodes),
                hint="Convert one of them with CAST.",
            )
        return tuple(self.implicit(e, common, node) for e, node in zip(adapted, nodes, strict=True))

    def _require_some_type(
        self, expressions: Sequence[Expression], nodes: Sequence[ast.Node | None]
    ) -> None:
        """Parameters need a neighbour with a type (a string literal will do)."""
        if not expressions or not all(
            is_untyped(e) and (isinstance(e, Parameter) or _is_null(e)) for e in expressions
        ):
            return
        for expression, node in zip(expressions, nodes, strict=True):
            if (
                isinstance(expression, Parameter)
                and self.context.parameter_types[expression.index] is None
            ):
                raise self.context.undetermined(expression.index, node)

    def adapt(self, expressions: Sequence[Expression]) -> list[Expression]:
        """Constants take the type of the other side where that is exact, so that columns stay bare:
        ``price < 24`` compares DECIMAL(15,2) with 24.00, a DATE column is
        compared with a DATE even if the constant is a midnight TIMESTAMP."""
        adapted = self._without_padding([self._refreshed(e) for e in expressions])
        others = {e.type for e in adapted if not isinstance(e, Literal) and not is_untyped(e)}
        if len(others) != 1:
            return adapted
        target = others.pop()
        for index, expression in enumerate(adapted):
            if isinstance(expression, Literal) and not is_untyped(expression):
                exact = exactly(expression, target, self.context.zone)
                if exact is not None:
                    adapted[index] = exact
        return adapted

    def _without_padding(self, expressions: list[Expression]) -> list[Expression]:
        """Beside CHAR, blanks at the end of a constant, of a parameter without a type or of a
        VARCHAR(n) mean nothing (text keeps them)."""
        if all(e.type.kind is not Kind.CHAR for e in expressions):
            return expressions
        found: list[Expression] = []
        for expression in expressions:
            bare = expression
            if isinstance(bare, Literal) and is_untyped(bare) and isinstance(bare.value, str):
                bare = Literal(bare.type, bare.value.rstrip(" "))
            elif isinstance(bare, Parameter) and is_untyped(bare):
                bare = _trimmed(self.typed(bare, VARCHAR, None))
            elif bare.type.kind is Kind.VARCHAR and bare.type.length is not None:
                bare = _trimmed(bare)
            found.append(bare)
        return found

    def _refreshed(self, expression: Expression) -> Expression:
        """A parameter may have been typed by another occurrence since it was bound."""
        if isinstance(expression, Parameter) and is_untyped(expression):
            return self.context.parameter(expression.index)
        return expression

    def _widen_parameters(self, expressions: list[Expression]) -> None:
        """``? * 1.5``: a parameter beside DECIMAL literals alone is not as narrow as they are."""
        typed = [e for e in expressions if not is_untyped(e)]
        if not typed or any(
            not isinstance(e, Literal) or e.type.kind is not Kind.DECIMAL for e in typed
        ):
            return
        for index, expression in enumerate(expressions):
            if isinstance(expression, Parameter) and is_untyped(expression):
                expressions[index] = self.typed(expression, FREE_DECIMAL, None)

    def _narrowed(self, expressions: list[Expression]) -> list[Expression] | None:
        """``day + ?``, ``json -> ?``: an INTEGER is asked for, and clients send their integers as
        BIGINT. None: there is no such parameter."""
        if len(expressions) != 2 or not any(e.type in (DATE, JSON) for e in expressions):
            return None
        found = [isinstance(e, Parameter) and e.type == BIGINT for e in expressions]
        if not any(found):
            return None
        return [
            self.explicit(e, INTEGER, None) if narrow else e
            for e, narrow in zip(expressions, found, strict=True)
        ]

    # --- calls ---

    def call(
        self,
        name: str,
        arguments: Sequence[Expression],
        nodes: Sequence[ast.Node | None],
        node: ast.Node | None,
        shown: str = "",
    ) -> Expression:
        """``name(arguments)`` with its conversions; UndefinedFunction if the types do not fit."""
        if name in _SAME_TYPE:
            prepared = self.adapt(arguments)
            self._require_some_type(prepared, nodes)
            self._widen_parameters(prepared)
        else:
            prepared = [self._refreshed(e) for e in arguments]
            if name in _ARITHMETIC:
                prepared = _arithmetic_literals(prepared)
                self._widen_parameters(prepared)
        signature = SCALAR_FUNCTIONS[name].resolve(tuple(e.type for e in prepared))
        if signature is None and (narrowed := self._narrowed(prepared)) is not None:
            signature = SCALAR_FUNCTIONS[name].resolve(tuple(e.type for e in narrowed))
            prepared = prepared if signature is None else narrowed
        if signature is None:
            raise self._no_such_call(name, prepared, nodes, node, shown)
        signature = _sharpened(name, signature, prepared)
        convert = self.explicit if name in _TO_TEXT else self.implicit
        converted = tuple(
            convert(e, t, n) for e, t, n in zip(prepared, signature.arguments, nodes, strict=True)
        )
        result = aliased(signature.result, "") if name in _COMPUTED else signature.result
        made = Call(result, name, converted)
        return folded_quotient(made) or made

    def _no_such_call(
        self,
        name: str,
        arguments: Sequence[Expression],
        nodes: Sequence[ast.Node | None],
        node: ast.Node | None,
        shown: str,
    ) -> Exception:
        for argument, place in zip(arguments, nodes, strict=True):
            if isinstance(argument, Parameter) and is_untyped(argument):
                return self.context.undetermined(argument.index, place)
        types = ["unknown" if is_untyped(e) else type_name(e.type) for e in arguments]
        place = node if node is not None else _last_of(nodes)
        if (name in _SYMBOLS or name in _WORDS) and types:
            symbol = _WORDS.get(name, name)
            call = f"{symbol} {types[0]}" if len(types) == 1 else f"{types[0]} {symbol} {types[-1]}"
            hint = "Convert one side with CAST." if len(types) == 2 else ""
            if types == ["unknown", "unknown"]:
                return self.context.error(
                    AmbiguousFunction, f"operator is not unique: {call}", place, hint
                )
            return self.context.error(
                UndefinedFunction, f"operator does not exist: {call}", place, hint
            )
        return self.context.error(
            UndefinedFunction,
            f"function {shown or name}({', '.join(types)}) does not exist",
            place,
            hint="No function of this name takes these argument types. You may need a CAST.",
        )


def _trimmed(expression: Expression) -> Expression:
    return Call(expression.type, "rtrim", (expression, Literal(VARCHAR, " ")))


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Literal) and expression.value is None


def _unmatched(types: Sequence[SqlType]) -> tuple[SqlType, SqlType]:
    """The common type of the first ones, and the first type that has none with it. Both may have
    one name: rows of different widths are all called record."""
    common = types[0]
    for other in types[1:]:
        found = common_type((common, other))
        if found is None:
            return common, other
        common = found
    raise InternalError("the types have a common type")


def _last_of(nodes: Sequence[ast.Node | None]) -> ast.Node | None:
    return next((n for n in reversed(nodes) if n is not None), None)


def _arithmetic_literals(arguments: list[Expression]) -> list[Expression]:
    """``1 - discount``: an integer literal beside a DECIMAL is the DECIMAL of its digits."""
    if len(arguments) != 2:
        return arguments
    for index in (0, 1):
        literal, other = arguments[index], arguments[1 - index]
        if (
            isinstance(literal, Literal)
            and literal.value is not None
            and literal.type.is_integer
            and other.type.kind is Kind.DECIMAL
        ):
            arguments[index] = minimal_decimal(literal)
    return arguments


def _sharpened(name: str, signature: Signature, arguments: Sequence[Expression]) -> Signature:
    """Result types that depend on a literal argument: ``round(x, 2)``."""
    if name == "to_number" and isinstance(template := arguments[1], Literal):
        return number_signature(signature, str(template.value))
    if name in ("round", "trunc") and len(arguments) == 2:
        digits = arguments[1]
        if isinstance(digits, Literal) and isinstance(digits.value, int):
            return with_digits(signature, digits.value)
    if name == "power" and isinstance(exponent := arguments[1], Literal):
        whole = exactly(exponent, INTEGER)
        if whole is not None and isinstance(whole.value, int):
            return with_exponent(signature, whole.value)
    return signature
