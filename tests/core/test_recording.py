"""What reaches a ledger, and what a ledger cannot do to a call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from toolkit_core import (
    Effects,
    LedgerEntry,
    Suspended,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSet,
    function_tool,
)


class Book:
    """A ledger in memory."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.entries: list[LedgerEntry] = []
        self.fault = fault

    async def record(self, entry: LedgerEntry) -> bool:
        if self.fault is not None:
            raise self.fault
        self.entries.append(entry)
        return True

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        raise ToolError("none", code="not_found")


@function_tool(effects=Effects(reads=True))
async def double(n: int) -> int:
    """Double."""
    return 2 * n


async def test_a_call_is_recorded_whole_with_its_surroundings() -> None:
    book = Book()
    trace = f"00-{'1' * 32}-{'2' * 16}-01"
    context = ToolContext(session_id="s", call_id="c", traceparent=trace, ledger=book)
    result = await double.call({"n": "4"}, context)

    [entry] = book.entries
    assert (entry.session_id, entry.call_id, entry.tool, entry.outcome, entry.risk) == (
        "s",
        "c",
        "double",
        "ok",
        "inspect",
    )
    assert entry.arguments == {"n": "4"}
    assert entry.result is not None
    assert ToolResult.from_dict(entry.result) == result
    assert entry.entry_id == result.entry_id
    assert entry.traceparent.startswith(trace[:35])
    assert entry.duration_seconds >= 0


async def test_failures_and_unreadable_arguments_are_recorded() -> None:
    book = Book()
    await double.call(object(), ToolContext(ledger=book))
    await double.call("nope", ToolContext(ledger=book))
    assert [entry.outcome for entry in book.entries] == ["error", "error"]
    assert book.entries[0].arguments == {"unrecordable": "object"}
    assert book.entries[1].arguments == {"arguments": "nope"}


async def test_a_cancelled_call_keeps_its_output_so_far() -> None:
    @function_tool
    async def talk(ctx: ToolContext) -> str:
        """Talk."""
        ctx.report("stdout", "half ")
        ctx.report("stdout", "done")
        await asyncio.sleep(60)
        return ""

    book = Book()
    task = asyncio.ensure_future(talk.call({}, ToolContext(ledger=book)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [entry] = book.entries
    assert entry.outcome == "cancelled"
    assert "half done" in str(entry.result)


async def test_a_suspended_call_is_recorded_as_such() -> None:
    @function_tool
    async def wait() -> str:
        """Wait."""
        raise Suspended(ValueError("later"))

    book = Book()
    with pytest.raises(Suspended):
        await wait.call({}, ToolContext(ledger=book))
    assert [(entry.outcome, entry.result) for entry in book.entries] == [("suspended", None)]


async def test_a_call_within_a_call_names_its_parent() -> None:
    @function_tool
    async def outer(ctx: ToolContext) -> Any:
        """Outer."""
        return (await double.call({"n": 1}, ctx)).data

    book = Book()
    await asyncio.gather(*(outer.call({}, ToolContext(ledger=book)) for _ in range(3)))
    parents = {entry.entry_id: entry for entry in book.entries if entry.tool == "outer"}
    children = [entry for entry in book.entries if entry.tool == "double"]
    assert {child.parent_id for child in children} == set(parents)
    assert all(entry.parent_id == "" for entry in parents.values())


async def test_a_ledger_that_fails_never_fails_the_call(caplog: pytest.LogCaptureFixture) -> None:
    result = await double.call({"n": 4}, ToolContext(ledger=Book(OSError("disk full"))))
    assert result.data == 8
    assert result.entry_id is None
    assert "did not record" in caplog.text


async def test_a_set_lends_its_ledger_to_its_tools() -> None:
    book = Book()
    tools: ToolSet = ToolSet([double], surroundings=ToolContext(ledger=book))
    await tools["double"](n=1)
    assert book.entries[0].session_id == tools.identity


async def test_data_without_a_json_form_is_left_out_and_the_text_is_kept() -> None:
    @function_tool
    async def odd() -> Any:
        """Odd."""
        return ToolResult.ok("words", object())

    tool: Tool[Any] = odd
    book = Book()
    await tool.call({}, ToolContext(ledger=book))
    assert book.entries[0].result == {"content": [{"type": "text", "text": "words"}], "data": None, "error": None}
