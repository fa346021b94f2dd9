"""Several DataFrames, and several jobs, of one state of the grid."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from remuda.client.network.login import of_options
from remuda.spark.frames import Option, read
from remuda.spark.transfer.grid import connect
from remuda.spark.transfer.options import LEASE_SECONDS
from remuda.spark.transfer.read_time import ReadTime, ticket


class Reading:
    """A timestamp of the grid, kept from the making until ``close``, for use with ``with``::

        with remuda.spark.Reading(spark, address) as state:
            state.read("orders").join(state.read("customers"), "customer")

    Its versions stay in the members' memory meanwhile. ``security``: as the options of the source.
    Raises MemberUnavailable, AuthenticationFailed, ...
    """

    def __init__(self, spark: SparkSession, address: str, **security: str) -> None:
        self._spark = spark
        self._address = address
        self._options = security
        given = {("key" if name == "tls_key" else name): security[name] for name in security}
        self._time = ReadTime(
            lambda: connect(address, of_options(given)), f"driver/{ticket()}", seconds=LEASE_SECONDS
        )

    @property
    def at(self) -> int:
        """The hybrid timestamp; option ``at`` of the source takes it."""
        return self._time.at

    def read(
        self,
        map: str | None = None,  # noqa: A002 (a map is what it is)
        **options: Option,
    ) -> DataFrame:
        """As ``remuda.spark.read``, at this timestamp."""
        every: dict[str, Option] = {**self._options, **options}
        return read(self._spark, self._address, map, at=self.at, **every)  # type: ignore[arg-type]

    def close(self) -> None:
        """The versions may go. Closing twice does nothing."""
        self._time.close(release=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
