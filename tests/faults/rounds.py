"""One round of fault injection: real members, clients at work, and a nemesis.

    python tests/faults/rounds.py --members 3 --backups 1 --seconds 60 --seed 7 --faults kill,stop

The nemesis does one thing at a time and waits until the cluster is whole again: every partition has
its copies, and there are as many members as at the beginning. The seed decides what it does and
what clients ask for, not how threads interleave.
"""

from __future__ import annotations

import argparse
import itertools
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "transaction"))

import numbering
import snapshotting
import sparking
from namespaces import Namespaces
from processes import Member, Processes
from protection import protect
from transactional import Appends, Transfers
from workload import KINDS, REQUEST_TIMEOUT, Journal, Workers

import remuda
from remuda.client.blocking.client import Client
from remuda.client.requests.requests import ClusterInfo
from remuda.datatypes.view import NOBODY
from remuda.errors import RemudaError

FAULTS = ("kill", "freeze", "add", "stop", "split", "one-way", "flap", "reset")
NETWORKED = {"split", "one-way", "flap", "reset"}
"""Faults of networks: members run in networks of their own."""
WORKS = (
    *("register", "register", "register", "bank", "batch", "bump", "element"),
    *(Appends.name, Appends.name, Transfers.name),
)
MORE_WORKS = (numbering.Numbers.name, snapshotting.Snapshotting.name, sparking.SparkJobs.name)
"""Those of sequences; and two that need more than members."""
HEALING = 90.0
"""Seconds until a cluster must be whole again."""


@dataclass
class Round:
    seed: int = 0
    members: int = 3
    backups: int = 1
    seconds: float = 20.0
    faults: Sequence[str] = ("kill",)
    works: Sequence[str] = WORKS
    heartbeat_interval: float = 0.25
    heartbeat_timeout: float = 2.5
    quiet: float = 1.0
    """Seconds between the end of one fault and the next."""
    most_faults: int = 1_000
    replaces: bool = True
    """Whether another member is started for one that was lost."""
    durable: bool = False
    """Members keep logs, and snapshots in one store."""
    protected: bool = False
    """Members and clients speak TLS, and members share a secret."""
    folder: Path | None = None
    aloud: bool = False
    """Print the timeline while it grows."""
    split_seconds: Sequence[float] = ()
    """How long networks are split; as a rule from half a heartbeat timeout to three."""
    donated: int = 0
    """Partitions that were unreachable, and have come back."""
    timeline: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)

    def run(self) -> Round:
        """``found`` has what was wrong afterwards."""
        with tempfile.TemporaryDirectory(prefix="faults-") as scratch:
            folder = self.folder or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            if NETWORKED.intersection(self.faults):
                with Namespaces(self.members + 24) as namespaces:
                    self._run(folder, namespaces)
            else:
                self._run(folder, None)
        return self

    def report(self) -> str:
        lines = [
            (
                f"seed {self.seed}: {self.members} members, backups={self.backups}, "
                f"faults {','.join(self.faults)}"
            ),
            *self.timeline,
            (
                f"journal: slowest request {self.journal.slowest[0]:.1f} s "
                f"({self.journal.slowest[1]}), longest outage "
                f"{self.journal.outage():.1f} s"
            ),
            f"done: {dict(sorted(self.journal.done.items()))}",
            f"errors: {dict(sorted(self.journal.errors.items()))}",
        ]
        if self.found:
            lines += [f"{len(self.found)} FINDINGS", *self.found[:12]]
        return "\n".join(lines)

    # ---

    def _run(self, folder: Path, namespaces: Namespaces | None) -> None:
        random = Random(self.seed)
        self.journal = Journal(lossy=self.backups == 0)
        settings: dict[str, object] = {
            "backups": self.backups,
            "heartbeat_interval": self.heartbeat_interval,
            "heartbeat_timeout": self.heartbeat_timeout,
            "log_level": "info",
        }
        if self.durable:
            settings["snapshot_store"] = str(folder / "store")
        self._shown: dict[str, str] = {}
        if self.protected:
            hosts = ["127.0.0.1"]
            if namespaces is not None:
                hosts = [namespaces.host(n + 1) for n in range(namespaces.members)]
            self._shown = protect(folder, settings, hosts)
        with Processes(
            folder, self.members, settings, namespaces, durable=self.durable
        ) as self.processes:
            self.watcher = self._connect()
            workers = Workers(self.journal, self._connect, list(self.works), random)
            workers.start()
            try:
                self._say("begin")
                self._torment(Random(random.random()))
                self._say("end")
            except AssertionError as problem:
                self.found.append(f"{self.journal.now():.3f} {problem}")
            finally:
                workers.stop()
            self.found += workers.finish()
            workers.close()
            self.watcher.close()
            self._look_at_logs()

    def _connect(self) -> Client:
        return remuda.connect(
            self.processes.addresses,
            retry_reads=10,
            connect_timeout=5.0,
            request_timeout=REQUEST_TIMEOUT,
            **self._shown,
        )

    def _say(self, text: str) -> None:
        self.timeline.append(f"{self.journal.now():8.3f} {text}")
        if self.aloud:
            print(self.timeline[-1], flush=True)

    # --- the nemesis ---

    def _torment(self, random: Random) -> None:
        end = time.monotonic() + self.seconds
        for turn in itertools.count():
            time.sleep(self.quiet)
            if time.monotonic() > end or turn >= self.most_faults:
                return
            fault = (
                self.faults[turn % len(self.faults)]
                if turn < len(self.faults)
                else (random.choice(list(self.faults)))
            )
            getattr(self, f"_{fault.replace('-', '_')}")(random)
            self._restore()

    def _restore(self) -> None:
        """Wait until the cluster is whole, and replace whom it lost.

        A member that learns late that it was dropped ends itself while we wait. Three that have
        lost one are two, and would stop for good at the next loss.
        """
        self._heal()
        while self.replaces and len(self.processes.live) < self.members:
            self._say(f"added {self.processes.add()}")
            self._heal()

    def _kill(self, random: Random) -> None:
        victim = random.choice(self.processes.live)
        self._say(f"kill {victim}")
        self.processes.kill(victim)

    def _freeze(self, random: Random) -> None:
        victim = random.choice(self.processes.live)
        self._say(f"freeze {victim}")
        self.processes.freeze(victim)
        time.sleep(random.choice((0.5, 1.5, 2.5)) * self.heartbeat_timeout)
        self._say(f"thaw {victim}")
        self.processes.thaw(victim)
        time.sleep(self.heartbeat_timeout)
        self._expect_inside_or_ended(victim)
        if not victim.alive:
            self._say(f"{victim} has ended itself")

    def _add(self, _random: Random) -> None:
        if len(self.processes.live) >= self.members + 3:
            return
        self._say("add a member")
        self._say(f"added {self.processes.add()}")

    def _stop(self, random: Random) -> None:
        if len(self.processes.live) <= max(2, self.backups + 1):
            return
        victim = random.choice(self.processes.live)
        self._say(f"stop {victim}")
        status = self.processes.stop(victim)
        self._say(f"stopped {victim}, status {status}")
        assert status == 0, f"{victim} was asked to leave and ended with status {status}"

    def _split(self, random: Random) -> None:
        few, rest = self._sides(random)
        self._say(f"split off {_listed(few)}")
        self._networks.split(_places(few), _places(rest))
        self._heal_after(self._split_time(random), few)

    def _one_way(self, random: Random) -> None:
        """What one side sends vanishes; the other side is heard, until it waits for answers."""
        few, rest = self._sides(random)
        mute, deaf = (few, rest) if random.random() < 0.5 else (rest, few)
        self._say(f"nothing passes from {_listed(mute)} to {_listed(deaf)}")
        self._networks.silence(_places(mute), _places(deaf))
        self._heal_after(self._split_time(random), few)

    def _flap(self, random: Random) -> None:
        """Half a second split, half a second whole, for 20 s."""
        few, rest = self._sides(random)
        self._say(f"a flapping network before {_listed(few)}")
        end = time.monotonic() + 20.0
        while time.monotonic() < end:
            self._networks.split(_places(few), _places(rest))
            time.sleep(0.5)
            self._networks.heal()
            time.sleep(0.5)
        self._heal_after(0.0, few)

    def _reset(self, random: Random) -> None:
        """Connections of one member are reset and refused for a moment, far less than a lease: it
        stays a member."""
        victim = random.choice(self.processes.live)
        others = [member for member in self.processes.live if member is not victim]
        seconds = random.uniform(0.15, 0.5)
        self._say(f"connections of {victim} are reset and refused for {seconds:.2f} s")
        began = time.monotonic()
        self._networks.refuse(victim.place, _places(others))
        time.sleep(seconds)
        self._networks.heal()
        took = time.monotonic() - began
        time.sleep(4 * self.heartbeat_interval)  # longer than a lease
        if took > 3 * self.heartbeat_interval:  # a lease; so slow is a machine with other work
            self._say(f"which took {took:.2f} s, longer than a lease: it may be dropped")
            return
        assert victim.alive, f"{victim} has ended after its connections were reset"
        self._expect_inside_or_ended(victim)
        assert victim.alive, f"{victim} was dropped after a reset"

    @property
    def _networks(self) -> Namespaces:
        namespaces = self.processes.namespaces
        assert namespaces is not None
        return namespaces

    def _sides(self, random: Random) -> tuple[list[Member], list[Member]]:
        """A minority of the members, and the others."""
        live = self.processes.live
        few = random.sample(live, (len(live) - 1) // 2)
        return few, [member for member in live if member not in few]

    def _split_time(self, random: Random) -> float:
        usual = [factor * self.heartbeat_timeout for factor in (0.5, 2.0, 3.0)]
        return random.choice(list(self.split_seconds) or usual)

    def _heal_after(self, seconds: float, few: Sequence[Member]) -> None:
        """Members that the others have gone on without end when nobody wants their copies."""
        away: set[int] = set()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(min(0.1, max(0.0, end - time.monotonic())))
            self._members()
            away.update(self.watcher._core.view.unreachable)
        self._say("heal")
        self._networks.heal()
        time.sleep(self.heartbeat_timeout)
        for member in few:
            self._expect_inside_or_ended(member)
        away.update(self.watcher._core.view.unreachable)
        if away:
            self.donated += len(away)
            self._say(f"{len(away)} partitions were unreachable")

    def _expect_inside_or_ended(self, member: Member) -> None:
        """A view that was heard has the member, or it has ended. The watcher is asked until it
        hears one: without an answer nobody can say that the member is out."""
        deadline = time.monotonic() + HEALING / 3
        while member.alive and member.number not in self._members():
            assert time.monotonic() < deadline, (
                f"{member} is out of the view, or nobody says, and it has not ended itself"
            )
            time.sleep(0.05)

    # --- looking ---

    def _members(self) -> set[int]:
        """Of the newest view, if the watcher hears of one."""
        try:
            self.watcher.cluster_info()
        except RemudaError:
            return set()
        return {member.number for member in self.watcher._core.view.members}

    def _heal(self) -> None:
        """Wait until the view has exactly the live members, and every partition its copies."""
        begin = time.monotonic()
        why = ""
        while time.monotonic() < begin + HEALING:
            why = self._missing()
            if not why:
                self._say(f"whole again after {time.monotonic() - begin:.1f} s")
                return
            time.sleep(0.1)
        raise AssertionError(f"not whole again after {HEALING:g} s: {why}")

    def _missing(self) -> str:
        for member in self.processes.live:
            if member.ready is None:
                continue
            try:
                info = self._info(member)
            except RemudaError as error:
                return f"{member}: {error.message}"
            if problem := self._incomplete(info):
                return f"{member}: {problem}"
        return ""

    def _info(self, member: Member) -> ClusterInfo:
        assert member.ready is not None
        with remuda.connect(
            member.ready.user, connect_timeout=3.0, request_timeout=5.0, **self._shown
        ) as client:
            return client.cluster_info(member.number)

    def _incomplete(self, info: ClusterInfo) -> str:
        view = info.view
        expected = {member.number for member in self.processes.live}
        found = {member.number for member in view.members}
        if found != expected:
            return f"view {view.number} has members {sorted(found)}, alive are {sorted(expected)}"
        if not self.backups:
            return ""
        if NOBODY in view.owners:
            return f"{len(view.lost)} partitions are lost, {len(view.unreachable)} unreachable"
        if view.emptied:
            return f"{len(view.emptied)} partitions have begun again without a row"
        copies = min(self.backups + 1, len(expected))
        few = sum(len(row) < copies for row in view.replicas)
        return f"{few} partitions have fewer than {copies} copies" if few else ""

    def _look_at_logs(self) -> None:
        for member in self.processes.members:
            if not member.log.exists():
                continue
            lines = member.log.read_text(errors="replace").splitlines()
            for place, line in enumerate(lines):
                if "Traceback" in line or " bug in " in line:
                    text = "\n".join(lines[max(0, place - 2) : place + 25])
                    self.found.append(f"a bug in the log of {member}:\n{text}")
                    break


def _places(members: Sequence[Member]) -> list[int]:
    return [member.place for member in members]


def _listed(members: Sequence[Member]) -> str:
    return ", ".join(map(str, members))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 100_000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--backups", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--heartbeat-timeout", type=float, default=2.5)
    parser.add_argument("--faults", default="kill", help=",".join(FAULTS))
    parser.add_argument("--works", default=",".join(WORKS), help=",".join(KINDS))
    parser.add_argument("--durable", action="store_true", help="with logs and snapshots")
    parser.add_argument("--protected", action="store_true", help="with TLS and a secret")
    parser.add_argument("--aloud", action="store_true", help="print the timeline while it grows")
    parser.add_argument("--split-seconds", default="", help="3.8,9: how long splits last")
    parser.add_argument("--folder", type=Path, help="where the members' logs stay")
    given = parser.parse_args()
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, _frame: sys.exit(128 + number))  # members end, too
    failed = 0
    for number in range(given.rounds):
        seed = given.seed + number
        made = Round(
            seed=seed,
            members=given.members,
            backups=given.backups,
            seconds=given.seconds,
            heartbeat_timeout=given.heartbeat_timeout,
            faults=given.faults.split(","),
            works=given.works.split(","),
            durable=given.durable,
            protected=given.protected,
            split_seconds=[float(each) for each in given.split_seconds.split(",") if each],
            folder=given.folder and given.folder / str(seed),
            aloud=given.aloud,
        ).run()
        print(made.report(), flush=True)
        failed += bool(made.found)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
