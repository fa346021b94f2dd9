"""The answer of EXPLAIN: text, one line per row, or JSON in one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from remuda.datatypes.schema import Column
from remuda.datatypes.sql import VARCHAR
from remuda.execution.context import FragmentProfile
from remuda.plan.explain.explain import OperatorProfile, Profile, explain
from remuda.plan.explain.json import explain_json, plan_tree
from remuda.session.answers import Answer, answer_rows
from remuda.session.planning import (
    PlannedChange,
    PlannedExplain,
    PlannedInsert,
    PlannedQuery,
    PlannedRecursion,
    by_key,
)

PLAN_COLUMNS = (Column("plan", VARCHAR, nullable=False),)


def explained(
    planned: PlannedExplain, profiles: Sequence[FragmentProfile] = (), seconds: float | None = None
) -> Answer:
    """The plan; with ``profiles`` what each operator did on each member."""
    statement = planned.statement
    query = statement if isinstance(statement, PlannedQuery) else statement.source
    profile = by_operator(profiles) or None
    title = _title(planned)
    if planned.options.json:
        costs = planned.options.costs
        made: dict[str, Any] = {
            "Statement": title or "SELECT",
            "Plan": plan_tree(query.plan, profile, costs),
        }
        made |= _json(query, profile, costs)
        if isinstance(statement, PlannedChange) and statement.answer is not None:
            made["Answer"] = _json(statement.answer, None, costs)
        if seconds is not None:
            made["Execution Time"] = round(seconds * 1000, 3)
        return answer_rows(PLAN_COLUMNS, [(json.dumps([made], indent=2, ensure_ascii=False),)])
    lines = [title] if title else []
    lines += _text(query, planned, profile)
    if isinstance(statement, PlannedChange) and statement.answer is not None:
        lines.append("Then, before it is committed:")
        lines += ("  " + line for line in _text(statement.answer, planned, None))
    if seconds is not None:
        lines.append(f"Execution time: {seconds * 1000:.3f} ms")
    return answer_rows(PLAN_COLUMNS, [(line,) for line in lines])


def by_operator(profiles: Sequence[FragmentProfile]) -> Profile:
    """The work of the instances, by operator and member."""
    found: dict[tuple[int, int], dict[int, OperatorProfile]] = {}
    for fragment in profiles:
        for operator in fragment.operators:
            by_member = found.setdefault((fragment.fragment, operator.index), {})
            made = OperatorProfile(
                operator.rows,
                operator.batches,
                operator.seconds,
                operator.bytes,
                operator.wait,
                operator.waits,
                operator.memory,
                operator.spilled,
                operator.files,
            )
            other = by_member.get(fragment.member)
            by_member[fragment.member] = made if other is None else other.beside(made)
    return found


SHORT_WAY = "Short way: if the index finds few rows, each member is asked for them in one message"
"""EXPLAIN ANALYZE does not go it, and does not say so."""


def _title(planned: PlannedExplain) -> str:
    """The line above the plan of rows that are written."""
    statement = planned.statement
    how = "(staged on the owners, then committed)"
    if by_key(statement) and not planned.options.analyze:
        how = "(by the owner of the key, in one step)"
    if isinstance(statement, PlannedInsert):
        verb = "INSERT INTO" if statement.insert_only else "SINK INTO"
        return f"{verb} {statement.schema.name} {how}"
    if isinstance(statement, PlannedChange):
        words = {"DELETE": " FROM", "UPDATE": ""}
        verb = statement.verb + words.get(statement.verb, " INTO")
        returning = ", returning)" if statement.returning else ")"
        return f"Modify: {verb} {statement.schema.name} {how[:-1]}{returning}"
    return planned.title


def _text(query: PlannedQuery, planned: PlannedExplain, profile: Profile | None) -> Iterator[str]:
    options = planned.options
    yield from explain(query.plan, options.verbose, profile, options.costs).splitlines()
    if query.indexed is not None and profile is None:
        yield SHORT_WAY
    for supply in query.supplied:
        recursion = supply.recursion
        if recursion is None:
            continue
        if recursion.step is None:
            yield f"Once {recursion.name}:"
            yield from ("  " + line for line in _text(recursion.base, planned, None))
            continue
        union = "UNION" if recursion.distinct else "UNION ALL"
        yield f"Recursive {recursion.name}: at first"
        yield from ("  " + line for line in _text(recursion.base, planned, None))
        yield f"Recursive {recursion.name}: then {union}, until no rows come"
        yield from ("  " + line for line in _text(recursion.step, planned, None))


def _json(query: PlannedQuery, profile: Profile | None, costs: bool) -> dict[str, Any]:
    made = explain_json(query.plan, profile, costs)
    found = [supply.recursion for supply in query.supplied if supply.recursion is not None]
    recursive = [_recursive(recursion, costs) for recursion in found if recursion.step is not None]
    once = [
        {"Name": recursion.name, "Base": _json(recursion.base, None, costs)}
        for recursion in found
        if recursion.step is None
    ]
    if recursive:
        made = {**made, "Recursive": recursive}
    return {**made, "Once": once} if once else made


def _recursive(recursion: PlannedRecursion, costs: bool) -> dict[str, Any]:
    assert recursion.step is not None
    return {
        "Name": recursion.name,
        "Distinct": recursion.distinct,
        "Base": _json(recursion.base, None, costs),
        "Step": _json(recursion.step, None, costs),
    }
