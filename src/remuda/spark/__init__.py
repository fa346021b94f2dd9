"""Spark and Remuda: a data source, a loader of files, and a session that is ready for both.

Nothing here is imported by the core: ``pip install "remuda[spark]"`` brings what it needs.
"""

from remuda.spark.datasource import RemudaDataSource, prepare, read
from remuda.spark.java import Java, JavaMissing, find_java
from remuda.spark.load import LoadReport, Progress, load
from remuda.spark.session import session

__all__ = [
    "Java",
    "JavaMissing",
    "LoadReport",
    "Progress",
    "RemudaDataSource",
    "find_java",
    "load",
    "prepare",
    "read",
    "session",
]
