"""The temporary tables, sequences and views of a session after a definition (decision 0090).

Definitions are bound as those of the catalog are, so they come as edits of a catalog. Rows follow
the schema of their table at once: nobody else reads them meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from remuda.catalog.catalog import made_map, next_map
from remuda.catalog.edits import DropMap, DropView, Edit, PutMap, PutView
from remuda.catalog.own.numbers import OwnNumbers
from remuda.catalog.temporary import PRESERVE, TemporaryTable, TemporaryTables
from remuda.datatypes.schema import PG_TEMP, MapSchema
from remuda.datatypes.sequences import initial
from remuda.errors import DuplicateMap, LimitExceeded
from remuda.sql.scope.statements import NumbersFrom
from remuda.storage.chunks.layout import Layout

TABLES_MAX = 1000
"""Temporary relations of one session."""


def is_own(edit: Edit, tables: TemporaryTables | None) -> bool:
    """Whether an edit concerns a temporary relation."""
    match edit:
        case PutMap(schema=schema):
            return schema.temporary
        case PutView(view=view):
            return view.namespace == PG_TEMP
        case DropMap(name=name) | DropView(name=name):
            return tables is not None and tables.has(name)
        case _:
            return False


def defined(
    tables: TemporaryTables,
    edits: Iterable[Edit],
    *,
    session: int,
    fresh: Callable[[], int],
    on_commit: str = "",
) -> TemporaryTables:
    """The value after ``edits``, which concern temporary relations alone. ``session``: the number
    of a session that had none; ``fresh`` gives numbers that were never given before. Raises
    InvalidDefinition, DuplicateMap, LimitExceeded."""
    found = {table.schema.map_id: table for table in tables.tables.values()}
    views = {view.view_id: view for view in tables.views.values()}
    for edit in edits:
        match edit:
            case DropMap(name=name):
                found.pop(tables.tables[name].schema.map_id, None)
            case DropView(name=name):
                views.pop(tables.views[name].view_id, None)
            case PutMap(schema=schema):
                known = found.get(schema.map_id)
                table = (
                    _made(schema, on_commit, fresh)
                    if known is None
                    else _next(known, schema, fresh)
                )
                found[table.schema.map_id] = table
            case PutView(view=view):
                made = view if view.view_id in views else replace(view, view_id=-fresh())
                views[made.view_id] = made
    names = [table.schema.name for table in found.values()]
    _refuse_doubles([*names, *(view.name for view in views.values())])
    if len(found) + len(views) > max(TABLES_MAX, len(tables.tables) + len(tables.views)):
        raise LimitExceeded(
            f"a session has at most {TABLES_MAX} temporary tables, sequences and views",
            hint="Drop those that you do not need any more, or DISCARD TEMP.",
        )
    return tables.defined(found.values(), views.values(), session=session)


def _refuse_doubles(names: Sequence[str]) -> None:
    for name in set(names):
        if names.count(name) > 1:
            raise DuplicateMap(f'a map or view of the name "{name}" exists already')


def _made(schema: MapSchema, on_commit: str, fresh: Callable[[], int]) -> TemporaryTable:
    """A number of its own is less than 0: no map of the catalog has it."""
    made = made_map(schema, -fresh(), _numbers(fresh))
    if made.sequence is not None:
        return TemporaryTable(made, numbers=OwnNumbers(initial(made.sequence)))
    return TemporaryTable(made, on_commit=on_commit or PRESERVE)


def _next(table: TemporaryTable, schema: MapSchema, fresh: Callable[[], int]) -> TemporaryTable:
    """With another schema, and the rows as that one has them. No version is that of a definition
    which was rolled back: conditions that are compiled for a version would be found again."""
    before = table.schema
    after = next_map(before, schema, fresh(), _numbers(fresh))
    indexes = tuple(replace(index, ready=True) for index in after.indexes)
    after = replace(after, indexes=indexes)
    if _layout(before) == _layout(after):
        return replace(table, schema=after)
    layout, places = Layout(before, after), range(len(after.columns))
    batches = tuple(layout.batch(batch, places) for batch in table.batches)
    return replace(table, schema=after, batches=batches)


def _layout(schema: MapSchema) -> list[object]:
    """All of its columns that rows depend on."""
    return [(c.id, c.name, str(c.type), c.nullable) for c in schema.columns]


def _numbers(fresh: Callable[[], int]) -> Iterator[int]:
    while True:
        yield fresh()


def with_numbers(tables: TemporaryTables, numbers: Iterable[NumbersFrom]) -> TemporaryTables:
    """With sequences that go on elsewhere, as RESTART says: a rollback takes that back."""
    for each in numbers:
        table = tables.find(each.name)
        if table is None or table.numbers is None or each.value is None:
            continue  # a new one begins, another one goes on where it is
        new = OwnNumbers(table.numbers.state)
        new.set(each.value, is_called=each.is_called)
        tables = tables.with_table(replace(table, numbers=new))
    return tables
