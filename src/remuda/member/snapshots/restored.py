"""Writes rows of a snapshot to the owners of the map that they are restored into."""

from __future__ import annotations

from collections.abc import Iterable

from remuda.datatypes.schema import MapSchema
from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.base.peers import Peers
from remuda.member.commits.commits import Commits
from remuda.member.commits.writes import Aside, StagedWrite, through_views
from remuda.snapshot.rows import RestoredRows


async def write_restored(
    core: Core,
    peers: Peers,
    commits: Commits,
    schema: MapSchema,
    found: Iterable[RestoredRows],
    *,
    aside: Aside,
) -> None:
    """Write the rows to their owners, all or none; rows that are there already are replaced."""
    now = core.clock.last
    kept = [each.after(now) for each in found]

    async def write(_attempt: int) -> None:
        staged = StagedWrite(core, peers, commits, schema, aside)
        try:
            for rows in kept:
                for each in rows.slices():
                    await staged.add(each.batch, each.ends)
            await staged.commit(ttl=0)
        except RemudaError:
            staged.abort()
            raise

    if any(each.rows for each in kept):
        await through_views(write)
