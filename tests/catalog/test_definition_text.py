"""Defaults and generated expressions as PostgreSQL's catalog shows them."""

from __future__ import annotations

import pytest

from remuda.catalog.definition_text import expression_shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s * 2", "(s * 2)"),
        ("((s * 2))", "(s * 2)"),
        ("(a) + (b)", "((a) + (b))"),
        ("nextval('q')", "nextval('q'::regclass)"),
        ("nextval('q'::regclass)", "nextval('q'::regclass)"),
        ("NEXTVAL ( 'a''b' )", "NEXTVAL ( 'a''b'::regclass )"),
        ("nextval('q') + 1", "(nextval('q'::regclass) + 1)"),
        ("upper(v)", "upper(v)"),
        ("upper(v) || 'x'", "(upper(v) || 'x')"),
        ("NOT b", "(NOT b)"),
        ("0.5", "0.5"),
        ("-1", "-1"),
        ("1 - 2", "(1 - 2)"),
        ("'it''s'", "'it''s'"),
        ("'{1,2}'::integer[]", "'{1,2}'::integer[]"),
        ("'a'::character varying(3)", "'a'::character varying(3)"),
        ("interval '1 day'", "interval '1 day'"),
        ("ARRAY['a', 'b']", "ARRAY['a', 'b']"),
        ("current_date", "current_date"),
        ("CASE WHEN a > 1 THEN 2 END", "CASE WHEN a > 1 THEN 2 END"),
        ('"Mixed"', '"Mixed"'),
    ],
)
def test_an_operation_stands_in_parentheses(text: str, shown: str) -> None:
    assert expression_shown(text) == shown
