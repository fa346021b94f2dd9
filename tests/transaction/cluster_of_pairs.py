"""The cluster of ``cluster_of_shells`` with one backup, in which most transactions are decided by
the member that is asked last (``transaction.last_part``): their near member is the primary of all
keys but one, and the primary of that one is the backup of the others; or it is the primary of all
keys, which have one backup in common."""

from __future__ import annotations

from cluster_of_shells import KEYS, PARTITION, Client, Cluster, Member

from remuda.transaction.last_part import common_backup, last_part

COPIES = 2


class ClusterOfPairs(Cluster):
    def __init__(self, seed: int) -> None:
        super().__init__(seed, COPIES)
        self.decided_by_last = 0
        """Transactions that were about to take the short way."""

    async def transaction(self, client: Client, near: Member) -> None:
        layout, number = near.transactions.shell.layout, near.number
        for _ in range(40):
            keys = self.random.sample(KEYS, self.random.choice((2, 2, 3)))
            parts = {PARTITION[key] for key in keys}
            if last_part(number, parts, layout) is not None or common_backup(number, parts, layout):
                break
        else:
            await super().transaction(client, near)
            return
        self.decided_by_last += 1
        appends = [key for key in keys if self.random.random() < 0.7]
        await self._commit(client, near, keys, appends, scans=False)
