"""Storms around the end of an upgrade: members of two releases in one cluster crash, are cut off
from the others, join and leave while operators ask for the version of the newer release (decision
0112).

Whatever happens, the version never falls and rises only when it was asked for, a view names nobody
who does not work in its version, and nobody installs such a view. In the end the members of the
newer release are alone, the upgrade can be finished, and a process of the release before is refused
in words.

A process has a release of its own here (``Release``), though all share the modules of this one:
what reads the constants of ``remuda.release`` is replaced.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest import mock

from sim_cluster import Violation, played, simulation
from sim_loop import CURRENT
from sim_views import STORM, ViewStorm

import remuda.member.base.core as core_module
import remuda.rpc.handshake as handshake
from remuda.datatypes.view import MemberInfo
from remuda.errors import MemberUnavailable, RemudaError, VersionMismatch, WrongState
from remuda.member.member import Member
from remuda.member.membership.membership import Membership
from remuda.release import VERSIONS, Versions
from remuda.rpc.connection import ChannelKind

FINISH: Final = "ALTER CLUSTER FINISH UPGRADE"


@dataclass(frozen=True)
class Release:
    name: str
    versions: Versions


BEFORE: Final = Release("0.2.0", Versions(VERSIONS.lowest, VERSIONS.highest))
AFTER: Final = Release("0.99.0", Versions(VERSIONS.highest, VERSIONS.highest + 1))
FINISHED: Final = AFTER.versions.highest


@contextmanager
def releases(of: dict[str, Release]) -> Iterator[None]:
    """Processes run the releases that ``of`` has by their names; others, as clients, ``AFTER``."""

    def running() -> Release:
        return of.get(CURRENT.get().name, AFTER)

    def info(*given: Any) -> MemberInfo:
        release = running()
        return replace(MemberInfo(*given), release=release.name, versions=release.versions)

    def spoken(function: Any) -> Any:
        def with_release(protocol: handshake.ChannelProtocol, *given: Any) -> None:
            on_the_wire = handshake._on_the_wire(running().versions)
            if protocol.kind is not ChannelKind.USER:
                protocol = replace(protocol, versions=on_the_wire)
            with mock.patch.object(handshake, "NATIVE", on_the_wire):
                function(protocol, *given)

        return with_release

    with ExitStack() as patches:
        patch = mock.patch.object
        patches.enter_context(patch(core_module, "MemberInfo", info))
        for name in ("_set_versions", "_check_versions"):
            patches.enter_context(patch(handshake, name, spoken(getattr(handshake, name))))
        yield


def _works_in(version: int, versions: Versions) -> bool:
    """Not by the code under test."""
    return versions.lowest <= version <= versions.highest


class UpgradeStorm(ViewStorm):
    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.size = min(self.size, 4)
        self.of: dict[str, Release] = {}
        self.versions: dict[int, int] = {}
        """Of the views, by number."""
        self.asked = 0
        """Requests for the newer version that members made."""

    def run(self, seed: int) -> None:
        olds = self.random.randint(1, 2)
        self.of.update({f"m{number}": BEFORE for number in range(1, olds + 1)})
        with releases(self.of), self._counted(), simulation(seed, self.size, backups=1) as sim:
            self.sim = sim
            sim.note(f"storm of {self.size} members, {olds} of the release before")
            sim.form()
            for member in sim.members.values():
                self.watch(member)
            sim.complete(self.storm())
            sim.complete(self.calm())
            sim.complete(self.finished())
            sim.settle(60.0)
            sim.verdict()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        wish = Membership.wish_version

        def counted(membership: Membership, version: int) -> None:
            self.asked += 1
            wish(membership, version)

        with mock.patch.object(Membership, "wish_version", counted):
            yield

    # ---- what must always hold ----

    def watch(self, member: Member) -> None:
        def see(view: Any) -> None:
            self.see(view)
            self._check(member, view)

        see(member.core.view)
        member.core.listeners.view.add(lambda _, view: see(view))

    def _check(self, member: Member, view: Any) -> None:
        found = self.sim.violations
        release = self.of.get(str(member.node), AFTER)  # type: ignore[attr-defined]
        if not _works_in(view.version, release.versions):
            found.append(f"{member.node} of {release} works in version {view.version}")  # type: ignore[attr-defined]
        strangers = [info for info in view.members if not _works_in(view.version, info.versions)]
        if strangers:
            found.append(f"view {view.number} in version {view.version} names {strangers}")
        self.versions[view.number] = view.version
        ordered = [version for _, version in sorted(self.versions.items())]
        if ordered != sorted(ordered):
            found.append(f"the version has fallen: {self.versions}")
        if view.version == FINISHED and not self.asked:
            found.append(f"nobody asked for version {FINISHED}, in which view {view.number} is")

    # ---- the storm ----

    async def storm(self) -> None:
        sim, chance = self.sim, self.random
        looking = sim.loop.create_task(self.look())
        await self.once(1, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
        replaced = chance.uniform(0, STORM / 2)
        work = [self.after(replaced, self.replace_all)]
        for _ in range(chance.randint(0, 2)):
            fault = chance.choice((ViewStorm.crash, ViewStorm.split, ViewStorm.split))
            work.append(self.after(chance.uniform(0, STORM), fault))
        entering = (AFTER, BEFORE, BEFORE, BEFORE)
        work += [self.enter(replaced + chance.uniform(0, 5), release) for release in entering]
        work += [self.ask_to_finish(replaced + chance.uniform(-2, 6)) for _ in range(6)]
        work += [self.after(chance.uniform(0, STORM), self.ask) for _ in range(4)]
        await asyncio.gather(*(sim.loop.create_task(each) for each in work))
        looking.cancel()
        await asyncio.sleep(40.0)

    async def after(self, pause: float, action: Any) -> None:
        await asyncio.sleep(pause)
        await (action(self) if action in (ViewStorm.crash, ViewStorm.split) else action())

    def old(self) -> list[int]:
        """Members of the release before that stay."""
        return [n for n in self.staying() if self.of.get(str(self.sim.nodes[n])) is BEFORE]

    async def replace_all(self) -> None:
        """Those of the release before leave, when one of the other is there to stay."""
        for number in self.old():
            if set(self.staying()) - set(self.old()):
                self.gone.add(number)
                self.events.append("leave")
                await self.sim.leave(number)

    async def enter(self, pause: float, release: Release) -> None:
        await asyncio.sleep(pause)
        if self.staying() and len(self.staying()) < 5:
            self.events.append(await self.joined(release))

    async def joined(self, release: Release) -> str:
        """What became of a process of a release that has asked to join."""
        sim = self.sim
        name = f"m{sim.size + sim.joined + 1}"
        self.of[name] = release
        through = self.random.choice(self.staying())
        before = sim.members[through].core.view.version
        try:
            async with asyncio.timeout(60.0):
                self.watch(await sim.join(through))
            return f"{release.name} joined"
        except VersionMismatch as error:
            self._check_refusal(release, error)
            ended = "refused"
        except (RemudaError, TimeoutError) as error:
            sim.note(f"{name} could not join: {error!r}")
            ended = "lost"
            if before == FINISHED and release is BEFORE and isinstance(error, MemberUnavailable):
                sim.violations.append(f"{name} was not refused in words: {error!r}")
        (made,) = (each for each in sim.made if str(each.node) == name)  # type: ignore[attr-defined]
        sim.network.kill(made.node, silently=False)  # type: ignore[attr-defined]
        return ended

    def _check_refusal(self, release: Release, error: VersionMismatch) -> None:
        said = f"the cluster works in version {FINISHED}, the process that asks to join has release"
        if release is AFTER or said not in error.message or "was finished" not in error.hint:
            self.sim.violations.append(f"a process of {release} was refused: {error!r}")

    async def ask_to_finish(self, pause: float) -> None:
        await asyncio.sleep(max(0.0, pause))
        if self.staying():
            number = self.random.choice(self.staying())
            self.events.append(await self.finish(number))

    async def finish(self, number: int) -> str:
        """How the statement ended on a member. When it ends well, that member works in the new
        version; while one of the release before is a member, nothing but words comes of it."""
        sim = self.sim
        core = sim.members[number].core
        had = {info.versions.highest for info in core.view.members}
        try:
            async with asyncio.timeout(60.0):
                client = await sim.client(number)
                try:
                    await client.run(FINISH)
                finally:
                    client.channel.close()
        except WrongState as error:
            if "is not complete: member" not in error.message:
                sim.violations.append(f"{FINISH} on member {number}: {error!r}")
            return "not complete"
        except (RemudaError, TimeoutError) as error:
            sim.note(f"member {number}, {FINISH}: {error!r}")
            return "not agreed"
        if FINISHED in had and core.view.version != FINISHED:
            sim.violations.append(f"the upgrade is finished, says member {number}: {core.view}")
        return "finished"

    # ---- the end ----

    async def finished(self) -> None:
        """When the calm has come and a majority is there: with those of the new release alone."""
        sim = self.sim
        last = self.views[max(self.views)]
        if 2 * len([n for n in last.by_number if n in self.staying()]) <= len(last.members):
            return
        if not set(self.staying()) - set(self.old()):
            self.watch(await sim.join(self.staying()[0]))  # AFTER: nobody has given it a release
        if self.old():
            found = await self.finish(self.staying()[-1])
            if found != "not complete":
                raise Violation(f"with members of the release before the upgrade is {found}")
        for number in self.old():
            self.gone.add(number)
            await sim.leave(number)
        found = await self.finish(self.staying()[-1])
        self.events.append("finished at the end")
        await asyncio.sleep(2.0)
        versions = {sim.members[number].core.view.version for number in self.staying()}
        if found != "finished" or versions != {FINISHED}:
            raise Violation(f"the upgrade is {found}, members work in {versions}")
        if (ended := await self.joined(BEFORE)) != "refused":
            raise Violation(f"a process of the release before is {ended}")


def run_seed(seed: int) -> UpgradeStorm:
    return played(seed, UpgradeStorm(seed))
