"""Settings: which source wins, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from remuda.config import MemberConfig, member_config, split_address
from remuda.errors import InputError


def test_default_then_file_then_environment_then_flag(tmp_path: Path) -> None:
    file = tmp_path / "member.toml"
    file.write_text('[member]\ncluster = "file"\ncluster_size = 4\nworkers = 4\njoin_timeout = 5\n')
    config = member_config(
        flags={"workers": "2", "host": None},
        environment={"REMUDA_CLUSTER_SIZE": "3", "REMUDA_WORKERS": "3", "REMUDA_OTHER": "x"},
        file=file,
    )
    assert (config.cluster, config.cluster_size, config.workers) == ("file", 3, 2)
    assert (config.host, config.join_timeout) == (MemberConfig().host, 5.0)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"colour": "red"}, "unknown setting 'colour'"),
        ({"cluster_size": "three"}, "must be a whole number"),
        ({"cluster_size": 0}, "cluster_size must be 1 to"),
        ({"user_port": 70000}, "user_port must be 0 to 65535"),
        ({"join_timeout": "soon"}, "must be a number"),
        ({"join": "host"}, "join must be HOST:PORT"),
        ({"log_format": "xml"}, "log_format must be one of text, json"),
        ({"workers": True}, "must be a whole number"),
        ({"admission_timeout": "nan"}, "admission_timeout must be a finite number, not nan"),
        ({"query_timeout": "inf"}, "query_timeout must be a finite number, not inf"),
        ({"snapshot_store": "nope://x"}, "snapshot_store cannot be a URL that begins with nope://"),
        ({"data_dir": "d", "log_archive": "ftp://x"}, "log_archive cannot be a URL"),
        (
            {"member_memory": "much"},
            "flag --member-memory: member_memory must be a number of bytes",
        ),
        ({"member_memory": "-1"}, "member_memory must be a number of bytes, not '-1'"),
        ({"member_memory": "1 PB"}, "member_memory must be a number of bytes, not '1 PB'"),
        ({"storage_memory": 1.5}, "storage_memory must be a whole number, not 1.5"),
    ],
)
def test_wrong_settings_are_named(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        member_config(flags=flags)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("96MB", 96 << 20),
        ("1GiB", 1 << 30),
        (" 1.5 gb ", 3 << 29),
        ("7", 7),
        ("64 kB", 1 << 16),
        ("0", 0),
        ("12B", 12),
        ("9007199254740993", 2**53 + 1),
    ],
)
def test_sizes_may_have_units(tmp_path: Path, text: str, size: int) -> None:
    file = tmp_path / "member.toml"
    file.write_text(f'[member]\nstorage_memory = "{text}"\n')
    assert member_config(flags={"member_memory": text}).member_memory == size
    assert member_config(environment={"REMUDA_SPILL_LIMIT": text}).spill_limit == size
    assert member_config(file=file).storage_memory == size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[member]\ncolour = 1\n", "unknown setting 'colour'"),
        ("[server]\nport = 1\n", "unknown key 'server'"),
        ("[member\n", "not valid TOML"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "member.toml"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as caught:
        member_config(file=file)
    assert str(file) in caught.value.message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        member_config(file=tmp_path / "missing.toml")


def test_addresses() -> None:
    assert split_address("10.0.0.1:31011") == ("10.0.0.1", 31011)
    assert split_address("[::1]:80") == ("::1", 80)
    for wrong in ("host", ":80", "host:", "host:-1", "host:99999", "host:x"):
        with pytest.raises(InputError):
            split_address(wrong)
