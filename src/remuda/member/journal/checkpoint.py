"""Checkpoints of a member: when enough log has been written, an image of the stores takes its
place, so that a start reads no more than that."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path

from remuda.errors import RemudaError
from remuda.member.base.core import Core
from remuda.member.base.offload import Offload
from remuda.member.journal.group import GroupCommit
from remuda.member.journal.image import ImageHead, Taking, remove_others
from remuda.member.journal.writer import MemberWal, part_id
from remuda.member.state.log import fields
from remuda.storage.format import records
from remuda.storage.format.segment import decode_header
from remuda.storage.log.files import LogFiles
from remuda.storage.maps.map_store import MapStore
from remuda.storage.maps.transfer import EVERY_PARTITION
from remuda.transaction.parts import Address

log = logging.getLogger(__name__)

LOOK_EVERY = 1.0
WAIT = 0.05
REPLAYED_MAX = 2**20
"""After a start that has replayed more bytes of log than this, a checkpoint is taken at once: a
member that is started again and again would replay the same records each time."""
KEPT_MAX = 64
"""With more segments than this, those that only an increment still to come needs go as well: it
will be a base then."""
UNARCHIVED_MAX = 1024
"""With more segments than this, those that the archive does not take are given up, too: it has a
gap then, and the disk does not fill up."""


class Checkpoints:
    """Of one log. ``ends`` are those of parts that others may still ask for."""

    def __init__(  # noqa: PLR0917 (made in one place)
        self,
        core: Core,
        wal: MemberWal,
        files: LogFiles,
        root: Path,
        offload: Offload,
        ends: Callable[[], dict[Address, int | None]],
    ) -> None:
        self._core = core
        self._wal = wal
        self._files = files
        self._root = root
        self._offload = offload
        self._ends = ends
        self._written = 0
        self._due = False
        """A start has replayed much."""
        self.number = 0
        self.rows = 0
        self.running = False

    def behind(self, size: int) -> None:
        """So many bytes lie between the last checkpoint and the start of the process."""
        self._written -= size
        self._due = size > REPLAYED_MAX

    async def run(self) -> None:
        """For ever: mark what is idle, and checkpoint what has grown."""
        while True:
            await asyncio.sleep(LOOK_EVERY)
            group = self._wal.group
            assert group is not None
            group.mark()
            group.look()
            self._wal.note_heard()
            grown = group.bytes - self._written >= self._core.config.checkpoint_size
            if grown or self._due:
                self._due = False
                try:
                    await self.take()
                except RemudaError as error:  # the log goes on; tried again when it has grown more
                    self._written = group.bytes
                    log.error("checkpoint failed", extra=fields(error=error.message))

    async def take(self) -> None:
        """Write an image, then give up what it replaces. Raises DiskFull, ResourceError."""
        group = self._wal.group
        assert group is not None
        while self.running or not self._wal.may_checkpoint:
            await asyncio.sleep(WAIT)
        self.running = True
        stores = [*self._core.stores.values(), *self._core.backup_stores.values()]
        for store in stores:
            store.resting += 1  # upkeep would rewrite what is being read
        try:
            head, taking = self._begin(group), Taking(self._pinned())
            work = partial(taking.write, self._files.disk, self._root, head)
            digest, rows = await self._offload.result(work)
        finally:
            for store in stores:
                store.resting -= 1
            self.running = False
        group.append(
            records.Checkpoint(
                head.number,
                head.clock,
                head.replay_from,
                f"checkpoint {head.number}",
                bytes.fromhex(digest),
            ),
            sync=True,
        )
        await group.safe()
        self.number = head.number
        self._wal.checkpointed(head.number)
        self.rows = rows
        await self._offload.result(partial(self._retire, head))
        log.info(
            "checkpoint",
            extra=fields(number=head.number, rows=rows, replay_from=head.replay_from),
        )

    def _pinned(self) -> list[tuple[MapStore, frozenset[int]]]:
        """The stores, and the partitions whose history is taken from each: a partition that was
        given away ended there, and goes on where it is backed up."""
        core, found = self._core, []
        here = core.primary_here
        mine = frozenset(core.view.partitions_of(core.number)) if here is None else here
        for map_id, store in core.stores.items():
            kept = mine - core.unmoved.get(map_id, frozenset())
            found.append((store, EVERY_PARTITION if store.schema.replicated else kept))
        found += [(store, EVERY_PARTITION) for store in core.backup_stores.values()]
        return found

    def _begin(self, group: GroupCommit) -> ImageHead:
        """In one step with the pinning of the stores."""
        writer, wal = group.writer, self._wal
        writer.roll()
        self._written = group.bytes
        sequence = writer.last + 1
        heard = wal.heard_logs.whole()
        if heard is not None:
            group.append(heard)  # its former place may go
        opened = [*wal.prepared.values(), *wal.open_jobs.values()]
        return ImageHead(
            sequence,  # grows from checkpoint to checkpoint, over restarts, too
            sequence,
            min([sequence, *opened]),
            self._core.clock.last,
            wal.catalog_state,
            wal.replicated,
            {part_id(address): end for address, end in self._ends().items()},
            dict(wal.job_ends),
        )

    def _retire(self, head: ImageHead) -> None:
        """On the thread. The images before, and the segments that lie wholly before the replay."""
        remove_others(self._files.disk, self._root, head.number)
        numbers = self._files.numbers()
        gone: list[int] = []
        kept = self._wal.keep_from if len(numbers) <= KEPT_MAX else None
        replay_from = head.replay_from if kept is None else min(kept, head.replay_from)
        archived = self._wal.archived
        if archived is not None and len(numbers) <= UNARCHIVED_MAX:
            replay_from = min(replay_from, archived + 1)
        for number, follower in pairwise(numbers):
            if decode_header(self._files.head(follower)).first > replay_from:
                break
            gone.append(number)
        if gone:
            self._files.remove(gone)
