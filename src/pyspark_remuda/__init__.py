"""Spark imports top-level modules named ``pyspark_*`` and takes the ``DefaultSource`` of each."""

from remuda.spark.datasource import RemudaDataSource as DefaultSource

__all__ = ["DefaultSource"]
