"""The schema of a map: its columns, its key, and how it is laid over the members.

The full name of a map or view is unique in the cluster: catalog, messages, logs, snapshots and
privileges know it by this name. In the SQL schema ``public`` that is its own name. In another one
the schema stands in front of it: ``sales.orders``, in quotes if it has a dot or a quote itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property

from remuda.datatypes.index import IndexDefinition
from remuda.datatypes.map_options import NO_OPTIONS, MapOptions
from remuda.datatypes.sql import PhysicalValue, SqlType

PUBLIC = "public"
KEY_COLUMN = "__key"
VALUE_COLUMN = "this"
ROW_ID = "__row_id"
"""The key of a map that was defined without one: a number of its own for each row. It is not part
of ``*``, and INSERT makes it."""
GENERATION = "__generation"
"""The hidden column of a sequence's state that counts setval and ALTER SEQUENCE."""
HIDDEN = frozenset({ROW_ID, GENERATION})
"""Names of columns that users never see."""
NOT_NULL_GUARD = "not null guard of "
"""With the name of a column: the name of the CHECK that keeps NULLs out while SET NOT NULL verifies
the rows that are there. Users never see it."""


INTERNAL_MARK = "\x01"
"""Names of internal maps begin so: no name in an SQL text or of a client's map does."""
MADE_MARK = INTERNAL_MARK + "made"
"""Names of maps of open transactions begin so; their own names are at the end
(``catalog.own.definitions``)."""
PG_TEMP = "pg_temp"
"""The schema of temporary tables: each session has its own."""


def full_name(namespace: str, local: str) -> str:
    """``sales``, ``orders`` -> ``sales.orders``"""
    return local if namespace == PUBLIC else prefix(namespace) + local


def local_name(namespace: str, full: str) -> str:
    """``sales``, ``sales.orders`` -> ``orders``"""
    return full if namespace == PUBLIC else full.removeprefix(prefix(namespace))


def prefix(namespace: str) -> str:
    """The part of full names that stands for the schema, with its dot; "" for ``public``."""
    if namespace == PUBLIC:
        return ""
    if "." in namespace or '"' in namespace:
        namespace = '"' + namespace.replace('"', '""') + '"'
    return namespace + "."


class Identity(Enum):
    """GENERATED ... AS IDENTITY: whether a statement may give a value of its own."""

    ALWAYS = "ALWAYS"
    BY_DEFAULT = "BY DEFAULT"


class ValueShape(Enum):
    """The form of the values that ``get`` returns: a row with named fields, or one bare value
    (column ``this``)."""

    ROW = "row"
    SCALAR = "scalar"


@dataclass(frozen=True, slots=True)
class Default:
    """The value of a column in a row that gives none: ``text`` is an SQL expression without
    columns. A ``constant`` one always gives ``value``, converted to the column's type."""

    text: str
    constant: bool = False
    value: PhysicalValue = None


@dataclass(frozen=True, slots=True)
class Check:
    """A named condition on each row: the SQL expression ``text`` must not be false."""

    name: str
    text: str
    valid: bool = field(default=True, kw_only=True)
    """False: of rows that are older than it nobody has asked it (NOT VALID)."""
    oid: int = field(default=0, compare=False, repr=False)
    """Of the constraint. The catalog gives all OIDs (``catalog.oids``); two definitions that differ
    in them only are equal."""
    comment: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class SequenceOptions:
    """``cache``: how many numbers a member takes at least when it takes some. ``slot``: the key of
    the state. ``link``: the number by which the column that owns it knows it."""

    type: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cache: int
    cycle: bool
    slot: int
    link: int


@dataclass(frozen=True, slots=True)
class Origin:
    """The column of a table or view that a column of a result shows as it is: the OID of the
    relation, and the place of its column, from 1 on."""

    relation: int
    column: int


@dataclass(frozen=True)
class Column:
    """A column of a map or a result: its name as spelled, its SQL type, whether it may be NULL.

    ``id`` tells the columns of one map apart for ever: it stays when the column is renamed and is
    never given again. Rows that are older than the column hold ``missing``. The catalog gives both;
    two columns that differ in them only are equal.
    """

    name: str
    type: SqlType
    nullable: bool = True
    default: Default | None = None
    comment: str = ""
    id: int = field(default=0, compare=False)
    missing: PhysicalValue = field(default=None, compare=False)
    default_oid: int = field(default=0, compare=False, repr=False)
    identity: Identity | None = field(default=None, repr=False)
    """Its ``default`` takes the numbers of a sequence that it owns."""
    sequences: tuple[int, ...] = field(default=(), repr=False)
    """The links of the sequences that it owns: they are dropped with it."""
    generated: str = field(default="", repr=False)
    """GENERATED ALWAYS AS (...) STORED: the SQL expression, over other columns of the row."""
    origin: Origin | None = field(default=None, compare=False, repr=False)
    """Of a column of a result."""
    _declared: str = field(init=False, repr=False)
    """The type's name, because types that differ in their digits of seconds only are equal."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_declared", str(self.type))

    def __str__(self) -> str:
        return f"{self.name} {self.type}" + ("" if self.nullable else " NOT NULL")


class KeyAction(Enum):
    """ON DELETE and ON UPDATE of a foreign key: the fate of the rows that name a key which is taken
    away."""

    NO_ACTION = "NO ACTION"
    """They refuse it, once the statement has changed all of its rows."""
    RESTRICT = "RESTRICT"
    """They refuse it: other changes of the same statement do not excuse it."""
    CASCADE = "CASCADE"
    """They go, too, or get the new key."""
    SET_NULL = "SET NULL"
    SET_DEFAULT = "SET DEFAULT"

    @property
    def refuses(self) -> bool:
        return self in {KeyAction.NO_ACTION, KeyAction.RESTRICT}


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A row whose ``columns`` are not NULL has a row of ``parent`` (a full name; a map may be its
    own parent) with the same values in ``parent_columns``, which are the primary key of the parent
    or the columns of one of its unique indexes (decision 0108)."""

    name: str
    columns: tuple[str, ...]
    parent: str
    parent_columns: tuple[str, ...]
    on_delete: KeyAction = KeyAction.NO_ACTION
    on_update: KeyAction = KeyAction.NO_ACTION
    namespace: str = PUBLIC
    """The SQL schema of the parent."""
    set_columns: tuple[str, ...] = ()
    """Of ``columns`` those that ON DELETE SET NULL and SET DEFAULT set; empty: all."""
    full: bool = False
    """MATCH FULL: a row whose ``columns`` are NULL in part is refused."""
    valid: bool = True
    """False: nobody has looked whether rows that are older than it have their parents (NOT VALID).
    """
    deferrable: bool = False
    """A transaction may have it checked by its commit in place of each statement."""
    deferred: bool = False
    """Of a deferrable one: that is so until SET CONSTRAINTS says otherwise."""
    oid: int = field(default=0, compare=False, repr=False)
    """Of the constraint."""
    comment: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True)
class MapSchema:
    """An immutable schema; every change makes a new one with a higher ``version``.

    ``key`` names the key columns in order (never nullable). ``partition_by`` is the subset of
    ``key`` whose hash decides the partition; it is ``key`` itself unless the map names a
    partition attribute. ``map_id`` is unique for the life of the cluster: a map dropped and
    created again under the same name has another id.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    partition_by: tuple[str, ...]
    replicated: bool = False
    value_shape: ValueShape = ValueShape.ROW
    map_id: int = 0
    version: int = 1
    indexes: tuple[IndexDefinition, ...] = ()
    """Secondary indexes. Making and dropping one that is not unique does not change ``version``."""
    checks: tuple[Check, ...] = ()
    comment: str = ""
    key_name: str = ""
    """The name of the primary key's constraint, when the definition gave one."""
    options: MapOptions = NO_OPTIONS
    """Its promises about entries (TTL, eviction, ...). Changing them does not change
    ``version``."""
    columns_made: int = field(default=0, compare=False)
    """The highest id that a column has had."""
    oid: int = field(default=0, compare=False, repr=False)
    key_oid: int = field(default=0, compare=False, repr=False)
    """Of the primary key's constraint."""
    key_index_oid: int = field(default=0, compare=False, repr=False)
    key_comment: str = field(default="", compare=False, repr=False)
    """On the primary key's constraint."""
    key_index_comment: str = field(default="", compare=False, repr=False)
    sequence: SequenceOptions | None = field(default=None, repr=False)
    """Of a sequence, which is a map of one entry: its state."""
    namespace: str = field(default=PUBLIC, repr=False)
    """The SQL schema that it is in; ``name`` begins with it unless it is ``public``."""
    foreign_keys: tuple[ForeignKey, ...] = field(default=(), repr=False)
    children: tuple[int, ...] = field(default=(), repr=False)
    """The ids of the maps with foreign keys that name this one, in order. The catalog keeps them in
    step with ``foreign_keys``."""

    @property
    def local(self) -> str:
        """Its name without its schema."""
        if self.name.startswith(MADE_MARK):
            return self.name.split(" ", 4)[4]
        return local_name(self.namespace, self.name)

    @property
    def internal(self) -> bool:
        """Whether members have made it for themselves: users never see it."""
        return self.name.startswith(INTERNAL_MARK)

    @property
    def temporary(self) -> bool:
        """Whether it is of one session alone (decision 0090)."""
        return self.namespace == PG_TEMP

    @property
    def primary_key(self) -> str:
        """The name of the primary key's constraint."""
        return self.key_name or f"{self.local}_pkey"

    @property
    def has_row_ids(self) -> bool:
        """Whether the key is one that the map makes by itself."""
        return self.key == (ROW_ID,)

    @cached_property
    def uniques(self) -> tuple[IndexDefinition, ...]:
        """The indexes whose values no two rows share. Every version of a map has the same ones:
        rows that were checked against others are rows of another version."""
        return tuple(index for index in self.indexes if index.unique)

    @cached_property
    def concerns_others(self) -> bool:
        """Whether rows of other keys or maps have a say in what is written to the map: it has
        unique indexes or foreign keys, or is the parent of others."""
        return bool(self.uniques or self.foreign_keys or self.children)

    @cached_property
    def follows_itself(self) -> bool:
        """Whether rows of the map follow the keys of others of it (CASCADE and its kind)."""
        own = [key for key in self.foreign_keys if key.parent == self.name]
        return any(not (key.on_delete.refuses and key.on_update.refuses) for key in own)

    @cached_property
    def takes_bulk(self) -> bool:
        """Whether rows may be staged over others without a look at each of them. (The values
        of a unique index that a foreign key references can change. The rows of a map that is its
        own parent are pending themselves while their parents are looked for.)"""
        own = any(key.parent == self.name for key in self.foreign_keys)
        return not (own or (self.children and self.uniques))

    @cached_property
    def added_key(self) -> IndexDefinition | None:
        """The primary key that ALTER TABLE has given to a map which was made without one."""
        if not self.has_row_ids:
            return None
        keys = (i for i in self.uniques if i.constraint and i.name == self.primary_key)
        return next(keys, None)

    @cached_property
    def shown(self) -> tuple[Column, ...]:
        """The columns that users see: all but the ``HIDDEN`` ones."""
        return tuple(column for column in self.columns if column.name not in HIDDEN)

    @cached_property
    def generated(self) -> tuple[int, ...]:
        """Positions of the columns that are computed from others of the row."""
        return tuple(i for i, column in enumerate(self.columns) if column.generated)

    @cached_property
    def given(self) -> MapSchema:
        """The schema of rows as clients give them: generated columns may be NULL, because a member
        computes them."""
        if not self.generated:
            return self
        columns = [replace(c, nullable=True) if c.generated else c for c in self.columns]
        return replace(self, columns=tuple(columns))

    @cached_property
    def takes_numbers(self) -> bool:
        """Whether the default of a column may take numbers of a sequence."""
        return any(
            column.default is not None and "nextval" in column.default.text.lower()
            for column in self.columns
        )

    @cached_property
    def position(self) -> dict[str, int]:
        """Column name -> position in ``columns``."""
        return {column.name: index for index, column in enumerate(self.columns)}

    @cached_property
    def key_positions(self) -> tuple[int, ...]:
        """Positions of the key columns, in the order of ``key``."""
        return tuple(self.position[name] for name in self.key)

    @cached_property
    def partition_positions(self) -> tuple[int, ...]:
        """Positions of the columns whose hash decides the partition, in that order."""
        return tuple(self.position[name] for name in self.partition_by)

    @cached_property
    def value_positions(self) -> tuple[int, ...]:
        """Positions of the columns that are no key columns."""
        keys = set(self.key_positions)
        return tuple(i for i in range(len(self.columns)) if i not in keys)

    def column(self, name: str) -> Column:
        """The column called ``name``, exactly as it is spelled; KeyError without one."""
        return self.columns[self.position[name]]


@dataclass(frozen=True)
class ViewDefinition:
    """A named query: ``text`` is its SELECT. ``columns`` are those that it had when it was defined;
    columns that its relations have got since do not change them. ``uses`` names the maps and views
    that it reads. ``names`` are those that the query gives its columns. ``view_id`` is unique as
    ``MapSchema.map_id`` is."""

    name: str
    text: str
    columns: tuple[Column, ...]
    names: tuple[str, ...]
    uses: tuple[str, ...]
    comment: str = ""
    view_id: int = 0
    oid: int = field(default=0, compare=False, repr=False)
    namespace: str = field(default=PUBLIC, repr=False)
    """The SQL schema that it is in; ``name`` begins with it unless it is ``public``."""

    @property
    def local(self) -> str:
        """Its name without its schema."""
        return local_name(self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Namespace:
    """A schema of the users, as SQL has the word: it holds relations. ``public`` is there without
    one, and has one if something about it was changed."""

    name: str
    comment: str = ""
    oid: int = field(default=0, compare=False)
