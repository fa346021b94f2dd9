"""SET, RESET, SHOW of settings, PREPARE, EXECUTE, DEALLOCATE, DISCARD, LISTEN, NOTIFY, UNLISTEN,
ANALYZE."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from remuda.datatypes.identifiers import quoted_name
from remuda.datatypes.sql import NULL, SqlType
from remuda.datatypes.times.intervals import unpack
from remuda.datatypes.times.intervaltext import parse_interval
from remuda.datatypes.times.session_zones import east_of_utc
from remuda.errors import DataError, InvalidParameterValue, SqlSyntaxError
from remuda.sql.parsing.grammar.types import TypeGrammar, catalog_type, declared_type
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.parsing.transaction import TransactionParser
from remuda.sql.text.lexemes import Token, TokenKind, position_of_token
from remuda.sql.text.types import undefined_type
from remuda.sql.trees import ast
from remuda.sql.trees.session import (
    NO_ROLE,
    ROLE,
    DeallocateTree,
    DiscardTree,
    ExecuteTree,
    ListenTree,
    NotifyTree,
    PrepareTree,
    SessionTree,
    SetConstraintsTree,
    SetTree,
    ShowSettingTree,
    UnlistenTree,
)
from remuda.sql.trees.syntax import AnalyzeTree, LockMode, LockTree, Name
from remuda.sql.trees.transaction import SetTransactionTree

WORDS: Final = (
    "set",
    "reset",
    "prepare",
    "execute",
    "deallocate",
    "discard",
    "listen",
    "lock",
    "notify",
    "unlisten",
    "analyze",
    "vacuum",
    "reindex",
)
_VALUE_KINDS: Final = frozenset({TokenKind.STRING, TokenKind.NUMBER})
_PREPARABLE: Final = (
    "select", "insert", "update", "delete", "merge", "values", "with", "sink", "(", "table",
)  # fmt: skip

_LOCK_MODES: Final = sorted(LockMode, key=lambda mode: -len(mode.value))
_VACUUM_OPTIONS: Final = frozenset({"full", "freeze", "verbose", "analyze"})
_VACUUM_SETTINGS: Final = frozenset(
    {
        "disable_page_skipping",
        "skip_locked",
        "index_cleanup",
        "process_toast",
        "truncate",
        "parallel",
    }
)
ReadExpressions = Callable[[list[Token]], tuple[list[ast.Node], int]]
"""Reads tokens as expressions with commas between them: these, and the number of parameters."""


class SessionParser(TokenReader):
    """Reads what follows the first word."""

    def statement(
        self, word: str, expressions: ReadExpressions, parameters: Callable[[str], int]
    ) -> SessionTree | AnalyzeTree | LockTree:
        """``parameters`` counts those of a statement's text."""
        match word:
            case "set":
                return self._set()
            case "reset":
                return self._reset()
            case "prepare":
                return self._prepare(parameters)
            case "execute":
                return self.execute(expressions, "")
            case "deallocate":
                return self._deallocate()
            case "discard":
                return self._discard()
            case "listen" | "unlisten":
                return self._listen() if word == "listen" else self._unlisten()
            case "lock":
                return self._lock()
            case "notify":
                return self._notify()
            case "vacuum":
                return self._vacuum()
            case "reindex":
                return self._reindex()
            case _:
                return self._analyze()

    # --- settings ---

    def _set(self) -> SetTree | SetTransactionTree | SetConstraintsTree:
        if self.accept("constraints"):
            return self._constraints()
        if self.accept("transaction"):
            return self._transaction(session=False)
        if self.accept("session", "characteristics"):
            self.expect("as")
            self.expect("transaction")
            return self._transaction(session=True)
        if self.accept("session", "authorization"):
            return self._user(local=False)
        local = self.accept("local")
        if not local and self.accept("session") and not self.word():
            self.fail()
        if self.accept("session", "authorization"):
            return self._user(local)
        if self.accept("time", "zone"):
            return self._zone_value(local)
        if self.accept("names"):
            return self._value(Name("client_encoding", self.position()), local)
        name = self._setting_name()
        assigned = self.accept("to") or self.accept("=")
        if name.text == ROLE and not assigned:
            return self._user(local)
        if not assigned:
            self.expect("=")
        return self._value(name, local)

    def _user(self, local: bool) -> SetTree:
        """The rest of SET ROLE and SET SESSION AUTHORIZATION, which are one setting here: a user
        has no other name than that of the login."""
        position = self.position()
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            self.index += 1
            name = token.text
        elif self.accept("default") or self.accept("none"):
            name = NO_ROLE
        else:
            name = self.name().text
        self.end()
        return SetTree(ROLE, position, name, local)

    def _transaction(self, *, session: bool) -> SetTransactionTree:
        reader = TransactionParser(self.text, self.tokens)
        reader.index = self.index
        return reader.set_transaction(session=session)

    def _setting_name(self) -> Name:
        name = self.name()
        while self.accept("."):
            name = Name(f"{name.text}.{self.name().text}", name.position)
        return name

    def _value(self, name: Name, local: bool) -> SetTree:
        if self.accept("default"):
            self.end()
            return SetTree(name.text, name.position, None, local)
        one = self._schema if name.text == "search_path" else self._one_value
        parts = [one()]
        while self.accept(","):
            parts.append(one())
        self.end()
        return SetTree(name.text, name.position, ", ".join(parts), local)

    def _schema(self) -> str:
        """The name of a schema in a search path, written so that it is read again as it is meant:
        as in PostgreSQL, a text is one name, also with commas in it."""
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            self.index += 1
            return quoted_name(token.text)
        return quoted_name(self.name().text)

    def _zone_value(self, local: bool) -> SetTree:
        """The rest of SET TIME ZONE: a value, or ``INTERVAL '-08:00' HOUR TO MINUTE``."""
        name = Name("timezone", self.position())
        if not self.accept("interval"):
            return self._value(name, local)
        token = self.peek()
        if token is None or token.kind is not TokenKind.STRING:
            self.fail()
        self.index += 1
        if self.accept("hour", "to"):
            self.expect("minute")
        try:
            months, days, micros = unpack(parse_interval(token.text))
            zone = None if months or days else east_of_utc(micros / 1_000_000)
        except (DataError, ValueError):
            zone = None
        if zone is None:
            raise InvalidParameterValue(
                f"an interval as a time zone has hours and minutes: '{token.text}'",
                position=position_of_token(self.text, token),
                hint="Write SET TIME ZONE 'Europe/Berlin', or SET TIME ZONE INTERVAL '-08:00'.",
            )
        self.end()
        return SetTree(name.text, name.position, zone, local)

    def _one_value(self) -> str:
        sign = "-" if self.accept("-") else "+" if self.accept("+") else ""
        token = self.peek()
        if token is None:
            self.fail()
        if token.kind in _VALUE_KINDS:
            self.index += 1
            return sign.removeprefix("+") + token.text
        if sign:
            self.fail()
        if token.kind is TokenKind.NAME:
            return self.name().text
        if not token.text.replace("_", "a").replace("-", "a").replace("/", "a").isalnum():
            self.fail()
        self.index += 1
        return token.text

    def _reset(self) -> SetTree:
        position = self.position()
        if self.accept("all"):
            self.end()
            return SetTree(None, position, None, tag="RESET")
        if self.accept("time", "zone"):
            name = Name("timezone", position)
        elif self.accept("session", "authorization"):
            name = Name(ROLE, position)
        else:
            name = self._setting_name()
        self.end()
        return SetTree(name.text, name.position, None, tag="RESET")

    def show(self) -> ShowSettingTree:
        position = self.position()
        if self.accept("all"):
            self.end()
            return ShowSettingTree(None, position)
        if self.accept("time", "zone"):
            self.end()
            return ShowSettingTree("timezone", position)
        if self.accept("transaction", "isolation", "level"):
            self.end()
            return ShowSettingTree("transaction_isolation", position)
        name = self._setting_name()
        self.end()
        return ShowSettingTree(name.text, name.position)

    # --- prepared statements ---

    def _prepare(self, parameters: Callable[[str], int]) -> PrepareTree:
        name = self.name()
        types: list[SqlType] | None = None
        if self.accept("("):
            types = [self._type()]
            while self.accept(","):
                types.append(self._type())
            self.expect(")")
        self.expect("as")
        token = self.peek()
        if token is None or token.text.lower() not in _PREPARABLE:
            self.fail("Queries, INSERT, UPDATE, DELETE and MERGE can be prepared.")
        blanks = "".join(c if c == "\n" else " " for c in self.text[: token.start])
        text = blanks + self.text[token.start :].rstrip().rstrip(";")
        known = None if types is None else tuple(types)
        return PrepareTree(name.text, name.position, known, text, parameters(text))

    def _type(self) -> SqlType:
        if self.accept("unknown"):
            return NULL
        position = self.position()
        grammar = TypeGrammar(self.text, self.tokens, self.index)
        written = grammar.type_name()
        self.index = grammar.index
        found = catalog_type(written, position) or declared_type(written, position)
        enum = (found.element or found).enum
        if enum is not None:
            raise undefined_type(enum.local, position)
        return found

    def execute(self, expressions: ReadExpressions, prefix: str) -> ExecuteTree:
        name = self.name()
        arguments: tuple[ast.Node, ...] = ()
        if self.index < len(self.tokens):
            opening = self.tokens[self.index]
            self.expect("(")
            if self.accept(")"):
                self.end()
                return ExecuteTree(name.text, name.position, (), prefix)
            if self.tokens[-1].word != ")":
                self.index = len(self.tokens)
                self.fail()
            found, parameters = expressions(self.tokens[self.index : -1])
            if parameters:
                raise SqlSyntaxError(
                    "EXECUTE takes constant expressions",
                    position=position_of_token(self.text, opening),
                )
            arguments = tuple(found)
        return ExecuteTree(name.text, name.position, arguments, prefix)

    def _deallocate(self) -> DeallocateTree:
        self.accept("prepare")
        position = self.position()
        if self.accept("all"):
            self.end()
            return DeallocateTree(None, position)
        name = self.name()
        self.end()
        return DeallocateTree(name.text, name.position)

    def _discard(self) -> DiscardTree:
        for word in ("ALL", "PLANS", "SEQUENCES", "TEMP"):
            if self.accept(word.lower()) or (word == "TEMP" and self.accept("temporary")):
                self.end()
                return DiscardTree(word)
        return self.fail("Supported: DISCARD ALL, PLANS, SEQUENCES, TEMP.")

    def _constraints(self) -> SetConstraintsTree:
        names = None if self.accept("all") else self.listed(self.map_name)
        deferred = self.accept("deferred")
        if not deferred:
            self.expect("immediate", hint="Write DEFERRED or IMMEDIATE.")
        self.end()
        return SetConstraintsTree(names, deferred)

    def _listen(self) -> ListenTree:
        channel = self.name()
        self.end()
        return ListenTree(channel.text)

    def _unlisten(self) -> UnlistenTree:
        channel = None if self.accept("*") else self.name().text
        self.end()
        return UnlistenTree(channel)

    def _notify(self) -> NotifyTree:
        channel, payload = self.name().text, ""
        if self.accept(","):
            payload = self.string("The payload is a text; pg_notify() takes expressions.").text
        self.end()
        return NotifyTree(channel, payload)

    # --- locks ---

    def _lock(self) -> LockTree:
        self.accept("table")
        names = self.listed(self._locked)
        mode = LockMode.ACCESS_EXCLUSIVE
        if self.accept("in"):
            found = (m for m in _LOCK_MODES if self.accept(*m.value.lower().split(), "mode"))
            known = next(found, None)
            if known is None:
                self.fail("The modes: " + ", ".join(mode.value for mode in LockMode) + ".")
            mode = known
        nowait = self.accept("nowait")
        self.end()
        return LockTree(names, mode, nowait)

    def _locked(self) -> Name:
        self.accept("only")
        name = self.map_name()
        self.accept("*")
        return name

    # --- statistics ---

    def _analyze(self) -> AnalyzeTree:
        if self.accept("("):
            self.expect("verbose")
            self.expect(")")
        self.accept("verbose")
        return AnalyzeTree(self._tables())

    def _vacuum(self) -> AnalyzeTree:
        """Its options ask for more or less of what members do by themselves."""
        words: set[str] = set()
        if self.accept("("):
            while not self.accept(")"):
                words.add(self.name().text)
                self.index += self.word() not in (",", ")", "")
                self.accept(",")
        while self.word() in _VACUUM_OPTIONS:
            words.add(self.name().text)
        unknown = words - _VACUUM_OPTIONS - _VACUUM_SETTINGS
        if unknown:
            raise SqlSyntaxError(
                f'unrecognized VACUUM option "{min(unknown)}"', position=self.position()
            )
        return AnalyzeTree(self._tables(), "VACUUM", measures="analyze" in words)

    def _reindex(self) -> AnalyzeTree:
        if self.accept("("):
            while not self.accept(")"):
                self.name()
                self.accept(",")
        whole = any(self.accept(word) for word in ("database", "system", "schema"))
        if not whole:
            self.accept("table") or self.accept("index")
        self.accept("concurrently")
        names = () if self.peek() is None else (self.map_name(),)
        self.end()
        return AnalyzeTree((), "REINDEX", measures=False, indexes=() if whole else names)

    def _tables(self) -> tuple[tuple[Name, tuple[Name, ...]], ...]:
        tables: list[tuple[Name, tuple[Name, ...]]] = []
        while self.index < len(self.tokens):
            if tables:
                self.expect(",")
            name = self.map_name()
            opening = self.peek()
            listed = opening is not None and opening.word == "("
            tables.append((name, self.names() if listed else ()))
        return tuple(tables)
