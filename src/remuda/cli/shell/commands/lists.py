r"""Commands that list objects of one kind: ``\dt``, ``\df``, ``\du``, ``\l`` and so on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remuda.cli.results.aligned import Table
from remuda.cli.results.table import Alignment, harmless_name
from remuda.cli.shell.commands.catalogue import Call, Command, Outcome
from remuda.cli.shell.patterns import pattern_of
from remuda.errors import UndefinedMap

_KINDS = {"t": "rp", "v": "v", "m": "m", "i": "I", "s": "S", "E": "f"}
_NO_SYSTEM = "n.nspname NOT IN ('pg_catalog', 'information_schema', 'sys', 'pg_toast')"
_TYPE = """CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view'
WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'I' THEN 'partitioned index'
WHEN 'S' THEN 'sequence' WHEN 'p' THEN 'partitioned table' WHEN 'f' THEN 'foreign table'
ELSE c.relkind END"""


def print_rows(
    call: Call, title: str, names: Sequence[str], rows: Sequence[Sequence[Any]], right: str = ""
) -> None:
    """A list with a title. ``right``: the name of a column of numbers."""
    sides = [Alignment.RIGHT if name == right else Alignment.LEFT for name in names]
    texts = [[None if cell is None else _text(cell) for cell in row] for row in rows]
    call.session.print_table(Table(names, sides, texts, title))


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return str(cell)


def _relations(call: Call) -> Outcome:
    """``\\dt`` and its kind: letters behind the first add kinds."""
    letters = (call.name + call.flags).removeprefix("d")
    kinds = "".join(_KINDS.get(letter, "") for letter in letters)
    return list_relations(call, kinds.replace("I", "iI"), call.words.pattern())


def list_relations(call: Call, kinds: str, word: str | None) -> Outcome:
    """Relations whose names fit. ``kinds``: letters of ``relkind``."""
    more = "+" in call.flags
    with_table = "i" in kinds
    pattern = pattern_of(word)
    condition, values = pattern.condition("n.nspname", "c.relname", "pg_table_is_visible(c.oid)")
    if word is None and "S" not in call.flags.replace("s", ""):
        condition += f" AND {_NO_SYSTEM}"
    listed = ", ".join(f"'{kind}'" for kind in kinds)
    table = (
        "LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid"
        " LEFT JOIN pg_catalog.pg_class c2 ON i.indrelid = c2.oid"
        if with_table
        else ""
    )
    columns = f"n.nspname, c.relname, {_TYPE}, pg_get_userbyid(c.relowner)"
    names = ["Schema", "Name", "Type", "Owner"]
    if with_table:
        columns += ", c2.relname"
        names.append("Table")
    if more:
        columns += (
            ", CASE c.relpersistence WHEN 'p' THEN 'permanent' WHEN 't' THEN 'temporary' ELSE "
            "'unlogged' END, pg_size_pretty(pg_table_size(c.oid)), "
            "obj_description(c.oid, 'pg_class')"
        )
        names += ["Persistence", "Size", "Description"]
    rows = call.session.rows(
        f"SELECT {columns} FROM pg_catalog.pg_class c "
        f"JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace {table} "
        f"WHERE c.relkind IN ({listed}) AND {condition} ORDER BY 1, 2",
        *values,
    )
    if not rows:
        if word is not None:
            raise UndefinedMap(f'Did not find any relation named "{harmless_name(word)}".')
        call.session.warn("Did not find any relations.")
    else:
        print_rows(call, "List of relations", names, rows)
    return None


def _schemas(call: Call) -> Outcome:
    word = call.words.pattern()
    condition, values = pattern_of(word).condition("", "n.nspname", "")
    if word is None and "S" not in call.flags:
        condition += " AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'sys')"
    more = "+" in call.flags
    extra = ", obj_description(n.oid, 'pg_namespace')" if more else ""
    rows = call.session.rows(
        f"SELECT n.nspname, pg_get_userbyid(n.nspowner){extra} FROM pg_catalog.pg_namespace n "
        f"WHERE {condition} ORDER BY 1",
        *values,
    )
    print_rows(call, "List of schemas", ["Name", "Owner", *["Description"][: len(extra)]], rows)
    return None


def _functions(call: Call) -> Outcome:
    """Functions; of ``\\da`` aggregates. All functions belong to the system, so all are listed."""
    condition, values = pattern_of(call.words.pattern()).condition(
        "n.nspname", "p.proname", "pg_function_is_visible(p.oid)"
    )
    aggregates = call.name == "da"
    if aggregates:
        condition += " AND p.prokind = 'a'"
    kind = (
        ""
        if aggregates
        else ", CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' "
        "ELSE 'func' END"
    )
    rows = call.session.rows(
        "SELECT n.nspname, p.proname, pg_get_function_result(p.oid), "
        f"pg_get_function_arguments(p.oid){kind} FROM pg_catalog.pg_proc p "
        "JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace "
        f"WHERE {condition} ORDER BY 1, 2, 4",
        *values,
    )
    names = ["Schema", "Name", "Result data type", "Argument data types", "Type"]
    title = "List of aggregate functions" if aggregates else "List of functions"
    print_rows(call, title, names[: 4 if aggregates else 5], rows)
    return None


_ATTRIBUTES = (
    ("rolsuper", "Superuser"),
    ("rolcreaterole", "Create role"),
    ("rolcreatedb", "Create DB"),
    ("rolreplication", "Replication"),
    ("rolbypassrls", "Bypass RLS"),
)


def _roles(call: Call) -> Outcome:
    condition, values = pattern_of(call.words.pattern()).condition("", "r.rolname", "")
    flags = ", ".join(f"r.{name}" for name, _ in _ATTRIBUTES)
    rows = call.session.rows(
        f"SELECT r.rolname, r.rolcanlogin, r.rolinherit, {flags}, "
        "ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m "
        "JOIN pg_catalog.pg_roles b ON m.roleid = b.oid WHERE m.member = r.oid) "
        f"FROM pg_catalog.pg_roles r WHERE {condition} ORDER BY 1",
        *values,
    )
    listed = []
    for name, login, inherit, *has, groups in rows:
        words = [word for (_, word), found in zip(_ATTRIBUTES, has, strict=True) if found]
        words.insert(has[0], "No inheritance") if not inherit else None
        if not login:
            words.append("Cannot login")
        listed.append((name, ", ".join(words), "{" + ",".join(groups) + "}"))
    print_rows(call, "List of roles", ["Role name", "Attributes", "Member of"], listed)
    return None


def _databases(call: Call) -> Outcome:
    condition, values = pattern_of(call.words.pattern()).condition("", "d.datname", "")
    rows = call.session.rows(
        "SELECT d.datname, pg_get_userbyid(d.datdba), pg_encoding_to_char(d.encoding), "
        "d.datcollate, d.datctype, array_to_string(d.datacl, E'\\n') "
        f"FROM pg_catalog.pg_database d WHERE {condition} ORDER BY 1",
        *values,
    )
    names = ["Name", "Owner", "Encoding", "Collate", "Ctype", "Access privileges"]
    print_rows(call, "List of databases", names, rows)
    return None


def _types(call: Call) -> Outcome:
    word = call.words.pattern()
    condition, values = pattern_of(word).condition(
        "n.nspname", "t.typname", "pg_type_is_visible(t.oid)"
    )
    if word is None and "S" not in call.flags:
        condition += f" AND {_NO_SYSTEM}"
    more = "+" in call.flags
    elements = (
        ", ARRAY(SELECT e.enumlabel FROM pg_catalog.pg_enum e WHERE e.enumtypid = t.oid "
        "ORDER BY e.enumsortorder)"
        if more
        else ""
    )
    rows = call.session.rows(
        f"SELECT n.nspname, format_type(t.oid, NULL){elements}, obj_description(t.oid, 'pg_type') "
        "FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON n.oid = t.typnamespace "
        "WHERE t.typtype <> 'c' AND t.typelem = 0 "
        f"AND {condition} ORDER BY 1, 2",
        *values,
    )
    names = ["Schema", "Name", *(["Elements"] if more else []), "Description"]
    if more:
        rows = [(a, b, "\n".join(labels), about) for a, b, labels, about in rows]
    print_rows(call, "List of data types", names, rows)
    return None


def _privileges(call: Call) -> Outcome:
    word = call.words.pattern()
    condition, values = pattern_of(word).condition(
        "n.nspname", "c.relname", "pg_table_is_visible(c.oid)"
    )
    if word is None:
        condition += f" AND {_NO_SYSTEM}"
    rows = call.session.rows(
        f"SELECT n.nspname, c.relname, {_TYPE}, array_to_string(c.relacl, E'\\n') "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.relkind IN ('r', 'v', 'm', 'S', 'f', 'p') AND {condition} ORDER BY 1, 2",
        *values,
    )
    print_rows(call, "Access privileges", ["Schema", "Name", "Type", "Access privileges"], rows)
    return None


def _extensions(call: Call) -> Outcome:
    condition, values = pattern_of(call.words.pattern()).condition("", "e.extname", "")
    rows = call.session.rows(
        "SELECT e.extname, e.extversion, n.nspname, obj_description(e.oid, 'pg_extension') "
        "FROM pg_catalog.pg_extension e "
        "LEFT JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace "
        f"WHERE {condition} ORDER BY 1",
        *values,
    )
    names = ["Name", "Version", "Schema", "Description"]
    print_rows(call, "List of installed extensions", names, rows)
    return None


def _settings(call: Call) -> Outcome:
    condition, values = pattern_of(call.words.pattern()).condition("", "s.name", "")
    rows = call.session.rows(
        "SELECT s.name, current_setting(s.name) FROM pg_catalog.pg_settings s "
        f"WHERE {condition} ORDER BY 1",
        *values,
    )
    print_rows(call, "List of configuration parameters", ["Parameter", "Value"], rows)
    return None


def _view(call: Call) -> Outcome:
    """``\\sv``: a view as the statement that would create it."""
    word = call.word("the name of a view")
    condition, values = pattern_of(word).condition(
        "n.nspname", "c.relname", "pg_table_is_visible(c.oid)"
    )
    rows = call.session.rows(
        "SELECT n.nspname, c.relname, pg_get_viewdef(c.oid, true) FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        f"WHERE c.relkind = 'v' AND {condition} ORDER BY 1, 2",
        *values,
    )
    if not rows:
        raise UndefinedMap(f'view "{harmless_name(word)}" does not exist')
    schema, name, definition = rows[0]
    text = f"CREATE OR REPLACE VIEW {schema}.{name} AS\n{definition.rstrip(';')}\n"
    if "+" in call.flags:
        text = "".join(f"{n:<7} {line}\n" for n, line in enumerate(text.splitlines(), start=1))
    call.session.stdout.write(text)
    return None


_RELATION = "tvmisES+"
COMMANDS = (
    Command(("dt", "dm", "dE"), _relations, "[PATTERN]", "tables (maps)", _RELATION),
    Command(("dv",), _relations, "[PATTERN]", "views", _RELATION),
    Command(("di",), _relations, "[PATTERN]", "indexes", _RELATION),
    Command(("ds",), _relations, "[PATTERN]", "sequences", _RELATION),
    Command(("dn",), _schemas, "[PATTERN]", "schemas", "S+"),
    Command(("df",), _functions, "[PATTERN]", "functions", "S+"),
    Command(("da",), _functions, "[PATTERN]", "aggregates", "S"),
    Command(("dT",), _types, "[PATTERN]", "types", "S+"),
    Command(("du", "dg"), _roles, "[PATTERN]", "users and their roles", "S+"),
    Command(("l", "list"), _databases, "[PATTERN]", "databases", "+"),
    Command(
        ("dp", "z"), _privileges, "[PATTERN]", "privileges of tables, views and sequences", "S"
    ),
    Command(
        ("dx",), _extensions, "[PATTERN]", "extensions (PostgreSQL's clients ask for them)", "+"
    ),
    Command(("dconfig",), _settings, "[PATTERN]", "settings and their values", "+"),
    Command(("sv",), _view, "VIEW", "a view as the statement that creates it", "+"),
)
