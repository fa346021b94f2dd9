"""Spark and Remuda: a data source, a loader of files, and a session that is ready for both.

Nothing here is imported by the core: ``pip install "remuda[spark]"`` brings what it needs. The
names below are loaded when they are first used: Spark imports this package in every Python worker
that it starts, for the data source alone.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from remuda.spark.versions import SparkMissing, check_pyspark

check_pyspark()  # before anything of it is imported

# Not later, as the others: the module of that name would stand in its place.
from remuda.spark.session import session  # noqa: E402

if TYPE_CHECKING:
    from remuda.spark.catalog import Views, create_views, maps
    from remuda.spark.copartitioning import co_partitioned
    from remuda.spark.datasource import RemudaDataSource, prepare
    from remuda.spark.frames import read, write
    from remuda.spark.hosting.start import HostedCluster, start_cluster
    from remuda.spark.java import Java, JavaMissing, find_java
    from remuda.spark.loading.loader import LoadReport, Progress, load
    from remuda.spark.reading import Reading

__all__ = [
    "HostedCluster",
    "Java",
    "JavaMissing",
    "LoadReport",
    "Progress",
    "Reading",
    "RemudaDataSource",
    "SparkMissing",
    "Views",
    "co_partitioned",
    "create_views",
    "find_java",
    "load",
    "maps",
    "prepare",
    "read",
    "session",
    "start_cluster",
    "write",
]

_HOMES = {
    "HostedCluster": "remuda.spark.hosting.start",
    "Java": "remuda.spark.java",
    "JavaMissing": "remuda.spark.java",
    "LoadReport": "remuda.spark.loading.loader",
    "Progress": "remuda.spark.loading.loader",
    "Reading": "remuda.spark.reading",
    "RemudaDataSource": "remuda.spark.datasource",
    "Views": "remuda.spark.catalog",
    "co_partitioned": "remuda.spark.copartitioning",
    "create_views": "remuda.spark.catalog",
    "find_java": "remuda.spark.java",
    "load": "remuda.spark.loading.loader",
    "maps": "remuda.spark.catalog",
    "prepare": "remuda.spark.datasource",
    "read": "remuda.spark.frames",
    "start_cluster": "remuda.spark.hosting.start",
    "write": "remuda.spark.frames",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'remuda.spark' has no attribute {name!r}")
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
