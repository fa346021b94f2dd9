"""Spark's own cluster on this machine, for tests: a master, and workers of one core each."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120.0


@contextmanager
def standalone_cluster(folder: Path, hosts: Sequence[str]) -> Iterator[str]:
    """The address of the master. ``hosts``: the addresses of the workers; Spark takes different
    ones for different machines."""
    import pyspark  # noqa: PLC0415 (the long tests alone)

    from remuda.spark.java import use_java  # noqa: PLC0415

    environment = dict(os.environ)
    use_java(environment)
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_WORKER_DIR": str(folder / "work")}
    launcher = Path(pyspark.__file__).parent / "bin" / "spark-class"
    running: list[subprocess.Popen[bytes]] = []

    def begin(name: str, host: str, *arguments: str) -> Path:
        log = folder / f"{name}-{len(running)}.log"
        common = ("--host", host, "--port", "0", "--webui-port", "0")
        with log.open("wb") as output:
            running.append(
                subprocess.Popen(
                    [str(launcher), f"org.apache.spark.deploy.{name}", *common, *arguments],
                    env=environment,
                    stdout=output,
                    stderr=output,
                )
            )
        return log

    try:
        log = begin("master.Master", "127.0.0.1")
        address = _found_in(log, r"Starting Spark master at (spark://\S+)")
        for host in hosts:
            begin("worker.Worker", host, "--cores", "1", "--memory", "700m", address)
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


def _found_in(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.1)
    raise TimeoutError(log.read_text(errors="replace"))
