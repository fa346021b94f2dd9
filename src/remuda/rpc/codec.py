"""Values and small objects <-> protobuf messages.

The rows of gets, puts and small results do not travel as messages: see ``rpc.packing``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from remuda.datatypes.index import IndexDefinition, IndexedColumn, IndexKind
from remuda.datatypes.map_options import NO_OPTIONS, Eviction, MapOptions
from remuda.datatypes.schema import (
    PUBLIC,
    Check,
    Column,
    Default,
    ForeignKey,
    Identity,
    KeyAction,
    MapSchema,
    SequenceOptions,
    ValueShape,
    ViewDefinition,
)
from remuda.datatypes.values import PhysicalValue
from remuda.datatypes.view import Away, MemberInfo, Missing, View
from remuda.errors import (
    ErrorReport,
    ErrorSubject,
    Position,
    ProtocolError,
    RemudaError,
    from_report,
)
from remuda.release import Versions
from remuda.rpc import type_codec
from remuda.rpc.messages import common_pb2, user_pb2

_DIGITS_FIELDS = 2
_INT64_MIN = -(2**63)
_INT64_MAX = 2**63 - 1
PORT_MAX = 65535
SCHEMAS_KEPT: Final = 4096
"""Schemas of which the process keeps the message: a change of the catalog sends those of all maps
to all members, and mostly one of them is new."""


# ---- values and rows ----


def fill_value(message: common_pb2.Value, value: PhysicalValue) -> None:
    """Set an empty message to ``value``."""
    kind = type(value)
    if kind is int:
        if _INT64_MIN <= value <= _INT64_MAX:  # type: ignore[operator]
            message.integer = value  # type: ignore[assignment]
        else:
            message.big_integer = str(value)
    elif kind is str:
        message.text = value  # type: ignore[assignment]
    elif kind is float:
        message.number = value  # type: ignore[assignment]
    elif kind is bool:
        message.boolean = value  # type: ignore[assignment]
    elif kind is bytes:
        message.binary = value  # type: ignore[assignment]
    elif kind is tuple:
        message.items.SetInParent()
        fill_row(message.items, value)  # type: ignore[arg-type]
    elif value is not None:
        raise TypeError(f"{kind.__name__} is not a physical value")


def encode_value(value: PhysicalValue) -> common_pb2.Value:
    message = common_pb2.Value()
    fill_value(message, value)
    return message


def decode_value(message: common_pb2.Value) -> PhysicalValue:
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "items":
        return decode_row(message.items)
    value: PhysicalValue = getattr(message, kind)
    return int(value) if kind == "big_integer" else value  # type: ignore[arg-type]


def encode_values(values: Iterable[PhysicalValue]) -> list[common_pb2.Value]:
    return [encode_value(value) for value in values]


def decode_values(messages: Iterable[common_pb2.Value]) -> tuple[PhysicalValue, ...]:
    return tuple([decode_value(message) for message in messages])


def fill_row(message: common_pb2.Row, values: Sequence[PhysicalValue]) -> None:
    """Write into an existing, empty message: ``fill_row(message.removed_keys.add(), key)``."""
    add = message.values.add
    for value in values:
        kind = type(value)
        if kind is str:  # the commonest kinds without a call
            add().text = value  # type: ignore[assignment]
        elif kind is int and _INT64_MIN <= value <= _INT64_MAX:  # type: ignore[operator]
            add().integer = value  # type: ignore[assignment]
        elif kind is float:
            add().number = value  # type: ignore[assignment]
        else:
            fill_value(add(), value)


def decode_row(message: common_pb2.Row) -> tuple[PhysicalValue, ...]:
    out: list[PhysicalValue] = []
    for value in message.values:
        kind = value.WhichOneof("kind")
        if kind == "integer":
            out.append(value.integer)
        elif kind == "text":
            out.append(value.text)
        elif kind == "number":
            out.append(value.number)
        else:
            out.append(decode_value(value))
    return tuple(out)


# ---- columns, schemas ----


def encode_column(column: Column) -> common_pb2.Column:
    message = common_pb2.Column(
        name=column.name,
        type=type_codec.encode_type(column.type),
        nullable=column.nullable,
        comment=column.comment or None,
        id=column.id or None,
        default_oid=column.default_oid or None,
        identity=None if column.identity is None else column.identity.value,
        sequences=column.sequences,
        generated=column.generated or None,
    )
    if column.default is not None:
        message.default_text = column.default.text
        message.default_constant = column.default.constant
        fill_value(message.default_value, column.default.value)
    if column.missing is not None:
        fill_value(message.missing, column.missing)
    return message


def decode_column(message: common_pb2.Column) -> Column:
    default = None
    if message.HasField("default_text"):
        value = decode_value(message.default_value)
        default = Default(message.default_text, message.default_constant, value)
    return Column(
        message.name,
        type_codec.decode_type(message.type),
        message.nullable,
        default=default,
        comment=message.comment,
        id=message.id,
        missing=decode_value(message.missing),
        default_oid=message.default_oid,
        identity=Identity(message.identity) if message.identity else None,
        sequences=tuple(message.sequences),
        generated=message.generated,
    )


def _encode_index(index: IndexDefinition) -> common_pb2.Index:
    return common_pb2.Index(
        name=index.name,
        kind=index.kind.value,
        columns=index.names,
        descending=[column.descending for column in index.columns],
        index_id=index.index_id,
        ready=index.ready,
        unique=index.unique or None,
        constraint=index.constraint or None,
        nulls_equal=not index.nulls_distinct or None,
        oid=index.oid or None,
        constraint_oid=index.constraint_oid or None,
        comment=index.comment or None,
        constraint_comment=index.constraint_comment or None,
    )


def _decode_index(message: common_pb2.Index) -> IndexDefinition:
    try:
        kind = IndexKind(message.kind)
        columns = [
            IndexedColumn(name, descending)
            for name, descending in zip(message.columns, message.descending, strict=True)
        ]
    except ValueError as problem:
        raise ProtocolError(f"an index cannot be read: {problem}") from problem
    return IndexDefinition(
        message.name,
        kind,
        tuple(columns),
        message.index_id,
        message.ready,
        unique=message.unique,
        constraint=message.constraint,
        nulls_distinct=not message.nulls_equal,
        oid=message.oid,
        constraint_oid=message.constraint_oid,
        comment=message.comment,
        constraint_comment=message.constraint_comment,
    )


def encode_map_options(options: MapOptions) -> common_pb2.MapOptions | None:
    """None: all are at their defaults."""
    if options == NO_OPTIONS:
        return None
    return common_pb2.MapOptions(
        ttl=options.ttl or None,
        max_idle=options.max_idle or None,
        eviction=options.eviction.value,
        max_entries=options.max_entries or None,
        max_bytes=options.max_bytes or None,
        async_backups=options.async_backups or None,
        change_retention=options.change_retention or None,
        change_retention_bytes=options.change_retention_bytes or None,
    )


def decode_map_options(message: common_pb2.MapOptions) -> MapOptions:
    return MapOptions(
        ttl=message.ttl,
        max_idle=message.max_idle,
        eviction=Eviction(message.eviction or Eviction.NONE.value),
        max_entries=message.max_entries,
        max_bytes=message.max_bytes,
        async_backups=message.async_backups,
        change_retention=message.change_retention,
        change_retention_bytes=message.change_retention_bytes,
    )


_SEQUENCE_FIELDS: Final = tuple(field.name for field in dataclasses.fields(SequenceOptions))


def _encode_sequence(options: SequenceOptions) -> common_pb2.Sequence:
    return common_pb2.Sequence(**{name: getattr(options, name) for name in _SEQUENCE_FIELDS})


def _decode_sequence(message: common_pb2.Sequence) -> SequenceOptions:
    return SequenceOptions(
        message.type, message.start, message.increment, message.minimum, message.maximum,
        message.cache, message.cycle, message.slot, message.link,
    )  # fmt: skip


def encode_schema(schema: MapSchema) -> common_pb2.MapSchema:
    return common_pb2.MapSchema.FromString(_encoded(_Same(schema)))


class _Same:
    """An object as a key of its own. Schemas that are equal may differ in OIDs and comments."""

    __slots__ = ("schema",)

    def __init__(self, schema: MapSchema) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.schema is self.schema


@lru_cache(maxsize=SCHEMAS_KEPT)
def _encoded(same: _Same) -> bytes:
    schema = same.schema
    message = common_pb2.MapSchema(
        name=schema.name,
        columns=[encode_column(column) for column in schema.columns],
        key=schema.key,
        partition_by=schema.partition_by,
        replicated=schema.replicated,
        value_shape=_shape_word(schema),
        map_id=schema.map_id,
        version=schema.version,
        checks=[
            common_pb2.Check(
                name=check.name,
                text=check.text,
                oid=check.oid or None,
                comment=check.comment or None,
                not_valid=None if check.valid else True,
            )
            for check in schema.checks
        ],
        comment=schema.comment or None,
        columns_made=schema.columns_made,
        key_name=schema.key_name or None,
        indexes=[_encode_index(index) for index in schema.indexes],
        options=encode_map_options(schema.options),
        oid=schema.oid or None,
        key_oid=schema.key_oid or None,
        key_index_oid=schema.key_index_oid or None,
        key_comment=schema.key_comment or None,
        key_index_comment=schema.key_index_comment or None,
        sequence=None if schema.sequence is None else _encode_sequence(schema.sequence),
        namespace=None if schema.namespace == PUBLIC else schema.namespace,
        foreign_keys=[
            common_pb2.ForeignKey(
                name=key.name,
                columns=key.columns,
                parent=key.parent,
                parent_columns=key.parent_columns,
                on_delete=key.on_delete.value,
                on_update=key.on_update.value,
                namespace=None if key.namespace == PUBLIC else key.namespace,
                oid=key.oid or None,
                comment=key.comment or None,
                set_columns=key.set_columns,
                full=key.full or None,
                not_valid=None if key.valid else True,
                deferrable=key.deferrable or None,
                deferred=key.deferred or None,
            )
            for key in schema.foreign_keys
        ],
        children=schema.children,
    )
    return message.SerializeToString()


def decode_schema(message: common_pb2.MapSchema) -> MapSchema:
    """Of messages with the same content mostly the same object, which is quickly equal to itself.
    Raises ProtocolError."""
    return _decoded(message.SerializeToString())


@lru_cache(maxsize=SCHEMAS_KEPT)
def _decoded(content: bytes) -> MapSchema:
    message = common_pb2.MapSchema.FromString(content)
    return MapSchema(
        name=message.name,
        columns=tuple(decode_column(column) for column in message.columns),
        key=tuple(message.key),
        partition_by=tuple(message.partition_by),
        replicated=message.replicated,
        value_shape=ValueShape(
            message.value_shape.removesuffix(_IN_A_SCHEMA) or ValueShape.ROW.value
        ),
        map_id=message.map_id,
        version=message.version,
        checks=tuple(
            Check(
                check.name,
                check.text,
                valid=not check.not_valid,
                oid=check.oid,
                comment=check.comment,
            )
            for check in message.checks
        ),
        comment=message.comment,
        columns_made=message.columns_made,
        key_name=message.key_name,
        indexes=tuple(_decode_index(index) for index in message.indexes),
        options=decode_map_options(message.options),
        oid=message.oid,
        key_oid=message.key_oid,
        key_index_oid=message.key_index_oid,
        key_comment=message.key_comment,
        key_index_comment=message.key_index_comment,
        sequence=_decode_sequence(message.sequence) if message.HasField("sequence") else None,
        namespace=message.namespace or PUBLIC,
        foreign_keys=tuple(
            ForeignKey(
                key.name,
                tuple(key.columns),
                key.parent,
                tuple(key.parent_columns),
                KeyAction(key.on_delete or KeyAction.NO_ACTION),
                KeyAction(key.on_update or KeyAction.NO_ACTION),
                key.namespace or PUBLIC,
                tuple(key.set_columns),
                full=key.full,
                valid=not key.not_valid,
                deferrable=key.deferrable,
                deferred=key.deferred,
                oid=key.oid,
                comment=key.comment,
            )
            for key in message.foreign_keys
        ),
        children=tuple(message.children),
    )


_IN_A_SCHEMA: Final = " in a schema"


def _shape_word(schema: MapSchema) -> str:
    """A release that knows no schemas refuses the word for maps of other schemas than ``public``.
    It would take their names for names in ``public``."""
    return schema.value_shape.value + ("" if schema.namespace == PUBLIC else _IN_A_SCHEMA)


def encode_view_definition(view: ViewDefinition) -> common_pb2.ViewDefinition:
    return common_pb2.ViewDefinition(
        name=view.name,
        text=view.text,
        columns=[encode_column(column) for column in view.columns],
        names=view.names,
        uses=view.uses,
        comment=view.comment or None,
        view_id=view.view_id,
        oid=view.oid or None,
        namespace=None if view.namespace == PUBLIC else view.namespace,
    )


def decode_view_definition(message: common_pb2.ViewDefinition) -> ViewDefinition:
    return ViewDefinition(
        name=message.name,
        text=message.text,
        columns=tuple(decode_column(column) for column in message.columns),
        names=tuple(message.names),
        uses=tuple(message.uses),
        comment=message.comment,
        view_id=message.view_id,
        oid=message.oid,
        namespace=message.namespace or PUBLIC,
    )


# ---- members and views ----


def encode_member(member: MemberInfo) -> common_pb2.Member:
    return common_pb2.Member(
        number=member.number,
        uuid=member.uuid,
        host=member.host,
        user_port=member.user_port,
        control_port=member.control_port,
        data_port=member.data_port,
        labels=[common_pb2.Label(name=name, value=value) for name, value in member.labels],
        former=member.former or None,
        release=member.release,
        version_min=member.versions.lowest,
        version_max=member.versions.highest,
    )


def decode_member(message: common_pb2.Member) -> MemberInfo:
    """Raises ProtocolError for what no member says of itself."""
    ports = (message.user_port, message.control_port, message.data_port)
    texts = (message.uuid, message.host)  # bytes, where they are not UTF-8
    if not all(text and isinstance(text, str) for text in texts) or not all(
        0 <= port <= PORT_MAX for port in ports
    ):
        raise ProtocolError("a message names a member without a uuid, a host or possible ports")
    return MemberInfo(
        number=message.number,
        uuid=message.uuid,
        host=message.host,
        user_port=message.user_port,
        control_port=message.control_port,
        data_port=message.data_port,
        labels=tuple((label.name, label.value) for label in message.labels),
        former=message.former,
        release=message.release,
        versions=Versions(message.version_min, message.version_max),
    )


def encode_view(view: View) -> common_pb2.View:
    return common_pb2.View(
        number=view.number,
        members=[encode_member(member) for member in view.members],
        replicas=[common_pb2.Replicas(members=row) for row in view.replicas],
        last_number=view.last_number,
        backups=view.backups,
        emptied=[common_pb2.Emptied(partition=p, view=since) for p, since in view.emptied],
        missing=[
            common_pb2.Missing(
                partition=each.partition, view=each.view, holders=each.holders, donor=each.donor
            )
            for each in view.missing
        ],
        former=[encode_member(member) for member in view.former],
        generations=[
            common_pb2.Generation(partition=p, generation=raised) for p, raised in view.generations
        ],
        departed=[common_pb2.Departed(member=n, cause=cause) for n, cause in view.departed],
        away=[
            common_pb2.Away(
                member=encode_member(each.member), until=each.until, partitions=each.partitions
            )
            for each in view.away
        ],
        version=view.version,
    )


def decode_view(message: common_pb2.View) -> View:
    return View(
        number=message.number,
        members=tuple(decode_member(member) for member in message.members),
        replicas=tuple(tuple(row.members) for row in message.replicas),
        last_number=message.last_number,
        backups=message.backups,
        emptied=tuple((each.partition, each.view) for each in message.emptied),
        missing=tuple(
            Missing(each.partition, each.view, tuple(each.holders), each.donor)
            for each in message.missing
        ),
        former=tuple(decode_member(member) for member in message.former),
        generations=tuple((each.partition, each.generation) for each in message.generations),
        departed=tuple((each.member, each.cause) for each in message.departed),
        away=tuple(
            Away(decode_member(each.member), each.until, tuple(each.partitions))
            for each in message.away
        ),
        version=message.version,
    )


# ---- errors ----


def encode_error(error: RemudaError) -> user_pb2.PBError:
    """``message`` is what a stock client shows; the rest lets ours raise the same class."""
    report = error.to_report()
    message = user_pb2.PBError(
        message=report.message,
        kind=report.kind,
        sqlstate=report.sqlstate,
        detail=report.detail or None,
        hint=report.hint or None,
        member=report.member or None,
        may_have_run=report.may_have_run,
        context=report.context or None,
    )
    if report.position is not None:
        place = report.position
        message.position.line = place.line
        message.position.column = place.column
        message.position.offset = place.offset
        message.position.length = place.length
    if report.subject is not None:
        subject = report.subject
        message.subject.table = subject.table
        message.subject.column = subject.column
        message.subject.constraint = subject.constraint
        if subject.namespace:
            message.subject.namespace = subject.namespace
    return message


def decode_error(message: user_pb2.PBError, statement: str | None = None) -> RemudaError:
    """The error as the other side raised it; ``statement`` gives its position a text."""
    position = None
    if message.HasField("position"):
        place = message.position
        position = Position(place.line, place.column, place.offset, place.length)
    subject = None
    if message.HasField("subject"):
        named = message.subject
        subject = ErrorSubject(named.table, named.column, named.constraint, named.namespace)
    report = ErrorReport(
        kind=message.kind,
        sqlstate=message.sqlstate,
        message=message.message,
        detail=message.detail,
        hint=message.hint,
        member=message.member,
        position=position,
        subject=subject,
        may_have_run=message.may_have_run if message.HasField("may_have_run") else None,
        context=message.context,
    )
    return from_report(report, statement)
