r"""``\crosstabview``: a result as a table whose columns are the values of one of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from remuda.cli.results.aligned import Table
from remuda.cli.results.options import NULL
from remuda.cli.results.table import Alignment
from remuda.cli.results.values import show
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome, Sent
from remuda.client.blocking.cursor import Cursor
from remuda.datatypes.schema import Column
from remuda.errors import InputError

COLUMNS_MAX: Final = 1600
"""As many as PostgreSQL's tables have at most."""


def _crosstab(call: Call) -> Outcome:
    session = call.session
    words = call.words.all()
    text = session.last_statement if call.scanner.is_empty else call.scanner.statement
    if not text:
        raise InputError("the query buffer is empty")

    null = session.printing.null_text(NULL)

    def shown(cursor: Cursor) -> int:
        rows = cursor.fetchall()
        session.print_table(crossed(cursor.columns, rows, words[:4], null))
        return len(rows)

    ok = session.statement(text, shown, call.source.data)
    for word in words[4:]:
        session.warn(f'\\crosstabview: extra argument "{word}" ignored')
    return Sent(ok)


def crossed(
    columns: Sequence[Column], rows: Sequence[Sequence[Any]], chosen: Sequence[str], null: str
) -> Table:
    """``chosen``: the columns for the rows, for the columns, for the cells, and the one by which
    the columns are sorted; by number or name. Raises InputError."""
    if len(columns) < 3:
        raise _wrong("query must return at least three columns")
    down = _place(columns, chosen[0]) if chosen else 0
    across = _place(columns, chosen[1]) if len(chosen) > 1 else 1
    if down == across:
        raise _wrong("vertical and horizontal headers must be different columns")
    if len(chosen) > 2:
        data = _place(columns, chosen[2])
    elif len(columns) > 3:
        raise _wrong("data column must be specified when query returns more than three columns")
    else:
        [data] = {0, 1, 2} - {down, across}
    order = _place(columns, chosen[3]) if len(chosen) > 3 else None
    types = [column.type for column in columns]

    def text(row: Sequence[Any], place: int) -> str | None:
        value = row[place]
        return None if value is None else show(value, types[place])

    heads: dict[str | None, Any] = {}
    lines: dict[str | None, dict[str | None, str | None]] = {}
    for row in rows:
        head, side = text(row, across), text(row, down)
        heads.setdefault(head, None if order is None else row[order])
        if len(heads) > COLUMNS_MAX:
            raise _wrong(f"maximum number of columns ({COLUMNS_MAX}) exceeded")
        line = lines.setdefault(side, {})
        if head in line:
            row_name, column_name = ("(null)" if name is None else name for name in (side, head))
            raise _wrong(
                f'query result contains multiple data values for row "{row_name}", column '
                f'"{column_name}"'
            )
        line[head] = text(row, data)
    names = list(heads)
    if order is not None:
        names.sort(key=lambda name: (heads[name] is None, heads[name]))
    side_of = [Alignment.RIGHT if kind.is_numeric else Alignment.LEFT for kind in types]
    return Table(
        [columns[down].name, *(null if name is None else name for name in names)],
        [side_of[down], *[side_of[data]] * len(names)],
        [[side, *(line.get(name, "") for name in names)] for side, line in lines.items()],
    )


def _place(columns: Sequence[Column], word: str) -> int:
    if word.isdigit():
        if not 1 <= int(word) <= len(columns):
            raise _wrong(f"column number {word} is out of range 1..{len(columns)}")
        return int(word) - 1
    quoted = len(word) > 1 and word[0] == word[-1] == '"'
    name = word[1:-1].replace('""', '"') if quoted else word.lower()
    found = [place for place, column in enumerate(columns) if column.name == name]
    if not found:
        raise _wrong(f'column name not found: "{name}"')
    if len(found) > 1:
        raise _wrong(f'ambiguous column name: "{name}"')
    return found[0]


def _wrong(text: str) -> InputError:
    return InputError(f"\\crosstabview: {text}")


COMMANDS = (
    Command(
        ("crosstabview",), _crosstab, "[ROWS [COLUMNS [CELLS [ORDER]]]]",
        "run it; values of one column become columns",
    ),
)  # fmt: skip
