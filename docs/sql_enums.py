"""The part of docs/sql.md about enums."""

from __future__ import annotations

from typing import Final

ENUMS: Final = (
    ("an enum: its values compare in the order of this list",
     "CREATE TYPE feeling AS ENUM ('sad', 'ok', 'happy')"),
    ("a type of columns, also of keys, UNIQUE columns and arrays",
     "CREATE TABLE people (id INT PRIMARY KEY, m mood DEFAULT 'ok', others mood[])"),
    ("one more value, which comes last, or BEFORE or AFTER another one",
     "ALTER TYPE mood ADD VALUE [IF NOT EXISTS] 'meh' BEFORE 'ok'"),
    ("another name, or another schema",
     "ALTER TYPE mood RENAME TO temper"),
    ("CASCADE drops the columns of the type, too",
     "DROP TYPE [IF EXISTS] mood CASCADE"),
)  # fmt: skip

NOTES: Final = """\
A text that is no value of the type is refused (22P02). Untyped literals and parameters become
values by themselves; other texts need a CAST, and so does an enum beside a text. `enum_range(x)`
gives all values of the type of `x` as an array, `enum_range(low, high)` those between two
constants, `enum_first(x)` and `enum_last(x)` the ends: `enum_range(NULL::mood)`.

Rows hold the labels as texts: Arrow, Spark, `get` and `put` have them as strings, and a member
checks what they write ([decision 0091](decisions/0091-enums-are-labels.md)). So `ALTER TYPE ...
RENAME VALUE` is refused while a column has the type (0A000). Indexes serve `=` and IN of enums,
and no ranges and no order. A map that is restored from a snapshot brings its types along. CHECK
constraints and generated columns may name the types of columns of their own map. CREATE TYPE has
no other form, and like other definitions it cannot be part of a transaction.
"""
