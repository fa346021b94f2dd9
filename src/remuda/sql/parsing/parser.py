"""Text -> parsed statements. sqlglot reads queries and INSERT, we read definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeVar

from sqlglot import exp
from sqlglot.errors import ParseError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokenizer_core import Token, TokenType

from remuda.errors import NotSupported, RemudaError, SqlSyntaxError
from remuda.sql.parsing.alterations import AlterParser
from remuda.sql.parsing.alternatives import REPLACE
from remuda.sql.parsing.cluster import (
    CANCEL,
    CancelParser,
    ClusterParser,
    is_cluster_statement,
)
from remuda.sql.parsing.definitions import DefinitionParser
from remuda.sql.parsing.explain_options import execute_tokens, read_explain_options
from remuda.sql.parsing.locking import take_locking
from remuda.sql.parsing.session import WORDS as SESSION_WORDS
from remuda.sql.parsing.session import SessionParser
from remuda.sql.parsing.snapshot import WORDS as SNAPSHOT_WORDS
from remuda.sql.parsing.snapshot import SnapshotParser, is_snapshot_statement
from remuda.sql.parsing.transaction import WORDS as TRANSACTION_WORDS
from remuda.sql.parsing.transaction import TransactionParser
from remuda.sql.scope.statements import ParsedStatement
from remuda.sql.text.assignments import enclose_all_assignments
from remuda.sql.text.keyword_hints import keyword_hint
from remuda.sql.text.places import end_of, position_of_token
from remuda.sql.text.suggest import did_you_mean
from remuda.sql.text.tokens import (
    DIALECT,
    TokenList,
    check_text,
    command_word,
    is_blank,
    near,
    prepare,
    semicolons,
    tokenize,
    too_deep,
)
from remuda.sql.trees.syntax import (
    ChangeTree,
    CreateTree,
    ExplainTree,
    InsertTree,
    MergeTree,
    QueryTree,
    Tree,
    TruncateTree,
)

_T = TokenType
Result = TypeVar("Result")
_QUERY_STARTS: Final = frozenset({_T.SELECT, _T.WITH, _T.VALUES, _T.TABLE, _T.L_PAREN})
_CHANGE_STARTS: Final = frozenset({_T.INSERT, _T.UPDATE, _T.DELETE, _T.MERGE, _T.TRUNCATE})
_STATEMENTS: Final = (
    "SELECT, VALUES, INSERT, SINK INTO, UPDATE, DELETE, MERGE, TRUNCATE, CREATE, ALTER, DROP, "
    "COMMENT, SHOW, DESCRIBE, EXPLAIN, ANALYZE, VACUUM, REINDEX, SET, RESET, PREPARE, EXECUTE, "
    "DEALLOCATE, DISCARD, BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT, SAVEPOINT, "
    "RELEASE, CANCEL"
)
_SHOWN: Final = (
    "tables", "maps", "mappings", "views", "indexes", "index", "columns", "create",
)  # fmt: skip
_SHOWN_SNAPSHOTS: Final = ("snapshots", "snapshot")
_KNOWN_WORDS: Final = frozenset(
    {"call", "copy", "grant", "revoke"}
    | {"lock", "declare", "fetch", "move", "refresh", "listen", "notify", "load", "checkpoint"}
    | {"replace", "upsert", "use", "from", "pivot", "do", "cluster", "import"}
)
_STATEMENT_WORDS: Final = (
    "select", "values", "with", "insert", "sink", "update", "delete", "merge", "truncate",
    "create", "alter", "drop", "comment", "show", *SESSION_WORDS, "describe", "explain",
    *TRANSACTION_WORDS, *SNAPSHOT_WORDS, CANCEL,
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
    word, blanked = command_word(text)
    tokens = tokenize(blanked)
    while tokens and tokens[-1].token_type is _T.SEMICOLON:
        tokens.pop()
    semicolon = next((i for i, t in enumerate(tokens) if t.token_type is _T.SEMICOLON), None)
    if semicolon is not None:
        raise SqlSyntaxError(
            "only one statement is allowed here",
            position=position_of_token(text, tokens[semicolon + 1]),
            hint="Send the statements one by one.",
        )
    if not tokens and not word:
        raise SqlSyntaxError("the statement is empty", position=end_of(text))
    if word in SESSION_WORDS:
        return _session(text, word, tokens)
    if word == "show" and tokens and tokens[0].text.lower() in _SHOWN_SNAPSHOTS:
        return ParsedStatement(text, SnapshotParser(text, tokens).show(), 0)
    if word == "show" and not (tokens and tokens[0].text.lower() in _SHOWN):
        return ParsedStatement(text, SessionParser(text, tokens).show(), 0)
    if word in ("show", "describe"):
        definition = DefinitionParser(text, tokens)
        return ParsedStatement(
            text, definition.show() if word == "show" else definition.describe(), 0
        )
    if word == "explain":
        return _explain(text, tokens)
    return _statement(text, tokens)


def _session(text: str, word: str, tokens: list[Token]) -> ParsedStatement:
    tree = SessionParser(text, tokens).statement(
        word,
        lambda query: parse_query_tokens(text, query),
        lambda statement: parse(statement).parameters,
    )
    return ParsedStatement(text, tree, 0)


def _explain(text: str, tokens: list[Token]) -> ParsedStatement:
    options, index = read_explain_options(text, tokens)
    if index >= len(tokens):
        _syntax_error(text, tokens, index)
    first = tokens[index]
    if first.text.lower() == "execute":
        reader = SessionParser(text, execute_tokens(text, first))
        prefix = text[: first.start]
        tree = reader.execute(lambda query: parse_query_tokens(text, query), prefix)
        return ParsedStatement(text, tree, 0)
    inner = _statement(text, tokens[index:])
    explainable = isinstance(inner.tree, QueryTree | InsertTree | ChangeTree | MergeTree)
    if not explainable and not (isinstance(inner.tree, CreateTree) and inner.tree.query):
        raise NotSupported(
            "only queries, INSERT, UPDATE, DELETE, MERGE and CREATE TABLE AS can be explained",
            position=position_of_token(text, first),
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
    word = first.text.lower()
    if is_cluster_statement(tokens):
        return ParsedStatement(text, ClusterParser(text, tokens).statement(), 0)
    if word == CANCEL:
        return ParsedStatement(text, CancelParser(text, tokens).statement(), 0)
    if is_snapshot_statement(tokens):
        return ParsedStatement(text, SnapshotParser(text, tokens).statement(), 0)
    replaces = word == "replace" and len(tokens) > 1 and tokens[1].token_type is _T.INTO
    if first.token_type in _QUERY_STARTS | _CHANGE_STARTS or word == "sink" or replaces:
        prepared = prepare(text, tokens)
        return ParsedStatement(text, _parse_tokens(prepared), prepared.parameters)
    if first.token_type in (_T.CREATE, _T.DROP):
        definition = DefinitionParser(text, tokens)
        created = first.token_type is _T.CREATE
        return ParsedStatement(text, definition.create() if created else definition.drop(), 0)
    if first.token_type is _T.ALTER:
        return ParsedStatement(text, AlterParser(text, tokens).alter(), 0)
    if first.token_type is _T.COMMENT:
        return ParsedStatement(text, DefinitionParser(text, tokens).comment(), 0)
    position = position_of_token(text, first)
    if word in TRANSACTION_WORDS:
        return ParsedStatement(text, TransactionParser(text, tokens).statement(), 0)
    if word in _KNOWN_WORDS:
        raise NotSupported(
            f"{word.upper()} is not supported",
            position=position,
            hint=f"Supported statements: {_STATEMENTS}.",
        )
    raise near(text, first, did_you_mean(word, _STATEMENT_WORDS).replace('"', ""))


def parse_query_tokens(text: str, tokens: list[Token]) -> tuple[exp.Expr, int]:
    """The query in ``tokens``, a part of ``text`` or all of it, and its number of parameters."""
    if tokens[0].token_type not in _QUERY_STARTS:
        raise near(text, tokens[0], "A query is expected here.")
    prepared = prepare(text, tokens)
    tree = _parse_tokens(prepared)
    if not isinstance(tree, QueryTree):
        raise near(text, tokens[0], "A query is expected here.")
    return tree.root, prepared.parameters


def _parse_tokens(prepared: TokenList) -> Tree:
    """A query or a change of data."""
    text, tokens = prepared.text, prepared.tokens
    word = tokens[0].text.lower()
    if tokens[0].token_type in _CHANGE_STARTS | {_T.WITH} or word in ("sink", "replace"):
        tokens = prepared.tokens[:] = enclose_all_assignments(tokens)
    sink, replaces = (tokens[0].text.lower() == word for word in ("sink", "replace"))
    if sink or replaces:
        first = tokens[0]
        tokens[0] = Token(_T.INSERT, "INSERT", first.line, first.col, first.start, first.end)
    try:
        roots = PostgresParser(dialect=DIALECT).parse(tokens, text)
    except ParseError as error:
        raise _translated(prepared, error) from None
    root = roots[0] if roots else None
    if isinstance(root, exp.Insert):
        if replaces:
            root.set("alternative", REPLACE)
        return InsertTree(root, sink)
    if isinstance(root, exp.Merge):
        return MergeTree(root)
    if isinstance(root, exp.Update | exp.Delete):
        return ChangeTree(root)
    if isinstance(root, exp.TruncateTable):
        return TruncateTree(root)
    if isinstance(root, exp.Query | exp.Values):
        return QueryTree(root, locking=take_locking(text, root))
    raise near(text, tokens[0])


def _translated(prepared: TokenList, error: ParseError) -> SqlSyntaxError:
    """sqlglot's error in PostgreSQL's words.

    sqlglot reports the last token both for a wrong last token and for a missing next one, so
    the tokens are parsed again with one that never fits behind them: an error there is at the end.
    """
    text, tokens = prepared.text, prepared.tokens
    line, column = _place(error)
    last = tokens[-1]
    if (last.line, last.col) == (line, column):
        if str(error).startswith("Required keyword"):
            return SqlSyntaxError("syntax error at end of input", position=end_of(text))
        sentinel = Token(_T.UNKNOWN, "", last.line, last.col + 1, len(text), len(text))
        try:
            PostgresParser(dialect=DIALECT).parse([*tokens, sentinel], text)
        except ParseError as second:
            if _place(second) == (sentinel.line, sentinel.col):
                return SqlSyntaxError("syntax error at end of input", position=end_of(text))
    for index, token in enumerate(tokens):
        if (token.line, token.col) == (line, column):
            return near(text, token, keyword_hint(tokens, index))
    return SqlSyntaxError("syntax error", position=position_of_token(text, tokens[0]))


def _place(error: ParseError) -> tuple[int, int]:
    details = error.errors[0] if error.errors else {}
    return int(details.get("line") or 0), int(details.get("col") or 0)
