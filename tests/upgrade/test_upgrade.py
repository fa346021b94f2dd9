"""The release before, built from its commit, and the one after it work together: members, clients,
folders. An upgrade fails no request, also back, until it is finished."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from releases import BEFORE, Release, after, before, missing
from rolling import Fleet
from upgrades import SETTINGS, connected, under_load, upgrading, use

from remuda.errors import NotSupported, RemudaError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real_start,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
LATER = "COMMENT ON TABLE by_release IS 'next: a feature of the version after'"


PAUSE = 0.5
"""Seconds between two requests of a worker: the members start while the load runs."""


@pytest.mark.timeout(900)
def test_an_upgrade_there_back_and_to_its_end(tmp_path: Path) -> None:
    """All with one cluster, since processes that start are what it costs: a member of both releases
    goes back and is upgraded under load, then the other is upgraded, the upgrade is finished, and
    the release before stays outside."""
    old, new = before(tmp_path / "before"), after()
    settings = {**SETTINGS, "heartbeat_interval": 0.25}
    with Fleet(tmp_path, 2, settings, (new.member, old.member)) as fleet:
        back_and_there(fleet, old, new)
        assert use(old, fleet.addresses) == old.name
        assert use(new, fleet.addresses) == new.name
        assert fleet.restart(1, new.member).status == 0
        assert "came later" not in _logs(tmp_path)
        finished(fleet, old, new)
        the_release_before_stays_outside(fleet, old, new)
    if new.name == "0.99.0":
        assert "a message that came later" in _logs(tmp_path)


def back_and_there(fleet: Fleet, old: Release, new: Release) -> None:
    """The first member goes back with the folder that it wrote as a newer release, and is upgraded
    with the one that it wrote as the older one."""
    with under_load(fleet, old, new, PAUSE) as upgrades:
        mixed = upgrades.releases()
        with connected(fleet.addresses) as client, pytest.raises(RemudaError) as caught:
            client.activity.finish_upgrade()
        upgrades.roll(old, range(1))
        back = upgrades.releases()
        upgrades.roll(new, range(1))
        again = upgrades.releases()
    assert mixed == again == [(old.name, old.version), (new.name, old.version)]
    assert f"the upgrade to version {new.version} is not complete: member 2 at" in str(caught.value)
    assert back == [(old.name, old.version)]


def finished(fleet: Fleet, old: Release, new: Release) -> None:
    """Clients of the release before work on."""
    with connected(fleet.addresses) as client:
        version = "SELECT DISTINCT cluster_version FROM sys.members"
        assert client.sql(version).scalar() == old.version
        if new.name == "0.99.0":
            with pytest.raises(NotSupported, match=f"needs version {new.version} of the"):
                client.sql(LATER)
        client.activity.finish_upgrade()
        assert client.sql(version).scalar() == new.version
        client.activity.finish_upgrade()  # there is nothing to do
        if new.name == "0.99.0":
            client.sql(LATER)
    assert use(old, fleet.addresses) == old.name


def the_release_before_stays_outside(fleet: Fleet, old: Release, new: Release) -> None:
    """Without a folder, and with that of the new version, which is left as it is."""
    data = fleet.folder / "data-2"
    assert fleet.leave([1]) == [0]
    with pytest.raises(AssertionError, match=f"works in version {old.version}"):
        fleet.start(1, program=old.member)
    kept = data.rename(fleet.folder / "data-2-new")
    with pytest.raises(AssertionError, match=f"the cluster works in version {new.version}"):
        fleet.start(1, program=old.member)
    shutil.rmtree(data)
    kept.rename(data)
    fleet.start(1, program=new.member)
    fleet.until_complete()


def _logs(folder: Path) -> str:
    return "".join(log.read_text(errors="replace") for log in folder.glob("member-*.log"))


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_ten_rolling_upgrades_there_and_back_fail_no_request(tmp_path: Path) -> None:
    old, new = before(tmp_path / "before"), after()
    with upgrading(tmp_path, 3, old, new) as upgrades:
        for _ in range(10):
            upgrades.roll(new)
            assert upgrades.releases() == [(new.name, old.version)]
            upgrades.roll(old)
            assert upgrades.releases() == [(old.name, old.version)]
            upgrades.check()


def test_the_release_before_is_the_commit_that_is_named() -> None:
    text = subprocess.run(
        ["git", "show", f"{BEFORE[2]}:src/remuda/release.py"],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    ).stdout
    assert f'__version__: Final = "{BEFORE[0]}"' in text
    assert f", {BEFORE[1]})" in text.partition("VERSIONS: Final = Versions(")[2].partition("\n")[0]
