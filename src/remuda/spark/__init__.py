"""Spark and Remuda: a data source, a loader of files, and a session that is ready for both.

Nothing here is imported by the core: ``pip install "remuda[spark]"`` brings what it needs.
"""

from remuda.spark.versions import SparkMissing, check_pyspark

check_pyspark()  # before anything of it is imported

from remuda.spark.catalog import Views, create_views, maps  # noqa: E402
from remuda.spark.copartitioning import co_partitioned  # noqa: E402
from remuda.spark.datasource import RemudaDataSource, prepare  # noqa: E402
from remuda.spark.frames import read, write  # noqa: E402
from remuda.spark.hosting import HostedCluster, start_cluster  # noqa: E402
from remuda.spark.java import Java, JavaMissing, find_java  # noqa: E402
from remuda.spark.load import LoadReport, Progress, load  # noqa: E402
from remuda.spark.reading import Reading  # noqa: E402
from remuda.spark.session import session  # noqa: E402

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
