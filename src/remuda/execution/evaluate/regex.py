"""Functions of regular expressions, SIMILAR TO among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import regex

from remuda.errors import InputError
from remuda.execution.evaluate.kernel import Kernel
from remuda.execution.evaluate.numbers import Value
from remuda.execution.evaluate.regex_syntax import Pattern, compiled, similar
from remuda.execution.evaluate.rows import per_row
from remuda.plan.expression import Call

_REFERENCE: Final = re.compile(r"\\([1-9&\\])")
_REPLACEMENT_LONG: Final = 100


def _without_g(function: str, flags: str) -> str:
    if "g" in flags:
        raise InputError(f'{function}() does not support the "global" option')
    return flags


def _found(pattern: Pattern, texts: pa.Array) -> pa.Array | None:
    """Whether the pattern occurs, for a whole column; None where RE2 would not do."""
    if pattern.ascii_syntax is None or pc.max(pc.binary_length(texts)).as_py() is None:
        return None
    if not _suits(pattern, texts):
        return None
    try:
        return pc.match_substring_regex(texts, pattern.ascii_syntax)
    except pa.ArrowInvalid:
        return None  # something that only Python's engine understands


def _suits(pattern: Pattern, texts: pa.Array) -> bool:
    """Whether RE2 and Python mean the same by the pattern in these texts."""
    if pattern.any_text:
        return True
    plain: bool = pattern.ascii_syntax is not None and pattern.ascii_syntax.isascii()
    return plain and pc.all(pc.string_is_ascii(texts)).as_py() is not False


def _matching(pattern_of: Callable[..., Pattern]) -> Callable[[Call], Kernel]:
    """Text, pattern and perhaps more that the pattern is made from -> BOOLEAN."""

    def make(call: Call) -> Kernel:
        def matches(text: str, *rest: Any) -> bool:
            return pattern_of(*rest).compiled.search(text) is not None

        slow = per_row(matches)(call)

        def kernel(values: list[Value], rows: int) -> pa.Array:
            if isinstance(values[0], pa.Array) and all(
                isinstance(value, pa.Scalar) for value in values[1:]
            ):
                pattern = pattern_of(*(value.as_py() for value in values[1:]))
                found = _found(pattern, values[0])
                if found is not None:
                    return found
            return slow(values, rows)

        return kernel

    return make


def _like(pattern: str, flags: str = "") -> Pattern:
    return compiled(pattern, _without_g("regexp_like", flags))


# --- replace ---------------------------------------------------------------------------------


def replaced(text: str, pattern: str, replacement: str, *more: Any) -> str:
    """``regexp_replace(text, pattern, replacement, flags)``, or ``start, n, flags`` instead."""
    if more and isinstance(more[0], str):
        flags = more[0]
        return _replaced(text, compiled(pattern, flags.replace("g", "")), replacement,
                         1, 0 if "g" in flags else 1)  # fmt: skip
    start, which = ([*more[:2], 1] if len(more) < 2 else list(more[:2])) if more else (1, 1)
    flags = more[2] if len(more) > 2 else ""
    if len(more) < 2 and "g" in flags:
        which = 0
    _positive("start", start)
    if which < 0:
        raise _wrong("n", which)
    return _replaced(text, compiled(pattern, flags.replace("g", "")), replacement, start, which)


def _replacing(call: Call) -> Kernel:
    """A constant pattern over texts in ASCII goes through RE2, if both mean the same by it."""
    slow = per_row(replaced)(call)

    def kernel(values: list[Value], rows: int) -> pa.Array:
        texts, *rest = values
        if not isinstance(texts, pa.Array) or not all(isinstance(v, pa.Scalar) for v in rest):
            return slow(values, rows)
        pattern, replacement, *more = (value.as_py() for value in rest)
        if len(more) > 1 or not all(isinstance(flags, str) for flags in more):
            return slow(values, rows)
        flags = more[0] if more else ""
        fast = _fast_replaced(texts, compiled(pattern, flags.replace("g", "")), replacement, flags)
        return slow(values, rows) if fast is None else fast

    return kernel


def _fast_replaced(
    texts: pa.Array, pattern: Pattern, replacement: str, flags: str
) -> pa.Array | None:
    syntax = pattern.ascii_syntax
    if syntax is None or pattern.longest or pattern.shortest:
        return None
    if len(replacement) > _REPLACEMENT_LONG:
        return None  # what comes of it is counted row by row
    if pattern.compiled.search("") or not _suits(pattern, texts):
        return None  # RE2 counts empty matches in another way
    rewrite = re.sub(r"\\(.?)", _re2_reference, replacement, flags=re.DOTALL)
    groups = [int(digit) for digit in re.findall(r"(?<!\\)\\([1-9])", rewrite)]
    if max(groups, default=0) > pattern.compiled.groups:
        return None
    try:
        return pc.replace_substring_regex(
            texts, syntax, rewrite, max_replacements=-1 if "g" in flags else 1
        )
    except pa.ArrowInvalid:
        return None


def _re2_reference(reference: re.Match[str]) -> str:
    following = reference[1]
    if following in "123456789" and following:
        return "\\" + following
    if following == "&":
        return r"\0"
    return "\\\\" + ("" if following == "\\" else following)


def _replaced(text: str, pattern: Pattern, replacement: str, start: int, which: int) -> str:
    """``which``: the number of the match to replace, 0 for all."""
    pieces: list[str] = []
    done = 0
    for number, match in enumerate(pattern.matches(text, start - 1), 1):
        if which and number < which:
            continue
        pieces.append(text[done : match.start()])
        pieces.append(_expanded(replacement, match))
        done = match.end()
        if which:
            break
    pieces.append(text[done:])
    return "".join(pieces)


def _expanded(replacement: str, match: regex.Match[str]) -> str:
    if "\\" not in replacement:
        return replacement

    def part(reference: re.Match[str]) -> str:
        kind = reference[1]
        if kind == "\\":
            return "\\"
        group = 0 if kind == "&" else int(kind)
        return (match[group] or "") if group <= (match.re.groups or 0) else ""

    return _REFERENCE.sub(part, replacement)


# --- search ----------------------------------------------------------------------------------


def _wrong(name: str, value: int) -> InputError:
    return InputError(f'invalid value for parameter "{name}": {value}')


def _positive(name: str, value: int) -> None:
    if value < 1:
        raise _wrong(name, value)


def _count(text: str, pattern: str, start: int = 1, flags: str = "") -> int:
    _positive("start", start)
    found = compiled(pattern, _without_g("regexp_count", flags))
    return sum(1 for _ in found.matches(text, start - 1))


def _nth(pattern: Pattern, text: str, start: int, which: int) -> regex.Match[str] | None:
    _positive("start", start)
    _positive("n", which)
    for number, match in enumerate(pattern.matches(text, start - 1), 1):
        if number == which:
            return match
    return None


def _instr(text: str, pattern: str, start: int = 1, which: int = 1, *more: Any) -> int:
    """``more``: 1 for the end, flags, group"""
    end: int = more[0] if more else 0
    flags: str = more[1] if len(more) > 1 else ""
    group: int = more[2] if len(more) > 2 else 0
    if end not in (0, 1):
        raise _wrong("endoption", end)
    if group < 0:
        raise _wrong("subexpr", group)
    match = _nth(compiled(pattern, _without_g("regexp_instr", flags)), text, start, which)
    if match is None or group > match.re.groups:
        return 0
    return (match.end(group) if end else match.start(group)) + 1


def _substr(text: str, pattern: str, start: int = 1, which: int = 1, *more: Any) -> str | None:
    """``more``: flags, group"""
    flags: str = more[0] if more else ""
    group: int = more[1] if len(more) > 1 else 0
    if group < 0:
        raise _wrong("subexpr", group)
    match = _nth(compiled(pattern, _without_g("regexp_substr", flags)), text, start, which)
    if match is None or group > match.re.groups:
        return None
    found: str | None = match[group]
    return found


def _part(text: str, pattern: str) -> str | None:
    """``substring(text FROM pattern)``: the first group, or everything that matches."""
    match = compiled(pattern).search(text)
    if match is None:
        return None
    found: str | None = match[1 if match.re.groups else 0]
    return found


def _similar_part(text: str, pattern: str, escape: str) -> str | None:
    """``substring(text SIMILAR pattern ESCAPE escape)``"""
    found = similar(pattern, escape)
    match = found.compiled.search(text)
    if match is None:
        return None
    part: str | None = match[1 if match.re.groups else 0]
    return part


# --- arrays ----------------------------------------------------------------------------------


def _match(text: str, pattern: str, flags: str = "") -> list[str | None] | None:
    """The groups of the first match, or all of it when there is none."""
    match = compiled(pattern, _without_g("regexp_match", flags)).search(text)
    if match is None:
        return None
    return list(match.groups()) if match.re.groups else [match[0]]


def split(text: str, pattern: str, flags: str = "") -> list[str]:
    found = compiled(pattern, _without_g("regexp_split_to_array", flags))
    pieces: list[str] = []
    done = 0
    for match in found.matches(text):
        if match.start() < len(text) and match.end() > done:
            pieces.append(text[done : match.start()])
            done = match.end()
    return [*pieces, text[done:]]


REGEX_FUNCTIONS: Final[dict[str, Callable[[Call], Kernel]]] = {
    "~": _matching(compiled),
    "~*": _matching(lambda pattern: compiled(pattern, "i")),
    "similar_to": _matching(similar),
    "regexp_like": _matching(_like),
    "regexp_replace": _replacing,
    "regexp_count": per_row(_count),
    "regexp_instr": per_row(_instr),
    "regexp_substr": per_row(_substr),
    "substring_regex": per_row(_part),
    "substring_similar": per_row(_similar_part),
    "regexp_match": per_row(_match),
    "regexp_split_to_array": per_row(split),
}
