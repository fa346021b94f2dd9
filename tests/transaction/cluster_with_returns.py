"""A cluster of copies whose members are cut off, live on, and give back what only they have.

The views of ``cluster_of_copies``, with partitions that are unreachable: whose last holders live.
Such a holder stops when it hears of the view without it; a while later the view names a member
that has got its rows and its parts. In the end everything has come back, so everything is promised.
"""

from __future__ import annotations

from dataclasses import replace

from cluster_of_copies import KEYS, TROUBLE, Cluster, Member, ViewOfCopies

from remuda.cluster.replicas import without


class ReturningCluster(Cluster):
    longest = 4 * TROUBLE

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.holders: dict[int, tuple[int, ...]] = {}
        """Of unreachable partitions: who kept them in the last view in which somebody did."""
        self.returned = 0

    def lose(self, number: int, crash: bool) -> None:
        """Without a majority there is no view; nobody crashes."""
        last = self.views[-1]
        if number not in last.members or len(self.views) > 6:
            return
        lost = {number}
        if self.random.random() < 0.5 and len(last.members) > 4:
            lost.add(self.random.choice(sorted(last.members - lost)))
        if 2 * len(lost) >= len(last.members):
            return
        table = without(last.table, lost)
        for partition, row in enumerate(table):
            if not row and last.table[partition]:
                self.holders[partition] = last.table[partition]
        self.follow(last, ViewOfCopies(last.number + 1, last.members - lost, table))

    def follow(self, last: ViewOfCopies, view: ViewOfCopies) -> None:
        away = frozenset(p for p, row in enumerate(view.table) if not row)
        view = replace(view, away=away)
        self.views.append(view)
        for member in last.members:
            self.at(self.random.uniform(0.0, 3.0), (member, view))
        for partition in away:
            self.at(self.random.uniform(4.0, 20.0), ("return", partition))

    def happen(self, what: object) -> None:
        match what:
            case ("return", int() as partition):
                self.give_back(partition)
            case _:
                super().happen(what)

    def give_back(self, partition: int) -> None:
        last = self.views[-1]
        if last.table[partition]:
            return
        receivers = [n for n in last.members if self.members[n].view.number == last.number]
        if not receivers:
            self.at(1.0, ("return", partition))
            return
        donor = self.members[self.random.choice(self.holders[partition])]
        receiver = self.members[self.random.choice(receivers)]
        if donor.view.alive(donor.number):
            donor.install(last)  # it has heard that it was dropped, and does nothing any more
        self.note(f"{donor.number} gives partition {partition} to {receiver.number}")
        self.hand_over(donor, receiver, partition)
        self.returned += 1
        table = tuple(
            (receiver.number,) if p == partition else row for p, row in enumerate(last.table)
        )
        # In the same step here, as the receiver waits for the view: nobody else has the partition.
        self.follow(last, ViewOfCopies(last.number + 1, last.members, table))

    def hand_over(self, donor: Member, receiver: Member, partition: int) -> None:
        receiver.clock = max(receiver.clock, donor.clock)
        receiver.perform(receiver.parts.let_go({partition}))
        for key in range(partition * KEYS, (partition + 1) * KEYS):
            receiver.lists.pop(key, None)
            if key in donor.lists:
                receiver.lists[key] = donor.lists[key]
        for given in donor.parts.given({partition}):
            receiver.perform(receiver.parts.take(given))

    @property
    def quiet(self) -> bool:
        return all(self.views[-1].table) and super().quiet

    def check(self) -> None:
        assert all(self.views[-1].table), "everything has come back"
        super().check()
