"""The catalog in a snapshot's manifest: the message that members send each other, as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from google.protobuf import json_format

from remuda.catalog.catalog import Catalog
from remuda.catalog.edits import DecidedTransaction
from remuda.datatypes.schema import MapSchema, Namespace
from remuda.errors import DataCorrupted, RemudaError
from remuda.rpc import codec, type_codec
from remuda.rpc.messages import common_pb2, control_pb2


def catalog_text(catalog: Catalog, former: Iterable[MapSchema] = ()) -> str:
    """``former``: earlier versions of its maps. Rows that the logs commit above the cut
    may have been written under them."""
    state = encode_catalog(replace(catalog.shown, decided=()))
    state.former_maps.extend(map(codec.encode_schema, former))
    return json_format.MessageToJson(state, preserving_proto_field_name=True, indent=None)


def read_catalog(text: str) -> Catalog:
    """Raises DataCorrupted for what this version does not know."""
    return _read(text)[0]


def read_versions(text: str) -> list[MapSchema]:
    """Of all maps, the former ones and those of the catalog. Raises DataCorrupted."""
    catalog, former = _read(text)
    return [*former, *catalog.maps]


def _read(text: str) -> tuple[Catalog, list[MapSchema]]:
    try:
        state = json_format.Parse(text, control_pb2.CatalogState())
        return decode_catalog(state), [codec.decode_schema(each) for each in state.former_maps]
    except (json_format.ParseError, RemudaError, ValueError, KeyError) as problem:
        raise DataCorrupted(
            "the catalog of the snapshot cannot be read",
            detail=str(problem)[:300],
            hint="A newer version of Remuda may have made it.",
        ) from problem


def encode_catalog(catalog: Catalog) -> control_pb2.CatalogState:
    return control_pb2.CatalogState(
        version=catalog.version,
        maps=[codec.encode_schema(schema) for schema in catalog.maps],
        views=[codec.encode_view_definition(view) for view in catalog.views],
        following_oid=catalog.following_oid,
        namespaces=[encode_namespace(each) for each in catalog.namespaces],
        types=[type_codec.encode_enum(each) for each in catalog.types],
        decided=[encode_decided(each) for each in catalog.decided],
    )


def decode_catalog(state: control_pb2.CatalogState) -> Catalog:
    """Raises ProtocolError."""
    return Catalog(
        state.version,
        tuple(codec.decode_schema(each) for each in state.maps),
        tuple(codec.decode_view_definition(each) for each in state.views),
        state.following_oid,
        tuple(decode_namespace(each) for each in state.namespaces),
        tuple(type_codec.decode_enum(each) for each in state.types),
        tuple(decode_decided(each) for each in state.decided),
    )


def encode_decided(decided: DecidedTransaction) -> control_pb2.DecidedTransaction:
    return control_pb2.DecidedTransaction(
        began=decided.began, member=decided.member, timestamp=decided.timestamp or None
    )


def decode_decided(message: control_pb2.DecidedTransaction) -> DecidedTransaction:
    return DecidedTransaction(message.began, message.member, message.timestamp)


def encode_namespace(namespace: Namespace) -> common_pb2.Namespace:
    return common_pb2.Namespace(
        name=namespace.name,
        comment=namespace.comment or None,
        oid=namespace.oid or None,
    )


def decode_namespace(message: common_pb2.Namespace) -> Namespace:
    return Namespace(message.name, message.comment, message.oid)
