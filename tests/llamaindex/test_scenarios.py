"""The adapters' common table on LlamaIndex agents."""

from __future__ import annotations

import pytest

from tests.adapters.llamaindex_driver import drive
from tests.adapters.scenarios import SCENARIOS, Scenario, check


@pytest.mark.parametrize("workflow", [False, True], ids=["agent", "workflow"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.id)
async def test_scenario(scenario: Scenario, workflow: bool) -> None:
    check(scenario, await drive(scenario, workflow=workflow))


@pytest.mark.parametrize("scenario", SCENARIOS[:8], ids=lambda s: s.id)
async def test_scenario_without_streaming(scenario: Scenario) -> None:
    check(scenario, await drive(scenario, streaming=False))
