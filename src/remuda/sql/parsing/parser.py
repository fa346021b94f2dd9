"""Text -> parsed statements, each kind by a parser of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from remuda.errors import NotSupported, RemudaError, SqlSyntaxError
from remuda.sql.parsing.alterations import AlterParser
from remuda.sql.parsing.cluster import (
    CANCEL,
    PRIVILEGES,
    CancelParser,
    ClusterParser,
    PrivilegeParser,
    is_cluster_statement,
)
from remuda.sql.parsing.copy import COPY, CopyParser
from remuda.sql.parsing.definitions import NO_ROUTINES, DefinitionParser
from remuda.sql.parsing.explain_options import read_explain_options
from remuda.sql.parsing.grammar.changes import Grammar
from remuda.sql.parsing.locking import take_locking
from remuda.sql.parsing.named_cursors import DECLARE, CursorParser
from remuda.sql.parsing.named_cursors import WORDS as CURSOR_WORDS
from remuda.sql.parsing.select_into import read_into
from remuda.sql.parsing.session import WORDS as SESSION_WORDS
from remuda.sql.parsing.session import SessionParser
from remuda.sql.parsing.snapshot import WORDS as SNAPSHOT_WORDS
from remuda.sql.parsing.snapshot import SnapshotParser, is_snapshot_statement
from remuda.sql.parsing.transaction import WORDS as TRANSACTION_WORDS
from remuda.sql.parsing.transaction import TransactionParser
from remuda.sql.scope.statements import ParsedStatement
from remuda.sql.text.lexemes import (
    Token,
    check_text,
    end_of,
    near,
    position_of_token,
    too_deep,
)
from remuda.sql.text.lexer import is_blank, semicolons, tokenize
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.trees import ast
from remuda.sql.trees.syntax import (
    ChangeTree,
    CreateTree,
    DeclareTree,
    ExplainTree,
    InsertTree,
    MergeTree,
    QueryTree,
    Tree,
    TruncateTree,
)

Result = TypeVar("Result")
_QUERY_STARTS: Final = frozenset({"select", "with", "values", "table", "("})
_CHANGE_STARTS: Final = frozenset({"insert", "update", "delete", "merge", "truncate", "sink"})
_STATEMENTS: Final = (
    "SELECT, VALUES, INSERT, SINK INTO, UPDATE, DELETE, MERGE, TRUNCATE, COPY, CREATE, ALTER, "
    "DROP, COMMENT, SHOW, DESCRIBE, EXPLAIN, ANALYZE, VACUUM, REINDEX, SET, RESET, PREPARE, "
    "EXECUTE, DEALLOCATE, DISCARD, DECLARE, FETCH, MOVE, CLOSE, BEGIN, START TRANSACTION, "
    "COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, RELEASE, LOCK, LISTEN, NOTIFY, UNLISTEN, CANCEL"
)
_SHOWN: Final = (
    "tables", "maps", "mappings", "views", "indexes", "index", "columns", "create",
)  # fmt: skip
_SHOWN_SNAPSHOTS: Final = ("snapshots", "snapshot")
_KNOWN_WORDS: Final = frozenset(
    {"call"}
    | {"refresh", "load", "checkpoint"}
    | {"replace", "upsert", "use", "from", "pivot", "do", "cluster", "import"}
)
_STATEMENT_WORDS: Final = (
    "select", "values", "with", "insert", "sink", "update", "delete", "merge", "truncate",
    "create", "alter", "drop", "comment", "show", *SESSION_WORDS, *CURSOR_WORDS, DECLARE,
    COPY, "describe", "explain",
    *TRANSACTION_WORDS, *SNAPSHOT_WORDS, CANCEL, *PRIVILEGES,
)  # fmt: skip


def parse(text: str) -> ParsedStatement:
    """The one statement in ``text`` (a semicolon after it is allowed).

    Raises SqlSyntaxError or NotSupported with a position; LimitExceeded for what is too long or
    nested too deeply.
    """
    return _with_statement(text, _parse_single)


def split_script(text: str) -> list[tuple[int, str]]:
    """(offset, text) of each statement of a script, without its semicolon. Only quotes and comments
    are looked at, so a wrong statement does not hide the others."""
    return _with_statement(text, _split)


def _with_statement(text: str, work: Callable[[str], Result]) -> Result:
    """``work(text)``; errors learn the text that their position refers to."""
    try:
        return work(text)
    except RemudaError as error:
        raise error.within(text) from error.__cause__
    except RecursionError:
        raise too_deep(None).within(text) from None


def _split(text: str) -> list[tuple[int, str]]:
    check_text(text)
    parts: list[tuple[int, str]] = []
    start = 0
    for end in [*semicolons(text), len(text)]:
        piece = text[start:end]
        if not is_blank(piece):
            stripped = piece.strip()
            parts.append((start + piece.index(stripped), stripped))
        start = end + 1
    return parts


def _parse_single(text: str) -> ParsedStatement:
    check_text(text)
    tokens = tokenize(text)
    while tokens and tokens[-1].word == ";":
        tokens.pop()
    semicolon = next((i for i, token in enumerate(tokens) if token.word == ";"), None)
    if semicolon is not None:
        raise SqlSyntaxError(
            "only one statement is allowed here",
            position=position_of_token(text, tokens[semicolon + 1]),
            hint="Send the statements one by one.",
        )
    if not tokens:
        raise SqlSyntaxError("the statement is empty", position=end_of(text))
    word, rest = tokens[0].word, tokens[1:]
    if word in CURSOR_WORDS:
        return ParsedStatement(text, CursorParser(text, tokens).statement(), 0)
    if word == DECLARE:
        return _declare(text, tokens)
    if word in SESSION_WORDS:
        return _session(text, word, rest)
    if word == "show":
        return ParsedStatement(text, _show(text, rest), 0)
    if word in ("describe", "desc"):
        return ParsedStatement(text, DefinitionParser(text, rest).describe(), 0)
    if word == "explain":
        return _explain(text, rest)
    return _statement(text, tokens)


def _show(text: str, tokens: list[Token]) -> Tree:
    shown = tokens[0].text.lower() if tokens else ""
    if shown in _SHOWN_SNAPSHOTS:
        return SnapshotParser(text, tokens).show()
    if shown in _SHOWN:
        return DefinitionParser(text, tokens).show()
    return SessionParser(text, tokens).show()


def _session(text: str, word: str, tokens: list[Token]) -> ParsedStatement:
    tree = SessionParser(text, tokens).statement(
        word,
        lambda listed: _expressions(text, listed),
        lambda statement: parse(statement).parameters,
    )
    return ParsedStatement(text, tree, 0)


def _expressions(text: str, tokens: Sequence[Token]) -> tuple[list[ast.Node], int]:
    grammar = Grammar(text, tokens)
    found = grammar.expressions()
    grammar.end()
    return found, grammar.parameters


def _declare(text: str, tokens: list[Token]) -> ParsedStatement:
    reader = CursorParser(text, tokens)
    declaration = reader.declaration()
    rest = tokens[reader.index :]
    if not rest or rest[0].word not in _QUERY_STARTS:
        _syntax_error(text, rest, 0)
    inner = _statement(text, rest)
    if not isinstance(inner.tree, QueryTree):
        raise SqlSyntaxError(
            "SELECT ... INTO is not allowed here", position=position_of_token(text, rest[0])
        )
    return ParsedStatement(text, DeclareTree(declaration, inner.tree), inner.parameters)


def _explain(text: str, tokens: list[Token]) -> ParsedStatement:
    options, index = read_explain_options(text, tokens)
    if index >= len(tokens):
        _syntax_error(text, tokens, index)
    first = tokens[index]
    if first.word == "execute":
        reader = SessionParser(text, tokens[index + 1 :])
        prefix = text[: first.start]
        tree = reader.execute(lambda listed: _expressions(text, listed), prefix)
        return ParsedStatement(text, tree, 0)
    if first.word == DECLARE:  # the plan is that of the query, as PostgreSQL shows it
        declared = _declare(text, tokens[index:])
        assert isinstance(declared.tree, DeclareTree)
        return ParsedStatement(text, ExplainTree(options, declared.tree.query), declared.parameters)
    inner = _statement(text, tokens[index:])
    explainable = isinstance(inner.tree, QueryTree | InsertTree | ChangeTree | MergeTree)
    if not explainable and not (isinstance(inner.tree, CreateTree) and inner.tree.query):
        raise NotSupported(
            "only queries, INSERT, UPDATE, DELETE, MERGE and CREATE TABLE AS can be explained",
            position=position_of_token(text, first),
            hint="Explain the query that the statement contains.",
        )
    assert isinstance(inner.tree, QueryTree | InsertTree | ChangeTree | MergeTree | CreateTree)
    return ParsedStatement(text, ExplainTree(options, inner.tree), inner.parameters)


def _syntax_error(text: str, tokens: list[Token], index: int) -> NoReturn:
    if index < len(tokens):
        raise near(text, tokens[index])
    raise SqlSyntaxError("syntax error at end of input", position=end_of(text))


def _statement(text: str, tokens: list[Token]) -> ParsedStatement:
    if not tokens:
        raise SqlSyntaxError("syntax error at end of input", position=end_of(text))
    first = tokens[0]
    word = first.word
    if is_cluster_statement(tokens):
        return ParsedStatement(text, ClusterParser(text, tokens).statement(), 0)
    if word == CANCEL:
        return ParsedStatement(text, CancelParser(text, tokens).statement(), 0)
    if word in PRIVILEGES:
        return ParsedStatement(text, PrivilegeParser(text, tokens).statement(), 0)
    if is_snapshot_statement(tokens):
        return ParsedStatement(text, SnapshotParser(text, tokens).statement(), 0)
    replaces = word == "replace" and len(tokens) > 1 and tokens[1].word == "into"
    if word in _QUERY_STARTS or word in _CHANGE_STARTS or replaces:
        grammar = Grammar(text, tokens)
        root = grammar.statement()
        into = read_into(text, tokens, root)
        tree = _tree(text, word, root) if into is None else into
        return ParsedStatement(text, tree, grammar.parameters)
    if word == COPY:
        return ParsedStatement(text, CopyParser(text, tokens).copy(), 0)
    if word in ("create", "drop"):
        definition = DefinitionParser(text, tokens)
        created = word == "create"
        return ParsedStatement(text, definition.create() if created else definition.drop(), 0)
    if word == "alter":
        return ParsedStatement(text, AlterParser(text, tokens).alter(), 0)
    if word == "comment":
        return ParsedStatement(text, DefinitionParser(text, tokens).comment(), 0)
    position = position_of_token(text, first)
    if word in TRANSACTION_WORDS:
        return ParsedStatement(text, TransactionParser(text, tokens).statement(), 0)
    if word == "do":
        raise NotSupported("DO is not supported", position=position, hint=NO_ROUTINES)
    if word in _KNOWN_WORDS:
        raise NotSupported(
            f"{word.upper()} is not supported",
            position=position,
            hint=f"Supported statements: {_STATEMENTS}.",
        )
    raise near(text, first, did_you_mean(word, _STATEMENT_WORDS).replace('"', ""))


def parse_query_tokens(text: str, tokens: Sequence[Token]) -> tuple[ast.Node, int]:
    """The query in ``tokens``, a part of ``text`` or all of it, and its number of parameters."""
    grammar = Grammar(text, tokens)
    root = grammar.whole_query()
    return root, grammar.parameters


def _tree(text: str, word: str, root: ast.Node) -> Tree:
    """``word``: the first of the statement."""
    match root:
        case ast.Insert():
            return InsertTree(root, word == "sink", str(root.args.get("overriding") or ""))
        case ast.Merge():
            return MergeTree(root)
        case ast.Update() | ast.Delete():
            return ChangeTree(root)
        case ast.Truncate():
            return TruncateTree(root)
        case _:
            if not take_locking(text, root):
                return QueryTree(root)
            return QueryTree(root.with_args(locks=None), locking=True)
