"""Settings and prepared statements of a client: what is taken, refused, and written down."""

from __future__ import annotations

import pytest

from remuda.datatypes.sql import INTEGER, VARCHAR
from remuda.errors import (
    CannotChangeSetting,
    InputError,
    LimitExceeded,
    NotSupported,
    ProtocolError,
    UndefinedSetting,
)
from remuda.session.client_session import (
    NO_SESSION,
    SESSION_SIZE_MAX,
    ClientSession,
    PreparedText,
    decode_session,
)
from remuda.session.settings import SETTINGS, checked, setting_of

ACCEPTED = [
    ("statement_timeout", "100", "100ms"),
    ("statement_timeout", "5s", "5s"),
    ("statement_timeout", "1.5 min", "90s"),
    ("statement_timeout", "120000", "2min"),
    ("statement_timeout", "0", "0"),
    ("timezone", "utc", "UTC"),
    ("TIME ZONE", "etc/utc", "Etc/UTC"),
    ("timezone", "europe/berlin", "Europe/Berlin"),
    ("timezone", "-3.5", "<-03:30>+03:30"),
    ("names", "utf-8", "UTF8"),
    ("client_encoding", "UNICODE", "UTF8"),
    ("client_encoding", "iso-8859-1", "LATIN1"),
    ("client_encoding", "windows1252", "WIN1252"),
    ("datestyle", "ISO", "ISO, MDY"),
    ("datestyle", "iso,us", "ISO, MDY"),
    ("datestyle", "NonEuropean", "ISO, MDY"),
    ("datestyle", "German", "German, DMY"),
    ("datestyle", "YMD", "ISO, YMD"),
    ("datestyle", "sql, European", "SQL, DMY"),
    ("intervalstyle", "ISO_8601", "iso_8601"),
    ("bytea_output", "ESCAPE", "escape"),
    ("extra_float_digits", "3", "3"),
    ("extra_float_digits", "-15", "-15"),
    ("search_path", 'public, "$user"', 'public, "$user"'),
    ("search_path", "missing, public", "missing, public"),
    ("search_path", "pg_catalog, public", "pg_catalog, public"),
    ("search_path", "", ""),
    ("search_path", '"", Sales', '"", Sales'),
    ("standard_conforming_strings", "true", "on"),
    ("application_name", "my app", "my app"),
    ("read_consistency", "CAUSAL", "causal"),
    ("default_transaction_isolation", "READ COMMITTED", "read committed"),
    ("keep_profiles", "NO", "off"),
    ("my.setting", "anything", "anything"),
]
REFUSED = [
    ("timezone", "Europe/Nowhere", InputError),
    ("client_encoding", "mule internal", NotSupported),
    ("datestyle", "iso, nonsense", InputError),
    ("extra_float_digits", "99", InputError),
    ("search_path", "other,,public", InputError),
    ("search_path", 'other, "public', InputError),
    ("standard_conforming_strings", "off", NotSupported),
    ("standard_conforming_strings", "maybe", InputError),
    ("default_transaction_isolation", "snapshot", InputError),
    ("statement_timeout", "abc", InputError),
    ("statement_timeout", "-5", InputError),
    ("statement_timeout", "99999999999", InputError),
    ("read_consistency", "never", InputError),
    ("server_version", "9", CannotChangeSetting),
    ("application_name", "x" * 5000, InputError),
]


@pytest.mark.parametrize(("name", "value", "normal"), ACCEPTED)
def test_values_that_are_taken(name: str, value: str, normal: str) -> None:
    assert checked(setting_of(name), value) == normal


@pytest.mark.parametrize(("name", "value", "kind"), REFUSED)
def test_values_that_are_refused(name: str, value: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        checked(setting_of(name), value)


def test_every_default_is_a_value_that_is_taken() -> None:
    for setting in SETTINGS.values():
        if setting.check is not None:
            assert checked(setting, setting.default) == setting.default, setting.name


def test_an_unknown_setting_comes_with_a_suggestion() -> None:
    with pytest.raises(UndefinedSetting, match="statement_timout") as caught:
        setting_of("statement_timout")
    assert caught.value.hint == 'Did you mean "statement_timeout"?'


def test_a_session_travels_and_comes_back() -> None:
    session = NO_SESSION.with_value(setting_of("statement_timeout"), "5s")
    session = session.with_value(setting_of("my.own"), "ü✓")
    session = session.with_prepared("p", PreparedText("SELECT $1", (INTEGER, VARCHAR)))
    session = session.with_prepared("q q", PreparedText("SELECT 1", None))
    found = decode_session(session.encode())
    assert found == session
    assert found.timeout == 5.0
    assert not found.causal
    assert decode_session(b"") == NO_SESSION


def test_a_default_is_not_kept() -> None:
    setting = setting_of("read_consistency")
    session = NO_SESSION.with_value(setting, "causal")
    assert session.causal
    assert session.with_value(setting, "latest") == NO_SESSION
    assert session.with_value(setting, None) == NO_SESSION
    assert session.with_prepared("p", None) == session


@pytest.mark.parametrize(
    "data", [b"x", b"[]", b"[1, 2]", b'[{}, {"p": 1}]', b'[{}, {"p": ["a", "zz"]}]']
)
def test_a_broken_session_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_session(data)


def test_a_session_is_bounded() -> None:
    long = PreparedText("x" * SESSION_SIZE_MAX, None)
    with pytest.raises(LimitExceeded):
        ClientSession({}, {"p": long}).encode()
    session = NO_SESSION
    with pytest.raises(LimitExceeded):
        for number in range(1000):
            session = session.with_value(setting_of(f"my.s{number}"), "x")
