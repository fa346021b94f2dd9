"""``remuda user``: the users' file from the command line; and how commands get a password."""

from __future__ import annotations

import argparse
import io
import json
import sys

import pytest

from remuda.catalog import passwords
from remuda.catalog.users import decode_users
from remuda.cli import user_command
from remuda.cli.connecting import add_connect, security_options
from remuda.cli.main import main
from remuda.client.network.login import security
from remuda.errors import InputError


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setattr(
        user_command, "hashed", lambda password, salt: passwords.hashed(password, salt, 4096)
    )
    monkeypatch.delenv("REMUDA_USERS_FILE", raising=False)
    return tmp_path / "users.json"


def user(monkeypatch, file, *words, stdin=""):
    monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
    return main(["user", *words, "--file", str(file)])


def test_from_nothing_to_roles(file, monkeypatch, capsys):
    assert user(monkeypatch, file, "add", "ann", stdin="secret one\nrest\n") == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "secret one" not in file.read_text()
    ann = decode_users(file.read_bytes(), "").get("ann")
    assert ann.password.matches("secret one")
    assert user(monkeypatch, file, "grant", "ann", "read", "--all") == 0
    assert user(monkeypatch, file, "grant", "ann", "write", "--map", "flights") == 0
    assert user(monkeypatch, file, "add", "bob", stdin="x") == 0
    capsys.readouterr()
    assert user(monkeypatch, file, "list") == 0
    assert capsys.readouterr().out.splitlines() == [
        " user |   map    | roles",
        "------+----------+-------",
        " ann  | all maps | read",
        " ann  | flights  | write",
        " bob  | -        | -",
    ]
    before = file.read_bytes()
    level = "default_transaction_isolation"
    assert user(monkeypatch, file, "set", "bob", level.upper(), "Read Committed") == 0
    assert decode_users(file.read_bytes(), "").get("bob").settings == {level: "read committed"}
    assert user(monkeypatch, file, "list") == 0
    assert capsys.readouterr().out.splitlines()[-3:] == [
        " user |            setting            |     value",
        "------+-------------------------------+----------------",
        " bob  | default_transaction_isolation | read committed",
    ]
    for words, said in (
        (("set", "bob", level, "snapshot"), "serializable, repeatable read"),
        (("set", "bob", "server_version", "16"), "cannot be changed"),
        (("set", "bob", "transaction_isolation", "serializable"), "belongs to one transaction"),
        (("set", "bob", "default_isolation", "x"), "unrecognized configuration parameter"),
        (("reset", "eve", level), 'user "eve" does not exist'),
    ):
        assert user(monkeypatch, file, *words) != 0
        assert said in capsys.readouterr().err
    assert user(monkeypatch, file, "reset", "bob", level) == 0
    assert file.read_bytes() == before  # members of older releases read it
    file.chmod(0o640)
    assert user(monkeypatch, file, "revoke", "ann", "read", "--all") == 0
    assert user(monkeypatch, file, "password", "ann", stdin="another\n") == 0
    assert user(monkeypatch, file, "remove", "bob") == 0
    assert file.stat().st_mode & 0o777 == 0o640
    found = decode_users(file.read_bytes(), "")
    assert list(found.by_name) == ["ann"]
    assert found.get("ann").password.matches("another")
    assert set(found.get("ann").roles) == {"flights"}
    assert sorted(path.name for path in file.parent.iterdir()) == ["users.json", "users.json.lock"]


@pytest.mark.parametrize(
    ("words", "stdin", "message"),
    [
        (("add", "ann"), "x", 'user "ann" exists already'),
        (("add", "eve"), "", "the password is empty"),
        (("add", "e\nve"), "x", "a user's name has"),
        (("password", "eve"), "x", 'user "eve" does not exist'),
        (("remove", "eve"), "", 'user "eve" does not exist'),
        (("grant", "eve", "read", "--all"), "", 'user "eve" does not exist'),
        (("grant", "ann", "own", "--all"), "", "there is no role 'own'"),
        (("revoke", "ann", "read", "--map", "t"), "", "does not have the role read on map"),
    ],
)
def test_what_goes_wrong_changes_nothing(file, monkeypatch, capsys, words, stdin, message):
    assert user(monkeypatch, file, "add", "ann", stdin="x") == 0
    before = file.read_bytes()
    assert user(monkeypatch, file, *words, stdin=stdin) == 1
    assert message in capsys.readouterr().err
    assert file.read_bytes() == before


def test_files_that_are_wrong(file, monkeypatch, capsys, tmp_path):
    assert user(monkeypatch, file, "list") == 1
    assert "there is no users' file" in capsys.readouterr().err
    assert user(monkeypatch, file, "grant", "ann", "read", "--all") == 1
    file.write_text("{}")
    assert user(monkeypatch, file, "add", "ann", stdin="x") == 1
    assert 'and one object, "users", and nothing else' in capsys.readouterr().err
    assert file.read_text() == "{}"
    assert user(monkeypatch, tmp_path / "none" / "users.json", "add", "ann", stdin="x") == 1
    assert "cannot be changed: No such file" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert main(["user", "list"]) == 1
    assert "no users' file named" in capsys.readouterr().err
    monkeypatch.setenv("REMUDA_USERS_FILE", str(file))
    file.write_text(json.dumps({"users": {}}))
    assert main(["user", "list"]) == 0
    assert capsys.readouterr().out == "no users\n"


class TestConnecting:
    def options(self, monkeypatch, *words, **environment):
        for name in ("USER", "PASSWORD", "TLS", "TLS_CA", "TLS_CERTIFICATE", "TLS_KEY"):
            monkeypatch.delenv(f"REMUDA_{name}", raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(f"REMUDA_{name}", value)
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        parser = argparse.ArgumentParser()
        add_connect(parser)
        return security_options(parser.parse_args(words))

    def test_nothing(self, monkeypatch):
        assert self.options(monkeypatch) == {}

    def test_flags_win_over_the_environment(self, monkeypatch, certificates, tmp_path):
        kept = tmp_path / "password"
        kept.write_text("from the file\r\nand more\n")
        words = ("--user", "ann", "--password-file", str(kept), "--tls-ca", certificates.ca)
        found = self.options(monkeypatch, *words, USER="bob", PASSWORD="x", TLS_CA="/none")
        assert found == {"user": "ann", "password": "from the file", "ca": certificates.ca}
        found = self.options(monkeypatch, USER="bob", PASSWORD="x", TLS="yes")
        assert found == {"user": "bob", "password": "x", "tls": True}

    @pytest.mark.parametrize(
        ("words", "environment", "message"),
        [
            (("--user", "ann"), {}, "there is no password for ann"),
            ((), {"PASSWORD": "x"}, "a password without a user"),
            (("--tls-ca", "/nowhere/ca.pem"), {}, "CA file /nowhere/ca.pem cannot be read"),
            (("--tls-key", "k.pem"), {}, "a TLS key without its certificate"),
            ((), {"TLS": "perhaps"}, "must be true or false"),
            (("--user", "a", "--password-file", "/nowhere/p"), {}, "/nowhere/p cannot be read"),
        ],
    )
    def test_what_is_wrong(self, monkeypatch, words, environment, message):
        with pytest.raises(InputError, match=message):
            self.options(monkeypatch, *words, **environment)


def test_a_password_does_not_travel_in_the_clear():
    for host in ("192.0.2.1", "db.example.org"):
        with pytest.raises(InputError, match=r"would travel to .* unencrypted"):
            security(user="ann", password="x").check(host)
        security(user="ann", password="x", tls=True).check(host)
        security().check(host)
    security(user="ann", password="x").check("127.0.0.1")


def test_passwords_show_nowhere():
    assert "x y z" not in repr(security(user="ann", password="x y z"))
