"""The release before, built from its commit, and the one after it work together: members, clients,
folders. An upgrade fails no request, also back, until it is finished."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from releases import BEFORE, after, before, missing
from rolling import Fleet
from upgrades import SETTINGS, connected, upgrading, use

from remuda.errors import NotSupported, RemudaError

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.real_start,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
LATER = "COMMENT ON TABLE places IS 'next: a feature of the version after'"


def test_a_member_is_upgraded_and_goes_back_under_load(tmp_path: Path) -> None:
    old, new = before(tmp_path / "before"), after()
    with upgrading(tmp_path, 2, old, new, heartbeat_interval=0.25) as upgrades:
        upgrades.roll(new, range(1))
        mixed = upgrades.releases()
        with connected(upgrades.fleet.addresses) as client, pytest.raises(RemudaError) as caught:
            client.activity.finish_upgrade()
        upgrades.roll(old, range(1))
        again = upgrades.releases()
    assert mixed == [(old.name, old.version), (new.name, old.version)]
    assert f"the upgrade to version {new.version} is not complete: member 2 at" in str(caught.value)
    assert again == [(old.name, old.version)]


def test_an_upgrade_is_finished_and_the_release_before_stays_outside(tmp_path: Path) -> None:
    """Its clients work on, and its folder is refused as it is."""
    old, new = before(tmp_path / "before"), after()
    with Fleet(tmp_path, 2, SETTINGS, old.member) as fleet:
        with connected(fleet.addresses) as client:
            client.sql("CREATE TABLE places (__key BIGINT PRIMARY KEY, n BIGINT)")
        fleet.restart(1, new.member)
        assert use(old, fleet.addresses, tmp_path) == old.name
        assert use(new, fleet.addresses, tmp_path) == new.name
        fleet.restart(0, new.member)
        with connected(fleet.addresses) as client:
            version = "SELECT DISTINCT cluster_version FROM sys.members"
            assert client.sql(version).scalar() == old.version
            if new.name == "0.99.0":
                with pytest.raises(NotSupported, match=f"needs version {new.version} of the"):
                    client.sql(LATER)
            assert "came later" not in _logs(tmp_path)
            client.activity.finish_upgrade()
            assert client.sql(version).scalar() == new.version
            client.activity.finish_upgrade()  # there is nothing to do
            if new.name == "0.99.0":
                client.sql(LATER)
        assert use(old, fleet.addresses, tmp_path) == old.name
        assert use(new, fleet.addresses, tmp_path) == new.name
        assert fleet.leave([1]) == [0]
        with pytest.raises(AssertionError, match=f"works in version {old.version}"):
            fleet.start(1, program=old.member)  # with the folder of the new version
        (tmp_path / "data-2").rename(tmp_path / "data-2-new")
        with pytest.raises(AssertionError, match=f"the cluster works in version {new.version}"):
            fleet.start(1, program=old.member)
        shutil.rmtree(tmp_path / "data-2")
        (tmp_path / "data-2-new").rename(tmp_path / "data-2")
        fleet.start(1, program=new.member)
        fleet.until_complete()
    if new.name == "0.99.0":
        assert "a message that came later" in _logs(tmp_path)


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
