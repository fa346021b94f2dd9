"""The parts of a client beyond its public names that Remuda's own tools (DB-API, gateway, Spark)
need."""

from __future__ import annotations

from remuda.client.asynchronous.client import Client as AsyncClient
from remuda.client.blocking.change_ranges import ChangeRanges
from remuda.client.blocking.client import Client
from remuda.client.blocking.spark_work import SparkWork
from remuda.client.core.core import Core
from remuda.client.network.driving import finish
from remuda.client.operations import job_outcome
from remuda.client.requests import requests


def core_of(client: Client | AsyncClient) -> Core:
    """Connections and view of a client."""
    return client._core  # noqa: SLF001  (the one door: completion shows users public names alone)


def refuse_transactions(client: Client | AsyncClient) -> None:
    """BEGIN is refused from now on: for a client whose statements come from several users, who do
    not know of each other."""
    core_of(client).refuse_transactions()


def outside(client: Client) -> Client:
    """The same client without the transaction that BEGIN has begun: its statements take effect at
    once."""
    return Client(core_of(client).outside())


def spark_work(client: Client) -> SparkWork:
    """For a service with a Spark session: statements of members that want to run on Spark."""
    return SparkWork(core_of(client))


def change_ranges(client: Client, map_name: str, map_id: int = 0) -> ChangeRanges:
    """The changes of a map between two places in their order; ``Map.changes`` is simpler."""
    return ChangeRanges(core_of(client), map_name, map_id)


def job_committed(client: Client, job: str) -> bool:
    """Whether a job was committed; one that was not yet will not be. Members know it for their last
    10,000 jobs each, also after a start with their logs. Raises TransientError when a member does
    not answer."""
    return finish(job_outcome.job_committed(core_of(client), job))


def read_lease(
    client: Client, run: str, at: int | None = None, *, seconds: int = 60, member: int | None = None
) -> int | None:
    """Have all members keep the versions that the read ``run`` needs, for ``seconds`` from now on:
    call it again before they are over. 0 gives it up.

    ``run`` is a name that nobody else has, ``at`` the timestamp of the read if ``member`` (which is
    to be the same each time) does not know one. Returns the timestamp that it has; None when it has
    none. Raises SnapshotTooOld when the lease has ended.
    """
    return finish(core_of(client).call(member, requests.read_lease(run, at, seconds)))
