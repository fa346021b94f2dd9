"""Plans of statements: what they depend on, the cache, and long texts planned off the loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from remuda.catalog.system_relations import OWNER
from remuda.datatypes.schema import PG_TEMP, MapSchema
from remuda.datatypes.sql import SqlType
from remuda.datatypes.values import PhysicalValue
from remuda.errors import (
    InputError,
    InsufficientPrivilege,
    LimitExceeded,
    RemudaError,
    SqlSyntaxError,
)
from remuda.execution.parallel import rows_read
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.sessions.statement import Statement, parameter_types
from remuda.member.statements.statistics_service import ClusterStatistics
from remuda.session.lifting import Forms, lift
from remuda.session.parameters import check_count, fitted
from remuda.session.planning import (
    Environment,
    Key,
    PlanCache,
    Planned,
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
    maps_of,
    planned,
)
from remuda.session.settings import PLAIN, Meaning
from remuda.session.sight import Sight
from remuda.session.spark_engine import GRID
from remuda.sql.parsing.parser import parse
from remuda.sql.scope.statements import BoundStatement, ExplainStatement, SessionStatement

T = TypeVar("T")

LONG_TEXT = 2 * 1024
"""Characters from which a statement is planned on a thread: parsing takes some 5 ms for these, and
grows with the text to seconds."""


def _maps(statement: BoundStatement) -> Sequence[MapSchema]:
    try:
        return [schema for schema in maps_of(statement) if schema.namespace != PG_TEMP]
    except RecursionError:
        raise LimitExceeded("the statement is nested too deeply to be planned") from None


def _query_of(found: Planned) -> PlannedQuery | None:
    match found:
        case PlannedQuery():
            return found
        case PlannedExplain(statement=statement):
            return statement if isinstance(statement, PlannedQuery) else statement.source
        case PlannedInsert(source=source) | PlannedChange(source=source):
            return source
        case _:
            return None


def _reads_maps(found: Planned) -> bool:
    query = _query_of(found)
    return query is not None and bool(query.plan.dependencies)


class Plans:
    def __init__(self, core: Core, statistics: ClusterStatistics, offload: Offload) -> None:
        """``offload`` is for this alone: a commit must not wait behind a long text."""
        self._core = core
        self._statistics = statistics
        self._offload = offload
        self._cache = PlanCache(statistics.any_stale)
        self._environments: dict[bool, Environment] = {}
        self._forms = Forms()

    def known(
        self,
        text: str,
        types: tuple[SqlType, ...] | None = None,
        meaning: Meaning = PLAIN,
        user: str = "",
    ) -> Planned | None:
        """The cached plan of a statement that runs on the whole cluster."""
        if self._core.catalog_news.behind:
            return None  # by a catalog that was changed since
        if (user or OWNER) in self._core.catalog.namespace_names:
            meaning = meaning.of(user or OWNER)
        return self._cache.find((text, types, False, meaning), self._environment(local=False))

    async def to_run(
        self, statement: Statement, *, local: bool
    ) -> tuple[Planned, tuple[PhysicalValue, ...]]:
        """The plan by which to run ``statement``, with the values of its parameters."""
        text, values, types = statement.text, statement.values, statement.types
        user, session = statement.user, statement.session
        meaning = session.meaning
        if not (types or local or session.drill) and session.engine == GRID:
            shared = await self.shared(text, user=user, meaning=meaning)
            if shared is not None:
                return shared
        if statement.planned_by is None:
            return await self.fitting(text, values, types, local=local, user=user, meaning=meaning)
        by = statement.planned_by.types
        return await self.plan(text, by, local=local, user=user, meaning=meaning), values

    async def fitting(
        self,
        text: str,
        values: tuple[PhysicalValue, ...],
        types: tuple[SqlType, ...],
        *,
        local: bool,
        user: str = "",
        meaning: Meaning = PLAIN,
    ) -> tuple[Planned, tuple[PhysicalValue, ...]]:
        """The plan by the parameter types that the binder infers, if the values fit them exactly;
        otherwise by the types that the client gave. With the values in these types."""
        try:
            found = await self.plan(text, None, local=local, user=user, meaning=meaning)
        except InputError:
            if not types:
                raise
            found = None
        if found is not None:
            wanted = parameter_types(found)
            check_count(len(wanted), len(values))
            suitable = fitted(values, types, wanted, meaning.zone)
            if suitable is not None:
                return found, suitable
        return await self.plan(text, types, local=local, user=user, meaning=meaning), values

    async def shared(
        self, text: str, *, user: str = "", meaning: Meaning = PLAIN
    ) -> tuple[Planned, tuple[PhysicalValue, ...]] | None:
        """The plan that a statement without parameters shares with others that differ only in their
        literals, and its literals as values; None: it has a plan of its own. Raises what keeps
        every statement from being planned."""
        if self.known(text, None, meaning, user) is not None:
            return None
        lifted, forms = lift(text), self._forms
        if lifted is None or not forms.wanted(lifted, version := self._core.catalog.version):
            return None
        try:
            found = await self.plan(
                lifted.form, lifted.types, local=False, user=user, meaning=meaning
            )
        except InsufficientPrivilege:
            return None
        except InputError:
            forms.refuse(lifted, version)
            return None
        fits = forms.fits(lifted, found)
        if fits is None:
            forms.refuse(lifted, version)
            return None
        values = fits.values(lifted, meaning.zone)
        return None if values is None or forms.came_before(text) else (found, values)

    async def plan(
        self,
        text: str,
        types: tuple[SqlType | None, ...] | None,
        *,
        local: bool,
        user: str = "",
        meaning: Meaning = PLAIN,
    ) -> Planned:
        """Raises what ``Sight.bound`` raises. ``local``: it runs on this member alone. ``user`` may
        know of the maps that it has a role on; "" is this member itself. ``meaning``: that of the
        session. Names have a meaning by a catalog that may lack what clients were told of: then
        neither an error counts nor a plan; but a member that is cut off shows what it knows of
        itself. Raises NoLease, MemberNotReady when no newer catalog comes."""
        news = self._core.catalog_news
        while True:
            try:
                if (user or OWNER) in self._core.catalog.namespace_names:
                    key = (text, types, local, meaning.of(user or OWNER))
                else:
                    key = (text, types, local, meaning)
                found = await self._plan(key, user)
            except SqlSyntaxError:
                raise
            except RemudaError:
                if news.complete:
                    raise
            else:
                if news.complete or not (self._core.readiness.leased or _reads_maps(found)):
                    return found
            await news.wait()

    async def _plan(self, key: Key, user: str) -> Planned:
        """By the catalog that this member has."""
        text, types, local, meaning = key
        found = self._cache.find(key, self._environment(local))
        if found is not None:
            return found
        access, catalog = self._core.access, self._core.catalog
        own, refused, whole = meaning.definitions, None, catalog
        if own is not None:
            try:
                whole = own.over(catalog)
            except RemudaError as error:  # ROLLBACK and SHOW are possible all the same
                refused, whole, own = error, own.own, None
        shown, seen = whole.shown, access.catalog(user, own)
        if meaning.temporary is not None:
            shown, seen = meaning.temporary.over(shown), meaning.temporary.over(seen)
        sight = Sight(shown, seen, access.user(user), access.users(user))
        statement = await self._work(text, lambda: sight.bound(text, types, meaning))
        if refused is not None and not isinstance(statement, SessionStatement):
            raise refused
        await self._statistics.refresh(_maps(statement))
        environment = self._environment(local)
        found = self._cache.find(key, environment)  # another client asked the same meanwhile
        if found is not None:
            return found
        current = environment.catalog is catalog
        if own is not None:
            environment = replace(environment, catalog=whole)
        found = await self._planned(statement, text, environment)
        # Names were bound by a catalog that may have been replaced since: such a plan meets
        # altered maps, and kept it would do so each time.
        if current and not (sight.listed and access.active):
            self._cache.keep(key, found, environment)
        return found

    async def parameters(self, text: str) -> int:
        """How many parameters a statement has. Raises SqlSyntaxError."""
        return await self._work(text, lambda: parse(text).parameters)

    async def bound(
        self, text: str, types: tuple[SqlType, ...], user: str, meaning: Meaning
    ) -> BoundStatement:
        """A statement that was planned before, once more as it was before it was planned; of an
        EXPLAIN what it explains."""
        access = self._core.access
        own, catalog = meaning.definitions, self._core.catalog
        sight = Sight(
            catalog.shown if own is None else own.over(catalog).shown,
            access.catalog(user, own),
            access.user(user),
            access.users(user),
        )
        found = await self._work(
            text, lambda: sight.bound(text, types or None, meaning.of(user or OWNER))
        )
        return found.statement if isinstance(found, ExplainStatement) else found

    def environment(self) -> Environment:
        return self._environment(local=False)

    async def _planned(
        self, statement: BoundStatement, text: str, environment: Environment
    ) -> Planned:
        found = await self._work(text, lambda: planned(statement, environment))
        if self._for_threads(found):
            threads = replace(environment, members=self._core.config.workers)
            found = await self._work(text, lambda: planned(statement, threads))
        return found

    def _for_threads(self, found: Planned) -> bool:
        """Whether the only member has so many rows to read that its threads should share them.

        A plan for one member is one fragment, which one thread runs at a time; planned as if the
        threads were members, it is cut where rows must come together (decision 0014)."""
        core = self._core
        if core.config.workers < 2 or len(core.view.members) > 1:
            return False
        query = _query_of(found)
        if query is None or query.point is not None:
            return False
        return rows_read(query.plan, 1, core.stored_rows) >= 2 * core.config.parallel_rows

    async def of(self, statement: BoundStatement, text: str) -> Planned:
        """The plan of a statement that is bound already, not cached. ``text`` is what it is part
        of."""
        await self._statistics.refresh(_maps(statement))
        return await self._planned(statement, text, self._environment(local=False))

    async def analyze(self, maps: Sequence[MapSchema]) -> None:
        """Take the statistics of ``maps`` again, now."""
        for schema in maps:
            self._statistics.forget(schema.map_id)
        await self._statistics.refresh(maps)

    async def aside(self, work: Callable[[], T]) -> T:
        """Do ``work`` on the thread of long texts. Raises what it raises."""
        return await self._offload.result(work)

    async def _work(self, text: str, work: Callable[[], T]) -> T:
        return work() if len(text) < LONG_TEXT else await self._offload.result(work)

    def _environment(self, local: bool) -> Environment:
        """What plans depend on now; made anew only when something of it has changed."""
        core, versions = self._core, self._statistics.versions
        made = self._environments.get(local)
        if (
            made is None
            or made.catalog is not core.catalog
            or made.view != core.view.number
            or made.versions is not versions
        ):
            made = self._environments[local] = Environment(
                catalog=core.catalog,
                view=core.view.number,
                members=1 if local else len(core.view.members),
                statistics=self._statistics,
                versions=versions,
            )
        return made

    def __len__(self) -> int:
        """The number of cached plans."""
        return len(self._cache)
