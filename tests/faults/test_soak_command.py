"""``./run soak faults``: what it says of rounds that cannot run here, and its long rounds with
snapshots and with Spark jobs."""

from __future__ import annotations

from pathlib import Path

import calm
import pytest
import soak
from namespaces import Namespaces

RUN = Path(__file__).parents[2] / "run"


def test_what_this_machine_cannot_do_is_skipped_with_a_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Namespaces, "available", lambda: False)
    assert soak.main(["--only", "split"]) == 0
    told = capsys.readouterr().out
    assert "split: skipped: no right to make network namespaces" in told
    assert "nothing was found" in told


def test_a_round_that_finds_something_fails_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def found(kind: str, seed: int, seconds: float) -> list[str]:
        assert (kind, seconds) == ("kill", 3.0)
        return ["a lost row"] if seed == 8 else []

    monkeypatch.setattr(soak, "_played", found)
    assert soak.main(["--only", "kill", "--rounds", "2", "--seed", "7", "--seconds", "3"]) == 1
    assert "1 rounds with findings" in capsys.readouterr().out


def test_an_unknown_kind_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--only", "kill,flood"])
    assert "no kind of round 'flood'" in capsys.readouterr().err


def test_run_knows_the_command() -> None:
    assert "tests/faults/soak.py" in RUN.read_text()


@pytest.mark.soak
@pytest.mark.cluster
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["snapshots", "spark"])
def test_snapshots_and_spark_jobs_under_faults(kind: str, seed: int) -> None:
    if reason := soak.KINDS[kind].missing():
        pytest.skip(reason)
    made = soak.made(kind, seed, 60.0).run()
    if made.found:
        pytest.fail(made.report(), pytrace=False)


def test_a_calm_hour_ends_when_the_view_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = iter([({4}, 0.5), ({4}, 2.5), ({4}, 1.0), ({5}, 3.0)])
    monkeypatch.setattr(calm, "LOOK", 0.0)
    monkeypatch.setattr(calm, "members", lambda _client: next(seen))
    assert calm.look(None, {4}, 3600.0, []) == 3.0  # type: ignore[arg-type]
    assert capsys.readouterr().out == "", "a tenth of the time has not passed"
