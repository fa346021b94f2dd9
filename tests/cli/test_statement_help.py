r"""``\h``: the statements that the parser knows, with examples that it takes."""

from __future__ import annotations

import pytest

from remuda.cli.shell.statement_help import text
from remuda.cli.shell.statement_texts import STATEMENTS
from remuda.errors import InputError
from remuda.sql.parsing.parser import _STATEMENTS, parse


@pytest.mark.parametrize("found", STATEMENTS, ids=lambda found: found.name)
def test_the_example_is_taken(found):
    parse(found.example)
    assert found.example.startswith(found.name.removesuffix(" AS").removesuffix(" SAVEPOINT"))


def test_every_statement_has_a_help():
    wanted = {name.strip() for name in _STATEMENTS.replace("SINK INTO", "SINK").split(",")}
    assert [name for name in sorted(wanted) if "Syntax:" not in text(name)] == []


def test_names_are_in_order():
    names = [found.name for found in STATEMENTS]
    assert names == sorted(names)
    assert all(len(line) <= 100 for found in STATEMENTS for line in found.syntax.splitlines())


def test_words_find_statements():
    assert text("create table").startswith("Command:     CREATE TABLE\n")
    assert "CREATE TABLE AS" not in text("create table")
    assert text("select from flights").startswith("Command:     SELECT\n")
    assert text("create").count("Command:") == 8
    assert text("alter ta").startswith("Command:     ALTER TABLE\n")
    assert text("*").count("Command:") == len(STATEMENTS)
    with pytest.raises(InputError, match='no help available for "nonsense"'):
        text("nonsense")


def test_without_words_all_are_listed():
    listed = text("")
    assert listed.startswith("Available help:\n")
    assert all(found.name in listed for found in STATEMENTS)
