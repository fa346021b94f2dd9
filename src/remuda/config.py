"""Settings of a member: default < file (TOML) < environment (REMUDA_*) < flag."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from remuda.errors import InputError
from remuda.limits import HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT, MEMBERS_MAX, MIB

ENVIRONMENT_PREFIX = "REMUDA_"


def _setting(default: object, doc: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"doc": doc, "choices": choices})


@dataclass(frozen=True, kw_only=True)
class MemberConfig:
    """All settings of one member; the metadata of a field documents it."""

    cluster: str = _setting("remuda", "name of the cluster; members of another one are refused")
    cluster_size: int = _setting(1, "number of members that make the cluster")
    host: str = _setting("127.0.0.1", "address to listen on and to give to others")
    user_port: int = _setting(0, "port of the user channel; 0 = any free")
    control_port: int = _setting(0, "port of the control channel; 0 = any free")
    data_port: int = _setting(0, "port of the data channel; 0 = any free")
    join: str = _setting(
        "", "HOST:PORT of the first member's control channel; empty = be the first"
    )
    join_timeout: float = _setting(60.0, "seconds to wait until the cluster is complete")
    control_fd: int = _setting(-1, "listening socket for the control channel, inherited")
    parent_pipe: int = _setting(-1, "end of a pipe; the member stops when the other end closes")
    workers: int = _setting(1, "threads of the cooperative pool; 0 = run everything on the loop")
    statement_memory: int = _setting(4096 * MIB, "bytes that one statement may hold on a member")
    spill_limit: int = _setting(
        32 * 1024 * MIB, "bytes that one statement may put on a member's disk; 0 = never spill"
    )
    spill_directory: str = _setting(
        "", "folder for spilled rows; empty = the system's for temporary files"
    )
    batch_rows: int = _setting(0, "rows per batch of a scan, for tests; 0 = as stored")
    query_timeout: float = _setting(0.0, "seconds after which a query fails; 0 = never")
    heartbeat_interval: float = _setting(HEARTBEAT_INTERVAL, "seconds between heartbeats")
    heartbeat_timeout: float = _setting(HEARTBEAT_TIMEOUT, "silence after which a member is lost")
    log_level: str = _setting("info", "least level to log", ("debug", "info", "warning", "error"))
    log_format: str = _setting("text", "form of the log", ("text", "json"))
    log_file: str = _setting("", "file to append the log to; empty = standard error")

    def __post_init__(self) -> None:
        if not 1 <= self.cluster_size <= MEMBERS_MAX:
            raise InputError(f"cluster_size must be 1 to {MEMBERS_MAX}, not {self.cluster_size}")
        for name in ("user_port", "control_port", "data_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise InputError(f"{name} must be 0 to 65535, not {getattr(self, name)}")
        for name in ("join_timeout", "heartbeat_interval", "heartbeat_timeout", "statement_memory"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in ("workers", "batch_rows", "query_timeout", "spill_limit"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative")
        if self.spill_directory and not Path(self.spill_directory).is_dir():
            raise InputError(f"spill_directory is not a folder: {self.spill_directory}")
        for setting in fields(self):
            choices = setting.metadata["choices"]
            if choices and getattr(self, setting.name) not in choices:
                raise InputError(
                    f"{setting.name} must be one of {', '.join(choices)}, "
                    f"not {getattr(self, setting.name)!r}"
                )
        if self.join:
            split_address(self.join, "join")


def split_address(text: str, what: str = "address") -> tuple[str, int]:
    """``HOST:PORT`` -> (host, port); an IPv6 host may stand in brackets."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{what} must be HOST:PORT, not {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def member_config(
    *,
    flags: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> MemberConfig:
    """Merge the sources. ``flags`` with value None count as not given."""
    merged: dict[str, object] = {}
    if file is not None:
        merged |= _from_file(file)
    merged |= _from_environment(environment or {})
    for name, value in (flags or {}).items():
        if value is not None:
            merged[name] = _convert(name, value, f"flag --{name.replace('_', '-')}")
    return MemberConfig(**merged)  # type: ignore[arg-type]


def _types() -> dict[str, type]:
    return {setting.name: type(setting.default) for setting in fields(MemberConfig)}


def _from_file(file: Path) -> dict[str, object]:
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise InputError(f"{file} is not valid TOML: {problem}") from problem
    section = content.pop("member", {})
    if content or not isinstance(section, dict):
        raise InputError(
            f"{file}: unknown key {next(iter(content), 'member')!r}",
            hint="Settings of a member belong into the table [member].",
        )
    return {name: _convert(name, value, str(file)) for name, value in section.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, object]:
    """``REMUDA_CLUSTER_SIZE=3``; other names with the prefix belong to other parts of Remuda."""
    known = _types()
    found: dict[str, object] = {}
    for variable, text in environment.items():
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if variable.startswith(ENVIRONMENT_PREFIX) and name in known:
            found[name] = _convert(name, text, f"environment variable {variable}")
    return found


def _convert(name: str, value: object, source: str) -> object:
    wanted = _types().get(name)
    if wanted is None:
        raise InputError(
            f"{source}: unknown setting {name!r}",
            hint=f"Known settings: {', '.join(sorted(_types()))}.",
        )
    if isinstance(value, bool):
        raise InputError(f"{source}: {name} must be {_spoken(wanted)}, not {value!r}")
    if wanted is float and isinstance(value, int):
        return float(value)
    if isinstance(value, wanted):
        return value
    if isinstance(value, str) and wanted is not str:
        try:
            return wanted(value.strip())
        except ValueError as problem:
            raise InputError(
                f"{source}: {name} must be {_spoken(wanted)}, not {value!r}"
            ) from problem
    raise InputError(f"{source}: {name} must be {_spoken(wanted)}, not {value!r}")


def _spoken(wanted: type) -> str:
    return {int: "a whole number", float: "a number", str: "text"}[wanted]
