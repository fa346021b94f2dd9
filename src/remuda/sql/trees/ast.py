"""Syntax trees of queries, of changes of data, and of expressions.

A node is its class and its parts: nodes, lists of nodes, texts and flags. A ``TypedNode`` declares
its parts as fields. Other nodes have them by name in ``args``: ``this`` and ``expression`` are the
operands of most kinds, ``expressions`` is a list. A part that a statement does not have is missing,
or None, or empty.

Trees have no links upwards, so that one node may stand in several of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, Self, TypeVar, dataclass_transform

Found = TypeVar("Found", bound="Node")


class _Slotted(type):
    """Gives the kinds of nodes no dictionary: their parts are in ``args``."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Slotted:
        return super().__new__(mcs, name, bases, {"__slots__": (), **namespace})


class Node(metaclass=_Slotted):
    """``start`` and ``end`` are the offsets of its first and last character, -1 for a node that
    has no place of its own: its parts have."""

    __slots__ = ("args", "end", "start")

    def __init__(self, start: int = -1, end: int = -1, /, **args: Any) -> None:
        self.args = args
        self.start = start
        self.end = end

    @property
    def this(self) -> Any:
        return self.args.get("this")

    @property
    def expression(self) -> Any:
        return self.args.get("expression")

    @property
    def expressions(self) -> list[Any]:
        return self.args.get("expressions") or []

    @property
    def name(self) -> str:
        """The text of a name or of a literal, or of the one that stands in it."""
        this = self.this
        return this.name if isinstance(this, Node) else str(this or "")

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}={value!r}" for name, value in self.args.items() if value)
        return f"{type(self).__name__}({parts})"

    # --- reading ---

    def children(self) -> Iterator[Node]:
        for value in self.args.values():
            if isinstance(value, Node):
                yield value
            elif type(value) is list:
                for part in value:
                    if isinstance(part, Node):
                        yield part

    def walk(self, prune: Callable[[Node], bool] | None = None) -> Iterator[Node]:
        """The node and all below it, level by level; nothing below one to ``prune``."""
        level: list[Node] = [self]
        while level:
            below: list[Node] = []
            for node in level:
                yield node
                if prune is None or not prune(node):
                    below += node.children()
            level = below

    def find_all(self, *kinds: type[Found]) -> Iterator[Found]:
        for node in self.walk():
            if isinstance(node, kinds):
                yield node

    def find(self, *kinds: type[Found]) -> Found | None:
        return next(self.find_all(*kinds), None)

    def unnest(self) -> Node:
        """Without the parentheses around it; of a Subquery, the query in it."""
        node: Node = self
        while type(node) is type(self) and isinstance(node, Paren | Subquery):
            node = node.args["this"]
        return node

    @property
    def is_star(self) -> bool:
        """Whether it is ``*`` or ``relation.*``."""
        return isinstance(self, Star) or (isinstance(self, Column) and isinstance(self.this, Star))

    @property
    def is_string(self) -> bool:
        return bool(self.args.get("is_string"))

    def identity(self) -> tuple[object, ...]:
        """Equal for trees of the same text, wherever they stand: names by what they mean. It is
        flat, because chains of operators are as deep as they are long."""
        found: list[object] = []
        pending: list[object] = [self]
        while pending:
            part = pending.pop()
            if isinstance(part, Node):
                found.append(type(part).__name__)
                own = part.meaning()
                found.append(len(own))
                for name in sorted(own):
                    pending += [own[name], name]
            elif isinstance(part, list):
                found.append(len(part))
                pending += reversed(part)
            else:
                found.append(part)
        return tuple(found)

    def meaning(self) -> dict[str, Any]:
        """The parts that tell it from other nodes of its kind."""
        return {name: value for name, value in self.args.items() if value}

    # --- making others ---

    def with_args(self, **args: Any) -> Self:
        """The same with other parts."""
        made = type(self)(self.start, self.end)
        made.args = {**self.args, **args}
        return made

    def rewritten(self, change: Callable[[Node], Node | None]) -> Node:
        """The tree with what ``change`` gives in the place of a node; None: the node stays, and
        its parts are looked at."""
        other = change(self)
        if other is not None:
            return other
        args: dict[str, Any] = {}
        same = True
        for name, value in self.args.items():
            new = value
            if isinstance(value, Node):
                new = value.rewritten(change)
                same = same and new is value
            elif type(value) is list:
                new = [part.rewritten(change) if isinstance(part, Node) else part for part in value]
                same = same and all(a is b for a, b in zip(new, value, strict=True))
            args[name] = new
        return self if same else self.with_args(**args)


@dataclass_transform(kw_only_default=True, eq_default=False)
class TypedNode(Node):
    """A node whose parts are fields: ``Between(operand=a, low=b, high=c)``. Code that walks over
    nodes of any kind finds the same parts by name in ``args``."""

    __slots__ = ("__dict__",)

    def __init__(self, **parts: Any) -> None:
        self.start = self.end = -1
        self.__dict__.update(parts)

    @property
    def args(self) -> dict[str, Any]:  # type: ignore[override]  # others keep it in a slot
        return self.__dict__

    def with_args(self, **args: Any) -> Self:
        made = type(self)(**{**self.__dict__, **args})
        made.start, made.end = self.start, self.end
        return made

    @classmethod
    def part_names(cls) -> tuple[str, ...]:
        return tuple(cls.__annotations__)


# --- names and values -------------------------------------------------------------------------


class Identifier(Node):
    """``this``: the name as it is written; ``quoted``: it does not fold."""

    @property
    def name(self) -> str:
        return str(self.args["this"])

    def meaning(self) -> dict[str, Any]:
        text = str(self.args["this"])
        return {"this": text if self.args.get("quoted") else text.lower()}


class Literal(Node):
    """``this``: its text; ``is_string``."""

    @classmethod
    def number(cls, value: int) -> Literal:
        return cls(this=str(value), is_string=False)


class Column(Node):
    """``this``: an Identifier or a Star; ``table``, ``db``, ``catalog``: its qualifiers."""


class Parameter(Node):
    """``this``: a Literal, its number from 1."""


class Var(Node):
    """A keyword that stands for a value: DEFAULT, ALL; or the field of EXTRACT."""


class Star(Node): ...


class Null(Node): ...


class Boolean(Node): ...


class HexString(Node):
    """``X'0aff'``; ``this``: the digits."""


class BitString(Node):
    """``B'101'``; ``this``: the digits."""


class IntervalLiteral(TypedNode):
    """``INTERVAL[(digits)] 'text' [fields[(digits)]]``; ``fields``: as in ``day to second``."""

    text: Node
    fields: str
    digits: str


class Interval(TypedNode):
    """``INTERVAL amount unit``, which PostgreSQL does not have."""

    amount: Node
    unit: str


class TypeName(Node):
    """``this``: the name in lower case, words separated by one blank, or as it is quoted;
    ``expressions``: Literals in parentheses; ``array``: it is an array; ``fields``: of an interval;
    ``place``: (start, end), apart from ``start`` so that errors of a cast show its operand;
    ``schema``: that which is written in front, and ``name_place`` the place of the name with it."""

    def meaning(self) -> dict[str, Any]:
        places = ("place", "name_place")
        return {name: value for name, value in self.args.items() if value and name not in places}


# --- expressions ------------------------------------------------------------------------------


class Binary(Node):
    """``this`` operator ``expression``"""


class And(Binary): ...


class Or(Binary): ...


class Not(Node): ...


class Paren(Node): ...


class Is(Binary):
    """``this IS [NOT] expression``; ``negate``."""


class EQ(Binary): ...


class NEQ(Binary): ...


class LT(Binary): ...


class LTE(Binary): ...


class GT(Binary): ...


class GTE(Binary): ...


class NullSafeEQ(Binary):
    """IS NOT DISTINCT FROM"""


class NullSafeNEQ(Binary):
    """IS DISTINCT FROM"""


class Between(TypedNode):
    operand: Node
    low: Node
    high: Node
    symmetric: bool = False


class In(TypedNode):
    """``operand IN (values)`` or ``operand IN query``"""

    operand: Node
    values: list[Node] | None = None
    query: Node | None = None


class Like(Binary):
    """``negate``"""


class ILike(Binary): ...


class SimilarTo(Binary): ...


class Escape(Binary):
    """``this``: a Like, ILike or SimilarTo."""


class RegexpLike(Binary): ...


class RegexpILike(Binary): ...


class Add(Binary): ...


class Sub(Binary): ...


class Mul(Binary): ...


class Div(Binary): ...


class Mod(Binary): ...


class Pow(Binary): ...


class Neg(Node): ...


class DPipe(Binary):
    """``||``"""


class BitwiseAnd(Binary): ...


class BitwiseOr(Binary): ...


class BitwiseXor(Binary): ...


class BitwiseLeftShift(Binary): ...


class BitwiseRightShift(Binary): ...


class BitwiseNot(Node): ...


class JSONExtract(Binary):
    """``->``"""


class JSONExtractScalar(Binary):
    """``->>``"""


class JSONBExtract(Binary):
    """``#>``"""


class JSONBExtractScalar(Binary):
    """``#>>``"""


class JSONBDeleteAtPath(Binary):
    """``#-``"""


class JSONBContainsTopKey(Binary):
    """``?``"""


class JSONBContainsAnyTopKeys(Binary):
    """``?|``"""


class JSONBContainsAllTopKeys(Binary):
    """``?&``"""


class JSONBPathExists(Binary):
    """``@?``"""


class JSONBPathMatches(Binary):
    """``@@``"""


class ArrayContainsAll(Binary):
    """``@>``"""


class ArrayContainedBy(Binary):
    """``<@``"""


class ArrayOverlaps(Binary):
    """``&&``"""


class StartsWith(Binary):
    """``^@``"""


class Overlaps(Binary):
    """OVERLAPS; both sides are Tuples."""


class AtTimeZone(TypedNode):
    """``moment AT TIME ZONE zone``"""

    moment: Node
    zone: Node


class Collate(Binary): ...


class Cast(TypedNode):
    """``CAST(operand AS to)`` or ``operand::to``"""

    operand: Node
    to: TypeName


class Case(TypedNode):
    """``CASE [operand] branches [ELSE otherwise] END``"""

    operand: Node | None = None
    branches: list[Branch]
    otherwise: Node | None = None


class Branch(TypedNode):
    """``WHEN condition THEN result``; in a CASE with an operand ``condition`` is compared."""

    condition: Node
    result: Node


class Tuple(Node):
    """``(a, b)``"""


class Array(Node):
    """``ARRAY[...]``"""


class ArrayQuery(Node):
    """``ARRAY(query)``"""


class Bracket(TypedNode):
    """``operand[subscript]``"""

    operand: Node
    subscript: Node


class Slice(TypedNode):
    """``[lower:upper]``, the subscript of a Bracket"""

    lower: Node | None = None
    upper: Node | None = None


class Dot(Binary):
    """``(this).expression``, an Identifier or a Star; or a call behind the name of a schema."""


class AnyOf(Node):
    """``ANY (this)``, a query in parentheses or an array"""


class AllOf(Node): ...


class Exists(Node): ...


class Tag(Node):
    """One of the values of ``this``, which no text has: (``prefix``: its place, ``postfix``: how
    many there are)."""


# --- calls ------------------------------------------------------------------------------------


class Call(Node):
    """``this(expressions)``; ``this`` is a text, or an Identifier if it is quoted. An Order or a
    Distinct may be among the arguments."""


class Kwarg(TypedNode):
    """``keyword => value``"""

    keyword: Node
    value: Node


class Variadic(Node): ...


class Extract(TypedNode):
    """``EXTRACT(field FROM source)``"""

    field: Var
    source: Node


class StrPosition(TypedNode):
    """``POSITION(part IN text)``"""

    part: Node
    text: Node


class Substring(TypedNode):
    """``SUBSTRING(text FROM first FOR length)``"""

    text: Node
    first: Node | None = None
    length: Node | None = None


class Trim(TypedNode):
    """``TRIM(side characters FROM text)``; ``side``: LEADING, TRAILING, BOTH, or empty."""

    text: Node
    side: str = ""
    characters: Node | None = None


class Overlay(TypedNode):
    """``OVERLAY(text PLACING replacement FROM first FOR length)``"""

    text: Node
    replacement: Node | None = None
    first: Node | None = None
    length: Node | None = None


class Date(Node):
    """``date(this)``, a cast written as a call"""


class CurrentDate(Node): ...


class CurrentTimestamp(Node):
    """``this``: how many digits of the seconds; so those below."""


class CurrentTime(Node): ...


class Localtimestamp(Node): ...


class Localtime(Node): ...


class CurrentUser(Node): ...


class SessionUser(Node): ...


class CurrentCatalog(Node): ...


class CurrentSchema(Node): ...


class Filter(Node):
    """``this FILTER (expression)``, a Where"""


class WithinGroup(Node):
    """``this WITHIN GROUP (expression)``, an Order"""


class IgnoreNulls(Node): ...


class RespectNulls(Node): ...


class Window(Node):
    """``this OVER (...)``, or ``this AS (...)`` in WINDOW: ``alias``, ``partition_by``, ``order``,
    ``spec``."""


class WindowSpec(TypedNode):
    """``ROWS BETWEEN lower lower_side AND upper upper_side EXCLUDE exclude``; a side is PRECEDING,
    FOLLOWING, or empty behind CURRENT ROW."""

    kind: str
    lower: Node | str
    lower_side: str
    upper: Node | str | None = None
    upper_side: str = ""
    exclude: str = ""


# --- queries ----------------------------------------------------------------------------------


class Query(Node):
    """``with_``, ``order``, ``limit``, ``offset``"""


class Select(Query):
    """``distinct``, ``expressions``, ``into``, ``from_``, ``joins``, ``where``, ``group``,
    ``having``, ``windows``, ``locks``"""


class Values(Query):
    """``expressions``: Tuples"""


class Subquery(Query):
    """A query in parentheses, in FROM with an ``alias``; there also a relation with ``joins``."""


class SetOperation(Query):
    """``this``, ``expression``, ``distinct``"""


class Union(SetOperation): ...


class Intersect(SetOperation): ...


class Except(SetOperation): ...


class With(Node):
    """``expressions``: CTEs, ``recursive``"""


class CTE(Node):
    """``this``: a query or a change, ``alias``, ``materialized``, ``search``: a Search behind it"""


class Search(TypedNode):
    """``SEARCH kind FIRST BY columns SET set_``, or ``CYCLE columns SET set_ TO to DEFAULT default
    USING using``; ``kind``: DEPTH, BREADTH or CYCLE."""

    kind: str
    columns: list[Node]
    set_: Identifier
    to: Node | None = None
    default: Node | None = None
    using: Identifier | None = None


class Alias(Node):
    """``this AS alias``"""


class TableAlias(Node):
    """``AS this (columns)``, Identifiers or ColumnDefs"""


class ColumnDef(Node):
    """``this kind`` in the columns of a function in FROM"""


class From(Node): ...


class Table(Node):
    """``this``: an Identifier or, of a function, a call; ``db``, ``catalog``, ``alias``, ``joins``,
    ``sample``, ``only``; of functions ``ordinality`` and ``rows_from``: several of them"""


class Lateral(Node):
    """``LATERAL this``, a query in parentheses"""


class Join(Node):
    """``method`` NATURAL, ``side``, ``kind``, ``on``, ``using``: Identifiers, and their
    ``using_alias``. One without any of these words stands behind a comma."""


class TableSample(TypedNode):
    """``TABLESAMPLE method (percent) REPEATABLE (seed)``"""

    method: Node
    percent: Node
    seed: Node | None = None


class Into(Node): ...


class Distinct(Node):
    """``on``: a Tuple; in a call ``expressions``"""


class Where(Node): ...


class Having(Node): ...


class Group(Node):
    """``all`` is False for GROUP BY DISTINCT."""


class Rollup(Node): ...


class Cube(Node): ...


class GroupingSets(Node): ...


class Order(Node):
    """``expressions``: Ordereds; in a call ``this`` is its last argument."""


class Ordered(Node):
    """``desc``, ``nulls_first``"""


class Limit(Node): ...


class Fetch(Node):
    """``count``, ``with_ties``"""


class Offset(Node): ...


class Lock(Node):
    """``expressions``: Tables, ``skip_locked``"""


# --- changes ----------------------------------------------------------------------------------


class Change(Node):
    """``this``: the changed table, ``with_``, ``returning``"""


class Insert(Change):
    """``columns``: Identifiers, ``expression``: a query, ``default``: DEFAULT VALUES, ``conflict``,
    ``alternative``: the word of INSERT OR ...; in MERGE ``expression`` is a Tuple"""


class Update(Change):
    """``expressions``: EQs, ``from_``, ``where``"""


class Delete(Change):
    """``using``, ``where``"""


class Merge(Change):
    """``using``, ``on``, ``whens``: Whens"""


class When(Node):
    """``matched``, ``source``, ``condition``, ``then``: an Update, an Insert or a Var"""


class Truncate(Node):
    """``expressions``: Tables"""


class OnConflict(Node):
    """``action``: a Var, ``conflict_keys``, ``constraint``, ``expressions``: EQs, ``where``"""


class Returning(Node): ...


QUERY_PARTS: Final = (
    "this", "expression", "expressions", "with_", "order", "limit", "offset", "distinct", "into",
    "from_", "joins", "where", "group", "having", "windows", "locks", "alias",
)  # fmt: skip
"""The parts that queries may have: their own binder looks at them."""


def name(text: str) -> Identifier:
    """An identifier that means ``text`` exactly."""
    return Identifier(this=text, quoted=True)
