"""Functions and operators as ``pg_proc`` and ``pg_operator`` list them: read from the tables of
those that PostgreSQL has as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from remuda.catalog.pg_functions import ROUTINES
from remuda.catalog.pg_operators import OPERATORS
from remuda.catalog.pg_types import BY_NAME, PG_TYPES

KIND_FUNCTION, KIND_AGGREGATE, KIND_WINDOW = "f", "a", "w"
_VARIABLE = "any"


@dataclass(frozen=True, slots=True)
class Routine:
    """One row of ``pg_proc``. ``kind`` is f, a or w, ``volatility`` i, s or v; types are names,
    with [] for an array. ``shown`` are the arguments as they are written, if that is not just their
    types, ``shown_result`` the same of the result."""

    oid: int
    name: str
    kind: str
    result: str = _VARIABLE
    arguments: tuple[str, ...] = ()
    volatility: str = "i"
    strict: bool = False
    returns_set: bool = False
    parallel: str = "s"
    leakproof: bool = False
    source: str = ""
    support: str = ""
    cost: float = 1.0
    rows: float = 0.0
    defaults: int = 0
    variadic: bool = False
    shown: str = ""
    shown_result: str = ""

    @property
    def arguments_text(self) -> str:
        """``pg_get_function_arguments``."""
        return self.shown or ", ".join(map(shown_type, self.arguments))

    @property
    def identity_text(self) -> str:
        """``pg_get_function_identity_arguments``: without defaults and OUT arguments."""
        parts = (part.partition(" DEFAULT ")[0] for part in self.arguments_text.split(", "))
        return ", ".join(part for part in parts if not part.startswith("OUT "))

    @property
    def result_text(self) -> str:
        """``pg_get_function_result``."""
        return self.shown_result or ("SETOF " if self.returns_set else "") + shown_type(self.result)

    @property
    def signature(self) -> str:
        """As ``regprocedure`` writes it."""
        return f"{self.name}({','.join(map(shown_type, self.arguments))})"


@dataclass(frozen=True, slots=True)
class Operator:
    """One row of ``pg_operator``; types are names, ``left`` is empty for a prefix operator."""

    oid: int
    name: str
    left: str
    right: str
    result: str
    commutator: int
    negator: int
    function: int
    function_name: str
    merges: bool
    hashes: bool

    @property
    def signature(self) -> str:
        """As ``regoperator`` writes it."""
        left = shown_type(self.left) if self.left else "NONE"
        return f"{self.name}({left},{shown_type(self.right)})"


def shown_type(name: str) -> str:
    """As ``format_type`` writes it."""
    element = name.removesuffix("[]")
    return BY_NAME[element].shown + name[len(element) :]


def oid_of(name: str) -> int:
    """The number of a type; of an array, too."""
    element = name.removesuffix("[]")
    found = BY_NAME[element]
    return found.oid if element == name else found.array


def _entries(text: str) -> Iterator[str]:
    yield from (entry.strip() for entry in " ".join(text.split()).split(";"))


@cache
def pg_routines() -> tuple[Routine, ...]:
    """Those of PostgreSQL, sorted by name."""
    found: list[Routine] = []
    for entry in _entries(ROUTINES):
        head, _, shown = entry.partition(": ")
        shown, _, shown_result = shown.partition(" -> ")
        oid, name, flags, result, arguments, *more = head.split()
        marks = {each[0]: each[1:] for each in more}
        name = found[-1].name if name == "~" else name
        kind, volatility, strict, returns_set, parallel, leakproof = tuple(flags)
        found.append(
            Routine(
                oid=int(oid),
                name=name,
                kind=kind,
                result=result,
                arguments=() if arguments == "-" else tuple(arguments.split(",")),
                volatility=volatility,
                strict=strict == "s",
                returns_set=returns_set == "r",
                parallel=parallel,
                leakproof=leakproof == "l",
                source=marks.get("=") or name,
                support=marks.get("^", ""),
                cost=float(marks.get("$", 1)),
                rows=float(marks.get("#", 0)),
                defaults=int(marks.get("?", 0)),
                variadic="*" in marks,
                shown=shown,
                shown_result=shown_result,
            )
        )
    return tuple(found)


@cache
def type_routines() -> tuple[Routine, ...]:
    """The functions by which values of types are read and written."""
    found: list[Routine] = []
    for t in PG_TYPES:
        for oid, name in t.functions:
            if oid == t.io[0]:
                found.append(_of_type(oid, name, t.name, ("cstring", *_MODIFIED.get(t.name, ()))))
            elif oid == t.io[2]:
                found.append(_of_type(oid, name, t.name, ("internal", *_MODIFIED.get(t.name, ()))))
            else:
                found.append(
                    _of_type(oid, name, "bytea" if oid == t.io[3] else "cstring", (t.name,))
                )
    return tuple(found)


def _of_type(oid: int, name: str, result: str, arguments: tuple[str, ...]) -> Routine:
    return Routine(
        oid=oid, name=name, kind=KIND_FUNCTION, result=result, arguments=arguments, strict=True,
        source=name,
    )  # fmt: skip


_MODIFIED = dict.fromkeys(
    ("bpchar", "varchar", "numeric", "time", "timestamp", "timestamptz", "interval", "record"),
    ("oid", "int4"),
)
"""Types whose functions take the number of the type and its modifier as well."""


@cache
def pg_operators() -> tuple[Operator, ...]:
    """Those of PostgreSQL, sorted by name."""
    found: list[Operator] = []
    for entry in _entries(OPERATORS):
        oid, name, left, right, result, commutator, negator, function, called, joins = entry.split()
        found.append(
            Operator(
                int(oid), name, "" if left == "-" else left, right, result, int(commutator),
                int(negator), int(function), called, joins[0] == "m", joins[1] == "h",
            )
        )  # fmt: skip
    return tuple(found)


_VOLATILITY = {"i": "IMMUTABLE", "s": "STABLE", "v": ""}
_PARALLEL = {"s": "PARALLEL SAFE", "r": "PARALLEL RESTRICTED", "u": ""}


def function_text(routine: Routine) -> str:
    """``pg_get_functiondef``: a CREATE FUNCTION that would make it in PostgreSQL."""
    properties = [
        _VOLATILITY[routine.volatility],
        _PARALLEL[routine.parallel],
        "STRICT" if routine.strict else "",
        "LEAKPROOF" if routine.leakproof else "",
        f"COST {routine.cost:g}" if routine.cost != 1 else "",
        f"ROWS {routine.rows:g}" if routine.returns_set and routine.rows != 1000 else "",
        f"SUPPORT {routine.support}" if routine.support else "",
    ]
    window = ["WINDOW"] if routine.kind == KIND_WINDOW else []
    told = " ".join(each for each in [*window, *properties] if each)
    lines = [
        f"CREATE OR REPLACE FUNCTION pg_catalog.{routine.name}({routine.arguments_text})",
        f" RETURNS {routine.result_text}",
        " LANGUAGE internal",
        *([f" {told}"] if told else []),
        f"AS $function${routine.source}$function$",
        "",
    ]
    return "\n".join(lines)
