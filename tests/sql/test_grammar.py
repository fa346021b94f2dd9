"""Which operator binds tighter, and what is no expression at all: PostgreSQL's rules."""

from __future__ import annotations

import pytest

from remuda.errors import SqlSyntaxError
from remuda.sql.parsing.parser import parse
from remuda.sql.parsing.snippets import parse_expression
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import CreateTree, QueryTree


def same(text: str, explicit: str) -> bool:
    return without_parentheses(text) == without_parentheses(explicit)


def without_parentheses(text: str):
    def bare(node):
        return node.this.rewritten(bare) if isinstance(node, ast.Paren) else None

    return parse_expression(text).rewritten(bare).identity()


@pytest.mark.parametrize(
    ("text", "explicit"),
    [
        ("a OR b AND NOT c = d", "a OR (b AND (NOT (c = d)))"),
        ("NOT a IS NULL", "NOT (a IS NULL)"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("a IS NULL = b", "(a IS NULL) = b"),
        ("a + b < c || d", "(a + b) < (c || d)"),
        ("a || b + c * d ^ e", "a || (b + (c * (d ^ e)))"),
        ("a - b - c", "(a - b) - c"),
        ("a / b * c % d", "((a / b) * c) % d"),
        ("a ^ b ^ c", "(a ^ b) ^ c"),
        ("- a ^ b", "(- a) ^ b"),
        ("- a :: int", "- (a :: int)"),
        ("- a [1]", "- (a [1])"),
        ("a + - b * c", "a + ((- b) * c)"),
        ("~ a + b", "~ (a + b)"),
        ("@ a - b", "@ (a - b)"),
        ("|/ a + b", "|/ (a + b)"),
        ("a * ~ b + c", "a * (~ (b + c))"),
        ("a -> 'b' || c", "(a -> 'b') || c"),
        ("a || b LIKE c || d", "(a || b) LIKE (c || d)"),
        ("a LIKE b = c", "(a LIKE b) = c"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c || d", "a BETWEEN (b + 1) AND (c || d)"),
        ("NOT a BETWEEN b AND c", "NOT (a BETWEEN b AND c)"),
        ("a IN (b) = c", "(a IN (b)) = c"),
        ("a = b IN (c)", "a = (b IN (c))"),
        ("a AT TIME ZONE b + c", "(a AT TIME ZONE b) + c"),
        ("a ^ b AT TIME ZONE c", "a ^ (b AT TIME ZONE c)"),
        ("a :: date + b", "(a :: date) + b"),
        ("a :: int :: text", "(a :: int) :: text"),
        ("a OPERATOR(pg_catalog.*) b + c", "a OPERATOR(*) (b + c)"),
        ("a <= b AND c >= d OR e", "((a <= b) AND (c >= d)) OR e"),
        ("a IS DISTINCT FROM b OR c", "(a IS DISTINCT FROM b) OR c"),
        ("a IS DISTINCT FROM b + c", "a IS DISTINCT FROM (b + c)"),
        ("a ISNULL AND b NOTNULL", "(a IS NULL) AND (b IS NOT NULL)"),
        ("a NOT LIKE b AND c", "(a NOT LIKE b) AND c"),
        ("a ? b AND c", "(a ? b) AND c"),
        ("CASE a WHEN b = c THEN d + e END", "CASE a WHEN (b = c) THEN (d + e) END"),
    ],
)
def test_operators_bind_as_in_postgresql(text, explicit):
    assert same(text, explicit)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a < b < c", "< c"),
        ("a = b = c", "= c"),
        ("a = b <> c", "<> c"),
        ("a BETWEEN b AND c BETWEEN d AND e", "BETWEEN d"),
        ("a LIKE b LIKE c", "LIKE c"),
        ("a = NOT b", "NOT"),
        ("a +", ""),
        ("a + + ", ""),
        ("a == b", "=="),
        ("(a, b", ""),
        ("a)", ")"),
        ("a BETWEEN b OR c", "OR"),
        ("a IS 1", "1"),
        ("CASE a END", "END"),
        ("f(a b)", "b"),
        ("a 1", "1"),
        ("SELECT", "SELECT"),
        ("a::", ""),
        ("a::varchar(x)", "x"),
        ("a[1", ""),
        ("ARRAY[1,]", "]"),
        ("EXTRACT(year a)", "a)"),
        ("count(*) FILTER (a)", "a)"),
        ("rank() OVER (ROWS a)", ")"),
    ],
)
def test_errors_are_where_postgresql_finds_them(text, where):
    with pytest.raises(SqlSyntaxError) as caught:
        parse_expression(text)
    assert caught.value.position is not None
    assert text[caught.value.position.offset :].startswith(where)
    assert where or caught.value.position.offset == len(text.rstrip())


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("((SELECT 1))", "(SELECT 1)"),
        ("((SELECT 1) UNION SELECT 2)", "(SELECT 1 UNION SELECT 2)"),
        ("((SELECT 1)) + 1", "(SELECT 1) + 1"),
        ("((SELECT 1) + 1)", "((SELECT 1)) + 1"),
    ],
)
def test_parentheses_hold_queries_or_values(text, plain):
    def bare(node):
        inner = node
        while isinstance(inner, ast.Paren | ast.Subquery) and len(inner.args) == 1:
            inner = inner.this
        return None if inner is node else inner.rewritten(bare)

    found = [parse_expression(each).rewritten(bare).identity() for each in (text, plain)]
    assert found[0] == found[1]


def query(text: str) -> ast.Node:
    tree = parse(text).tree
    assert isinstance(tree, QueryTree)
    return tree.root


def test_intersect_binds_tighter_than_union_and_except():
    root = query("SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4")
    assert isinstance(root, ast.Except)
    assert isinstance(root.this, ast.Union)
    assert isinstance(root.this.expression, ast.Intersect)


def test_joins_nest_by_their_conditions():
    nested = query("SELECT * FROM a JOIN b JOIN c ON x ON y")
    (join,) = nested.args["joins"]
    assert join.args["on"].name == "y"
    (inner,) = join.this.args["joins"]
    assert inner.args["on"].name == "x"
    flat = query("SELECT * FROM a JOIN b ON x CROSS JOIN c, d")
    assert [part.args.get("kind") for part in flat.args["joins"]] == ["INNER", "CROSS", None]


@pytest.mark.parametrize(
    "text",
    [
        'SELECT a b, c AS select, d "e f", g type FROM t AS x (a, b), LATERAL (SELECT 1) y',
        "SELECT DISTINCT ON (a, b) * FROM ((t JOIN u USING (k) AS z) CROSS JOIN v) w",
        "SELECT * FROM ROWS FROM (f(1), g(2)) WITH ORDINALITY AS r (a, b, c)",
        "SELECT * FROM json_to_record('{}') AS j (a int, b varchar(3)[])",
        "SELECT a FROM t GROUP BY DISTINCT ROLLUP (a, (b, c)), CUBE (a), GROUPING SETS ((a), ())",
        "WITH a (x) AS MATERIALIZED (VALUES (1)), b AS NOT MATERIALIZED (TABLE t) SELECT 1",
        "SELECT sum(a) FILTER (WHERE b) OVER (w ORDER BY c ROWS 1 PRECEDING EXCLUDE TIES) FROM t",
        "SELECT 1 FROM t WINDOW w AS (PARTITION BY d RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "SELECT 1 FROM t FOR NO KEY UPDATE OF t NOWAIT",
        "SELECT 1 LIMIT ALL OFFSET 2 ROWS",
        "SELECT current_date(), current_timestamp(3), localtime, current_user, current_schema()",
        "SELECT 1 OFFSET 2 FETCH NEXT 3 ROWS WITH TIES",
        "SELECT U&\"d\\0061\", U&'!0061' UESCAPE '!', interval '1' day to second(2)",
        "SELECT timestamp(3) with time zone '2020-01-01', double precision '1', date '2020-01-01'",
        "(SELECT 1 ORDER BY 1) UNION ALL (VALUES (1)) ORDER BY 1",
    ],
)
def test_forms_of_queries_are_read(text):
    assert isinstance(parse(text).tree, QueryTree)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [("SELECT ?, ? FROM t WHERE a = ?", 3), ("SELECT $2", 2), ("SELECT a ? 'b'", 0)],
)
def test_parameters_are_counted(text, parameters):
    assert parse(text).parameters == parameters


def test_marks_and_numbers_do_not_mix():
    with pytest.raises(SqlSyntaxError, match="cannot be mixed"):
        parse("SELECT $1, ?")
    with pytest.raises(SqlSyntaxError, match="there is no parameter"):
        parse("SELECT $0")


def test_trees_are_not_changed_by_rewriting_them():
    tree = parse_expression("a + f(b, c)")
    before = tree.identity()
    other = tree.rewritten(
        lambda node: ast.Column(this=ast.name("z")) if node.name == "b" else None
    )
    assert tree.identity() == before
    assert other.identity() != before
    assert other.this is tree.this


def test_long_chains_are_no_deep_ones():
    """Neither the parser nor the comparison of trees takes a level for each operator."""
    text = "(SELECT 1 WHERE " + " OR ".join(f"a = {n}" for n in range(20_000)) + ")"
    one, other = parse_expression(text), parse_expression(text.lower())
    assert one.identity() == other.identity()
    assert hash(one.identity()) == hash(other.identity())


def test_columns_take_all_names_of_types_that_casts_take():
    tree = parse(
        "CREATE TABLE t (a pg_catalog.int4 PRIMARY KEY, b national character varying(3),"
        " c timestamp(3) with time zone[], d interval day to second(2), e character varying array)"
    ).tree
    assert isinstance(tree, CreateTree)
    shown = [str(column.type) for column in tree.elements.columns]
    assert shown == [
        "INTEGER", "VARCHAR(3)", "TIMESTAMP(3) WITH TIME ZONE[]", "INTERVAL DAY TO SECOND(2)",
        "VARCHAR[]",
    ]  # fmt: skip


def test_a_typed_node_has_its_parts_as_fields_and_by_name() -> None:
    node = ast.Between(operand=ast.Null(), low=ast.name("a"), high=ast.name("b"))
    assert [part.name for part in (node.low, node.high)] == ["a", "b"]
    assert not node.symmetric
    assert list(node.children()) == [node.operand, node.low, node.high]
    other = node.with_args(symmetric=True)
    assert (other.symmetric, other.low) == (True, node.low)
    assert node.identity() != other.identity()
    swapped = node.rewritten(lambda part: node.high if part is node.low else None)
    assert isinstance(swapped, ast.Between)
    assert swapped.low is swapped.high is node.high
