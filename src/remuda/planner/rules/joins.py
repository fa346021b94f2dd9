"""Rules on joins: outer to inner, predicates across equalities, computed keys."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.datatypes.sql import BOOLEAN
from remuda.plan.expression import (
    Call,
    Cast,
    ColumnId,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    columns_of,
    conjunction,
    conjuncts,
    walk,
)
from remuda.plan.functions.catalog import SCALAR_FUNCTIONS, NullRule
from remuda.plan.logical import (
    Aggregate,
    Expand,
    Filter,
    Join,
    JoinKind,
    Logical,
    MarkJoin,
    OutputColumn,
    Project,
    Scan,
    Sort,
    Supplied,
    Unfold,
    Union,
    Values,
    Window,
)
from remuda.planner.algebra import (
    column_equality,
    columns,
    disjuncts,
    filtered,
    make_filter,
    make_join,
    project_map,
    reference,
    with_inputs,
)
from remuda.planner.rules.rule import Rewriting, Rule
from remuda.planner.sharing import SharedRead

# --- outer joins ---------------------------------------------------------------------------


def _right_to_left(node: Logical, _: Rewriting) -> Logical | None:
    match node:
        case Join(kind=JoinKind.RIGHT, left=left, right=right, condition=condition):
            return make_join(JoinKind.LEFT, right, left, condition)
        case _:
            return None


RIGHT_TO_LEFT = Rule("right join to left join", (Join,), _right_to_left)


def _simplify_outer_join(node: Logical, _: Rewriting) -> Logical | None:
    """A predicate that cannot be true for NULLs undoes the padding of an outer join below it."""
    match node:
        case Filter(input=child, condition=condition):
            changed = _reject(child, _rejected(condition))
            return None if changed is child else make_filter(changed, condition)
        case Join(kind=JoinKind.INNER | JoinKind.SEMI, condition=Expression() as condition):
            rejected = _rejected(condition)
            left, right = _reject(node.left, rejected), _reject(node.right, rejected)
        case Join(kind=JoinKind.LEFT, condition=Expression() as condition):
            left, right = node.left, _reject(node.right, _rejected(condition))
        case _:
            return None
    if left is node.left and right is node.right:
        return None
    return make_join(node.kind, left, right, node.condition)


def _reject(node: Logical, rejected: frozenset[ColumnId]) -> Logical:
    """``node`` knowing that rows with NULL in any of the columns ``rejected`` are not wanted."""
    if not rejected:
        return node
    match node:
        case Join(kind=kind, left=left, right=right, condition=condition):
            new_kind = _kind_without_nulls(
                kind, bool(rejected & columns(left)), bool(rejected & columns(right))
            )
            if new_kind in (JoinKind.INNER, JoinKind.LEFT, JoinKind.SEMI, JoinKind.ANTI):
                left = _reject(left, rejected)
            if new_kind in (JoinKind.INNER, JoinKind.RIGHT):
                right = _reject(right, rejected)
            if new_kind is kind and left is node.left and right is node.right:
                return node
            return make_join(new_kind, left, right, condition)
        case Filter(input=child):
            below = _reject(child, rejected)
        case Project(input=child):
            refs = project_map(node)
            below = _reject(
                child,
                frozenset(
                    e.column for c, e in refs.items() if c in rejected and isinstance(e, ColumnRef)
                ),
            )
        case _:
            return node
    return node if below is child else with_inputs(node, (below,))


def _kind_without_nulls(kind: JoinKind, left: bool, right: bool) -> JoinKind:
    """``left``: rows whose left columns are NULL are unwanted, so right rows need no padding."""
    match kind:
        case JoinKind.LEFT if right:
            return JoinKind.INNER
        case JoinKind.RIGHT if left:
            return JoinKind.INNER
        case JoinKind.FULL if left and right:
            return JoinKind.INNER
        case JoinKind.FULL if left:
            return JoinKind.LEFT
        case JoinKind.FULL if right:
            return JoinKind.RIGHT
        case _:
            return kind


def _rejected(condition: Expression) -> frozenset[ColumnId]:
    """Columns whose being NULL alone makes ``condition`` not true."""
    result: frozenset[ColumnId] = frozenset()
    for part in conjuncts(condition):
        match part:
            case Call(function="or"):
                result |= frozenset.intersection(*(_rejected(arm) for arm in disjuncts(part)))
            case Call(function="is_not_null" | "is_true" | "is_false", arguments=(operand,)):
                result |= _strict_columns(operand)
            case Call(function="not", arguments=(operand,)):
                result |= _strict_columns(operand)
            case _:
                result |= _strict_columns(part)
    return result


def _strict_columns(expression: Expression) -> frozenset[ColumnId]:
    """Columns whose being NULL makes the value of ``expression`` NULL."""
    match expression:
        case ColumnRef(column=column):
            return frozenset((column,))
        case Cast(operand=operand) | InList(operand=operand):
            return _strict_columns(operand)
        case Call(function=function, arguments=arguments):
            known = SCALAR_FUNCTIONS.get(function)
            if known is not None and known.nulls is NullRule.STRICT:
                return frozenset().union(*(_strict_columns(a) for a in arguments))
    return frozenset()


SIMPLIFY_OUTER_JOIN = Rule("simplify outer join", (Filter, Join), _simplify_outer_join)

# --- predicates across equalities ----------------------------------------------------------

_COMPARISONS = ("=", "<", "<=", ">", ">=")


def _infer_predicates(node: Logical, _: Rewriting) -> Logical | None:
    """``a = b`` and ``a = 5`` give ``b = 5`` for the other side of a join."""
    if not isinstance(node, Join) or node.kind is JoinKind.FULL:
        return None
    pairs = [pair for c in conjuncts(node.condition) if (pair := column_equality(c))]
    if not pairs:
        return None
    left, right = node.left, node.right
    if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.LEFT, JoinKind.ANTI):
        right = _with_inferred(left, right, pairs)
    if node.kind in (JoinKind.INNER, JoinKind.SEMI, JoinKind.RIGHT):
        left = _with_inferred(right, left, pairs)
    if left is node.left and right is node.right:
        return None
    return make_join(node.kind, left, right, node.condition)


def _with_inferred(
    source: Logical, target: Logical, pairs: list[tuple[ColumnRef, ColumnRef]]
) -> Logical:
    """``target`` filtered by what is known of the columns of ``source`` that equal its own."""
    source_columns, target_columns = columns(source), columns(target)
    known = _facts(source)
    present = _facts(target)
    inferred: list[Expression] = []
    for pair in pairs:
        for of_source, of_target in (pair, pair[::-1]):
            if (
                of_source.column in source_columns
                and of_target.column in target_columns
                and _is_stored(target, of_target.column)
            ):
                for fact in known:
                    new = _about(fact, of_source, of_target)
                    if new is not None and new not in present and new not in inferred:
                        inferred.append(new)
    return filtered(target, inferred)


def _about(fact: Expression, of: ColumnRef, to: ColumnRef) -> Expression | None:
    """``fact`` said of column ``to`` instead of ``of``; None if it is not about ``of`` alone."""
    match fact:
        case Call(function=function, arguments=(ColumnRef(column=column), value)) if (
            column == of.column and function in _COMPARISONS
        ):
            return Call(BOOLEAN, function, (to, value))
        case InList(operand=ColumnRef(column=column), values=values) if column == of.column:
            return InList(BOOLEAN, to, values)
        case _:
            return None


def _facts(node: Logical) -> list[Expression]:
    """Comparisons of one column with constants that hold for every row of ``node``."""
    match node:
        case Filter(input=child, condition=condition):
            own = [c for part in conjuncts(condition) if (c := _constant_comparison(part))]
            return own + _facts(child)
        case Join(kind=JoinKind.INNER, left=left, right=right):
            return _facts(left) + _facts(right)
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI, left=left):
            return _facts(left)
        case MarkJoin(left=left):
            return _facts(left)
        case Project(input=child):
            renamed = [
                (expression, ColumnRef(c.type, c.id, c.name))
                for c, expression in zip(node.output, node.expressions, strict=True)
                if isinstance(expression, ColumnRef)
            ]
            facts = _facts(child)
            return [n for of, to in renamed for f in facts if (n := _about(f, of, to))]
        case Aggregate(input=child, group=group, always=()):
            return [f for f in _facts(child) if columns_of(f) <= set(group)] if group else []
        case Sort(input=child) | Window(input=child) | Expand(input=child) | Unfold(input=child):
            return _facts(child)
        case Union(inputs=inputs):
            shared = [_union_facts(node, child) for child in inputs]
            return [f for f in shared[0] if all(f in other for other in shared[1:])]
        case _:
            return []


def _union_facts(union: Union, child: Logical) -> list[Expression]:
    """The facts of one input, said of the columns of the union."""
    facts = _facts(child)
    pairs = [
        (reference(below), reference(column))
        for column, below in zip(union.output, child.output, strict=True)
    ]
    return [n for below, column in pairs for f in facts if (n := _about(f, below, column))]


def _is_stored(node: Logical, column: ColumnId) -> bool:
    """Whether ``column`` is a column of a map, and not computed on the way: then a filter on it is
    still a fact (see ``_facts``) after it was pushed down, and is not inferred again.

    The rules that push filters down, this function and ``_facts`` must agree on each operator.
    Where they do not, the rules infer and push the same filter for ever."""
    match node:
        case Project():
            source = project_map(node)[column]
            return isinstance(source, ColumnRef) and _is_stored(node.input, source.column)
        case Aggregate(input=child, group=group):
            return column in group and _is_stored(child, column)
        case Union(inputs=inputs):
            index = [c.id for c in node.output].index(column)
            return all(_is_stored(child, child.output[index].id) for child in inputs)
        case Window(input=child, partition=partition):
            # A filter on any other column stays above the window, and is a fact there.
            return column not in partition or _is_stored(child, column)
        case Expand(input=child):
            # A filter on a copy stays above, and is a fact there.
            return column not in columns(child) or _is_stored(child, column)
        case Filter(input=child) | Sort(input=child):
            return _is_stored(child, column)
        case Join(left=left, right=right):
            return _is_stored(left if column in columns(left) else right, column)
        case MarkJoin(left=left):
            return column in columns(left) and _is_stored(left, column)
        case Scan() | Values() | Supplied() | SharedRead() | Unfold():
            return True  # a filter stays above
        case _:
            return False


_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _constant_comparison(part: Expression) -> Expression | None:
    """``column op constant``, with the column on the left."""
    match part:
        case Call(function=function, arguments=(ColumnRef(), value)) if (
            function in _COMPARISONS and _constant(value)
        ):
            return part
        case Call(function=function, arguments=(value, ColumnRef() as column)) if (
            function in _COMPARISONS and _constant(value)
        ):
            return Call(BOOLEAN, _FLIPPED[function], (column, value))
        case InList(operand=ColumnRef(), values=values) if all(_constant(v) for v in values):
            return part
        case _:
            return None


def _constant(expression: Expression) -> bool:
    return all(isinstance(p, Literal | Parameter | Cast) for p in walk(expression))


INFER_PREDICATES = Rule("infer predicates", (Join,), _infer_predicates)

# --- join keys -----------------------------------------------------------------------------


def _compute_join_keys(node: Logical, rewriting: Rewriting) -> Logical | None:
    """``f(a) = g(b)`` becomes an equality of columns, computed by a Project on each side."""
    if not isinstance(node, Join):
        return None
    found = computed_keys(node.left, node.right, conjuncts(node.condition), rewriting)
    if found is None:
        return None
    return make_join(node.kind, found[0], found[1], conjunction(found[2]))


def computed_keys(
    left_input: Logical,
    right_input: Logical,
    conditions: Iterable[Expression],
    rewriting: Rewriting,
) -> tuple[Logical, Logical, tuple[Expression, ...]] | None:
    """Both sides with columns for keys that are expressions, and the conditions over those; None
    when there are no such keys."""
    left, right = columns(left_input), columns(right_input)
    new: tuple[list[tuple[OutputColumn, Expression]], list[tuple[OutputColumn, Expression]]]
    new = ([], [])
    parts: list[Expression] = []
    for part in conditions:
        sides = _key_sides(part, left, right)
        if sides is None:
            parts.append(part)
            continue
        keys: list[Expression] = []
        for side, expression in zip(new, sides, strict=True):
            if isinstance(expression, ColumnRef):
                keys.append(expression)
                continue
            column = rewriting.fresh("key", expression.type)
            side.append((column, expression))
            keys.append(reference(column))
        parts.append(Call(BOOLEAN, "=", tuple(keys)))
    if not any(new):
        return None
    return _with_computed(left_input, new[0]), _with_computed(right_input, new[1]), tuple(parts)


def _key_sides(
    part: Expression, left: frozenset[ColumnId], right: frozenset[ColumnId]
) -> tuple[Expression, Expression] | None:
    """(left key, right key) of an equality between the sides that is not yet one of columns."""
    match part:
        case Call(function="=", arguments=(first, second)) if column_equality(part) is None:
            of_first, of_second = columns_of(first), columns_of(second)
            if of_first and of_second:
                if of_first <= left and of_second <= right:
                    return first, second
                if of_first <= right and of_second <= left:
                    return second, first
    return None


def _with_computed(node: Logical, computed: list[tuple[OutputColumn, Expression]]) -> Logical:
    """``node`` with more columns, computed in the one relation that has all they need."""
    for column, expression in computed:
        node = _add_column(node, column, expression)
    return node


def _add_column(node: Logical, column: OutputColumn, expression: Expression) -> Logical:
    needs = columns_of(expression)
    match node:
        case Join(kind=JoinKind.INNER, left=left, right=right):
            if needs <= columns(left):
                return with_inputs(node, (_add_column(left, column, expression), right))
            if needs <= columns(right):
                return with_inputs(node, (left, _add_column(right, column, expression)))
        case Join(kind=JoinKind.LEFT | JoinKind.SEMI | JoinKind.ANTI, left=left, right=right) if (
            needs <= columns(left)
        ):
            return with_inputs(node, (_add_column(left, column, expression), right))
    own = tuple(reference(c) for c in node.output)
    return Project((*node.output, column), node, (*own, expression))


COMPUTE_JOIN_KEYS = Rule("compute join keys", (Join,), _compute_join_keys)
