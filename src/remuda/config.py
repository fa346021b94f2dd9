"""Settings of a member: default < file (TOML) < environment (REMUDA_*) < flag."""

from __future__ import annotations

import ipaddress
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from pathlib import Path
from typing import Any

from remuda.errors import InputError
from remuda.limits import (
    BACKUPS_MAX,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    MEMBERS_MAX,
    MIB,
    PARALLEL_ROWS,
)

ENVIRONMENT_PREFIX = "REMUDA_"
_SIZE = re.compile(r"(\d+(?:\.\d*)?)\s*(?:([kmgt])i?b|b|)", re.IGNORECASE | re.ASCII)
_LABEL = re.compile(r"[\w.:-]{1,100}", re.ASCII)
STORE_SCHEMES = ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
"""Of URLs that ``pyarrow.fs`` reads."""
INSECURE_WORDS = "yes, without encryption or passwords"
"""The words that allow listening without protection on an address that others reach."""


def _setting(default: object, doc: str, choices: tuple[str, ...] = ()) -> Any:
    return field(default=default, metadata={"doc": doc, "choices": choices, "size": False})


def _size(default: int, doc: str) -> Any:
    """A number of bytes, which may be written with a unit."""
    return field(default=default, metadata={"doc": doc, "choices": (), "size": True})


@dataclass(frozen=True, kw_only=True)
class MemberConfig:
    """All settings of one member; the metadata of a field documents it."""

    cluster: str = _setting("remuda", "name of the cluster; members of another one are refused")
    cluster_size: int = _setting(1, "number of members that make the cluster")
    host: str = _setting("127.0.0.1", "address to listen on and to give to others")
    user_port: int = _setting(0, "port of the user channel; 0 = any free")
    control_port: int = _setting(0, "port of the control channel; 0 = any free")
    data_port: int = _setting(0, "port of the data channel; 0 = any free")
    postgres_port: int = _setting(0, "port for PostgreSQL's clients; 0 = any free, -1 = none")
    postgres_authentication: str = _setting(
        "scram-sha-256",
        "how PostgreSQL's clients show their password: without sending it, or as it is over TLS",
        ("scram-sha-256", "password"),
    )
    metrics_port: int = _setting(
        0, "port of the pages /metrics, /health and /ready; 0 = any free, -1 = none"
    )
    metrics_host: str = _setting("127.0.0.1", "address on which these pages are served")
    join: str = _setting(
        "", "HOST:PORT of the first member's control channel; empty = be the first"
    )
    join_timeout: float = _setting(60.0, "seconds to wait until the cluster is complete")
    control_fd: int = _setting(-1, "listening socket for the control channel, inherited")
    parent_pipe: int = _setting(-1, "end of a pipe; the member stops when the other end closes")
    workers: int = _setting(1, "threads of the cooperative pool; 0 = run everything on the loop")
    parallel_rows: int = _setting(
        PARALLEL_ROWS, "rows that a query reads on a member for each further thread to join in"
    )
    parallel_scans: str = _setting(
        "chunks",
        "scans that threads share: any rows to anyone, or also those that each must read as a whole"
        " to keep the rows of its partitions",
        ("chunks", "partitions"),
    )
    statement_memory: int = _size(4096 * MIB, "bytes that one statement may hold on a member")
    temporary_memory: int = _size(256 * MIB, "bytes of the temporary tables of one session")
    member_memory: int = _size(
        0,
        "bytes that all statements together may hold on a member; 0 = a quarter of its share of the"
        " machine's, or of the limit of its control group",
    )
    storage_memory: int = _size(
        0,
        "bytes that a member may store: rows with their older versions, backups, indexes, staged"
        " rows; 0 = what member_memory and a reserve leave of its share",
    )
    memory_sharers: int = _setting(
        0,
        "members that share the memory of this member's machine or control group; 0 = those of the"
        " cluster with the same host",
    )
    admission_timeout: float = _setting(
        60.0, "seconds that a query waits for memory to begin; after that it fails"
    )
    spill_limit: int = _size(
        32 * 1024 * MIB, "bytes that one statement may put on a member's disk; 0 = never spill"
    )
    spill_directory: str = _setting(
        "", "folder for spilled rows; empty = the system's for temporary files"
    )
    snapshot_store: str = _setting(
        "",
        "where snapshots lie: a folder that all members share, or a URL that pyarrow.fs reads, such"
        " as s3://bucket/path; empty = there are none",
    )
    snapshot_key_file: str = _setting(
        "",
        "file with the key that new snapshots are encrypted with: 32 bytes, or 64 hexadecimal"
        " digits; empty = they are not encrypted",
    )
    snapshot_every: float = _setting(
        0.0, "seconds between snapshots that are made by themselves, called scheduled; 0 = none are"
    )
    snapshot_keep: float = _setting(
        0.0, "seconds that scheduled snapshots, and moments between them, are kept; 0 = for ever"
    )
    data_dir: str = _setting(
        "",
        "folder of this member's log, from which it starts again; empty = its data is in memory"
        " only. All members of a cluster have one, or none has",
    )
    log_sync: str = _setting(
        "fsync",
        "when a write counts as done: on the disk, or handed to the operating system",
        ("fsync", "os", "none"),
    )
    checkpoint_size: int = _size(
        512 * MIB, "bytes of log after which a member writes a checkpoint: what a start must read"
    )
    log_archive: str = _setting(
        "",
        "where complete pieces of the members' logs are kept: a folder that all members share, or a"
        " URL as for snapshot_store, and another one; empty = nowhere",
    )
    log_archive_every: float = _setting(
        60.0, "seconds after which what was written is in log_archive"
    )
    log_archive_keep: float = _setting(
        0.0, "seconds that pieces of logs stay in log_archive; 0 = until no snapshot needs them"
    )
    log_archive_size: int = _size(0, "bytes of each member's log that stay in log_archive; 0 = all")
    start_without: str = _setting(
        "",
        "numbers of members, such as 2,3, without which the cluster starts again: what only they"
        " have is lost",
    )
    batch_rows: int = _setting(0, "rows per batch of a scan, for tests; 0 = as stored")
    query_timeout: float = _setting(0.0, "seconds after which a query fails; 0 = never")
    transaction_timeout: float = _setting(
        600.0, "seconds after which an open transaction is rolled back; 0 = never"
    )
    transaction_memory: int = _size(
        64 * MIB, "bytes that one transaction may have written before it commits"
    )
    heartbeat_interval: float = _setting(HEARTBEAT_INTERVAL, "seconds between heartbeats")
    heartbeat_timeout: float = _setting(HEARTBEAT_TIMEOUT, "silence after which a member is lost")
    backups: int = _setting(
        1, "copies of each partition besides the primary; what the first member says counts"
    )
    lease: float = _setting(
        0.0,
        "seconds that a member serves without having heard from a majority; 0 = three heartbeat"
        " intervals, or a third of heartbeat_timeout if that is longer",
    )
    leave_timeout: float = _setting(
        30.0,
        "seconds that a member which is told to end (SIGTERM) waits until open work has ended and"
        " its data is given away",
    )
    return_within: float = _setting(
        0.0,
        "seconds for which a member with data_dir that leaves is expected back: its partitions have"
        " one copy less meanwhile, and it needs only what has changed; 0 = copies are made"
        " elsewhere before it leaves",
    )
    minimum_members: int = _setting(
        1, "with fewer members in its view, a member neither reads nor writes"
    )
    labels: str = _setting(
        "",
        "where this member is, such as zone=z1,rack=a: copies of a partition go to different zones,"
        " racks and hosts, as far as they can",
    )
    tls_certificate: str = _setting(
        "", "PEM file with this member's certificate: switches TLS on, on all channels"
    )
    tls_key: str = _setting("", "PEM file with its key; empty = in the certificate's file")
    tls_ca: str = _setting("", "PEM file with the certificates that sign those of members, clients")
    tls_client_certificates: str = _setting(
        "members", "who must show a certificate when connecting", ("members", "all", "none")
    )
    tls_server_name: str = _setting(
        "", "what certificates of members must name; empty = the member's host"
    )
    tls_minimum: str = _setting("1.3", "least version of TLS", ("1.2", "1.3"))
    secret_file: str = _setting("", "file with the secret that all members of the cluster share")
    users_file: str = _setting("", "file of users, passwords, roles; empty = no passwords")
    insecure: str = _setting("", f"{INSECURE_WORDS!r} allows any address without protection")
    log_level: str = _setting("info", "least level to log", ("debug", "info", "warning", "error"))
    log_format: str = _setting("text", "form of the log", ("text", "json"))
    log_file: str = _setting("", "file to append the log to; empty = standard error")
    log_statements: float = _setting(
        10.0, "seconds after which a statement that has ended is noted in the log; 0 = none is"
    )
    trace_endpoint: str = _setting(
        "", "URL of a collector that takes traces of statements (OTLP over HTTP); empty = none"
    )
    audit_file: str = _setting(
        "", "file to append logins, definitions and refusals to, as JSON lines; empty = none"
    )

    def __post_init__(self) -> None:
        if not 1 <= self.cluster_size <= MEMBERS_MAX:
            raise InputError(f"cluster_size must be 1 to {MEMBERS_MAX}, not {self.cluster_size}")
        self._check_ports()
        for name in (
            "join_timeout",
            "heartbeat_interval",
            "heartbeat_timeout",
            "statement_memory",
            "temporary_memory",
            "admission_timeout",
            "parallel_rows",
            "transaction_memory",
            "checkpoint_size",
            "log_archive_every",
        ):
            self._check_finite(name)
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be above 0, not {getattr(self, name)}")
        for name in (
            "workers",
            "batch_rows",
            "query_timeout",
            "transaction_timeout",
            "spill_limit",
            "member_memory",
            "storage_memory",
            "memory_sharers",
            "lease",
            "leave_timeout",
            "return_within",
            "snapshot_every",
            "snapshot_keep",
            "log_archive_keep",
            "log_archive_size",
            "log_statements",
        ):
            self._check_finite(name)
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
        if self.members_given_up and not self.data_dir:
            raise InputError("start_without is of no use without data_dir")
        self._check_stores()
        self._check_membership()
        self._check_protection()
        read_labels(self.labels)

    def _check_ports(self) -> None:
        for name, least in (
            ("user_port", 0),
            ("control_port", 0),
            ("data_port", 0),
            ("postgres_port", -1),
            ("metrics_port", -1),
        ):
            if not least <= getattr(self, name) <= 65535:
                raise InputError(f"{name} must be {least} to 65535, not {getattr(self, name)}")

    @property
    def lease_seconds(self) -> float:
        """Above the interval of heartbeats, below the silence that makes a member lost."""
        interval, timeout = self.heartbeat_interval, self.heartbeat_timeout
        return self.lease or max(0.3 * timeout, min(3 * interval, (interval + timeout) / 2))

    def _check_membership(self) -> None:
        if not 0 <= self.backups <= BACKUPS_MAX:
            raise InputError(f"backups must be 0 to {BACKUPS_MAX}, not {self.backups}")
        most = MEMBERS_MAX if self.join else self.cluster_size
        if not 1 <= self.minimum_members <= most:
            raise InputError(f"minimum_members must be 1 to {most}, not {self.minimum_members}")
        if not self.heartbeat_interval < self.heartbeat_timeout:
            raise InputError(
                f"heartbeat_timeout ({self.heartbeat_timeout}) must be above heartbeat_interval "
                f"({self.heartbeat_interval})"
            )
        if not self.heartbeat_interval < self.lease_seconds < self.heartbeat_timeout:
            raise InputError(
                f"lease must lie between heartbeat_interval ({self.heartbeat_interval}) and "
                f"heartbeat_timeout ({self.heartbeat_timeout}), not {self.lease}"
            )

    def _check_stores(self) -> None:
        if self.log_archive and not self.data_dir:
            raise InputError(
                "log_archive is of no use without data_dir: members keep no logs",
                hint="Set data_dir for all members.",
            )
        if self.log_archive and self.log_archive == self.snapshot_store:
            raise InputError("log_archive and snapshot_store must be different places")
        for name in ("snapshot_store", "log_archive"):
            scheme, found, _ = getattr(self, name).partition("://")
            if found and scheme not in STORE_SCHEMES:
                raise InputError(
                    f"{name} cannot be a URL that begins with {scheme}://",
                    hint=f"Give a folder, or a URL of {', '.join(STORE_SCHEMES)}.",
                )

    @property
    def members_given_up(self) -> frozenset[int]:
        """Numbers in ``start_without``."""
        words = self.start_without.replace(",", " ").split()
        if not all(word.isascii() and word.isdigit() for word in words):
            raise InputError(
                f"start_without must be numbers of members, such as 2,3, not {self.start_without!r}"
            )
        return frozenset(int(word) for word in words)

    def _check_finite(self, name: str) -> None:
        """No time is ever past a NaN: a wait until then would last for ever."""
        if not math.isfinite(getattr(self, name)):
            raise InputError(f"{name} must be a finite number, not {getattr(self, name)}")

    def _check_protection(self) -> None:
        if self.insecure not in ("", INSECURE_WORDS):
            raise InputError(
                f"insecure must be empty or say {INSECURE_WORDS!r}, not {self.insecure!r}"
            )
        if self.tls_certificate and not self.tls_ca:
            raise InputError(
                "tls_certificate needs tls_ca: members check each other's certificates",
                hint="Of a certificate that signs itself, that is the same file.",
            )
        if self.users_file and not self.secret_file:
            raise InputError(
                "users_file needs secret_file: without it, whoever reaches the member's other "
                "channels could pose as a member, and would need no password"
            )
        for name in ("tls_key", "tls_ca", "tls_server_name"):
            if getattr(self, name) and not self.tls_certificate:
                raise InputError(f"{name} is of no use without tls_certificate")
        if self.snapshot_key_file and not (self.snapshot_store or self.log_archive):
            raise InputError("snapshot_key_file is of no use without snapshot_store")
        if self.snapshot_every and not self.snapshot_store:
            raise InputError("snapshot_every is of no use without snapshot_store")


def is_loopback(host: str) -> bool:
    """Whether only processes of this machine reach the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name, which may mean anything
        return False


def read_labels(text: str) -> tuple[tuple[str, str], ...]:
    """``zone=z1,rack=a`` -> pairs, by name. Raises InputError."""
    found: dict[str, str] = {}
    for part in text.split(",") if text.strip() else ():
        name, sign, value = (piece.strip() for piece in part.partition("="))
        if not sign or not _LABEL.fullmatch(name) or not _LABEL.fullmatch(value):
            raise InputError(
                f"labels are NAME=VALUE of letters, digits and _-.:, with commas between, not "
                f"{text!r}",
                hint="Such as zone=z1,rack=a.",
            )
        if name in found:
            raise InputError(f"label {name} is given twice: {text!r}")
        found[name] = value
    return tuple(sorted(found.items()))


def check_exposure(config: MemberConfig) -> None:
    """Raises InputError when others could reach a member that does not protect itself."""
    if is_loopback(config.host) or config.insecure == INSECURE_WORDS:
        return
    lacking = [
        what
        for value, what in (
            (config.tls_certificate, "tls_certificate, tls_key, tls_ca (encryption)"),
            (config.secret_file, "secret_file (what the members of the cluster share)"),
            (config.users_file, "users_file (who may do what)"),
        )
        if not value
    ]
    if lacking:
        raise InputError(
            f"a member that others can reach at {config.host} needs protection",
            detail="not set: " + "; ".join(lacking),
            hint="docs/security.md says how to set it up in five minutes. To go without, in a "
            f'network that you trust entirely, set insecure = "{INSECURE_WORDS}".',
        )


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
    if name in _SIZES and isinstance(value, str):
        return _bytes(name, value, source)
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


_SIZES = frozenset(setting.name for setting in fields(MemberConfig) if setting.metadata["size"])


def _bytes(name: str, text: str, source: str) -> int:
    """``96MB`` and ``96 MiB`` are the same: units are powers of 1024, as in SQL."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise InputError(
            f"{source}: {name} must be a number of bytes, not {text!r}",
            hint="With a unit or without one: 1073741824, 96MB, 1GiB. Units are kB, MB, GB, TB.",
        )
    number, unit = found.groups()
    if unit is None and "." not in number:
        return int(number)
    return int(Decimal(number) * 1024 ** (" kmgt".index(unit.lower()) if unit else 0))


def _spoken(wanted: type) -> str:
    return {int: "a whole number", float: "a number", str: "text"}[wanted]
