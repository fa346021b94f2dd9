"""Statements about the cluster itself, and about the work of others::

ALTER CLUSTER ACCEPT LOST PARTITIONS
ALTER CLUSTER DRAIN MEMBER number
ALTER CLUSTER FINISH UPGRADE
ALTER CLUSTER RESET STATEMENT STATISTICS
ALTER CLUSTER SET LOG LEVEL level [FOR part] [ON MEMBER number]
CANCEL QUERY 'id'  |  CANCEL TRANSACTION 'id'
GRANT  privilege, ... | ALL [PRIVILEGES] ON objects TO user | PUBLIC, ... [GRANTED BY user]
REVOKE privilege, ... | ALL [PRIVILEGES] ON objects FROM user | PUBLIC, ... [CASCADE | RESTRICT]

where objects are [TABLE] name, ..., ALL TABLES | SEQUENCES IN SCHEMA name, ..., or
SEQUENCE | SCHEMA | DATABASE name, ...
"""

from __future__ import annotations

from typing import Final

from remuda.errors import NotSupported, Position
from remuda.sql.parsing.schemas import OWN_USER, no_owners
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.trees.cluster import (
    AcceptLossTree,
    CancelTree,
    ClusterTree,
    DrainTree,
    FinishUpgradeTree,
    LogLevelTree,
    ResetStatementsTree,
)
from remuda.sql.trees.names import Name
from remuda.sql.trees.privileges import ObjectKind, PrivilegeTree

TAG: Final = "ALTER CLUSTER"
PRIVILEGES: Final = ("grant", "revoke", "reassign")
CANCEL: Final = "cancel"
_ALTERATIONS: Final = (
    "ALTER CLUSTER ACCEPT LOST PARTITIONS, ALTER CLUSTER DRAIN MEMBER number, "
    "ALTER CLUSTER FINISH UPGRADE, ALTER CLUSTER RESET STATEMENT STATISTICS, "
    "ALTER CLUSTER SET LOG LEVEL level"
)
_LEVEL_HINT: Final = (
    "ALTER CLUSTER SET LOG LEVEL level [FOR part] [ON MEMBER number]: the levels "
    "are debug, info, warning, error, and default."
)
_PART_HINT: Final = "A part is named as JSON lines of the log have it: 'member.membership'."
LEVELS: Final = ("debug", "info", "warning", "error", "default")
"""``default``: a part has the level of the part around it, the whole log that of ``log_level``."""
_NUMBER_HINT: Final = "The member is named by its number, as sys.members shows it."


_OBJECTS: Final = (
    "privileges ON [TABLE], SEQUENCE, SCHEMA, DATABASE, ALL TABLES IN SCHEMA, "
    "ALL SEQUENCES IN SCHEMA"
)
_OTHER_KINDS: Final = (
    "function", "procedure", "routine", "language", "large", "type", "domain", "foreign",
    "tablespace", "parameter", "all",
)  # fmt: skip
_ROLES_HINT: Final = (
    "Users have the roles read, write and admin on maps, schemas and all maps: remuda user grant "
    "NAME ROLE --map MAP."
)


def is_cluster_statement(tokens: list[Token]) -> bool:
    """By its first two words."""
    return [token.text.lower() for token in tokens[:2]] == ["alter", "cluster"]


class ClusterParser(TokenReader):
    def statement(self) -> ClusterTree:
        """From its first word on."""
        self.expect("alter")
        self.expect("cluster")
        if self.accept("drain", "member"):
            return self._drain()
        if self.accept("finish", "upgrade"):
            self.end()
            return FinishUpgradeTree()
        if self.accept("reset", "statement", "statistics"):
            self.end()
            return ResetStatementsTree()
        if self.accept("set", "log", "level"):
            return self._log_level()
        if not self.accept("accept", "lost", "partitions"):
            self.unsupported(f"ALTER CLUSTER {self.word().upper()}".rstrip(), _ALTERATIONS)
        self.end()
        return AcceptLossTree()

    def _drain(self) -> DrainTree:
        position, number = self.position(), self._number()
        self.end()
        return DrainTree(number, position)

    def _number(self) -> int:
        token = self.peek()
        if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdecimal():
            self.fail(_NUMBER_HINT)
        self.index += 1
        return int(token.text)

    def _log_level(self) -> LogLevelTree:
        level = self._text(_LEVEL_HINT).lower()
        if level not in LEVELS:
            self.index -= 1
            self.fail(_LEVEL_HINT)
        part, member, position = "", None, self.position()
        if self.accept("for"):
            position = self.position()
            part = self._text(_PART_HINT)
            while self.accept("."):
                part += "." + self._text(_PART_HINT)
        if self.accept("on", "member"):
            position, member = self.position(), self._number()
        self.end()
        return LogLevelTree(part, level, member, position)

    def _text(self, hint: str) -> str:
        """A word, or a string."""
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            self.index += 1
            return token.text
        return self.name(hint).text


class CancelParser(TokenReader):
    def statement(self) -> CancelTree:
        """From its first word on."""
        self.expect(CANCEL)
        transaction = self.accept("transaction")
        if not transaction:
            self.expect("query", hint="CANCEL QUERY 'id', or CANCEL TRANSACTION 'id'.")
        shown = "sys.transactions" if transaction else "sys.queries"
        position = self.position()
        name = self.string(f"The id stands in quotes, as {shown} shows it.").text
        self.end()
        return CancelTree(name, transaction, position)


class PrivilegeParser(TokenReader):
    def statement(self) -> PrivilegeTree:
        """From its first word on."""
        if self.accept("reassign"):
            raise no_owners(self, "REASSIGN")
        grants = self.accept("grant")
        if not grants:
            self.expect("revoke")
            position = self.position()
            if self.accept("grant", "option", "for") or self.accept("admin", "option", "for"):
                raise _no_options(position)
        position = self.position()
        privileges = self._privileges()
        preposition = "to" if grants else "from"
        if self.word() == preposition:
            raise NotSupported(
                "roles that have members are not supported",
                position=position,
                hint=_ROLES_HINT,
            )
        self.expect("on")
        kind, objects = self._objects()
        self.expect(preposition)
        users, public = self._users()
        position = self.position() if self.word() == "with" else position
        if self.accept("with", "grant", "option"):
            raise _no_options(position)
        if self.accept("granted", "by"):
            self.name()
        if not grants and not self.accept("cascade"):
            self.accept("restrict")
        self.end()
        return PrivilegeTree(grants, privileges, kind, objects, users, public)

    def _privileges(self) -> tuple[str, ...]:
        if self.accept("all"):
            self.accept("privileges")
            self._no_columns()
            return ()
        found: list[str] = []
        while True:
            found.append(self.name("Name a privilege: SELECT, INSERT, UPDATE, DELETE, ...").text)
            self._no_columns()
            if not self.accept(","):
                return tuple(word.lower() for word in found)

    def _no_columns(self) -> None:
        if self.word() == "(" or ((token := self.peek()) is not None and token.text == "("):
            raise NotSupported(
                "privileges on columns are not supported",
                position=self.position(),
                hint="A role holds for all columns of a map. A view shows some of them to those "
                "who may read the map.",
            )

    def _objects(self) -> tuple[ObjectKind, tuple[Name, ...]]:
        if self.accept("all", "tables", "in", "schema"):
            return ObjectKind.TABLES_IN_SCHEMA, self.listed(self.name)
        if self.accept("all", "sequences", "in", "schema"):
            return ObjectKind.SEQUENCES_IN_SCHEMA, self.listed(self.name)
        for kind in (ObjectKind.SEQUENCE, ObjectKind.SCHEMA, ObjectKind.DATABASE):
            if self._begins(kind.value):
                named = self.map_name if kind is ObjectKind.SEQUENCE else self.name
                return kind, self.listed(named)
        if not self._begins("table") and any(map(self._begins, _OTHER_KINDS)):
            self.index -= 1
            self.unsupported(f"GRANT and REVOKE on {self.word().upper()}", _OBJECTS)
        return ObjectKind.TABLE, self.listed(self.map_name)

    def _begins(self, word: str) -> bool:
        """Whether ``word`` stands before a name, and is none itself."""
        following = self.tokens[self.index + 1 : self.index + 2]
        is_name = bool(following) and following[0].kind in (TokenKind.WORD, TokenKind.NAME)
        return is_name and following[0].word not in ("to", "from") and self.accept(word)

    def _users(self) -> tuple[tuple[Name, ...], bool]:
        found, public = [], False
        while True:
            self.accept("group")
            token = self.peek()
            user = self.name("Name a user, or PUBLIC.")
            assert token is not None
            if token.word == "public":
                public = True
            elif token.word in OWN_USER:
                found.append(Name("", user.position))
            else:
                found.append(user)
            if not self.accept(","):
                return tuple(found), public


def _no_options(position: Position) -> NotSupported:
    return NotSupported(
        "privileges to grant privileges are not supported",
        position=position,
        hint="Administrators give and take roles: remuda user grant NAME admin --all.",
    )
