"""The settings and prepared statements of a client. They travel with its statements, so members
keep nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

from remuda.catalog.own.definitions import OwnDefinitions
from remuda.catalog.system_relations import DATABASE, OWNER
from remuda.catalog.temporary import TemporaryTables
from remuda.datatypes.schema import PG_TEMP
from remuda.datatypes.sql import SqlType
from remuda.datatypes.times.session_zones import UTC, zone_with_forms
from remuda.datatypes.times.text_forms import TextForms
from remuda.errors import LimitExceeded, ProtocolError
from remuda.rpc import type_codec
from remuda.session.settings import NAMED_MAX, PLAIN, SETTINGS, Meaning, Setting, milliseconds
from remuda.sql.scope.resolution import path_of

_OF_TEXTS: Final = frozenset({"bytea_output", "datestyle", "extra_float_digits", "intervalstyle"})
"""Settings by which values are written and read."""
_NEXT: Final = frozenset(
    {"transaction_deferrable", "transaction_isolation", "transaction_read_only"}
)
SESSION_SIZE_MAX: Final = 1024 * 1024
SEQUENCES_MAX: Final = 1000
"""Sequences whose last number a session knows: those that it used last."""


@dataclass(frozen=True, slots=True)
class PreparedText:
    """A statement under a name. ``types``: those declared for its parameters, None for none."""

    text: str
    types: tuple[SqlType, ...] | None


@dataclass(frozen=True)
class ClientSession:
    """Immutable; ``values`` are the settings that differ from their defaults.

    ``defaults`` are the values that the user's entry and the startup packet have given: RESET and
    DISCARD ALL restore them. They stay on the member that has the connection.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    prepared: Mapping[str, PreparedText] = field(default_factory=dict)
    user: str = OWNER
    """The user as whom the client has logged in; never a name that it just gives, so it does not
    travel."""
    pid: int = 0
    """Of its connection, on the member that runs the statement."""
    database: str = DATABASE
    """The name under which a client of PostgreSQL has asked for the one database. It does not
    travel either."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[int, int] = field(default_factory=dict)
    """The last number that it took of each sequence, by map id; of the latest one, last."""

    temporary: TemporaryTables | None = None
    """They stay on the member that has the connection."""
    definitions: OwnDefinitions | None = None
    """Those of the open transaction, in the session as its statements see it."""

    def value(self, setting: Setting) -> str:
        name = setting.name.lower()
        found = self.values.get(name)
        if found is None and name in _NEXT:  # outside of a transaction: that of the next one
            return self.value(SETTINGS[f"default_{name}"])
        return setting.default if found is None else found

    @property
    def timeout(self) -> float | None:
        """Seconds; None: not set."""
        return milliseconds(self.value(SETTINGS["statement_timeout"])) / 1000 or None

    @property
    def lock_timeout(self) -> float | None:
        """Seconds; None: not set."""
        value = self.value(SETTINGS["lock_timeout"])
        return None if value == "0" else milliseconds(value) / 1000

    @property
    def causal(self) -> bool:
        return self.value(SETTINGS["read_consistency"]) == "causal"

    @property
    def engine(self) -> str:
        """grid, spark or auto."""
        return self.values.get("engine", "grid")

    @cached_property
    def zone(self) -> str:
        """The time zone, with the forms of texts, as ``session_zone`` knows them."""
        values = self.values
        name = values.get("timezone", UTC)
        if values.keys().isdisjoint(_OF_TEXTS):
            return name
        style, order = self.value(SETTINGS["datestyle"]).split(", ")
        forms = TextForms(
            style,
            order,
            self.value(SETTINGS["intervalstyle"]),
            self.value(SETTINGS["bytea_output"]),
            min(int(self.value(SETTINGS["extra_float_digits"])), 1),
        )
        return zone_with_forms(name, forms)

    @cached_property
    def meaning(self) -> Meaning:
        """The parts of it that plans depend on."""
        temporary = self.temporary
        own = self.definitions
        if not self.values and temporary is None and self.database == DATABASE and own is None:
            return PLAIN
        value = self.values.get("search_path")
        path = PLAIN.path if value is None else path_of(value)
        if temporary is None or temporary.names is None:
            return Meaning(self.zone, path, None, self.database, own)
        if PG_TEMP not in path:
            path = (PG_TEMP, *path)
        return Meaning(self.zone, path, temporary.names, self.database, own)

    @property
    def rows_max(self) -> int | None:
        """Of a result, as Drill's JDBC driver sets it by ``Statement.setMaxRows``; None: all."""
        value = self.values.get("exec.query.max_rows", "")
        return int(value) or None if self.drill and value.isdecimal() else None

    @property
    def pauses(self) -> tuple[str, ...]:
        """Places where statements stop (``member.queries.pauses``)."""
        value = self.values.get("test_pauses", "")
        return tuple(value.split(", ")) if value else ()

    @property
    def keeps_profiles(self) -> bool:
        """Whether statements that succeed leave a profile."""
        return self.values.get("keep_profiles") != "off"

    @property
    def drill(self) -> bool:
        """Whether statements are in Drill's dialect."""
        return self.values.get("sql_dialect") == "drill"

    def of(self, user: str, pid: int) -> ClientSession:
        """The same session, as that of a user and a connection."""
        kept = self.defaults, self.numbers, self.temporary, self.definitions
        return ClientSession(self.values, self.prepared, user, pid, DATABASE, *kept)

    def with_numbers(self, taken: Mapping[int, int]) -> ClientSession:
        """With the last numbers of more sequences, in the order of their taking."""
        numbers = {number: v for number, v in self.numbers.items() if number not in taken}
        numbers.update(taken)
        return replace(self, numbers=dict(list(numbers.items())[-SEQUENCES_MAX:]))

    def _with(
        self,
        values: Mapping[str, str],
        prepared: Mapping[str, PreparedText],
        numbers: Mapping[int, int],
    ) -> ClientSession:
        return ClientSession(
            values,
            prepared,
            database=self.database,
            defaults=self.defaults,
            numbers=numbers,
            temporary=self.temporary,
        )

    def with_value(self, setting: Setting, value: str | None) -> ClientSession:
        """None: the default."""
        if value is None:
            value = self.defaults.get(setting.name.lower())
        values = {name: v for name, v in self.values.items() if name != setting.name.lower()}
        if value is not None and value != setting.default:
            values[setting.name.lower()] = value
        if len(values) > NAMED_MAX + len(SETTINGS):
            raise LimitExceeded(f"a client can have at most {NAMED_MAX} settings of its own")
        return self.with_values(values)

    def with_values(self, values: Mapping[str, str]) -> ClientSession:
        """With these settings instead of its own."""
        return self._with(values, self.prepared, self.numbers)

    def with_defaults(self, defaults: Mapping[str, str]) -> ClientSession:
        """A session that begins with ``defaults``, and goes back to them."""
        begun = ClientSession(defaults=defaults).reset()
        return ClientSession(
            begun.values,
            self.prepared,
            self.user,
            self.pid,
            self.database,
            defaults=defaults,
            numbers=self.numbers,
            temporary=self.temporary,
        )

    def with_temporary(self, temporary: TemporaryTables | None) -> ClientSession:
        return replace(self, temporary=temporary)

    def reset(self) -> ClientSession:
        """With all settings at their defaults (RESET ALL)."""
        known = self.defaults.items()
        own = {n: v for n, v in known if n not in SETTINGS or v != SETTINGS[n].default}
        return self.with_values(own)

    def without_prepared(self) -> ClientSession:
        return self._with(self.values, {}, self.numbers)

    def with_prepared(self, name: str, prepared: PreparedText | None) -> ClientSession:
        others = {n: p for n, p in self.prepared.items() if n != name}
        if prepared is not None:
            others[name] = prepared
        return self._with(self.values, others, self.numbers)

    def encode(self) -> bytes:
        """Raises LimitExceeded."""
        prepared = {
            name: [p.text, None if p.types is None else type_codec.encode_types(p.types).hex()]
            for name, p in self.prepared.items()
        }
        parts: list[object] = [dict(self.values), prepared]
        if self.numbers:
            parts.append(list(self.numbers.items()))
        data = json.dumps(parts, separators=(",", ":")).encode()
        if len(data) > SESSION_SIZE_MAX:
            raise LimitExceeded(
                f"settings and prepared statements of a client take more than "
                f"{SESSION_SIZE_MAX} bytes",
                hint="Give up prepared statements with DEALLOCATE.",
            )
        return data


NO_SESSION: Final = ClientSession()


def decode_session(data: bytes) -> ClientSession:
    """Raises ProtocolError."""
    if not data:
        return NO_SESSION
    try:
        values, prepared, *more = json.loads(data)
        numbers = {int(number): int(value) for number, value in (more[0] if more else ())}
        return ClientSession(
            {str(name).lower(): str(value) for name, value in values.items()},
            {str(name): _prepared(*entry) for name, entry in prepared.items()},
            numbers=numbers,
        )
    except (ValueError, TypeError, AttributeError) as problem:
        raise ProtocolError("the client's session cannot be read") from problem


def _prepared(text: Any, types: Any) -> PreparedText:
    return PreparedText(
        str(text), None if types is None else type_codec.decode_types(bytes.fromhex(types))
    )
