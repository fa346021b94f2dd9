"""The table of statements by fingerprint: bounded, and nothing of it is lost."""

from __future__ import annotations

from remuda.errors import DivisionByZero, SqlSyntaxError
from remuda.execution.context import FragmentProfile
from remuda.member.metrics.families import exposition
from remuda.member.metrics.statement_table import OTHERS, StatementTable
from remuda.session.query_profiles import QueryFacts
from remuda.sql.text import fingerprint as module


def facts(text, user="", rows=1):
    return QueryFacts(
        query="q", member=1, user=user, text=text, state="", started=0, planning=0.5, rows=rows
    )


def ended(table, text, seconds=1.0, error=None, parts=(), user=""):
    return table.ended(text, facts(text, user), seconds, error, parts)


def by_text(table):
    return {each.text: each for each in table.all()}


def test_calls_are_added_up():
    moments = iter((100, 300, 200))
    table = StatementTable(lambda: next(moments))
    ended(table, "SELECT 1", 3.0)
    ended(table, "SELECT 2", 1.0, DivisionByZero("x"))
    ended(table, "SELECT 3", 2.0)
    [found] = table.all()
    assert (found.timed, found.errors, found.rows) == (3, 1, 3)
    assert (found.shortest, found.longest, found.seconds) == (1.0, 3.0, 6.0)
    assert (found.first, found.last, found.planning) == (100, 300, 1.5)


def test_the_least_recently_called_leave_and_are_summed():
    table = StatementTable(lambda: 0, fingerprints_max=3)
    for name in "abc":
        ended(table, f"SELECT {name}")
    table.read("SELECT a", "")
    late = ended(table, "SELECT d", 5.0)  # b leaves
    ended(table, "SELECT e")  # c leaves
    found = by_text(table)
    assert set(found) == {"SELECT a", "SELECT d", "SELECT e", OTHERS.text}
    assert (found[OTHERS.text].timed, found[OTHERS.text].reads) == (2, 0)
    for name in "xyz":
        ended(table, f"SELECT {name}")
    others = by_text(table)[OTHERS.text]
    assert (others.timed, others.reads, others.seconds, others.longest) == (5, 1, 9.0, 5.0)
    table.used(late, FragmentProfile(0, 1, (), 0.0, 77, 0))  # told late, of one that has left
    assert by_text(table)[OTHERS.text].memory == 77
    assert b"remuda_statement_fingerprints 3\n" in (page := exposition(table.families()))
    assert b"remuda_statement_fingerprints_removed_total 5\n" in page


def test_users_are_counted_apart():
    table = StatementTable(lambda: 0)
    ended(table, "SELECT 1", user="ann")
    ended(table, "SELECT 1", user="bob")
    assert sorted(each.user for each in table.all()) == ["ann", "bob"]


def test_texts_that_do_not_parse_are_one():
    table = StatementTable(lambda: 0)
    for text in ("SELECT FROM", "SELECT 'x", "", "x y z"):
        ended(table, text, error=SqlSyntaxError("x"))
    assert {text: each.errors for text, each in by_text(table).items()} == {"<syntax error>": 4}


def test_a_text_is_read_once(monkeypatch):
    texts = []

    def read(text):
        texts.append(text)
        return module.fingerprint(text)

    monkeypatch.setattr("remuda.member.metrics.statement_table.fingerprint", read)
    table = StatementTable(lambda: 0, texts_size_max=20)
    for _ in range(3):
        ended(table, "SELECT 1")
        table.read("SELECT 1", "ann")
    assert texts == ["SELECT 1"]
    ended(table, "SELECT 1234567890")  # the first one's text has no room any more
    table.read("SELECT 1", "")
    assert texts == ["SELECT 1", "SELECT 1234567890", "SELECT 1"]
