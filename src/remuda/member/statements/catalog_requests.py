"""Requests of clients about the cluster and its maps."""

from __future__ import annotations

from remuda.errors import WrongObjectType
from remuda.member.base.core import Call, Core
from remuda.member.base.wing import Routes, Wing
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.statements.statistics_service import ClusterStatistics
from remuda.rpc import codec
from remuda.rpc.messages import common_pb2, user_pb2
from remuda.rpc.messages.user_pb2 import RpcType


class CatalogRequests(Wing):
    def __init__(self, core: Core, catalog: CatalogService, statistics: ClusterStatistics) -> None:
        self._core = core
        self._catalog = catalog
        self._statistics = statistics

    def routes(self) -> Routes:
        serve = self._core.serve
        return Routes(
            calls={
                RpcType.CLUSTER_INFO: self._on_cluster_info,
                RpcType.DESCRIBE_MAP: lambda call: serve(call, self._describe(call)),
                RpcType.CREATE_MAP: lambda call: serve(call, self._create(call)),
                RpcType.DROP_MAP: lambda call: serve(call, self._drop(call)),
            }
        )

    def _on_cluster_info(self, call: Call) -> None:
        core = self._core
        core.timestamp()
        seen = core.access.catalog(call.user)
        call.reply(
            RpcType.CLUSTER_INFO,
            user_pb2.ClusterInfo(
                view=codec.encode_view(core.view),
                maps=[codec.encode_schema(schema) for schema in seen.tables],
                context=core.context(),
                catalog_version=core.catalog.version,
                member=core.number,
            ),
        )

    async def _describe(self, call: Call) -> None:
        message = user_pb2.MapName.FromString(call.pbody)
        schema = self._core.schema(message.name)
        if schema.sequence is not None:
            raise WrongObjectType(
                f'"{schema.name}" is a sequence, no map', hint="Use client.ids, or SQL's nextval."
            )
        description = user_pb2.MapDescription(
            schema=codec.encode_schema(schema), catalog_version=self._core.catalog.version
        )
        if not message.schema_only:
            totals = await self._statistics.totals(schema)
            description.rows, description.bytes = totals.rows, totals.bytes
            description.no_answer.extend(totals.silent)
        call.reply(RpcType.DESCRIBE_MAP, description)

    async def _create(self, call: Call) -> None:
        message = user_pb2.CreateMap.FromString(call.pbody)
        schema = await self._catalog.create(
            codec.decode_schema(message.schema), if_not_exists=message.if_not_exists
        )
        description = user_pb2.MapDescription(schema=codec.encode_schema(schema))
        call.reply(RpcType.CREATE_MAP, description)

    async def _drop(self, call: Call) -> None:
        message = user_pb2.MapName.FromString(call.pbody)
        await self._catalog.drop(message.name, if_exists=message.if_exists)
        call.reply(RpcType.DROP_MAP, common_pb2.Ack(ok=True))
