"""Random statements over the catalog of functions, the operators, the types and the clauses.

They are to show exceptions that are bugs, not wrong answers: most are refused, and each refusal
must be an error of the SQL tree. ``Statements`` gives the same statements for the same seed.
"""

# ruff: noqa: E501 (forms of statements, one beside the other)
from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Final

import remuda.sql.binder  # noqa: F401 (registers the handlers)
from remuda.datatypes.sql import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    TINYINT,
    UUID,
    VARCHAR,
    Kind,
    SqlType,
    array,
    char,
    decimal,
)
from remuda.plan.functions.catalog import (
    AGGREGATE_FUNCTIONS,
    ALIASES,
    INTERNAL,
    OPERATORS,
    SCALAR_FUNCTIONS,
    SET_FUNCTIONS,
    WINDOW_FUNCTIONS,
    Signature,
)
from remuda.sql.expressions.expressions import CALL_HANDLERS

_INTEGERS: Final = ("0", "1", "-1", "2", "7", "-3", "100")
LITERALS: Final[dict[str, tuple[str, ...]]] = {
    "boolean": ("true", "false", "null::boolean"),
    "tinyint": ("1::tinyint", "(-128)::tinyint", "127::tinyint"),
    "smallint": ("1::smallint", "(-32768)::smallint", "32767::smallint", "0::smallint"),
    "integer": (*_INTEGERS, "2147483647", "(-2147483648)", "null::integer"),
    "bigint": ("1::bigint", "9223372036854775807", "(-9223372036854775807 - 1)", "-5::bigint"),
    "real": ("1.5::real", "'NaN'::real", "'Infinity'::real", "3e38::real", "(-0.0)::real"),
    "double": ("1e5", "1e308", "-1e-308", "'NaN'::float8", "'-Infinity'::float8", "0.0::float8"),
    "decimal": (
        "1.5", "-0.001", "99999999999999999999999999999999999999", "1e5::decimal(20, 3)",
        "12.345::decimal(5, 2)", "0::decimal", "1e-30", "7.0::numeric(38, 38 - 37)",
    ),
    "varchar": (
        "''", "'a'", "'äß'", "'\U0001f600x'", "'%_\\'", "'(a|b)+'", "'[1, 2]'", "'2024-02-29'",
        "'12:30'", "'{a,b}'", "'$.a[*]'", "'YYYY-MM-DD HH24:MI:SS'", "'999D99'", "E'\\t\\n'",
        "repeat('x', 40)", "null::text", "'UTC'", "'month'", "'1e400'", "'-'", "'utf8'", "'hex'",
        "'1 day'", "'strict $.x ? (@ > 1)'", "'{\"a\": 1}'", "'g'", "'\\1'", "'%s %I %L'",
        "'Europe/Berlin'", "'epoch'", "'infinity'", "U&'\\0061'", "$$q$$",
    ),
    "char": ("'ab'::char(4)", "' '::char", "'abcd'::char(2)"),
    "bytea": ("'\\x00ff'::bytea", "''::bytea", "x'0aff'", "'abc'::bytea"),
    "date": (
        "date '2024-02-29'", "date '0001-01-01'", "date '9999-12-31'", "date '1970-01-01'",
        "null::date", "current_date", "make_date(-44, 3, 15)", "'infinity'::date",
    ),
    "time": ("time '00:00'", "time '23:59:59.999999'", "time '12:30:01.5'", "localtime"),
    "timestamp": (
        "timestamp '2024-02-29 12:00'", "timestamp '0001-01-01'", "timestamp '9999-12-31 23:59:59'",
        "null::timestamp", "localtimestamp", "'infinity'::timestamp",
    ),
    "timestamptz": (
        "timestamptz '2024-03-31 02:30 Europe/Berlin'", "now()", "null::timestamptz",
        "timestamptz '0001-01-01 00:00+15'", "timestamptz '9999-12-31 23:59:59-15'",
    ),
    "interval": (
        "interval '1 day'", "interval '-1 month 2 days 03:04:05.6'", "interval '178000000 years'",
        "interval '0'", "interval '1' year", "interval '1-2' year to month",
        "interval '2147483647 days'", "interval '1.5 hours'", "interval '-0.000001 seconds'",
    ),
    "uuid": ("'00112233-4455-6677-8899-aabbccddeeff'::uuid", "gen_random_uuid()"),
    "json": (
        "'{\"a\": [1, null, {\"b\": \"x\"}]}'::jsonb", "'[]'::jsonb", "'null'::jsonb",
        "'1e400'::jsonb", "'\"t\"'::json", "'{\"a\": 1.50}'::jsonb", "'[1, 2, 3]'::jsonb",
        "null::jsonb", "'123456789012345678901234567890.5'::jsonb",
    ),
    "integer[]": (
        "array[1, 2, 3]", "'{}'::integer[]", "array[null, 1]", "null::integer[]", "'{4,NULL}'::int[]",
    ),
    "text[]": ("array['a', null, 'b']", "'{}'::text[]", "array['%', '']", "string_to_array('a,b', ',')"),
    "row": ("row(1, 'a')", "(1, 2.5, null)", "row()", "row(null)", "t", "row(t.*)", "row(1, t.*)"),
    "null": ("null", "'x'", "'1'", "null"),
}  # fmt: skip
"""Kind of expression -> texts of values, the last of its domain included."""

COLUMNS: Final[dict[str, str]] = {
    "id": "integer", "b": "boolean", "ti": "tinyint", "si": "smallint", "i": "integer",
    "bi": "bigint", "r": "real", "d": "double", "n": "decimal", "n2": "decimal", "s": "varchar",
    "c": "char", "y": "bytea", "dt": "date", "tm": "time", "ts": "timestamp", "tz": "timestamptz",
    "iv": "interval", "u": "uuid", "j": "json", "ai": "integer[]", "at": "text[]",
}  # fmt: skip
"""Columns of the tables ``t`` and ``w``."""

SETUP: Final = (
    *(
        f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, b BOOLEAN, ti TINYINT, si SMALLINT,"
        " i INTEGER, bi BIGINT, r REAL, d DOUBLE PRECISION, n DECIMAL(20, 4), n2 DECIMAL(38, 10),"
        " s VARCHAR, c CHAR(4), y BYTEA, dt DATE, tm TIME, ts TIMESTAMP,"
        " tz TIMESTAMP WITH TIME ZONE, iv INTERVAL, u UUID, j JSON, ai INTEGER[], at TEXT[])"
        for name in ("t", "w")
    ),
    *(
        f"INSERT INTO {name} VALUES"
        " (1, true, 1, 1, 1, 1, 1.5, 1.5, 1.5, 1.5, 'a', 'ab', 'ab', DATE '2024-02-29',"
        " TIME '12:30', TIMESTAMP '2024-02-29 12:30', TIMESTAMPTZ '2024-02-29 12:30+01',"
        " INTERVAL '1 day', '00112233-4455-6677-8899-aabbccddeeff', '{\"a\": [1]}',"
        " ARRAY[1, 2], ARRAY['x', 'y']),"
        " (2, false, -128, -32768, -2147483648, -9223372036854775807 - 1, 'NaN', '-Infinity',"
        " -9999999999999999.9999, 9999999999999999999999999999.9999999999, '', '', '',"
        " DATE '0001-01-01', TIME '00:00', TIMESTAMP '0001-01-01', TIMESTAMPTZ '0001-01-02 00:00Z',"
        " INTERVAL '-178000000 years', '00000000-0000-0000-0000-000000000000', '[]', '{}', '{}'),"
        " (3, NULL, 127, 32767, 2147483647, 9223372036854775807, '3e38', 1e308,"
        " 9999999999999999.9999, 0, '\U0001f600 (a|b) %_\\', 'äöü', '\\x00ff', DATE '9999-12-31',"
        " TIME '23:59:59.999999', TIMESTAMP '9999-12-31 23:59:59.999999',"
        " TIMESTAMPTZ '9999-12-30 00:00Z', INTERVAL '178000000 years -1 day',"
        " 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'null', ARRAY[NULL, 3], ARRAY[NULL, '']),"
        " (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,"
        " NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        for name in ("t", "w")
    ),
    "CREATE TABLE e (id INTEGER PRIMARY KEY, i INTEGER, s VARCHAR)",
    "CREATE VIEW v AS SELECT id, i, s, n FROM t",
)  # fmt: skip

TYPES: Final[dict[str, SqlType]] = {
    "boolean": BOOLEAN, "tinyint": TINYINT, "smallint": SMALLINT, "integer": INTEGER,
    "bigint": BIGINT, "real": REAL, "double": DOUBLE, "decimal": decimal(20, 4),
    "varchar": VARCHAR, "char": char(4), "bytea": BYTEA, "date": DATE, "time": TIME,
    "timestamp": TIMESTAMP, "timestamptz": TIMESTAMPTZ, "interval": INTERVAL, "uuid": UUID,
    "json": JSON, "integer[]": array(INTEGER), "text[]": array(VARCHAR),
}  # fmt: skip
KINDS: Final = tuple(LITERALS)
TARGETS: Final = (
    "boolean", "tinyint", "smallint", "integer", "bigint", "real", "double precision", "float(3)",
    "decimal", "decimal(5, 2)", "decimal(38)", "decimal(38, 38)", "numeric(3, 0)", "varchar",
    "varchar(2)", "char(3)", "char", "text", "bytea", "date", "time", "time(3)", "timestamp",
    "timestamp(0)", "timestamptz", "timestamptz(2)", "interval", "interval year",
    "interval day to second(3)", "uuid", "json", "jsonb", "integer[]", "text[]", "date[]",
    "decimal(4, 1)[]", "oid", "regclass", "name", "bpchar", "bit(3)", "integer[][]", "nosuch",
)  # fmt: skip
BINARY: Final = (
    "+", "-", "*", "/", "%", "^", "=", "<>", "<", "<=", ">", ">=", "||", "&", "|", "#", "<<", ">>",
    "->", "->>", "#>", "#>>", "@>", "<@", "&&", "?", "?|", "?&", "@?", "@@", "~", "~*", "!~", "!~*",
    "~~", "!~~", "~~*", "like", "not like", "ilike", "similar to", "is distinct from",
    "is not distinct from", "and", "or", "#-", "at time zone", "collate", "overlaps", "<->", "!=",
    "is not", "is", "in", "not in", "operator(pg_catalog.+)",
)  # fmt: skip
SUFFIXES: Final = (
    "is null", "is not null", "is true", "is not false", "is unknown", "isnull", "notnull",
    "is json", "is json array", "is document", "[1]", "[1:2]", "[:]", "[null]", "['a']", "[0][1]",
    ".a", ".f1", ".*", "::text", 'collate "C"', "at time zone 'UTC'", "at local", "[-1]", "!",
)  # fmt: skip
PREFIXES: Final = ("-", "+", "~", "not ", "@", "|/", "||/", "- -", "!!")
FIELDS: Final = (
    "year", "month", "day", "hour", "minute", "second", "epoch", "dow", "doy", "week", "quarter",
    "isoyear", "julian", "microseconds", "timezone", "century", "nosuch", "decade", "millennium",
)  # fmt: skip
JOINS: Final = (
    "join", "left join", "right join", "full join", "cross join", "natural join",
    "natural left join", "left join lateral", "cross join lateral", ",", "natural full join",
)  # fmt: skip
EXPLAINS: Final = (
    "explain", "explain verbose", "explain (format json)", "explain (costs off, verbose)",
    "explain analyze", "explain (plan for)", "explain (analyze, verbose, format json)",
    "explain plan for", "explain (format json, verbose)",
)  # fmt: skip

_SCALAR_NAMES: Final = tuple(
    sorted((set(SCALAR_FUNCTIONS) - set(OPERATORS) - set(INTERNAL)) | set(ALIASES) | set(CALL_HANDLERS))
)  # fmt: skip
_AGGREGATE_NAMES: Final = (
    *tuple(sorted(AGGREGATE_FUNCTIONS)),
    "json_agg",
    "every",
    "stddev",
    "rank",
)
_WINDOW_NAMES: Final = tuple(sorted(WINDOW_FUNCTIONS))
_SET_NAMES: Final = tuple(sorted(SET_FUNCTIONS))


_KIND_OF: Final = {type_.kind: name for name, type_ in TYPES.items() if not name.endswith("[]")}
_UNTYPED: Final = SqlType(Kind.NULL)
_SYNTAX: Final = frozenset({"and", "or", "not", "neg", "is_null", "is_not_null", "array", "row"})
"""Functions of the catalog that no name calls, and no operator of two sides writes."""


def _kind_of(type_: SqlType) -> str | None:
    if type_.element is not None:
        return {Kind.INTEGER: "integer[]", Kind.VARCHAR: "text[]"}.get(type_.element.kind)
    return _KIND_OF.get(type_.kind)


def _resolved(function: object, kinds: tuple[SqlType, ...]) -> Signature | None:
    try:
        return function.resolve(kinds)  # type: ignore[attr-defined]
    except IndexError:  # it takes more arguments than these
        return None


def _calls_of(function: object) -> Iterator[tuple[tuple[str, ...], SqlType | None]]:
    """Kinds of up to five arguments that it takes, and its result: all of one or two, of more
    those that one argument of another kind tells."""
    for count in range(3):
        for kinds in product(TYPES, repeat=count):
            signature = _resolved(function, tuple(TYPES[kind] for kind in kinds))
            if signature is not None:
                yield kinds, getattr(signature, "result", None)
    for count in (3, 4, 5):
        given = [_UNTYPED] * count
        signature = _resolved(function, tuple(given))
        if signature is None:
            continue
        usual = [_kind_of(t) or "varchar" for t in signature.arguments]
        yield tuple(usual), getattr(signature, "result", None)
        for place, kind in product(range(min(count, len(usual))), TYPES):
            changed = [*usual[:place], kind, *usual[place + 1 :]]
            signature = _resolved(function, tuple(TYPES[k] for k in changed))
            if signature is not None:
                yield tuple(changed), getattr(signature, "result", None)


def _fitting() -> tuple[
    dict[str, list[tuple[str, ...]]], dict[str, dict[str, list[tuple[str, ...]]]]
]:
    """For each function the kinds of arguments that it takes; for each kind the scalar functions
    and operators that give it, with their arguments."""
    found: dict[str, list[tuple[str, ...]]] = {}
    giving: dict[str, dict[str, list[tuple[str, ...]]]] = {kind: {} for kind in TYPES}
    for catalog in (SCALAR_FUNCTIONS, AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS, SET_FUNCTIONS):
        for name, function in catalog.items():
            fits = found.setdefault(name, [])
            for kinds, result in _calls_of(function):
                fits.append(kinds)
                kind = None if result is None else _kind_of(result)
                if kind is not None and catalog is SCALAR_FUNCTIONS and name not in INTERNAL:
                    giving[kind].setdefault(name, []).append(kinds)
    return found, giving


FITTING, GIVING = _fitting()


def _calls_giving(catalog: Mapping[str, object]) -> dict[str, dict[str, list[tuple[str, ...]]]]:
    """For each kind the functions of the catalog that give it, with their arguments."""
    found: dict[str, dict[str, list[tuple[str, ...]]]] = {}
    for name, function in catalog.items():
        if getattr(function, "within_group", False):
            continue
        for kinds, result in _calls_of(function):
            kind = None if result is None else _kind_of(result)
            if kind is not None:
                found.setdefault(kind, {}).setdefault(name, []).append(kinds)
    return found


CALLS_GIVING: Final = {
    "aggregate": _calls_giving(AGGREGATE_FUNCTIONS),
    "window": _calls_giving(WINDOW_FUNCTIONS),
}


class Statements:
    """Statements from ``seed``, one by one."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._tables = ["t"]
        self._columns = True
        """Whether the relation ``t`` is in reach."""

    def _pick(self, options: tuple[str, ...] | list[str]) -> str:
        return self._random.choice(options)

    def _often(self, chance: float) -> bool:
        return self._random.random() < chance

    # --- expressions --------------------------------------------------------------------------

    def value(self, kind: str) -> str:
        """A column or a constant."""
        if self._columns and self._often(0.55):
            names = [name for name, of in COLUMNS.items() if of == kind]
            if names:
                name = self._pick(names)
                return f"{self._pick(self._tables)}.{name}" if self._often(0.3) else name
        return self._pick(LITERALS[kind])

    def kind(self) -> str:
        return self._pick(KINDS)

    def expression(self, depth: int = 2) -> str:
        if depth <= 0 or self._often(0.1):
            return self.value(self.kind())
        if self._often(0.75):
            return self.typed(self.kind(), depth)
        forms = (
            self._call, self._fitting_call, self._binary, self._cast, self._suffix, self._prefix,
            self._case, self._special, self._special, self._subquery, self._row_or_array,
        )  # fmt: skip
        if self._often(0.15):
            forms = (self._aggregate, self._window, self._set_call)
        return self._random.choice(forms)(depth - 1)

    def typed(self, kind: str, depth: int) -> str:
        """An expression that is of this kind, if it is allowed at all."""
        giving = GIVING.get(kind)
        if depth <= 0 or not giving or self._often(0.1):
            return self.value(kind)
        roll = self._random.random()
        if roll < 0.06:
            return f"coalesce({self.typed(kind, depth - 1)}, {self.typed(kind, depth - 1)})"
        if roll < 0.12:
            condition = self.typed("boolean", depth - 1)
            return f"case when {condition} then {self.typed(kind, depth - 1)} else {self.value(kind)} end"
        if roll < 0.2 and kind != "double":
            return f"({self.typed(self._pick(tuple(TYPES)), depth - 1)})::{kind}"
        if roll < 0.24:
            return f"(select {self.typed(kind, depth - 1)} from t limit 1)"
        name = self._pick(tuple(giving))
        kinds = self._random.choice(giving[name])
        arguments = [self.typed(k, depth - 1) for k in kinds]
        if name in OPERATORS or name in INTERNAL or name in _SYNTAX:
            return self._operator(name, arguments)
        return f"{name}({', '.join(arguments)})"

    @staticmethod
    def _operator(name: str, arguments: list[str]) -> str:
        if len(arguments) == 2 and name not in ("array", "row"):
            return f"({arguments[0]} {name.replace('_', ' ')} {arguments[1]})"
        if name in ("array", "row"):
            return (
                f"array[{', '.join(arguments)}]"
                if name == "array"
                else f"row({', '.join(arguments)})"
            )
        if len(arguments) == 1:
            sign = {"neg": "-", "bit_not": "~"}.get(name, "not")
            return (
                f"({arguments[0]} {name.replace('_', ' ')})"
                if name.startswith("is_")
                else f"{sign} ({arguments[0]})"
            )
        return f"({name}({', '.join(arguments)}))"

    def _call(self, depth: int) -> str:
        count = self._random.choice((0, 1, 1, 2, 2, 2, 3, 3, 4, 5))
        arguments = ", ".join(self.expression(depth) for _ in range(count))
        return f"{self._pick(_SCALAR_NAMES)}({arguments})"

    def _arguments(self, name: str, depth: int) -> list[str]:
        """Mostly what the function takes."""
        fits = FITTING.get(name)
        if not fits:
            return [self.expression(depth) for _ in range(self._random.randrange(4))]
        kinds = self._random.choice(fits)
        found = [self.value(k) if self._often(0.8) else self.typed(k, depth) for k in kinds]
        while self._often(0.3):
            found.append(self.value(self.kind()))
        return found

    def _fitting_call(self, depth: int) -> str:
        name = self._pick(_SCALAR_NAMES)
        return f"{name}({', '.join(self._arguments(name, depth))})"

    def _binary(self, depth: int) -> str:
        operator = self._pick(BINARY)
        left = self._pick(KINDS)
        fits = FITTING.get(operator)
        if fits and self._often(0.7):
            kinds = self._random.choice(fits)
            if len(kinds) == 2:
                return f"({self.value(kinds[0])} {operator} {self.value(kinds[1])})"
        right = left if self._often(0.5) else self._pick(KINDS)
        if self._often(0.4):
            return f"({self.expression(depth)} {operator} {self.expression(depth)})"
        if self._often(0.1):
            how = self._pick(("any", "all", "some"))
            return f"({self.value(left)} {operator} {how} ({self.expression(depth)}))"
        return f"({self.value(left)} {operator} {self.value(right)})"

    def _cast(self, depth: int) -> str:
        target = self._pick(TARGETS)
        inner = self.expression(depth)
        if self._often(0.5):
            return f"({inner})::{target}"
        return f"{self._pick(('cast', 'cast', 'try_cast'))}({inner} as {target})"

    def _suffix(self, depth: int) -> str:
        return f"({self.expression(depth)}){self._pick((' ', ''))}{self._pick(SUFFIXES)}"

    def _prefix(self, depth: int) -> str:
        return f"{self._pick(PREFIXES)}({self.expression(depth)})"

    def _case(self, depth: int) -> str:
        kind = self.kind()
        operand = self.value(kind) + " " if self._often(0.3) else ""
        condition = self.value(kind) if operand else self.condition(depth)
        end = f" else {self.expression(depth)}" if self._often(0.7) else ""
        return f"case {operand}when {condition} then {self.expression(depth)}{end} end"

    def _special(self, depth: int) -> str:
        a, b, c = (self.expression(depth) for _ in range(3))
        moment = self.value(self._pick(("date", "time", "timestamp", "timestamptz", "interval")))
        text = self.value("varchar")
        unit = self._pick(FIELDS)
        return self._pick((
            f"extract({unit} from {moment})", f"extract({unit} from {a})",
            f"date_part('{unit}', {moment})", f"date_trunc('{unit}', {moment})",
            f"substring({text} from {a} for {b})", f"substring({text} from {a})",
            f"substring({text} similar {b} escape {c})", f"position({text} in {b})",
            f"overlay({text} placing {b} from {c})", f"trim(both {b} from {text})",
            f"trim({text})", f"{a} between {b} and {c}", f"{a} not between symmetric {b} and {c}",
            f"{a} in ({b}, {c})", f"{text} like {b} escape {c}", f"coalesce({a}, {b}, {c})",
            f"nullif({a}, {b})", f"greatest({a}, {b})", f"least({a}, {b}, {c})",
            f"interval '{self._random.randrange(-99, 99)}' {unit}", f"interval {self._random.randrange(99)} {unit}s",
            f"interval '1' {unit}s", f"interval '{unit}'", f"timestamp({self._random.randrange(-1, 9)}) {text}",
            f"({moment}, {moment}) overlaps ({moment}, {a})", f"grouping({a})", f"({a}, {b}) = ({c}, {a})",
            f"({a}, {b}) in (({b}, {c}))", f"row({a}, t.*)", f"normalize({text})", f"current_setting({text})",
            f"concat_ws({text}, {a}, {b})", f"format({text}, {a}, {b})", f"{text} similar to {b} escape {c}",
            f"iif({self.condition(0)}, {a}, {b})", f"date({moment})", f"timestamp({moment})", f"json_value({a}, {text})",
            f"nextval({text})", f"pg_typeof({a})", f"date_add({moment}, interval 1 day)", f"datediff({a}, {b})",
            f"to_char({self._pick((moment, a))}, {text})", f"to_timestamp({text}, {text})", f"regexp_replace({text}, {text}, {text}, {text})",
            f"make_interval(days => {a})", f"({a}).f1", f"xmlelement({a})", f"{a} operator(pg_catalog.=) {b}",
            f"date '{self._random.randrange(-1, 99999)}-{self._random.randrange(14)}-{self._random.randrange(33)}'",
            f"{self._pick(TARGETS)} {text}", "current_timestamp(3)", "localtime(7)", "current_user", "?",
        ))  # fmt: skip

    def _aggregate(self, depth: int) -> str:
        name = self._pick(_AGGREGATE_NAMES)
        arguments = self._arguments(name, depth)
        word = "distinct " if self._often(0.2) else ""
        order = f" order by {self.expression(depth)}" if self._often(0.2) and arguments else ""
        text = f"{name}({word}{', '.join(arguments)}{order})"
        function = AGGREGATE_FUNCTIONS.get(name)
        if function is not None and function.within_group and self._often(0.9) and arguments:
            text = f"{name}({', '.join(arguments[1:])}) within group (order by {arguments[0]})"
        if self._often(0.15):
            text += f" filter (where {self.condition(depth)})"
        if self._often(0.2):
            text += f" over ({self.window(depth)})"
        return text if self._often(0.9) else "count(*)"

    def window(self, depth: int) -> str:
        parts: list[str] = []
        if self._often(0.5):
            parts.append(f"partition by {self.expression(depth)}")
        if self._often(0.7):
            parts.append(f"order by {self._key(depth)}")
        if self._often(0.5):
            bound = ("unbounded preceding", f"{self.value(self.kind())} preceding", "current row",
                     f"{self.value(self.kind())} following", "unbounded following", "1 following",
                     "interval '1 day' preceding")  # fmt: skip
            unit = self._pick(("rows", "range", "groups"))
            parts.append(f"{unit} between {self._pick(bound)} and {self._pick(bound)}")
            if self._often(0.3):
                parts.append(self._pick(("exclude ties", "exclude current row", "exclude group")))
        return " ".join(parts)

    def _window(self, depth: int) -> str:
        name = self._pick(_WINDOW_NAMES)
        return f"{name}({', '.join(self._arguments(name, depth))}) over ({self.window(depth)})"

    def _set_call(self, depth: int) -> str:
        name = self._pick(_SET_NAMES)
        return f"{name}({', '.join(self._arguments(name, depth))})"

    def _row_or_array(self, depth: int) -> str:
        items = ", ".join(self.expression(depth) for _ in range(self._random.randrange(4)))
        return self._pick(
            (f"row({items})", f"array[{items}]", f"({items})", f"json_build_object({items})")
        )

    def _subquery(self, depth: int) -> str:
        inner = self.query(depth - 1)
        a = self.value(self.kind())
        return self._pick((
            f"({inner})", f"exists ({inner})", f"{a} in ({inner})", f"{a} not in ({inner})",
            f"{a} = any ({inner})", f"{a} > all ({inner})", f"array({inner})", f"({a}, 1) in ({inner})",
        ))  # fmt: skip

    def condition(self, depth: int) -> str:
        if self._often(0.3):
            return self.typed("boolean", depth)
        if self._often(0.7):
            kind = self.kind()
            sign = self._pick(("=", "<>", "<", ">=", "is distinct from"))
            return f"{self.value(kind)} {sign} {self.value(kind)}"
        return self.expression(depth)

    # --- queries ------------------------------------------------------------------------------

    def _key(self, depth: int) -> str:
        key = self._pick(("1", "1", self.expression(depth), self.value(self.kind())))
        return key + self._pick(
            ("", "", " desc", " asc nulls first", " desc nulls last", " using <")
        )

    def relation(self, depth: int) -> str:
        names = ", ".join(self._pick(tuple(COLUMNS)) for _ in range(self._random.randrange(1, 3)))
        return self._pick((
            "t", "t", "w", "e", "v", "t as q", f"({self.query(depth - 1)}) as q", f"{self._set_call(0)} as q(x)",
            f"{self._set_call(0)} with ordinality as q(x, y)", f"(values ({self.value(self.kind())}, 1), (null, 2)) as q(x, y)",
            f"t tablesample bernoulli ({self.value('integer')})", f"t join w using ({names})",
            f"{self._pick(_SCALAR_NAMES)}({self.value(self.kind())}) as q", "t as q(a, b)", "information_schema.tables",
            "pg_catalog.pg_type", "sys.members", f"rows from ({self._set_call(0)}, {self._set_call(0)}) as q(x, y)",
        ))  # fmt: skip

    def query(self, depth: int) -> str:
        roll = self._random.random()
        if roll < 0.08 and depth > 0:
            word = self._pick(("union", "union all", "intersect", "except", "except all"))
            return f"{self.query(depth - 1)} {word} {self.query(depth - 1)}{self._tail(depth)}"
        if roll < 0.11:
            reach, self._columns = self._columns, self._columns and self._often(0.3)
            rows = ", ".join(
                f"({self.expression(depth)}, {self.value('integer')})" for _ in range(2)
            )
            self._columns = reach
            return f"values {rows}{self._limit()}"
        if roll < 0.15 and depth > 0:
            name = self._pick(("x", "t", "q"))
            return f"with {name} as {self._pick(('', 'materialized '))}({self.query(depth - 1)}) {self.query(depth - 1)}"
        if roll < 0.17:
            return (
                f"with recursive x(a, b) as (select {self._pick(_INTEGERS)}, {self.expression(0)} union"
                f" {self._pick(('', 'all '))}select a + 1, {self.expression(0)} from x where a < 3)"
                f" {self._pick(('search breadth first by a set o ', 'cycle a set z using p ', '', ''))}"
                f"select {self._pick(('*', 'a', 'max(b)', 'x'))} from x"
            )
        return self._select(depth)

    def _select(self, depth: int) -> str:
        reach = self._columns
        relation = self.source(depth)
        self._columns = reach or " t" in relation[:7]
        text = self._select_from(depth, relation)
        self._columns = reach
        return text

    def source(self, depth: int) -> str:
        """The FROM clause, or none."""
        if self._often(0.15):
            return ""
        return f" from {'t' if self._often(0.75) else self.relation(depth)}"

    def _select_from(self, depth: int, relation: str) -> str:
        grouped = self._often(0.15)
        make = self._aggregate if grouped else self.expression
        items = ", ".join(
            make(depth) + self._pick(("", "", f" as {self._pick(('x', 'y', 'z2'))}"))
            for _ in range(self._random.choice((1, 1, 1, 2)))
        )
        if self._often(0.06):
            items = self._pick(("*", "t.*", "t", "distinct *", "(t).*", "row(t.*)", "q.*", "* , 1"))
        distinct = (
            self._pick(("distinct ", f"distinct on ({self.expression(depth)}) ", "all "))
            if self._often(0.12)
            else ""
        )
        text = f"select {distinct}{items}"
        if relation:
            text += relation
            if self._often(0.12):
                join = self._pick(JOINS)
                text += f" {join} {self._pick(('w', 'w as q', self.relation(depth)))}"
                if join in ("join", "left join", "right join", "full join", "left join lateral"):
                    text += f" on {self.condition(depth)}"
        if self._often(0.25):
            text += f" where {self.condition(depth)}"
        if self._often(0.6 if grouped else 0.04):
            keys = self._pick((
                self.expression(depth), self.value(self.kind()), "1", "1, 2", f"rollup ({self.value(self.kind())}, 1)",
                "cube (i, s)", f"grouping sets ((i), (), ({self.expression(depth)}))", "()", "all", "distinct i",
            ))  # fmt: skip
            text += f" group by {keys}"
            if self._often(0.3):
                text += f" having {self.condition(depth)}"
        return text + self._tail(depth)

    def _tail(self, depth: int) -> str:
        text = f" order by {self._key(depth)}" if self._often(0.15) else ""
        return text + self._limit()

    def _limit(self) -> str:
        text = ""
        if self._often(0.08):
            text += self._pick((
                f" limit {self.expression(0)}", f" offset {self.expression(0)}", " limit all", " limit (select 1)",
                f" fetch first {self.value('integer')} rows only", " fetch first 1 rows with ties", " limit 1 offset 1",
                " limit 50 percent", f" limit {self.value('double')}", " for update", " limit ?",
            ))  # fmt: skip
        return text

    # --- statements ---------------------------------------------------------------------------

    def statement(self) -> str:
        roll = self._random.random()
        if roll < 0.8:
            return self.query(2)
        if roll < 0.86:
            return f"{self._pick(EXPLAINS)} {self.query(2)}"
        if roll < 0.96:
            return self._change()
        return self._other()

    def _assignment(self) -> str:
        name = self._pick(tuple(COLUMNS))
        return self._pick((
            f"{name} = {self.expression(1)}", f"{name} = {self.value(COLUMNS[name])}", f"{name} = default",
            f"({name}, s) = ({self.expression(0)}, {self.expression(0)})", f"({name}, s) = (select {self.expression(0)}, 'x')",
            f"{name} = t.*", f"ai[{self.value('integer')}] = {self.value('integer')}", f"t.{name} = 1", f"j['a'] = {self.expression(0)}",
            f"({name}) = row({self.expression(0)})", f"({name}, s) = row(t.*)", f"{name} = w.{name}",
        ))  # fmt: skip

    def _change(self) -> str:
        """Changes whose conditions mostly hold for no row: the tables are to stay as they are."""
        nothing = "id = -1 and "
        returning = (
            f" returning {self._pick(('*', self.expression(1), 't', 'id'))}"
            if self._often(0.3)
            else ""
        )
        where = f" where {nothing}{self.condition(1)}"
        conflict = self._pick((
            "", "", " on conflict do nothing", f" on conflict (id) do update set {self._assignment()}",
            f" on conflict (id) do update set {self._assignment()} where {self.condition(0)}", " on conflict (s) do nothing",
        ))  # fmt: skip
        names = self._random.sample(tuple(COLUMNS), 2)
        return self._pick((
            f"update t set {self._assignment()}{where}{returning}",
            f"update t set {self._assignment()}, {self._assignment()} from w{where}{returning}",
            f"delete from t{where}{returning}", f"delete from t using w{where}{returning}",
            f"insert into e values ({self.expression(1)}, {self.expression(1)}, {self.expression(1)}){conflict}{returning}",
            f"insert into e (id, i) {self.query(1)}{conflict}{returning}",
            f"insert into t (id, {', '.join(names)}) values (-2, {self.expression(1)}, {self.value(COLUMNS[names[1]])}) on conflict do nothing",
            f"insert into e (values (1, {self.expression(1)}))", "insert into e default values", "insert into e (i) values (default)",
            (f"merge into e using w on e.id = w.id and {self.condition(1)} when matched then update set i = {self.expression(1)}"
            f" when not matched by target and w.id < 0 then insert (id, s) values ({self.expression(1)}, {self.expression(1)})"),
            f"merge into e using ({self.query(1)}) q on true when matched then delete when not matched then do nothing",
            f"with x as (update t set {self._assignment()}{where} returning *) select * from x",
            f"truncate e{returning}",
        ))  # fmt: skip

    def _other(self) -> str:
        return self._pick((
            f"create view z{self._random.randrange(3)} as {self.query(1)}", f"create or replace view z1 as {self.query(1)}",
            f"create table z as {self.query(1)}", f"create table if not exists z (id integer primary key, a {self._pick(TARGETS)} default {self.expression(1)})",
            "drop view if exists z1", "drop view if exists z0 cascade", "drop table if exists z", "alter view v rename to v2", "alter view v2 rename to v",
            f"alter table e add column k {self._pick(TARGETS)}", "alter table e drop column k", "alter table e rename column s to s2",
            "alter table e rename column s2 to s", f"alter table e alter column k type {self._pick(TARGETS)}", f"alter table e add check ({self.condition(1)})",
            f"create index z on t ({self._pick(tuple(COLUMNS))})", "drop index if exists z", f"create unique index z on e ({self._pick(('i', 's', 'k'))})",
            f"show {self._pick(('tables', 'all', 'timezone', 'columns from t', 'create table t', 'nosuch', 'views'))}", f"set timezone = {self.value('varchar')}", "reset timezone",
            f"set {self._pick(('search_path', 'datestyle', 'extra', 'timezone'))} to {self._pick(('default', 'UTC', '1', 'a, b'))}", "describe t", "analyze t", "describe e",
            "commit", "rollback", "rollback", "rollback", "rollback to savepoint a", "release a", f"prepare p as {self.query(1)}", "execute p", "deallocate p",
            f"values ({self.expression(1)})", "table t", "select", ";", f"call {self._call(0)}", f"copy t from {self.value('varchar')}", f"comment on table t is {self.value('varchar')}",
            f"declare c cursor for {self.query(1)}", "fetch 1 from c", "lock table t", "vacuum", "checkpoint", f"do {self.value('varchar')}", "listen a", "grant read on t to u",
        ))  # fmt: skip
