"""The notes of a member to its write-ahead log, and when it may tell others.

Every change is noted in the step in which it is made; messages about it to others go through
``after``, which waits until all that was noted is as safe as ``log_sync`` says. So no member ever
knows of something that another one would have forgotten after a loss of power. This class is the
log of a member without ``data_dir``: it notes nothing, and nobody waits. ``member.journal.writer``
has the other one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import call
from typing import TYPE_CHECKING, cast

import pyarrow as pa

from remuda.datatypes.schema import MapSchema
from remuda.datatypes.view import View
from remuda.errors import InputError

if TYPE_CHECKING:
    from remuda.member.state.commit_work import Work
    from remuda.member.state.transaction_sets import PartWork
    from remuda.storage.format.records import HeardLog
    from remuda.transaction.parts import Address


_at_once = cast("Callable[[Callable[[], object]], None]", call)
"""No Python function of its own: every put comes here several times."""


class NoWal:
    """Nothing outlives the process."""

    active = False
    """Whether there is a log, and so: whether what is told must be in it."""

    # --- waiting ------------------------------------------------------------------------------

    after = staticmethod(_at_once)
    """Call the action when all that was noted so far is safe, at once if it is; in order."""

    async def safe(self) -> None:
        """Return when all that was noted so far is safe."""

    def require_room(self) -> None:
        """Before a write begins. Raises DiskFull while there is no room for what would be noted."""

    # --- parts of transactions ----------------------------------------------------------------

    def part_prepared(
        self, address: Address, work: PartWork, timestamp: int, partitions: tuple[int, ...]
    ) -> None:
        """Validated, or kept as a backup, and not decided."""

    def part_committed(
        self, address: Address, work: PartWork, timestamp: int, partitions: tuple[int, ...]
    ) -> None:
        """Its writes are in the stores."""

    def part_rolled_back(self, address: Address) -> None:
        """It will not be committed by anybody."""

    def part_let_go(self, address: Address) -> None:
        """This copy of its partition is void, however it ends."""

    # --- jobs of many rows --------------------------------------------------------------------

    def staged(
        self,
        job: str,
        task: str,
        schema: MapSchema,
        batch: pa.RecordBatch,
        *,
        backup: bool,
        stream: pa.Buffer | None = None,
    ) -> None:
        """Rows that the job will write, here for the first time. ``stream``: the Arrow stream in
        which they came, if it has nothing else."""

    def staged_keys(
        self, job: str, task: str, schema: MapSchema, keys: pa.RecordBatch, *, backup: bool
    ) -> None:
        """Keys of rows that it will remove: the key columns of ``keys``."""

    def job_prepared(
        self, work: Work, timestamp: int, participants: tuple[int, ...], *, backup: bool
    ) -> None:
        """Its rows may be committed here."""

    def job_decided(self, work: Work, timestamp: int) -> None:
        """This member coordinates the job and commits it: nobody has been told yet."""

    def job_ended(self, job: str, timestamp: int | None) -> None:
        """Its rows are in the stores, or (None) dropped."""

    # --- the catalog --------------------------------------------------------------------------

    def committed_job(self, job: str) -> bool:  # noqa: ARG002
        """Whether a job was committed, as far as the log tells."""
        return False

    def catalog_changed(self, version: int, state: bytes) -> None:
        """``state``: the whole catalog, as members send it to each other."""

    # --- copies -------------------------------------------------------------------------------

    def partitions_taken(self, partitions: Collection[int]) -> None:
        """The rows of them that were here are void; copies may come."""

    def rows_copied(
        self, schema: MapSchema, rows: pa.RecordBatch, low: int, floor: int, *, replicated: bool
    ) -> None:
        """Versions of rows that came with partitions (``storage.maps.transfer``) are in the store,
        which is not read below ``floor``."""

    def replicated_taken(self, map_id: int) -> None:
        """The rows of a replicated map that were here are void; a copy comes."""

    def replicated_whole(self) -> None:
        """All replicated maps are here."""

    # --- views --------------------------------------------------------------------------------

    def begin(self, view: View, cluster: bytes) -> None:
        """The first view of this process, before it acts in it. ``cluster``: the identity of a
        cluster that keeps logs; b"": it keeps none. Raises InputError where these do not fit."""
        if cluster:
            raise InputError(
                f"the members of view {view.number} keep logs, and this one has no data_dir",
                hint="Start all members with data_dir, or none.",
            )

    def view_changed(self, before: View, view: View) -> None:
        """Another view, in the step that installs it."""

    def voted(self, view: View) -> None:
        """This member accepts ``view`` as the next one; it says so ``after`` this is safe."""

    # --- logs of others -----------------------------------------------------------------------

    def on_disk(self) -> HeardLog | None:
        """The place in this log that others may be told of."""
        return None

    def heard(self, theirs: HeardLog) -> None:
        """Another member tells that of its log."""

    def gauges(self) -> Mapping[str, int]:
        """For the state of the member."""
        return {}

    async def close(self) -> None:
        """Nothing more is noted."""
