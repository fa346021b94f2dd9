"""Questions of pg_dump about a server: settings by name, default privileges, letters of names."""

from __future__ import annotations

import psycopg
import pytest


def test_a_setting_whose_name_is_computed(connection):
    ask = "SELECT set_config(name, 'Asia/Tokyo', false) FROM pg_settings WHERE name = %s"
    assert connection.execute(ask, ("no_such_setting",)).fetchall() == []
    assert connection.execute(ask, ("TimeZone",)).fetchall() == [("Asia/Tokyo",)]
    assert connection.execute("SHOW TimeZone").fetchone() == ("Asia/Tokyo",)
    with pytest.raises(psycopg.errors.NullValueNotAllowed, match="SET requires parameter name"):
        connection.execute("SELECT set_config(NULL::text, 'x', false)")
    with pytest.raises(psycopg.errors.UndefinedObject, match="no_such_setting"):
        connection.execute("SELECT set_config('no_such_' || 'setting', 'x', false)")


def test_default_privileges_are_those_of_postgresql(connection):
    text = "SELECT acldefault('n', 10), acldefault('d', 10), acldefault('c', 10)"
    assert connection.execute(text).fetchone() == (
        ["remuda=UC/remuda"], ["=Tc/remuda", "remuda=CTc/remuda"], [],
    )  # fmt: skip


def test_a_name_has_letters_counted_from_zero(connection):
    text = "SELECT typname[0] = '_', typname[1] FROM pg_type WHERE typname = '_int4'"
    assert connection.execute(text).fetchone() == (True, "i")
