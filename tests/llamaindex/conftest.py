"""What LlamaIndex itself warns of is not ours to fix."""

from __future__ import annotations

from pathlib import Path

import pytest

_THEIRS = [
    "ignore:Skipping serialization of known unserializable key",  # an agent's memory, when a context goes on
    "ignore:WorkflowHandler.cancel",  # one of the ways to cancel that must work
    "ignore:is_running called from within a step",  # ReActAgent asks for it in each step
    # workflows/utils.py looks at every attribute of an agent, and an agent is a pydantic model
    "ignore:The `__fields__` attribute is deprecated",
    "ignore:The `__fields_set__` attribute is deprecated",
    "ignore:Accessing the 'model_",
    "ignore:The `model_computed_fields`",
    "ignore:The `model_fields`",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            for theirs in _THEIRS:
                item.add_marker(pytest.mark.filterwarnings(theirs))
