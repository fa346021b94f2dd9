"""Settings of a client: SET, RESET and SHOW.

Drivers and tools set many things when they connect. Settings without effect here are accepted.
Settings that would change answers in a way that is not implemented are refused, so that nobody is
lied to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from remuda.catalog.own.definitions import OwnDefinitions
from remuda.catalog.system_relations import DATABASE
from remuda.catalog.temporary import TemporaryNames
from remuda.copying.encodings import ENCODINGS, canonical
from remuda.datatypes.times.session_zones import UTC, zone_name
from remuda.datatypes.times.text_forms import BYTEA_FORMS, INTERVAL_STYLES, MDY
from remuda.errors import CannotChangeSetting, InputError, NotSupported, UndefinedSetting
from remuda.sql.expressions.functions.ignored_settings import BOOL, IGNORED, NUMBER, IgnoredSetting
from remuda.sql.scope.resolution import DEFAULT_PATH, path_of
from remuda.sql.text.suggest import did_you_mean

USER: Final = "$user"
TRANSACTIONAL: Final = "transactional"
"""Of ``definitions_in_transactions``: the COMMIT makes them."""


class Meaning(NamedTuple):
    """The settings of a session that plans depend on. ``path``: the schemas in which names are
    searched, ``$user`` for the one called as the user; ``database``: its name for the session;
    ``definitions``: those of the transaction."""

    zone: str = UTC
    path: tuple[str, ...] = DEFAULT_PATH
    temporary: TemporaryNames | None = None
    database: str = DATABASE
    definitions: OwnDefinitions | None = None

    def of(self, user: str) -> Meaning:
        """With the name of the user in the path."""
        return self._replace(path=tuple(user if name == USER else name for name in self.path))


PLAIN: Final = Meaning()

Check = Callable[[str], str]
"""The value in its normal form. Raises ValueError with what is allowed."""

_TIME_UNITS: Final = {
    "us": 0.001,
    "ms": 1.0,
    "s": 1e3,
    "min": 6e4,
    "h": 3.6e6,
    "d": 8.64e7,
    "": 1.0,
}
_TRUE: Final = ("on", "true", "yes", "1", "t", "y")
_FALSE: Final = ("off", "false", "no", "0", "f", "n")
TEXT_MAX: Final = 4096
PAUSES: Final = ("before_plan", "before_start", "before_first_page")
"""Where a statement can be made to stop: accepted but not read, planned, running."""
NAMED_MAX: Final = 100


class Harmful(ValueError):
    """A value that PostgreSQL takes and that would be a lie here."""


@dataclass(frozen=True, slots=True)
class Setting:
    """``check`` is None for what cannot be changed."""

    name: str
    default: str
    summary: str
    check: Check | None = None
    amend: Callable[[str, str], str] | None = None
    """For a setting of which a value may say a part only: from the value and that of now to the
    normal form. Raises as ``check``."""


def _any(value: str) -> str:
    if len(value) > TEXT_MAX:
        raise ValueError(f"at most {TEXT_MAX} characters")
    return value


def _boolean(value: str) -> str:
    word = value.lower()
    if word in _TRUE or word in _FALSE:
        return "on" if word in _TRUE else "off"
    raise ValueError("on, off")


def _only(*allowed: str, also: Iterable[str] = ()) -> Check:
    """``allowed`` in their normal form; ``also`` are values that PostgreSQL takes."""

    def check(value: str) -> str:
        found = next((a for a in allowed if a.lower() == value.lower()), None)
        if found is not None:
            return found
        kind = Harmful if value.lower() in also else ValueError
        raise kind(", ".join(allowed))

    return check


def _only_on(value: str) -> str:
    if _boolean(value) == "off":
        raise Harmful("on")
    return "on"


def milliseconds(value: str) -> float:
    """A time as PostgreSQL's settings write it: ``250``, ``5s``, ``1.5 min``."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", value.lower())
    if match is None or match[2] not in _TIME_UNITS:
        raise ValueError("milliseconds, or a number with us, ms, s, min, h or d")
    return float(match[1]) * _TIME_UNITS[match[2]]


def _time(value: str) -> str:
    found = round(milliseconds(value))
    if found > 2**31 - 1:
        raise ValueError("0 to 2147483647 ms")
    for unit, size in (("d", 8.64e7), ("h", 3.6e6), ("min", 6e4), ("s", 1e3)):
        if found and found % size == 0:
            return f"{found / size:.0f}{unit}"
    return f"{found}ms" if found else "0"


def _encoding(value: str) -> str:
    """SQL_ASCII means bytes as they are, in PostgreSQL as well: psql asks for it where the locale
    is C."""
    found = canonical(value)
    if found is None:
        name = re.sub(r"[^a-z0-9]", "", value.lower())
        if re.fullmatch(_OTHER_ENCODINGS, name):
            raise Harmful(", ".join(("UTF8", "SQL_ASCII", *ENCODINGS)))
        raise ValueError(", ".join(("UTF8", "SQL_ASCII", *ENCODINGS)))
    return found


_OTHER_ENCODINGS: Final = (
    r"(latin|iso|win|windows)\d+|alt|win|abc|tcvn\w*|koi8\w*|euc\w+|sjis|shiftjis\w*|mskanji|big5|gbk"
    r"|gb18030|uhc|johab|muleinternal"
)
"""PostgreSQL's names of them, without what is no letter or digit."""


_DATE_STYLE: Final = "ISO, MDY"
_DATE_WORDS: Final = (
    ("iso", "ISO", ""),
    ("sql", "SQL", ""),
    ("postgres", "Postgres", ""),
    ("german", "German", ""),
    ("ymd", "", "YMD"),
    ("dmy", "", "DMY"),
    ("euro", "", "DMY"),
    ("mdy", "", MDY),
    ("us", "", MDY),
    ("noneuro", "", MDY),
    ("default", "ISO", MDY),
)
"""How words of DateStyle begin, the style and the order that they mean."""


def _date_style(value: str, now: str = _DATE_STYLE) -> str:
    """A part that the value leaves out stays as it is ``now``; German brings its order along."""
    style, order = "", ""
    for written in value.split(","):
        word = written.strip().lower()
        means = [(s, o) for begin, s, o in _DATE_WORDS if word.startswith(begin)]
        if not means:
            raise ValueError("a style (ISO, SQL, Postgres, German), and an order (MDY, DMY, YMD)")
        found, ordered = means[0]
        if found and ordered:  # DEFAULT fills what the other words leave open
            style, order = style or found, order or ordered
            continue
        if found and style not in ("", found):
            raise ValueError("one style: ISO, SQL, Postgres or German")
        if ordered and order not in ("", ordered):
            raise ValueError("one order: MDY, DMY or YMD")
        style, order = style or found, order or ordered
    before_style, before_order = now.split(", ")
    if style == "German" and not order:
        order = "DMY"
    return f"{style or before_style}, {order or before_order}"


def _digits(value: str) -> str:
    if not re.fullmatch(r"-?\d+", value) or not -15 <= int(value) <= 3:
        raise ValueError("-15 to 3")
    return str(int(value))


def _pauses(value: str) -> str:
    names = [name for part in value.lower().split(",") if (name := part.strip())]
    if not all(name in PAUSES for name in names):
        raise ValueError(", ".join(PAUSES))
    return ", ".join(dict.fromkeys(names))


def _path(value: str) -> str:
    """Schemas in the order in which they are searched. Those that do not exist are skipped when
    names are looked up, as in PostgreSQL."""
    try:
        path_of(value)
    except ValueError:
        raise ValueError("names of schemas with commas between them") from None
    return value


_ISOLATION: Final = _only("serializable", "repeatable read", "read committed", "read uncommitted")
_LEVELS: Final = _only(
    "debug5", "debug4", "debug3", "debug2", "debug1", "log", "notice", "warning", "error"
)

NO_EFFECT: Final = "accepted without effect: the grid plans and runs statements in its own way"


def _ignored(setting: IgnoredSetting) -> Setting:
    if setting.values == BOOL:
        check: Check = _boolean
    else:
        check = _number if setting.values == NUMBER else _only(*setting.values)
    return Setting(setting.name, setting.default, NO_EFFECT, check)


def _number(value: str) -> str:
    if not re.fullmatch(_NUMBER_WITH_UNIT, value.strip()):
        raise ValueError("a number, with a unit where it has one")
    return value.strip()


_NUMBER_WITH_UNIT: Final = r"-?\d+(\.\d+)?(e-?\d+)?\s*(B|kB|MB|GB|TB|us|ms|s|min|h|d)?"

_SETTINGS: Final = (
    Setting("application_name", "", "what the client calls itself", _any),
    Setting("bytea_output", "hex", "how BYTEA is shown as text", _only(*BYTEA_FORMS)),
    Setting("client_encoding", "UTF8", "the encoding of texts", _encoding),
    Setting(
        "client_min_messages", "notice", "the least notice that PostgreSQL's clients get", _LEVELS
    ),
    Setting(
        "DateStyle", _DATE_STYLE, "how dates are shown and read", _date_style, amend=_date_style
    ),
    Setting(
        "default_transaction_deferrable",
        "off",
        "kept and shown only: a snapshot is always safe to read",
        _boolean,
    ),
    Setting(
        "default_transaction_isolation",
        "serializable",
        "of transactions whose BEGIN names no level",
        _ISOLATION,
    ),
    Setting(
        "default_transaction_read_only",
        "off",
        "whether transactions and single statements only read",
        _boolean,
    ),
    Setting(
        "definitions_in_transactions",
        TRANSACTIONAL,
        "what a definition does between BEGIN and COMMIT: it takes effect with the COMMIT; or it "
        "is refused; or it commits the changes before it, takes effect at once, and the "
        "transaction begins anew",
        _only(TRANSACTIONAL, "refuse", "commit"),
    ),
    Setting("default_tablespace", "", "maps are in no tablespace", _only("", "pg_default")),
    Setting(
        "engine",
        "grid",
        "what runs queries: the grid, Spark over the same maps, or the one that is reckoned faster",
        _only("grid", "spark", "auto"),
    ),
    Setting("extra_float_digits", "1", "digits of floating numbers", _digits),
    Setting(
        "idle_in_transaction_session_timeout",
        "0",
        "how long a transaction of this client may wait for its next statement",
        _time,
    ),
    Setting("integer_datetimes", "on", "times are integers"),
    Setting(
        "IntervalStyle",
        "postgres",
        "how intervals are shown",
        _only(*INTERVAL_STYLES),
    ),
    Setting("jit", "off", "without meaning here", _boolean),
    Setting(
        "keep_profiles",
        "on",
        "off: statements that succeed leave nothing in sys.query_history and "
        "sys.statement_statistics, for tools that watch a cluster by asking again and again",
        _boolean,
    ),
    Setting("lc_collate", "C.UTF-8", "texts are compared by code point"),
    Setting("lc_ctype", "C.UTF-8", "letters are what Unicode says"),
    Setting("lock_timeout", "0", "how long to wait for one lock; 0: as long as possible", _time),
    Setting("max_function_args", "100", "how many arguments PostgreSQL's functions may have"),
    Setting("max_index_keys", "32", "how many columns PostgreSQL's indexes may have"),
    Setting("max_identifier_length", "1073741823", "the length of names is not limited"),
    Setting(
        "read_consistency",
        "latest",
        "latest: a query sees all that was committed before; causal: all that this client and its "
        "member have seen, without asking the other members",
        _only("latest", "causal"),
    ),
    Setting(
        "role",
        "none",
        "SET ROLE and SET SESSION AUTHORIZATION: a user is always the one of the login",
        _only("none"),
    ),
    Setting("search_path", '"$user", public', "where names are looked up", _path),
    Setting("server_encoding", "UTF8", "the encoding of texts"),
    Setting("server_version", "15.0", "the version of PostgreSQL whose dialect this is"),
    Setting("server_version_num", "150000", "the same as a number"),
    Setting(
        "sql_dialect",
        "postgres",
        "drill: statements may also be as Apache Drill's clients write them",
        _only("postgres", "drill"),
    ),
    Setting("standard_conforming_strings", "on", "backslashes mean themselves", _only_on),
    Setting("statement_timeout", "0", "how long a statement may take; 0: as configured", _time),
    Setting("synchronize_seqscans", "on", "without meaning here", _boolean),
    Setting(
        "test_pauses",
        "",
        "for tests of clients: where statements stop until they are resumed (or cancelled); any of "
        + ", ".join(PAUSES),
        _pauses,
    ),
    Setting(
        "TimeZone",
        "UTC",
        "the session's time zone: by its clocks moments are shown, read and taken apart",
        zone_name,
    ),
    Setting(
        "transaction_deferrable", "off", "whether the open transaction is DEFERRABLE", _boolean
    ),
    Setting(
        "transaction_isolation", "serializable", "that of the transaction that is open", _ISOLATION
    ),
    Setting("transaction_read_only", "off", "whether the open transaction only reads", _boolean),
    Setting("xmloption", "content", "without meaning here", _only("content", "document")),
)
SETTINGS: Final[dict[str, Setting]] = {
    setting.name.lower(): setting for setting in (*_SETTINGS, *map(_ignored, IGNORED))
}
_OTHER_NAMES: Final = {"time zone": "timezone", "names": "client_encoding"}


def setting_of(name: str) -> Setting:
    """Raises UndefinedSetting. A name with a dot is the client's own."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    found = SETTINGS.get(name)
    if found is not None:
        return found
    if "." in name:
        return Setting(name, "", "set by the client", _any)
    raise UndefinedSetting(
        f'unrecognized configuration parameter "{name}"', hint=did_you_mean(name, SETTINGS)
    )


def checked(setting: Setting, value: str, now: str = "") -> str:
    """The value in its normal form. ``now``: that of the session so far, "": the default. Raises
    CannotChangeSetting, InputError, NotSupported."""
    if setting.check is None:
        raise CannotChangeSetting(f'parameter "{setting.name}" cannot be changed')
    try:
        return setting.amend(value, now) if setting.amend and now else setting.check(value)
    except Harmful as problem:
        raise NotSupported(
            f'{setting.name} = "{value}" is not supported', hint=f"Possible: {problem}."
        ) from None
    except ValueError as problem:
        raise InputError(
            f'invalid value for parameter "{setting.name}": "{value}"', hint=f"Possible: {problem}."
        ) from None
