"""What the ledger keeps as read by the model is, to the letter, what the model's message holds."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit_core import Tool, ToolContext, ToolSet, function_tool
from toolkit_core.testing.ledger import InMemoryLedger
from toolkit_core.tools import recall_tool
from toolkit_langchain import to_langchain


@function_tool
async def talk() -> str:
    """Talk at length."""
    return "".join(f"line {i}\n" for i in range(10_000))


@pytest.mark.parametrize("recall", [True, False])
async def test_the_kept_text_is_the_messages_text(recall: bool) -> None:
    ledger = InMemoryLedger()
    tools: list[Tool[Any]] = [talk, recall_tool(ledger)] if recall else [talk]
    [converted, *_] = to_langchain(ToolSet(tools, surroundings=ToolContext(ledger=ledger)))
    message = await converted.ainvoke({"type": "tool_call", "name": "talk", "args": {}, "id": "c1"})
    [entry] = ledger.entries
    assert ledger.shown_texts[entry.entry_id] == message.content
    assert ("recall" in message.content) is recall
