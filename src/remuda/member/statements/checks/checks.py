"""All that a commit must find and write besides its rows."""

from __future__ import annotations

from remuda.catalog.catalog import Catalog
from remuda.member.base.core import Core
from remuda.member.membership.catalog_service import CatalogService
from remuda.member.membership.membership import Membership
from remuda.member.queries.queries import Queries
from remuda.member.sessions.keys import KeyReader
from remuda.member.state.transaction_sets import ReadSet, WriteSet
from remuda.member.statements.checks.cascades import Cascades
from remuda.member.statements.checks.foreign_keys import ForeignKeyChecks
from remuda.member.statements.checks.stored_rows import StoredRows
from remuda.member.statements.checks.unique_checks import UniqueChecks
from remuda.member.statements.initiated_queries import Runs
from remuda.member.statements.plans import Plans


class Checks:
    """``Guarding`` of ``member.transactions.transactions``."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        membership: Membership,
        catalog: CatalogService,
        keys: KeyReader,
        plans: Plans,
        runs: Runs,
        queries: Queries,
    ) -> None:
        stored = self.stored = StoredRows(core, plans, runs, queries)
        self.uniques = UniqueChecks(core, membership, catalog, stored)
        self.foreign_keys = ForeignKeyChecks(core, membership, catalog, keys, stored)
        self.cascades = Cascades(core, keys, self.foreign_keys)

    async def guarded(
        self, writes: WriteSet, reads: ReadSet | None, catalog: Catalog | None
    ) -> tuple[WriteSet, ReadSet | None]:
        """The writes and reads to commit in place of these, by the definitions of ``catalog`` if
        the transaction has some. Raises what the checks of unique values and of foreign keys
        raise."""
        extended, reads = await self.cascades.extended(list(writes), reads, catalog)
        first = list(extended)
        writes, reads = await self.uniques.guarded(first, reads)
        more = list(writes)[len(first) :]
        kept, reads = await self.foreign_keys.guarded(first, reads, catalog)
        return [*kept, *more], reads
