"""Pipelines as files: sources, steps, expectations and targets in YAML, run by Spark.

``parse`` makes a ``Pipeline`` of a file, ``run`` runs it. ``model`` has what a file can say;
docs/pipelines.md is the reference of the format.
"""

from remuda.spark.pipeline.model import Pipeline
from remuda.spark.pipeline.read import parse, parse_text
from remuda.spark.pipeline.report import RunReport
from remuda.spark.pipeline.running import run

__all__ = ["Pipeline", "RunReport", "parse", "parse_text", "run"]
