"""Random statements where the other two generators are poor: casts between all pairs of types, over
constants and columns; SQL/JSON paths; arrays; catalogs; EXECUTE with all types; UNIQUE and MERGE.

``random_statements.SETUP`` has run. ``WideStatements`` gives the same statements for the same seed.
"""

# ruff: noqa: E501 (forms of statements, one beside the other)
from __future__ import annotations

from typing import Final

from random_statements import COLUMNS, EXPLAINS, LITERALS, TARGETS
from typed_statements import TypedStatements, _declared

_RELATIONS: Final = (
    "pg_catalog.pg_class", "pg_catalog.pg_attribute", "pg_catalog.pg_type", "pg_catalog.pg_namespace",
    "pg_catalog.pg_index", "pg_catalog.pg_constraint", "pg_catalog.pg_proc", "pg_catalog.pg_settings",
    "pg_catalog.pg_tables", "pg_catalog.pg_views", "pg_catalog.pg_indexes", "pg_catalog.pg_database",
    "pg_catalog.pg_roles", "pg_catalog.pg_description", "pg_catalog.pg_operator",
    "information_schema.tables", "information_schema.columns", "information_schema.schemata",
    "information_schema.views", "information_schema.table_constraints",
    "information_schema.key_column_usage", "sys.members", "sys.maps", "sys.queries", "sys.snapshots",
    "sys.logs", "sys.indexes", "sys.transactions",
)  # fmt: skip
_STEPS: Final = (
    ".a", ".*", "[*]", "[0]", "[last]", "[0 to 1]", ".**", ".**{1 to 2}", ".size()", ".type()", ".double()",
    ".abs()", ".floor()", ".ceiling()", ".keyvalue()", ".datetime()", ' ? (@ > 1)', ' ? (@.a == "x")',
    ' ? (exists (@.b))', ' ? (@ like_regex "^x")', ' ? (@ starts with "x")', " ? ((@ > 0) is unknown)",
    " + 1", " - $[*]", " * 2", " / 0", " % 3", "[-1]", '."b"', " ? (!(@ == null))", " == 1", " && ($ == 2)",
    ' ? (@.datetime("YYYY") < 1)', " ? (@ == $v)",
)  # fmt: skip
_PATH_CALLS: Final = (
    "jsonb_path_query", "jsonb_path_query_array", "jsonb_path_query_first", "jsonb_path_exists",
    "jsonb_path_match", "jsonb_path_query_tz", "jsonb_path_exists_tz",
)  # fmt: skip
_FRAMES: Final = (
    "rows 1 preceding", "rows between 2 preceding and 1 following exclude ties", "groups between 1 preceding and current row",
    "range between unbounded preceding and 1 following", "rows between current row and unbounded following exclude current row",
    "groups between unbounded preceding and 1 following exclude group",
)  # fmt: skip
_WINDOWED: Final = (
    "sum({})", "avg({})", "min({})", "count({})", "lag({})", "lead({}, 2, null)", "first_value({})",
    "nth_value({}, 2)", "array_agg({})", "string_agg({}::text, ',')", "last_value({})", "jsonb_agg({})",
    "ntile(3)", "percent_rank()", "cume_dist()", "stddev_pop({})", "bool_or({} is null)", "bit_and({})",
)  # fmt: skip


class WideStatements(TypedStatements):
    """Statements from ``seed``, one by one."""

    def statement(self) -> str:
        self._scopes = [{}]
        made = (
            self._casts, self._casts, self._path, self._array, self._catalog, self._window,
            self._grouping, self._parameters, self._write, self._define, self._nested,
        )  # fmt: skip
        text = self._pick(made)()
        return f"{self._pick(EXPLAINS)} {text}" if self._often(0.05) else text

    def _value_of(self, kind: str) -> str:
        columns = [name for name, other in COLUMNS.items() if other == kind]
        return self._pick((*columns, *LITERALS[kind], self._pick(LITERALS[kind])))

    def _any(self) -> str:
        return self._value_of(self._pick(tuple(LITERALS)))

    def _casts(self) -> str:
        casts = []
        for _ in range(2):
            form = self._pick(
                (
                    "({0})::{1}",
                    "cast({0} as {1})",
                    "({0})::{1}::{2}",
                    "({0})::text::{1}",
                    "cast(array[{0}] as {1}[])",
                )
            )
            casts.append(form.format(self._any(), self._pick(TARGETS), self._pick(TARGETS)))
        return f"select {', '.join(casts)} from {self._pick(('t', 't', 'w'))}"

    def _path(self) -> str:
        mode = self._pick(("", "", "strict ", "lax "))
        steps = "".join(self._pick(_STEPS) for _ in range(self._random.choice((1, 1, 2, 3))))
        value = self._value_of("json")
        more = self._pick(("", ", '{\"v\": 1}'", ", '{\"v\": 1}', true", ", silent => true"))
        call = f"{self._pick(_PATH_CALLS)}({value}::jsonb, '{mode}${steps}'{more})"
        operator = f"{value}::jsonb {self._pick(('@?', '@@'))} '{mode}${steps}'"
        return f"select {self._pick((call, operator))} from t"

    def _array(self) -> str:
        kind = self._pick(tuple(LITERALS))
        one, two = self._value_of(kind), self._value_of(kind)
        number = self._pick(LITERALS["integer"])
        return "select " + self._pick((
            f"array[{one}, {two}]", f"(array[{one}, {two}])[{number}:]", f"unnest(array[{one}, {two}])",
            f"{one} = any(array[{two}])", f"{one} < all(array[{one}, {two}])", f"array[{one}] || {two}",
            f"array[{one}] || array[{two}]", f"array[array[{one}], array[{two}]]", f"array_position(array[{one}], {two})",
            f"array_remove(array[{one}, {two}], {two})", f"array_replace(array[{one}], {one}, {two})",
            f"cardinality(array[{one}])", f"array_to_string(array[{one}, {two}], ',', '*')", f"array[{one}] @> array[{two}]",
            f"array[{one}] = array[{two}]", f"array_fill({one}, array[2])", f"to_jsonb(array[{one}])",
            f"array_agg({one} order by {two})", f"array_length(array[{one}], {number})", f"trim_array(array[{one}], {number})",
            f"array_dims(array[{one}]), array_upper(array[{two}], 1)", f"row({one}, {two}) < row({two}, {one})",
            f"(row({one}, {two})).f1", f"row({one}) in (row({two}), (row({one})))", f"greatest({one}, {two})",
        )) + f" from {self._pick(('t', 't', 'w'))}"  # fmt: skip

    def _catalog(self) -> str:
        one, two = self._pick(_RELATIONS), self._pick(_RELATIONS)
        return self._pick((
            f"select * from {one}", f"select count(*) from {one} a, {two} b", f"select a from {one} a order by a limit 3",
            f"select a::text from {one} a limit 3", f"select row_to_json(a) from {one} a limit 3",
            f"select distinct a.* from {one} a", f"select to_jsonb(a) - 'x' from {one} a limit 2",
            f"select (select count(*) from {one} b where b = a) from {one} a limit 2", f"table {one}",
            f"select * from {one} a full join {two} b on a::text = b::text limit 3",
            f"select a, row_number() over (order by a) from {one} a limit 2", f"create view zz as select * from {one}",
            "drop view if exists zz", "select * from zz",
            "select oid::regclass, relname::regclass::oid from pg_class", "select format_type(atttypid, atttypmod) from pg_attribute",
            "select pg_get_constraintdef(oid), conrelid::regclass from pg_constraint",
            "select pg_get_indexdef(indexrelid, 1, true) from pg_index", "select pg_get_viewdef(oid, true) from pg_class",
        ))  # fmt: skip

    def _window(self) -> str:
        call = self._pick(_WINDOWED).format(self._any())
        over = f"{self._pick(('', f'partition by {self._any()} '))}order by {self._any()} {self._pick(('', 'desc nulls last'))} {self._pick(('', *_FRAMES))}"
        return f"select {call} over ({over}), {self._any()} from t"

    def _grouping(self) -> str:
        names = [self._pick(tuple(COLUMNS)) for _ in range(3)]
        sets = self._pick((
            "rollup ({0}, ({1}, {2}))", "cube ({0}, {1})", "grouping sets (({0}, {1}), {2}, ())", "{0}, grouping sets (cube ({1}), {2})",
            "distinct rollup ({0}, {1}), rollup ({0}, {2})", "grouping sets (grouping sets (({0}), rollup ({1})))", "()", "1, 2",
        )).format(*names)  # fmt: skip
        items = self._pick(
            (
                "{0}, {1}",
                "{0}, grouping({0}, {1})",
                "count(distinct {2}), {0}",
                "max({2}), array_agg({0})",
                "{0}::text || 'x', min({1})",
            )
        )
        having = self._pick(
            ("", "", " having grouping({0}) = 0", " having count(*) > 1", " having {0} is null")
        ).format(*names)
        return f"select {items.format(*names)} from t group by {sets}{having} order by 1"

    def _parameters(self) -> str:
        kind, other = self._pick(tuple(LITERALS)), self._pick(tuple(LITERALS))
        number = self._random.randrange(3)
        uses = self._pick(
            (
                "$1 = $1",
                "$1, pg_typeof($1)",
                "coalesce($1, $2)",
                "array[$1, $2]",
                "$1::text || $2::text",
                "max($1)",
                "$1 in ($2)",
                "row($1, $2)",
            )
        )
        declared = self._pick(
            (f"({_declared(kind)}, {_declared(other)})", "", f"({_declared(kind)})")
        )
        return self._pick((
            f"prepare w{number}{declared} as select {uses} from t", f"execute w{number}({self._pick(LITERALS[kind])}, {self._pick(LITERALS[other])})",
            f"execute w{number}({self._pick(LITERALS[kind])})", f"deallocate w{number}", f"explain execute w{number}({self._pick(LITERALS[kind])}, null)",
            f"prepare w{number} as update e set i = $1, s = $2 where id = $1 returning *", f"prepare w{number} as select id from t where {self._pick(tuple(COLUMNS))} = $1 limit $2",
        ))  # fmt: skip

    def _write(self) -> str:
        one, two, number = self._any(), self._any(), self._random.randrange(9)
        return self._pick((
            f"insert into e values ({number}, {one}, {two}) on conflict (id) do update set s = excluded.s || e.s where e.i is distinct from excluded.i returning *, e",
            f"insert into e (id, i) select id, {one} from t on conflict do nothing returning e.*", f"update e set (i, s) = ({one}, {two}) where id = {number} returning old.i",
            f"update e set s = t.s from t where t.id = e.id and {one} is null returning e.*, t.*", "delete from e using t where t.id = e.id returning *",
            f"merge into e using t on e.id = t.id when matched and {one} is null then delete when matched then update set s = {two} when not matched then insert (id, i, s) values (t.id + 20, t.i, t.s)",
            f"merge into e using (values ({number}, {two})) q(a, b) on e.id = q.a when not matched by source then do nothing when not matched then insert values (q.a, null, q.b)",
            f"with d as (delete from e where id = {number} returning *), i as (insert into e select id + 40, i, s from d on conflict do nothing returning *) select * from d full join i on d.i = i.i",
            f"insert into y0 (id, a, u) values ({number}, default, {one}) on conflict (u) do nothing returning *", "truncate e", f"insert into e default values returning {one}",
        ))  # fmt: skip

    def _define(self) -> str:
        kind, number = self._pick(tuple(LITERALS)), self._random.randrange(3)
        declared, constant = _declared(kind), self._pick(LITERALS[kind])
        return self._pick((
            f"create table if not exists y{number} (id integer primary key, a {declared} default {constant}, u varchar unique, check (a is not null or id > {number}))",
            f"create table y{number} (id integer, a {declared} not null, primary key (a))", f"create table y{number} as select {constant} as id, * from t", f"drop table if exists y{number}",
            f"alter table y{number} alter column a type {self._pick(TARGETS)}", f"alter table y{number} alter column a set default {self._any()}", f"alter table y{number} alter a drop not null",
            f"alter table y{number} rename a to b", f"alter table y{number} rename b to a", f"alter table y{number} add unique (a)", f"create unique index if not exists y{number}u on y{number} (u)",
            f"create or replace view y{number}v as select y.*, {self._any()} as x from y{number} y, t", f"select * from y{number}v", f"drop view if exists y{number}v cascade",
            f"insert into y{number} (id, a) values (1, {constant}), (2, {self._any()}) on conflict do nothing returning *", f"comment on table y{number} is {self._any()}",
            f"create index on y{number} (a, u)", f"select * from y{number} where a = {constant}", f"update y{number} set a = {constant} where u is null returning *", f"describe y{number}",
        ))  # fmt: skip

    def _nested(self) -> str:
        kind = self._pick(tuple(LITERALS))
        one, two = self._value_of(kind), self._any()
        return self._pick((
            f"select json_object('a': {one}, 'b': {two}) from t", f"select json_array({one}, {two} null on null) from t", f"select json_objectagg(id: {one}) from t",
            f"select jsonb_build_object('k', {one}, {two}::text, 1) from t", f"select j -> {two}, j ->> {one} from t", f"select j || {one} from t", f"select * from jsonb_to_recordset({self._value_of('json')}) as x(a {_declared(kind)}, b text)",
            f"select * from json_each({self._value_of('json')}) q, lateral (select {one}) p(z)", f"select {one} between {two} and {one} from t", f"select case {one} when {two} then {two} else {one} end from t",
            f"select {one} union select {two} order by 1", f"values ({one}), ({two})", f"select (select {one} intersect select {two}) from t", f"select nullif({one}, {two}), coalesce({two}, {one}) from t",
            f"select * from t where ({one}, {two}) in (select {one}, {two} from w)", f"select {one} is json, ({two})::text is json object from t", f"select t.* from t where exists (values ({one}))",
            f"select format('%s %I %L', {one}, {two}, {one}) from t", f"select concat_ws(',', {one}, {two}), {one}::text collate \"C\" from t", f"select extract(epoch from {one}), date_trunc('day', {two}) from t",
        ))  # fmt: skip


__all__ = ["WideStatements"]
