"""::

    CREATE SNAPSHOT name [INCREMENT]
    SHOW SNAPSHOTS  |  SHOW SNAPSHOT name
    VERIFY SNAPSHOT name [LEVEL 1|2|3]
    RESTORE SNAPSHOT name [CUT n | TO 'moment'] [MAPS map [AS name], ... | PREFIX 'text'] [DRY RUN]
    EXPIRE SNAPSHOT name BEFORE 'moment' [DRY RUN]
    DROP SNAPSHOT [IF EXISTS] name [CUT n, ...] [CASCADE] [DRY RUN]

The name of a snapshot is a word, or a text in quotes.
"""

from __future__ import annotations

from typing import Final

from remuda.datatypes.schema import PUBLIC, full_name
from remuda.sql.parsing.token_reader import TokenReader
from remuda.sql.text.lexemes import Token, TokenKind
from remuda.sql.trees.snapshot import (
    CreateSnapshotTree,
    DropSnapshotTree,
    ExpireSnapshotTree,
    RestoreSnapshotTree,
    ShowSnapshotsTree,
    SnapshotTree,
    VerifySnapshotTree,
)
from remuda.sql.trees.syntax import Name

WORDS: Final = ("verify", "restore", "expire")
"""First words of statements that are about snapshots only."""
_LEVELS: Final = (1, 2, 3)


def is_snapshot_statement(tokens: list[Token]) -> bool:
    """By its first two words."""
    if len(tokens) < 2:
        return False
    first, second = (token.text.lower() for token in tokens[:2])
    return second == "snapshot" and first in ("create", "drop", *WORDS)


class SnapshotParser(TokenReader):
    def statement(self) -> SnapshotTree:
        """From its first word on."""
        word = self.word()
        self.index += 1
        self.expect("snapshot")
        match word:
            case "create":
                name = self._snapshot()
                increment = self.accept("increment")
                self.end()
                return CreateSnapshotTree(name.text, name.position, increment)
            case "verify":
                return self._verify()
            case "restore":
                return self._restore()
            case "expire":
                return self._expire()
            case _:
                return self._drop()

    def show(self) -> ShowSnapshotsTree:
        """After the word SHOW."""
        position = self.position()
        if self.accept("snapshots"):
            self.end()
            return ShowSnapshotsTree(None, position)
        self.expect("snapshot")
        name = self._snapshot()
        self.end()
        return ShowSnapshotsTree(name.text, name.position)

    def _verify(self) -> VerifySnapshotTree:
        name = self._snapshot()
        level = _LEVELS[-1]
        if self.accept("level"):
            level = self._number("Levels are 1 (objects), 2 (rows, too) and 3 (everything).")
            if level not in _LEVELS:
                self.index -= 1
                self.fail("Levels are 1 (objects), 2 (rows, too) and 3 (everything).")
        self.end()
        return VerifySnapshotTree(name.text, name.position, level)

    def _restore(self) -> RestoreSnapshotTree:
        name = self._snapshot()
        cut = self._number() if self.accept("cut") else None
        moment = ""
        if cut is None and self.accept("to"):
            moment = self.string("Write RESTORE SNAPSHOT name TO '2024-01-31 12:00:00+00'.").text
        maps: list[tuple[Name, Name]] = []
        prefix = ""
        if self.accept("maps"):
            maps.append(self._map())
            while self.accept(","):
                maps.append(self._map())
        elif self.accept("prefix"):
            prefix = self.string("Write the prefix in quotes: PREFIX 'old_'.").text
        dry_run = self._dry_run()
        self.end()
        return RestoreSnapshotTree(
            name.text,
            name.position,
            cut,
            tuple((_full(old), _full(new)) for old, new in maps),
            tuple(new.schema for _, new in maps if new.schema),
            prefix,
            moment,
            dry_run,
        )

    def _map(self) -> tuple[Name, Name]:
        name = self.map_name()
        return name, self.map_name() if self.accept("as") else name

    def _expire(self) -> ExpireSnapshotTree:
        name = self._snapshot()
        hint = "Write EXPIRE SNAPSHOT name BEFORE '2024-01-31 12:00:00+00'."
        self.expect("before", hint=hint)
        before = self.string(hint).text
        dry_run = self._dry_run()
        self.end()
        return ExpireSnapshotTree(name.text, name.position, before, dry_run)

    def _drop(self) -> DropSnapshotTree:
        if_exists = self.accept("if", "exists")
        name = self._snapshot()
        cuts: list[int] = []
        if self.accept("cut"):
            cuts.append(self._number())
            while self.accept(","):
                cuts.append(self._number())
        cascade = self.accept("cascade")
        if not cascade:
            self.accept("restrict")
        dry_run = self._dry_run()
        self.end()
        return DropSnapshotTree(name.text, name.position, if_exists, tuple(cuts), cascade, dry_run)

    def _snapshot(self) -> Name:
        token = self.peek()
        if token is not None and token.kind is TokenKind.STRING:
            position = self.position()
            self.index += 1
            return Name(token.text, position)
        return self.name("Write the name of the snapshot; one with a '-' in quotes.")

    def _number(self, hint: str = "Write the number of a cut.") -> int:
        token = self.peek()
        if token is None or token.kind is not TokenKind.NUMBER or not token.text.isdigit():
            self.fail(hint)
        self.index += 1
        return int(token.text)

    def _dry_run(self) -> bool:
        return self.accept("dry", "run")


def _full(name: Name) -> str:
    """The full name of a map. Without a schema it is the full name itself, in quotes if need be."""
    return full_name(name.schema or PUBLIC, name.text)
