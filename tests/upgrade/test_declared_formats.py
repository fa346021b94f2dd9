"""A change of anything that is sent or kept needs a version of the cluster (decision 0112).

``tests/golden/formats/version-N.txt`` has all formats of version N. That of a released version
never changes. ``additions.toml`` has those that came since, with the reason why the release before
needs no version for them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

import pytest
from formats_in_words import lines
from releases import BEFORE

from remuda.release import VERSIONS

FOLDER: Final = Path(__file__).resolve().parents[1] / "golden" / "formats"
ADDITIONS: Final = FOLDER / "additions.toml"
HELP: Final = """
Formats of release {release}, and of this code (docs/upgrade.md):
{listed}
{what}"""
CHANGED: Final = """Changed or taken away. Leave the old one as it is and add a new field, kind or
format beside it. Members keep the old one until the version of the cluster has risen."""
ADDED: Final = """Added. If the release before may pass over it (an optional field whose absence
means what it meant before; an answer that only a newer client asks for), name the line with this
reason in tests/golden/formats/additions.toml. If not: raise VERSIONS.highest in remuda/release.py,
have members send and keep it only when core.view.version has it (cluster.versions.require_version),
then run this test with --rewrite, which writes the file of the new version."""


def of_version(number: int) -> list[str]:
    return (FOLDER / f"version-{number}.txt").read_text(encoding="utf-8").splitlines()


def additions() -> dict[str, str]:
    return tomllib.loads(ADDITIONS.read_text(encoding="utf-8"))["additions"]


def told(what: str, found: list[str]) -> str:
    return HELP.format(release=BEFORE[0], listed="\n".join(found), what=what)


def test_the_formats_of_a_release_stay_as_they_are() -> None:
    now = set(lines())
    gone = [line for line in of_version(BEFORE[1]) if line not in now]
    assert not gone, told(CHANGED, gone)


def test_all_formats_are_declared(golden) -> None:
    known, now = additions(), lines()
    if VERSIONS.highest > BEFORE[1]:
        golden.check(f"formats/version-{VERSIONS.highest}.txt", "\n".join(now))
        return
    declared = {*of_version(BEFORE[1]), *known}
    assert not (fresh := [line for line in now if line not in declared]), told(ADDED, fresh)
    assert not (stale := known.keys() - set(now)), f"additions that are not there: {stale}"


def test_additions_have_reasons() -> None:
    for line, reason in additions().items():
        assert len(reason.split()) >= 4, f"{line}: why does the release before need no version?"


@pytest.mark.parametrize("prefix", ["message", "enum", "plan", "record", "file"])
def test_every_kind_of_format_is_declared(prefix: str) -> None:
    assert sum(line.startswith(f"{prefix} ") for line in of_version(BEFORE[1])) > 20
