"""deploy/ asks for metrics that members show; its links lead somewhere."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "deploy/grafana/remuda.json").read_text(encoding="utf-8"))
RULES = yaml.safe_load((ROOT / "deploy/prometheus/remuda.rules.yml").read_text(encoding="utf-8"))
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
MEMBER = ROOT / "src/remuda/member"
SOURCES = sorted([*(MEMBER / "metrics").rglob("*.py"), *(MEMBER / "monitoring").rglob("*.py")])
NAMES = {
    name
    for source in SOURCES
    for name in re.findall(r'"((?:remuda|process)_[a-z0-9_]+)"', source.read_text(encoding="utf-8"))
}
EXPRESSIONS = {
    **{f"panel {p['title']} {t['refId']}": t["expr"] for p in PANELS for t in p["targets"]},
    **{f"alert {rule['alert']}": rule["expr"] for rule in ALERTS},
}


def asked(expression: str) -> set[str]:
    return set(re.findall(r"\b(?:remuda|process)_[a-z0-9_]+", expression))


def family(name: str) -> str:
    """The name of the family of a histogram's sample; others are their own."""
    whole = re.sub(r"_(bucket|sum|count)$", "", name)
    return whole if whole in NAMES and whole.endswith("_seconds") else name


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_members_show_what_is_asked_for(where):
    expression = EXPRESSIONS[where]
    assert asked(expression) or "up{" in expression
    assert {family(name) for name in asked(expression)} <= NAMES


@pytest.mark.parametrize("where", EXPRESSIONS)
def test_rates_are_of_what_only_grows(where):
    for name in re.findall(r"(?:rate|increase)\(([a-z0-9_]+)", EXPRESSIONS[where]):
        assert re.search(r"_(total|sum|count|bucket)$", name), name
    for whole in re.findall(r"histogram_quantile\(.*", EXPRESSIONS[where]):
        assert re.search(r"by \([^)]*\ble\b", whole)


def test_alerts_say_what_to_do():
    headings = re.findall(r"^#+ (.+)$", (ROOT / "docs/operate.md").read_text("utf-8"), re.MULTILINE)
    anchors = {re.sub(r"[^a-z0-9 -]", "", each.lower()).replace(" ", "-") for each in headings}
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS)
    for rule in ALERTS:
        page, _, anchor = rule["annotations"]["runbook"].partition("#")
        assert page == "docs/operate.md"
        assert anchor in anchors, rule["alert"]
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}
        assert rule["annotations"].keys() == {"summary", "description", "runbook"}


def test_panels_lie_beside_each_other():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    for a, b in combinations(places, 2):
        beside = a["x"] + a["w"] <= b["x"] or b["x"] + b["w"] <= a["x"]
        assert beside or a["y"] + a["h"] <= b["y"] or b["y"] + b["h"] <= a["y"]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
