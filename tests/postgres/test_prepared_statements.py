"""pg_prepared_statements lists those of PREPARE and those of Parse messages that have names."""

from __future__ import annotations

LISTED = (
    "SELECT name, statement, parameter_types::text, from_sql, prepare_time <= now() "
    "FROM pg_prepared_statements ORDER BY from_sql, name"
)


def test_statements_of_messages_and_of_prepare(connect):
    first, other = connect(), connect()
    assert first.execute(LISTED).fetchall() == []
    first.execute("PREPARE summed (int, text) AS SELECT $1 + 1, $2")
    first.execute("SELECT %s::int, %s", (1, "a"), prepare=True)
    sent, prepared = first.execute(LISTED).fetchall()
    assert sent[0].startswith("_pg3_")
    assert sent[1:] == ("SELECT $1::int, $2", "{smallint,text}", False, True)
    assert prepared == ("summed", "SELECT $1 + 1, $2", "{integer,text}", True, None)
    first.execute("DEALLOCATE summed")
    assert [row[0] for row in first.execute(LISTED)] == [sent[0]]
    assert other.execute(LISTED).fetchall() == []
