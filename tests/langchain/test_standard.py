"""langchain-tests' published tool tests, for every tool that the package ships."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from tests.langchain.ledgers import MemoryLedger
from toolkit_core.tools import catalogued
from toolkit_langchain import default_tools, to_langchain

EXAMPLES: dict[str, dict[str, Any]] = {
    "read_file": {"path": "a.txt"},
    "write_file": {"path": "b.txt", "content": "hello"},
    "edit_file": {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "two"}]},
    "glob": {"pattern": "*.txt"},
    "grep": {"pattern": "one"},
    "shell": {"command": "echo hi"},
    "web_fetch": {"url": "http://127.0.0.1:9/"},
    "ask_user_question": {"questions": [{"question": "Sure?"}]},
    "process_start": {"command": "sleep 5"},
    "process_read": {"process_id": "p1"},
    "process_write": {"process_id": "p1", "text": "x"},
    "process_stop": {"process_id": "p1"},
    "recall": {"entry_id": "none"},
    "tool_search": {"query": "x"},
}


@cache
def shipped() -> dict[str, BaseTool]:
    """One instance of each, in a folder that lasts as long as the tests."""
    folder = Path(tempfile.mkdtemp())
    (folder / "a.txt").write_text("one\n")
    tools = default_tools(folder, ask=True, processes=True, ledger=MemoryLedger())
    from toolkit_core.factories import function_tool

    deferred = function_tool(lambda: "x", name="later", description="Later.", deferred=True)
    searching = [tool for tool in catalogued([deferred])[0] if tool.kind == "tool_search"]
    return {tool.name: tool for tool in [*tools, *to_langchain(searching)]}


def test_every_shipped_tool_has_an_example() -> None:
    assert set(shipped()) == set(EXAMPLES)


def _standard_tests(name: str) -> dict[str, type]:
    body: dict[str, Any] = {
        "tool_constructor": property(lambda self: shipped()[name]),
        "tool_invoke_params_example": property(lambda self: EXAMPLES[name]),
    }
    return {
        f"TestUnit_{name}": type(f"TestUnit_{name}", (ToolsUnitTests,), {**body, "__module__": __name__}),
        f"TestIntegration_{name}": type(
            f"TestIntegration_{name}", (ToolsIntegrationTests,), {**body, "__module__": __name__}
        ),
    }


for _name in EXAMPLES:
    globals().update(_standard_tests(_name))
