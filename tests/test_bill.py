"""The bill of materials is that of what is installed, and names packages by package URLs only."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.bill import BILL, bill, pinned


def test_the_bill_is_up_to_date() -> None:
    assert BILL.read_text() == bill(), "write it anew: python -m tests.bill --write"


def test_each_component_is_pinned_and_each_dependency_is_in_it() -> None:
    document: dict[str, Any] = json.loads(BILL.read_text())
    pins = dict(pinned())
    own = document["metadata"]["component"]["bom-ref"]
    refs = {component["bom-ref"] for component in document["components"]}
    for component in document["components"]:
        assert re.fullmatch(r"pkg:pypi/[a-z0-9._-]+@[0-9][a-z0-9.]*", component["purl"])
        assert component["version"] == pins[component["name"]]
        assert component["licenses"], component["name"]
    assert {one["ref"] for one in document["dependencies"]} == {own, *refs}
    assert {ref for one in document["dependencies"] for ref in one["dependsOn"]} == refs
    assert "://" not in BILL.read_text()


def test_the_core_alone_needs_no_framework() -> None:
    required = {
        component["name"]
        for component in json.loads(BILL.read_text())["components"]
        if component["scope"] == "required"
    }
    assert {"pydantic", "httpcore", "ripgrep"} <= required
    assert not {name for name in required if name.startswith(("langchain", "llama", "langgraph", "openai"))}
    assert len(required) < 30
