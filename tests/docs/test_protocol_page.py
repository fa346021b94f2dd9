"""docs/protocol.md is what docs/generate_protocol.py makes (or ``--rewrite``), and says the truth
about which operations members serve."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "simulation"))
from sim_cluster import simulation  # noqa: E402 (the simulator lies in a folder of its own)

BY_THE_CONNECTION = {"HANDSHAKE", "SASL_MESSAGE"}
"""What no route serves, because it belongs to every connection."""
BY_THE_CLIENT = {"QUERY_DATA", "QUERY_RESULT", "GOODBYE"}


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_protocol", DOCS / "generate_protocol.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page(golden, generator: ModuleType) -> None:
    golden.check("../../docs/protocol.md", generator.page())


@pytest.mark.parametrize("channel", ["user", "control", "data"])
def test_what_is_served_is_described_so(generator: ModuleType, channel: str) -> None:
    with simulation(0, 1) as sim:
        sim.form()
        member = sim.members[1]
        routes = member._member_routes
        served = {
            "user": set(member._user_routes.supported),
            "control": set(routes.control),
            "data": set(routes.data),
        }[channel]
        sim.stop()
    others = BY_THE_CONNECTION | (BY_THE_CLIENT if channel == "user" else set())
    for number, name, operation in generator.operations(channel):
        asked = operation.mode in ("request", "one-way")
        if name in others:
            assert asked, name
        else:
            assert (number in served) == asked, (
                f"{name} ({number}) of the {channel} channel is described as {operation.mode}, "
                f"and the member {'serves' if number in served else 'does not serve'} it: "
                "change docs/protocol_operations.py, then run " + generator.REWRITE
            )


def test_every_message_of_an_operation_exists(generator: ModuleType) -> None:
    known = {
        message
        for file in generator.proto_files().values()
        for message in file.message_types_by_name
    }
    for channel in ("user", "control", "data"):
        for _, name, operation in generator.operations(channel):
            message = operation.message.split(" ")[0]
            assert not message or message in known, f"{name}: there is no message {message}"


def test_a_field_without_a_meaning_is_refused(
    generator: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator, "meaning", lambda _message, _field: "")
    with pytest.raises(generator.Undescribed, match=r"nobody says what \w+\.\w+ means"):
        generator.page()


def test_meanings_are_of_fields_that_exist(generator: ModuleType) -> None:
    """And of such as the .proto files leave to docs/protocol_fields.py."""
    fields = {
        (message.name, field.name)
        for file in generator.proto_files().values()
        for message in file.message_types_by_name.values()
        for field in message.fields
    }
    meanings = sys.modules["protocol_fields"]
    said = {(message, field) for message, of in meanings.OF.items() for field in of}
    assert said <= fields, said - fields
    assert set(meanings.EVERYWHERE) <= {field for _, field in fields}
