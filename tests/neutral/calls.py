"""Every built-in tool over ports in memory, and a call of each that must succeed."""

from __future__ import annotations

import struct
import zlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from toolkit_core import (
    ReadRecord,
    Tool,
    ToolCatalog,
    ToolContext,
    ToolResult,
    ToolSet,
    ask_user_question_tool,
    bash_tool,
    browse_tool,
    commitments_tool,
    edit_file_tool,
    function_tool,
    glob_tool,
    grep_tool,
    memory_read_tool,
    memory_write_tool,
    model_tool,
    process_read_tool,
    process_start_tool,
    process_stop_tool,
    process_write_tool,
    read_file_tool,
    recall_tool,
    shell_tool,
    tool_search_tool,
    web_fetch_tool,
    web_search_tool,
    write_file_tool,
)
from toolkit_core.ports.commitments import Criterion
from toolkit_core.ports.web_search import SearchHit
from toolkit_core.testing.ask import Answers
from toolkit_core.testing.commands import ScriptedCommands, ScriptedProcesses
from toolkit_core.testing.commitments import InMemoryCommitments
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.testing.ledger import InMemoryLedger
from toolkit_core.testing.search import InMemorySearch
from toolkit_core.testing.web import FakeBrowser, FakeSearchProvider, FakeWeb


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = b"".join(
    [
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(b"\0" * 14)),
        _chunk(b"IEND", b""),
    ]
)
CELL = '{"cell_type": "code", "source": ["1 + 1"], "outputs": [], "metadata": {}}'
NOTEBOOK = f'{{"cells": [{CELL}], "metadata": {{}}, "nbformat": 4}}'
FILES: Mapping[str, str | bytes] = {
    "a.py": "one = 1\r\ntwo = 2\r\n",
    "b/c.txt": "needle\n" * 300,
    "p.png": PNG,
    "n.ipynb": NOTEBOOK,
}


@dataclass(frozen=True)
class Called:
    """A call and what came of it."""

    tool: str
    arguments: Mapping[str, Any]
    result: ToolResult[Any]


def payload(called: Called) -> Any:
    """What it returned."""
    assert called.result.data is not None, called.result.text
    return called.result.data


class Parcel(BaseModel):
    """What is sent."""

    grams: int


def weigh(parcel: Parcel) -> int:
    """The weight."""
    return parcel.grams


@function_tool
def twice(number: int) -> int:
    """Twice a number; a synchronous function."""
    return 2 * number


@function_tool(deferred=True)
async def hidden() -> str:
    """A deferred tool."""
    return "found"


class World:
    """The tools and the ports behind them."""

    def __init__(self) -> None:
        self.files = MemoryFiles(FILES)
        self.ledger = InMemoryLedger()
        self.answers = Answers()
        self.commitments = InMemoryCommitments()
        search = InMemorySearch(
            {path: text.encode() if isinstance(text, str) else text for path, text in FILES.items()}
        )
        commands = ScriptedCommands({"echo hello": "hello\n", "cat big": "line\n" * 50_000})
        processes = ScriptedProcesses({"serve": ["listening\n", "GET /\n"]})
        memory = MemoryFiles({"MEMORY.md": "remember\n"}, root="/memory")
        pages = {"https://docs.test/": "# Welcome"}
        record = ReadRecord()
        tools: list[Tool[Any]] = [
            read_file_tool(self.files, record=record),
            write_file_tool(self.files, record=record),
            edit_file_tool(self.files, record=record),
            glob_tool(search),
            grep_tool(search),
            shell_tool(commands),
            bash_tool(commands),
            process_start_tool(processes),
            process_read_tool(processes),
            process_write_tool(processes),
            process_stop_tool(processes),
            web_fetch_tool(FakeWeb(pages)),
            browse_tool(FakeBrowser(pages)),
            web_search_tool([FakeSearchProvider("fake", [SearchHit("Docs", "https://docs.test/", "All of them.")])]),
            ask_user_question_tool(),
            tool_search_tool(),
            memory_read_tool(memory),
            memory_write_tool(memory),
            recall_tool(self.ledger),
            commitments_tool(self.commitments),
            twice,
            hidden,
            model_tool(Parcel, weigh, name="weigh", description="The weight in grams."),
        ]
        self.tools = ToolSet(tools, surroundings=ToolContext(ledger=self.ledger, ask=self.answers))
        self.context = ToolContext(session_id="s", catalog=ToolCatalog(self.tools))

    async def call(self, tool: str, **arguments: Any) -> Called:
        """Call one."""
        return Called(tool, arguments, await self.tools[tool].call(arguments, self.context))


async def every_call() -> AsyncIterator[Called]:
    """A call of every tool, and of the ways that some of them have."""
    world = World()
    call = world.call
    await world.commitments.open("Ship it", [Criterion("c1", "Tests pass")])
    world.answers.give("yes")
    yield await call("read_file", path="a.py")
    yield await call("read_file", path="p.png")
    yield await call("read_file", path="n.ipynb", view="cells")
    yield await call("edit_file", path="a.py", edits=[{"old_text": "two = 2", "new_text": "two = 3"}])
    yield await call("write_file", path="new/d.txt", content="d\n")
    yield await call("glob", pattern="**/*.txt")
    yield await call("grep", pattern="nee(dle)?", limit=5)
    yield await call("grep", pattern="(?<=one )=", output_mode="count")
    yield await call("shell", command="echo hello")
    yield await call("shell", command="cat big")
    yield await call("bash", command="echo hello")
    started = await call("process_start", command="serve")
    yield started
    process_id = payload(started)["process_id"]
    yield await call("process_read", process_id=process_id)
    yield await call("process_write", process_id=process_id, text="q")
    yield await call("process_stop", process_id=process_id)
    yield await call("web_fetch", url="https://docs.test/")
    yield await call("browse", url="https://docs.test/")
    yield await call("web_search", query="docs")
    yield await call("ask_user_question", questions=[{"question": "Sure?", "options": ["yes", "no"]}])
    yield await call("tool_search", query="deferred")
    yield await call("hidden")
    yield await call("memory_read")
    yield await call("memory_write", path="notes.md", content="n\n")
    yield await call("commitments")
    yield await call("twice", number="21")
    yield await call("weigh", grams=5)
    yield await call("recall", entry_id=world.ledger.entries[0].entry_id)
