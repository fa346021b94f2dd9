"""Requests of Drill's Python clients besides queries: status, options, storage, profiles.

Answers are true or an error: there are no threads to list here, and no storage plugins to change.
"""

from __future__ import annotations

from typing import Any, Final

from aiohttp import web

from remuda.catalog.system_relations import DATABASE
from remuda.gateway.failures import Refused
from remuda.gateway.grids import Grids
from remuda.gateway.login import Logins

_INDEX: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Remuda</title></head>
<body><h1>Remuda</h1>
<p>This is the REST interface for Apache Drill's Python clients: <code>POST /query.json</code>.</p>
</body></html>
"""
_GAUGES: Final = ("queries", "fragments", "clients", "jobs", "partitions")
_ENDED = (
    "SELECT query, member, state, started, planning + queued + waited + execution AS seconds, "
    "text, error, sqlstate FROM sys.query_history"
)
_STATES = {"finished": "Succeeded", "failed": "Failed", "cancelled": "Cancelled"}
"""Of queries that have ended, as Drill's clients know them."""
_PLUGIN: Final = {"name": DATABASE, "config": {"type": DATABASE, "enabled": True}}


class Pages:
    def __init__(self, grids: Grids, logins: Logins) -> None:
        self._grids = grids
        self._logins = logins

    def index_routes(self) -> list[web.RouteDef]:
        """For a gateway without the console, whose page is there otherwise."""
        return [web.get("/", self._index)]

    def routes(self) -> list[web.RouteDef]:
        get, post, delete = web.get, web.post, web.delete
        return [
            get("/status", self._status),
            get("/status.json", self._status),
            get("/cluster.json", self._status),
            get("/stats.json", self._stats),
            get("/status/metrics", self._metrics),
            get("/status/threads", self._threads),
            get("/options.json", self._options),
            get("/storage.json", self._storage),
            get("/storage/{name}.json", self._plugin),
            post("/storage/{name}.json", self._fixed),
            delete("/storage/{name}.json", self._fixed),
            get("/storage/{name}/enable/{value}", self._fixed),
            get("/profiles.json", self._profiles),
            get("/profiles/{query}.json", self._profile),
        ]

    async def _rows(self, request: web.Request, text: str, *params: Any) -> list[dict[str, Any]]:
        async with self._grids.client(self._logins.credentials(request)) as client:
            cursor = await client.sql(text, *params)
            names = [column.name for column in cursor.columns]
            return [dict(zip(names, row, strict=True)) for row in await cursor.fetchall()]

    async def _members(self, request: web.Request) -> list[dict[str, Any]]:
        return await self._rows(request, "SELECT * FROM sys.members ORDER BY member")

    async def _index(self, _request: web.Request) -> web.Response:
        return web.Response(text=_INDEX, content_type="text/html")

    async def _status(self, request: web.Request) -> web.Response:
        members = await self._members(request)
        names = ("member", "host", "user_port", "control_port", "data_port", "state")
        shown = [{name: member[name] for name in names} for member in members]
        return web.json_response({"status": "Running!", "members": shown})

    async def _stats(self, request: web.Request) -> web.Response:
        """The list that pydrill's ``stats`` reads."""
        members = await self._members(request)
        asked = next((m for m in members if m["asked"]), members[0])
        host = asked["host"]
        pairs: list[tuple[str, Any]] = [("Number of Drill Bits", len(members))]
        pairs += [
            (f"Bit #{m['member']}", f"{m['host']}:{m['user_port']} {m['state']}") for m in members
        ]
        pairs += [
            ("Data Port Address", f"{host}:{asked['data_port']}"),
            ("User Port Address", f"{host}:{asked['user_port']}"),
            ("Control Port Address", f"{host}:{asked['control_port']}"),
        ]
        return web.json_response([{"name": name, "value": value} for name, value in pairs])

    async def _metrics(self, request: web.Request) -> web.Response:
        gauges = {
            f"member.{member['member']}.{name}": {"value": member[name]}
            for member in await self._members(request)
            for name in _GAUGES
        }
        return web.json_response({"gauges": gauges})

    async def _threads(self, _request: web.Request) -> web.Response:
        raise Refused(404, "members have no list of threads")

    async def _options(self, request: web.Request) -> web.Response:
        rows = await self._rows(request, "SELECT * FROM sys.settings ORDER BY name")
        return web.json_response(
            [
                {
                    "name": row["name"],
                    "value": row["setting"],
                    "defaultValue": row["default_value"],
                    "accessibleScopes": "SESSION",
                    "kind": "STRING",
                    "optionScope": "SESSION",
                    "description": row["description"],
                }
                for row in rows
            ]
        )

    async def _storage(self, _request: web.Request) -> web.Response:
        return web.json_response([_PLUGIN])

    async def _plugin(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name != DATABASE:
            raise Refused(404, f'there is no storage plugin "{name}", only "{DATABASE}"')
        return web.json_response(_PLUGIN)

    async def _fixed(self, _request: web.Request) -> web.Response:
        raise Refused(403, "storage plugins cannot be changed: the grid itself is the only one")

    async def _profiles(self, request: web.Request) -> web.Response:
        running = await self._rows(request, "SELECT * FROM sys.queries ORDER BY started DESC")
        ended = await self._rows(request, f"{_ENDED} ORDER BY started DESC")
        return web.json_response(
            {
                "runningQueries": [_profile(row) for row in running],
                "finishedQueries": [_profile(row) for row in ended],
            }
        )

    async def _profile(self, request: web.Request) -> web.Response:
        query = request.match_info["query"]
        rows = await self._rows(request, "SELECT * FROM sys.queries WHERE query = ?", query)
        if not rows:
            return await self._ended(request, query)
        fragments = await self._rows(
            request,
            "SELECT member, fragment, operators, rows, bytes, seconds, memory "
            "FROM sys.fragments WHERE query = ? ORDER BY fragment, member",
            query,
        )
        return web.json_response({**_profile(rows[0]), "fragmentProfile": fragments})

    async def _ended(self, request: web.Request, query: str) -> web.Response:
        """One of the last queries that have ended, with its plans as they ran."""
        rows = await self._rows(request, f"{_ENDED} WHERE query = ?", query)
        if not rows:
            raise Refused(404, f"nothing is known of a query {query}")
        profiles = await self._rows(
            request, "SELECT profile FROM sys.query_profiles WHERE query = ?", query
        )
        found = _profile(rows[0])
        if rows[0]["error"]:
            found |= {"error": rows[0]["error"], "sqlState": rows[0]["sqlstate"]}
        if profiles:
            found["profile"] = profiles[0]["profile"]
        return web.json_response({**found, "fragmentProfile": []})


def _profile(row: dict[str, Any]) -> dict[str, Any]:
    started = row["started"]
    return {
        "queryId": row["query"],
        "query": row["text"],
        "state": _STATES.get(row["state"], row["state"]),
        "foreman": f"member {row['member']}",
        "startTime": None if started is None else int(started.timestamp() * 1000),
        "duration": row["seconds"],
    }
