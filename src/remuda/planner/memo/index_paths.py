"""Which secondary indexes can serve a condition, and how: the access paths of a scan.

Of each column, the conjuncts that an index understands are comparisons with values that need no
row: equality, IN, IS NULL, ranges, LIKE with a fixed beginning. An index takes them component by
component, in the order of its columns: equalities (several of them for IN) as long as there are
any, then one range; the first component without a test ends the path. A HASH index needs an
equality for every component; a BITMAP index has one component, and understands <> as well. A
disjunction has a path when each of its parts has one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from remuda.datatypes.index import IndexDefinition, IndexKind
from remuda.datatypes.schema import MapSchema
from remuda.datatypes.sql import BIGINT, BOOLEAN, VARCHAR, Kind, SqlType
from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from remuda.plan.index_access import (
    IndexAccess,
    IndexEqual,
    IndexPrefix,
    IndexProbe,
    IndexRange,
    IndexTest,
    IndexUnion,
)
from remuda.plan.logical import Scan
from remuda.planner.memo.access import exactly, without_widening

CHOICES_MAX = 1_000
"""More combinations of IN lists than this are scanned."""
PARTS_MAX = 32
"""Longer disjunctions are not taken apart."""

_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INTEGER: 10, Kind.BIGINT: 19}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class Term:
    """A conjunct about one column: any of ``tests`` passes. ``negated``: none does, and the column
    is not NULL."""

    position: int
    tests: tuple[IndexTest, ...]
    source: Expression
    negated: bool = False

    @property
    def is_equality(self) -> bool:
        return not self.negated and all(isinstance(test, IndexEqual) for test in self.tests)


@dataclass(frozen=True, slots=True)
class IndexPath:
    """``served``: the conjuncts that the index looks at, together. ``fixed`` is the number of its
    first columns that have one value throughout; ``choices`` counts the points and ranges.
    ``single``: one row has the values at most, however many the map has."""

    access: IndexAccess
    served: Expression
    choices: int
    fixed: int = 0
    single: bool = False


def index_paths(
    scan: Scan, condition: Expression | None
) -> Iterator[tuple[IndexDefinition, IndexPath]]:
    """The paths of single indexes, at most one for each."""
    indexes = [index for index in scan.schema.indexes if index.ready]
    if not indexes or condition is None:
        return
    terms = _terms(scan, conjuncts(condition))
    for index in indexes:
        path = _path(scan.schema, index, terms)
        if path is not None:
            yield index, path


def union_path(scan: Scan, condition: Expression | None) -> IndexPath | None:
    """The path of a disjunction whose parts need different columns or several tests."""
    if not any(index.ready for index in scan.schema.indexes):
        return None
    best: IndexPath | None = None
    for part in conjuncts(condition):
        if not isinstance(part, Call) or part.function != "or":
            continue
        options = _disjuncts(part)
        if len(options) > PARTS_MAX:
            continue
        paths = [_first_path(scan, option) for option in options]
        known = [path for path in paths if path is not None]
        if len(known) < len(paths):
            continue
        choices = sum(path.choices for path in known)
        made = IndexPath(IndexUnion(tuple(path.access for path in known)), part, choices)
        if best is None or choices < best.choices:
            best = made
    return best


def _first_path(scan: Scan, condition: Expression) -> IndexPath | None:
    """The path that serves the most conjuncts."""
    paths = [path for _, path in index_paths(scan, condition)]
    return max(paths, key=lambda path: len(conjuncts(path.served)), default=None)


def _disjuncts(condition: Expression) -> list[Expression]:
    if isinstance(condition, Call) and condition.function == "or":
        return [part for argument in condition.arguments for part in _disjuncts(argument)]
    return [condition]


# --- terms ---------------------------------------------------------------------------------------


def _terms(scan: Scan, parts: Sequence[Expression]) -> list[Term]:
    by_column = {c.id: p for c, p in zip(scan.output, scan.positions, strict=True)}
    found = [term for part in parts if (term := _term(part, by_column, scan.schema)) is not None]
    return [*found, *_ranges(found)]


def _ranges(terms: Sequence[Term]) -> Iterator[Term]:
    """Lower and upper bounds of one column, put together."""
    open_terms = [t for t in terms if len(t.tests) == 1 and isinstance(t.tests[0], IndexRange)]
    for low in open_terms:
        for high in open_terms:
            first, last = low.tests[0], high.tests[0]
            assert isinstance(first, IndexRange)
            assert isinstance(last, IndexRange)
            fits = first.low is not None and first.high is None
            fits = fits and last.high is not None and last.low is None
            if fits and low.position == high.position:
                both = IndexRange(first.low, first.low_inclusive, last.high, last.high_inclusive)
                source = conjunction((low.source, high.source))
                assert source is not None
                yield Term(low.position, (both,), source)


def _term(part: Expression, by_column: Mapping[ColumnId, int], schema: MapSchema) -> Term | None:
    match part:
        case Call(function="or"):
            return _alternatives(part, by_column, schema)
        case Call(function="not", arguments=(InList() as listed,)):
            found = _term(listed, by_column, schema)
            return None if found is None else Term(found.position, found.tests, part, negated=True)
        case Call(function="not", arguments=(ColumnRef() as operand,)):
            return _boolean(operand, False, part, by_column)
        case ColumnRef():
            return _boolean(part, True, part, by_column)
        case InList(operand=operand, values=values):
            position = _column(operand, by_column)
            exact = None if position is None else _exact(values, schema, position)
            if position is None or exact is None:
                return None
            return Term(position, tuple(IndexEqual(value) for value in exact), part)
        case Call(function="is_null" | "is_not_null" as test, arguments=(operand,)):
            position = _column(operand, by_column)
            if position is None:
                return None
            return Term(position, (IndexEqual(None) if test == "is_null" else IndexRange(),), part)
        case Call(function="like" | "starts_with"):
            return _prefix(part, by_column)
        case Call(function=function, arguments=(left, right)) if function in _FLIPPED:
            return _comparison(part, function, (left, right), by_column, schema)
        case _:
            return None


def _comparison(
    part: Expression,
    function: str,
    sides: tuple[Expression, Expression],
    by_column: Mapping[ColumnId, int],
    schema: MapSchema,
) -> Term | None:
    left, right = sides
    if not columns_of(left):
        left, right, function = right, left, _FLIPPED[function]
    position = _column(left, by_column)
    exact = None if position is None else _exact((right,), schema, position)
    if position is None or exact is None:
        return None
    (value,) = exact
    match function:
        case "=":
            return Term(position, (IndexEqual(value),), part)
        case "<>":
            return Term(position, (IndexEqual(value),), part, negated=True)
        case _ if schema.columns[position].type.kind is Kind.ENUM:
            return None  # indexes have labels in the order of texts
        case "<" | "<=":
            return Term(position, (IndexRange(high=value, high_inclusive=function == "<="),), part)
        case _:
            return Term(position, (IndexRange(value, function == ">="),), part)


def _alternatives(
    part: Expression, by_column: Mapping[ColumnId, int], schema: MapSchema
) -> Term | None:
    """``a = 1 OR a > 5``: several tests of one column."""
    options = _disjuncts(part)
    terms = [_alternative(option, by_column, schema) for option in options]
    known = [term for term in terms if term is not None and not term.negated]
    if len(known) < len(terms) or len({term.position for term in known}) != 1:
        return None
    return Term(known[0].position, tuple(test for term in known for test in term.tests), part)


def _alternative(
    option: Expression, by_column: Mapping[ColumnId, int], schema: MapSchema
) -> Term | None:
    """One option: a term, or both bounds of a range."""
    parts = conjuncts(option)
    if len(parts) == 1:
        return _term(option, by_column, schema)
    terms = [term for part in parts if (term := _term(part, by_column, schema)) is not None]
    ranges = list(_ranges(terms))
    return ranges[0] if len(parts) == len(terms) == 2 and ranges else None


def _boolean(
    operand: ColumnRef, value: bool, part: Expression, by_column: Mapping[ColumnId, int]
) -> Term | None:
    position = by_column.get(operand.column)
    if position is None or operand.type.kind is not Kind.BOOLEAN:
        return None
    return Term(position, (IndexEqual(Literal(BOOLEAN, value)),), part)


def _prefix(part: Call, by_column: Mapping[ColumnId, int]) -> Term | None:
    operand, pattern = part.arguments[:2]
    position = by_column.get(operand.column) if isinstance(operand, ColumnRef) else None
    if position is None or not operand.type.is_text or columns_of(pattern):
        return None
    if part.function == "starts_with":
        return Term(position, (IndexPrefix(pattern),), part)
    if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
        return None
    escape = "\\"
    if len(part.arguments) > 2:
        given = part.arguments[2]
        if not isinstance(given, Literal) or not isinstance(given.value, str):
            return None
        escape = given.value
    prefix = fixed_prefix(pattern.value, escape)
    if not prefix:
        return None
    return Term(position, (IndexPrefix(Literal(VARCHAR, prefix)),), part)


def fixed_prefix(pattern: str, escape: str) -> str:
    """The common beginning of every text that is LIKE ``pattern``."""
    found: list[str] = []
    rest = iter(pattern)
    for character in rest:
        if character == escape and escape:
            following = next(rest, None)
            if following is None:
                break
            found.append(following)
        elif character in "%_":
            break
        else:
            found.append(character)
    return "".join(found)


def _column(operand: Expression, by_column: Mapping[ColumnId, int]) -> int | None:
    operand = without_widening(operand)
    while isinstance(operand, Cast) and _keeps_numbers(operand):
        operand = operand.operand
    return by_column.get(operand.column) if isinstance(operand, ColumnRef) else None


def _keeps_numbers(cast: Cast) -> bool:
    """Integers and DECIMALs as DECIMALs with room for all of them."""
    source, target = cast.operand.type, cast.type
    if target.kind is not Kind.DECIMAL:
        return False
    if source.is_integer:
        digits, scale = _DIGITS[source.kind], 0
    elif source.kind is Kind.DECIMAL:
        digits, scale = (source.precision or 0) - (source.scale or 0), source.scale or 0
    else:
        return False
    whole = (target.precision or 0) - (target.scale or 0)
    return digits <= whole and scale <= (target.scale or 0)


def _rescaled(value: Expression, type_: SqlType) -> Expression | None:
    """An exact number as a literal of an exact numeric type; None when it is none of it."""
    while isinstance(value, Cast) and _keeps_numbers(value):
        value = value.operand
    exact = (type_.is_integer or type_.kind is Kind.DECIMAL) and (
        value.type.is_integer or value.type.kind is Kind.DECIMAL
    )
    if not exact or not isinstance(value, Literal) or not isinstance(value.value, int):
        return None
    number, shift = value.value, (type_.scale or 0) - (value.type.scale or 0)
    if shift < 0:
        number, rest = divmod(number, 10**-shift)
        if rest:
            return None
    else:
        number *= 10**shift
    if type_.is_integer:
        return exactly(Literal(BIGINT, number), type_)
    return Literal(type_, number) if abs(number) < 10 ** (type_.precision or 0) else None


def _exact(
    values: Sequence[Expression], schema: MapSchema, position: int
) -> list[Expression] | None:
    """The values as expressions of the column's type."""
    if any(columns_of(value) for value in values):
        return None
    column_type = schema.columns[position].type
    exact = [
        e
        for value in values
        if (e := exactly(value, column_type) or _rescaled(value, column_type)) is not None
    ]
    return exact if len(exact) == len(values) else None


# --- from terms to paths -------------------------------------------------------------------------


def _path(schema: MapSchema, index: IndexDefinition, terms: Sequence[Term]) -> IndexPath | None:
    choices: list[tuple[IndexTest, ...]] = [()]
    served: list[Expression] = []
    fixed = 0
    for name in index.names:
        term = _best_term(index, schema.position[name], terms)
        if term is None:
            break
        if term.negated:
            return _negated(index, term)
        if len(choices) * len(term.tests) > CHOICES_MAX:
            break
        choices = [(*tests, test) for tests in choices for test in term.tests]
        served.append(term.source)
        if not term.is_equality:
            break
        fixed += len(term.tests) == 1 and fixed == len(served) - 1
    if not served or (index.kind is IndexKind.HASH and len(served) < len(index.columns)):
        return None
    probe = IndexProbe(index.name, index.index_id, index.names, tuple(choices))
    together = conjunction(tuple(part for source in served for part in conjuncts(source)))
    assert together is not None
    single = index.unique and fixed == len(index.columns) and IndexEqual(None) not in choices[0]
    return IndexPath(probe, together, len(choices), fixed, single)


def _negated(index: IndexDefinition, term: Term) -> IndexPath:
    choices = tuple((test,) for test in term.tests)
    probe = IndexProbe(index.name, index.index_id, index.names, choices, negated=True)
    return IndexPath(probe, term.source, len(choices))


def _best_term(index: IndexDefinition, position: int, terms: Sequence[Term]) -> Term | None:
    """Equality before IN before a range with two bounds before one with one."""

    def rank(term: Term) -> tuple[int, int]:
        if term.is_equality:
            return 0, len(term.tests)
        first = term.tests[0]
        both = isinstance(first, IndexPrefix) or (
            isinstance(first, IndexRange) and first.low is not None and first.high is not None
        )
        open_range = isinstance(first, IndexRange) and first.low is None and first.high is None
        return (5 if term.negated else 4 if open_range else 1 if both else 2), len(term.tests)

    fitting = [
        term
        for term in terms
        if term.position == position
        and (index.kind is not IndexKind.HASH or term.is_equality)
        and (index.kind is IndexKind.BITMAP or not term.negated)
    ]
    return min(fitting, key=rank, default=None)
