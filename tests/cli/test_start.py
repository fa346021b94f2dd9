"""``remuda start``: wrong options, and an end while it is still starting."""

from __future__ import annotations

import os
import signal

import pytest

from remuda.cli import start_command
from remuda.cli.main import EXIT_INTERRUPTED, main


@pytest.fixture
def signals():
    """Handlers are of the process: put back what was there."""
    kept = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--members", "0"], "a cluster has 1 to"),
        (["--user-port", "65530"], "user_port must be 0 to 65535, not 65550"),
        (["--timeout", "0"], "timeout must be above 0"),
        (["--config", "no such file"], "cannot read"),
        (["--log-dir", "/dev/null/logs"], "cannot be made"),
    ],
)
def test_wrong_options(options, message, capsys, signals):
    assert main(["start", *options]) == 1
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[member]\nfoo = 1", "unknown setting 'foo'"),
        ("host = 'x'", "unknown key 'host'"),
        ("[member]\nuser_port = 'x'", "user_port must be a whole number"),
        ("[member]\njoin = '127.0.0.1:5'", "the setting join has no place here"),
        ("[member", "not valid TOML"),
    ],
)
def test_wrong_files(content, message, tmp_path, capsys, signals):
    file = tmp_path / "members.toml"
    file.write_text(content)
    assert main(["start", "--config", str(file)]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_start_that_hangs(number, monkeypatch, signals):
    def start(**_options):
        os.kill(os.getpid(), number)
        signal.pause()

    monkeypatch.setattr(start_command, "start", start)
    assert main(["start"]) == EXIT_INTERRUPTED
