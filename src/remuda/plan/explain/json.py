"""Plans for machines: EXPLAIN (FORMAT JSON), as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from remuda.plan.explain.explain import OperatorProfile, Printer, Profile
from remuda.plan.physical import (
    Fragment,
    KeyLookup,
    LookupJoin,
    Physical,
    PhysicalPlan,
    Receive,
    Root,
    Send,
    SpoolScan,
    Store,
    TableScan,
    inputs_of,
)

Json = dict[str, Any]


def explain_json(plan: PhysicalPlan, profile: Profile | None = None, costs: bool = True) -> Json:
    """``Fragments``, each with the tree of its operators, and the ``Rules`` that fired.

    Rows, costs and batches are numbers, times are milliseconds. With ``profile`` every operator has
    what it did: ``Actual Rows`` and the like over all members, and each member under ``Members``.
    """
    printer = Printer(plan, verbose=False, profile=profile)
    fragments = [_fragment(printer, fragment, profile, costs) for fragment in plan.fragments]
    return {"Fragments": fragments, "Rules": list(plan.rules)}


def plan_tree(plan: PhysicalPlan, profile: Profile | None = None, costs: bool = True) -> Json:
    """The plan as one tree, below the keys that tools know from PostgreSQL's plans: the fragment
    that sends rows stands below the operator that receives them, and one whose rows are kept below
    the first operator that reads them."""
    return _Tree(plan, profile, costs).below(plan.fragments[0].root, plan.fragments[0].id)


class _Tree:
    def __init__(self, plan: PhysicalPlan, profile: Profile | None, costs: bool) -> None:
        self._printer = Printer(plan, verbose=False, profile=profile)
        self._profile = profile
        self._costs = costs
        self._fragments = {fragment.id: fragment for fragment in plan.fragments}
        self._stores = {
            fragment.root.spool: fragment.id
            for fragment in plan.fragments
            if isinstance(fragment.root, Store)
        }
        self._numbers = {
            (fragment.id, id(node)): number
            for fragment in plan.fragments
            for number, node in enumerate(fragment.nodes)
        }

    def below(self, node: Physical, fragment: int) -> Json:
        if isinstance(node, Root | Send | Store):
            return self.below(node.input, fragment)
        made: Json = {"Node Type": type(node).__name__}
        if isinstance(node, TableScan | KeyLookup | LookupJoin):
            made |= {"Relation Name": node.map_name, "Alias": node.alias or node.map_name}
        made |= {"Parallel Aware": False, "Description": node.title(self._printer)}
        if self._costs:
            made |= {
                "Startup Cost": 0.0,
                "Total Cost": round(node.traits.cost, 2),
                "Plan Rows": round(node.traits.rows),
            }
        if self._profile is not None:
            members = self._profile.get((fragment, self._numbers[fragment, id(node)]), {})
            seconds = max((p.seconds for p in members.values()), default=0.0)
            made |= {
                "Actual Startup Time": 0.0,
                "Actual Total Time": round(seconds * 1e3, 3),
                "Actual Rows": sum(p.rows for p in members.values()),
                "Actual Loops": 1,
            }
        plans = [self.below(child, fragment) for child in inputs_of(node)]
        other = self._elsewhere(node)
        if other is not None:
            plans.append(self.below(self._fragments[other].root, other))
        for place, plan in enumerate(plans):
            plan["Parent Relationship"] = "Inner" if place else "Outer"
        return {**made, "Plans": plans} if plans else made

    def _elsewhere(self, node: Physical) -> int | None:
        """The fragment with the rows that an operator without inputs reads."""
        if isinstance(node, Receive):
            return node.sender_fragment
        return self._stores.pop(node.spool, None) if isinstance(node, SpoolScan) else None


def _fragment(printer: Printer, fragment: Fragment, profile: Profile | None, costs: bool) -> Json:
    made: Json = {"Fragment": fragment.id, "Site": fragment.site.value}
    if fragment.pruning is not None:
        made["Partition Keys"] = [
            [printer.expression(part) for part in key] for key in fragment.pruning.keys
        ]
    numbers = iter(range(1_000_000))
    made["Plan"] = _node(printer, fragment.root, (fragment.id, numbers), profile, costs)
    return made


def _node(
    printer: Printer,
    node: Physical,
    place: tuple[int, Iterator[int]],
    profile: Profile | None,
    costs: bool,
) -> Json:
    traits = node.traits
    made: Json = {
        "Node Type": type(node).__name__,
        "Description": node.title(printer),
        "Distribution": traits.distribution.placement.value,
        "Distribution Keys": [
            [printer.name(column) for column in keys] for keys in traits.distribution.keys
        ],
        "Sort Key": [
            {
                "Column": printer.name(key.column),
                "Descending": key.descending,
                "Nulls First": key.nulls_first,
            }
            for key in traits.collation
        ],
        "Output": [{"Name": printer.name(c.id, c.name), "Type": str(c.type)} for c in node.output],
    }
    if costs:
        made["Plan Rows"] = round(traits.rows, 3)
        made["Total Cost"] = round(traits.cost, 3)
    fragment, numbers = place
    number = next(numbers)
    if profile is not None:
        made |= _actual(profile.get((fragment, number), {}))
    below = [_node(printer, child, place, profile, costs) for child in inputs_of(node)]
    if below:
        made["Plans"] = below
    return made


def _actual(members: Mapping[int, OperatorProfile]) -> Json:
    return {
        "Actual Rows": sum(p.rows for p in members.values()),
        "Actual Batches": sum(p.batches for p in members.values()),
        "Actual Time": round(max((p.seconds for p in members.values()), default=0.0) * 1e3, 3),
        "Members": [
            {
                "Member": member,
                "Rows": p.rows,
                "Batches": p.batches,
                "Time": round(p.seconds * 1e3, 3),
                **_more(p),
            }
            for member, p in sorted(members.items())
        ],
    }


def _more(profile: OperatorProfile) -> Json:
    """Figures that get a line only where there are any."""
    found = {
        "Bytes": profile.bytes,
        "Wait Time": round(profile.wait * 1e3, 3),
        "Waits": profile.waits,
        "Peak Memory": profile.memory,
        "Spilled Bytes": profile.spilled,
        "Spill Files": profile.files,
    }
    made = {name: value for name, value in found.items() if value}
    return made if profile.instances == 1 else {**made, "Instances": profile.instances}
