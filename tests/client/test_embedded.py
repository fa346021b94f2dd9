"""Starting members as child processes, with a stand-in for the member program."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from remuda.client.embedded import cluster as embedded
from remuda.errors import InputError, MemberUnavailable

READY = """
import json, os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
number = int(options["--number"])
print("starting", file=sys.stderr, flush=True)
print(json.dumps({"ready": True, "member": number, "user": f"127.0.0.1:{number}",
                  "control": "c", "data": "d"}), flush=True)
os.read(int(options["--parent-pipe"]), 1)
"""
REFUSES = """
import json
print(json.dumps({"ready": False, "error": "port 5 is in use"}), flush=True)
"""
DIES = """
import sys
print("first line\\nwhat went wrong", file=sys.stderr)
sys.exit(3)
"""
SILENT = """
import os, sys
options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
os.read(int(options["--parent-pipe"]), 1)
"""


@pytest.fixture
def program(monkeypatch):
    """Replace the member program: one text per member."""

    def install(*programs):
        real = embedded._Plan.command

        def command(plan, index, log, lifeline):
            found = real(plan, index, log, lifeline)
            assert found[1:4] == ["-P", "-m", "remuda.member"]
            assert ("--control-fd" in found) == (index == 0)
            assert ("--join" in found) == (index != 0)
            return [found[0], "-c", programs[index], "--number", str(index + 1), *found[4:]]

        monkeypatch.setattr(embedded._Plan, "command", command)

    return install


@pytest.fixture
def spawned(monkeypatch):
    children = []
    real = subprocess.Popen

    def popen(*args, **kwargs):
        children.append(real(*args, **kwargs))
        return children[-1]

    monkeypatch.setattr(embedded.subprocess, "Popen", popen)
    return children


def test_members_come_and_go(program, spawned, tmp_path):
    program(READY, READY, READY)
    with embedded.start(3, log_dir=tmp_path / "logs") as cluster:
        assert cluster.address == "127.0.0.1:1"
        assert cluster.addresses == ("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3")
        assert len(set(cluster.pids)) == 3
        cluster.check()
    assert [child.returncode for child in spawned] == [0, 0, 0]
    cluster.stop()
    assert (tmp_path / "logs" / "member-2.log").read_text() == "starting\n"


def test_a_least_number_of_members(program, spawned):
    program(READY, READY)
    with embedded.start(2, settings={"minimum_members": 2}) as cluster:
        assert "--minimum-members" in spawned[0].args
        cluster.check()


def test_a_member_that_refuses(program, spawned):
    program(READY, REFUSES)
    with pytest.raises(MemberUnavailable, match="member 2 failed: port 5 is in use"):
        embedded.start(2)
    assert all(child.returncode is not None for child in spawned)


def test_a_member_that_dies_shows_the_end_of_its_log(program, spawned):
    program(READY, READY, DIES)
    with pytest.raises(MemberUnavailable) as caught:
        embedded.start(3)
    assert "member 3 failed: it ended with status 3" in str(caught.value)
    assert str(caught.value).endswith("what went wrong")
    assert all(child.returncode is not None for child in spawned)


def test_a_member_that_is_silent(program, spawned):
    program(SILENT, READY)
    with pytest.raises(MemberUnavailable, match=r"member 1 failed: it was not ready within 0.5 s"):
        embedded.start(2, timeout=0.5)
    assert all(child.returncode is not None for child in spawned)


def test_a_member_that_dies_later(program, spawned):
    program(READY, READY)
    with embedded.start(2) as cluster:
        spawned[1].kill()
        spawned[1].wait()
        with pytest.raises(MemberUnavailable, match="member 2 failed: it ended with status -9"):
            cluster.check()


def test_nothing_is_left_behind(program, tmp_path, monkeypatch):
    monkeypatch.setattr(embedded.tempfile, "tempdir", str(tmp_path))
    program(READY, READY)
    before = set(os.listdir("/proc/self/fd"))
    with embedded.start(2):
        assert os.listdir(tmp_path)
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_members_die_with_a_killed_parent(tmp_path):
    parent = f"""
import os, signal, sys
from remuda.client.embedded import cluster as embedded
real = embedded._Plan.command
embedded._Plan.command = lambda plan, index, log, lifeline: [
    sys.executable, "-c", {READY!r}, "--number", str(index + 1),
    *real(plan, index, log, lifeline)[3:]]
cluster = embedded.start(2, log_dir={str(tmp_path)!r})
print(*cluster.pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    found = subprocess.run(
        [sys.executable, "-c", parent], capture_output=True, text=True, check=False
    )
    assert found.returncode == -9, found.stderr
    for pid in map(int, found.stdout.split()):
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            with contextlib.closing(os.fdopen(descriptor, closefd=True)):
                assert select.select([descriptor], [], [], 20)[0], f"{pid} is still there"


@pytest.mark.parametrize("members", [0, -1, 100_000])
def test_impossible_sizes(members):
    with pytest.raises(InputError, match="members"):
        embedded.start(members)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": {"nope": 1}}, "unknown setting 'nope'"),
        ({"settings": {"workers": "x"}}, "workers must be a whole number"),
        ({"settings": {"join": "127.0.0.1:5"}}, "join has no place here"),
        ({"timeout": 0}, "timeout must be above 0"),
        ({"data_port": 65535}, "data_port must be 0 to 65535, not 65545"),
        ({"settings": {"minimum_members": 3}}, "minimum_members must be 1 to 2, not 3"),
    ],
)
def test_wrong_settings_are_told_before_anything_starts(spawned, options, message):
    with pytest.raises(InputError, match=message):
        embedded.start(2, **options)
    assert not spawned


def test_only_a_log_that_is_kept_is_named(program, tmp_path):
    program(DIES)
    with pytest.raises(MemberUnavailable, match="the end of its log:\nfirst line"):
        embedded.start(1)
    with pytest.raises(MemberUnavailable, match=f"the end of {tmp_path}/starting-1.log:"):
        embedded.start(1, log_dir=tmp_path)


def test_a_port_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"control port 127.0.0.1:{port} cannot be bound"):
            embedded.start(1, control_port=port)


def test_members_are_listed_by_the_numbers_they_got(program, tmp_path):
    swapped = READY.replace('int(options["--number"])', '5 - int(options["--number"])')
    program(READY, swapped, swapped)
    with embedded.start(3, log_dir=tmp_path) as cluster:
        assert [member.number for member in cluster.members] == [1, 2, 3]
        commands = [Path(f"/proc/{pid}/cmdline").read_text().split("\0") for pid in cluster.pids]
        found = [int(command[4]) for command in commands]
        assert found == [1, 3, 2]
        assert sorted(os.listdir(tmp_path)) == ["member-1.log", "member-2.log", "member-3.log"]
