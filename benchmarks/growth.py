"""How cost grows with size: seconds over n, fitted to a power of n. At most linear where the work is linear."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import linear_regression
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import installed_files
from benchmarks.files import BLOCK, many_edits, write_log
from benchmarks.measuring import seconds
from benchmarks.row import Row, Work
from benchmarks.search import answered
from toolkit_core import Tool, function_tool
from toolkit_core.host.files import HostFiles
from toolkit_core.host.search import HostSearch
from toolkit_core.host.sqlite import SQLiteLedger
from toolkit_core.ports.ledger import LedgerEntry
from toolkit_core.result import ToolResult
from toolkit_core.tools import edit_file_tool, glob_tool, grep_tool, read_file_tool
from toolkit_langchain import to_langchain
from toolkit_llamaindex import to_llamaindex

if TYPE_CHECKING:
    from benchmarks.peers import Peers

LINEAR = 1.1
"""An exponent up to here counts as linear: caches and fixed costs bend the line a little."""

Points = AsyncIterator[tuple[int, float]]


def rows(peers: Peers, folder: Path, *, quick: bool, large: bool = False) -> Iterator[Row]:
    """One exponent a row; `large` goes on to the largest sizes, which takes minutes and gigabytes."""
    few, many = (4_000, 64) if quick else (50_000, 500)
    trees = sizes(2_000, 200_000 if large else few)
    yield fitted("grep over the number of files", lambda: searching(folder, trees, "grep"))
    yield fitted("glob over the number of files", lambda: searching(folder, trees, "glob"))
    yield fitted("a page at 10 % over a file's MB", lambda: paging(folder, sizes(1, 5_000 if large else many)))
    yield fitted("edit over a file's MB", lambda: editing(folder, [1, 4, 16] if quick else [1, 4, 16, 64], 1))
    yield fitted("edit over the number of edits", lambda: editing(folder, [8], 8 if quick else 512))
    calls = [1, 4, 16, 64, 256] if large else [1, 4, 16, 64]
    for name, convert in (("LangChain", to_langchain), ("LlamaIndex", to_llamaindex)):
        yield fitted(f"calls at once through {name}", lambda convert=convert: parallel(convert, calls))
        yield fitted(f"a set of so many tools for {name}", lambda convert=convert: converting(convert))
    yield fitted("entries of a ledger", lambda: recording(folder, 1_000_000 if large else 3_000 if quick else 100_000))


def fitted(name: str, points: Callable[[], Points]) -> Row:
    """A row whose value is the exponent of a power fitted to the points."""

    async def exponent() -> float:
        measured = [point async for point in points()]
        return linear_regression([math.log(n) for n, _ in measured], [math.log(s) for _, s in measured]).slope

    return Row(f"growth: {name}", LINEAR, exponent, unit="exponent", rounds=1)


def sizes(first: int, last: int) -> list[int]:
    """Five or so, evenly spread on a logarithmic scale."""
    step = (last / first) ** 0.25
    return [round(first * step**number) for number in range(5)]


async def least(work: Work, times: int = 3) -> float:
    """The fastest of a few runs, after one to warm up."""
    await seconds(work)
    return min([await seconds(work) for _ in range(times)])


async def searching(folder: Path, counts: Sequence[int], what: str) -> Points:
    """A literal that is nowhere, or every name."""
    sources = list(islice(installed_files(), 20_000))
    root = folder / f"links-{what}"
    made = 0
    for count in counts:
        for number in range(made, count):
            place = root / f"d{number // 4_000}" / f"e{number // 100 % 40}" / f"f{number}.py"
            if number % 100 == 0:
                place.parent.mkdir(parents=True, exist_ok=True)
            os.link(sources[number % len(sources)], place)
        made = count
        search = HostSearch(root)
        grep, glob = grep_tool(search), glob_tool(search)
        call = partial(grep, pattern="absent_everywhere_here")
        if what == "glob":
            call = partial(glob, pattern="**/*1.py", limit=100_000)
        yield count, await least(answered(call))


async def paging(folder: Path, megabytes: Sequence[int]) -> Points:
    """2,000 lines from a tenth of the file on."""
    read = read_file_tool(HostFiles(folder))
    for size in megabytes:
        path = folder / "growing.log"
        last = write_log(path, size)
        yield last * len(BLOCK) // 20_000, await least(answered(lambda: read(path=path.name, offset=last // 10)))  # noqa: B023 - awaited at once
        path.unlink()


async def editing(folder: Path, megabytes: Sequence[int], edits: int) -> Points:
    """One edit in files of several sizes, or several edits in one."""
    tool = edit_file_tool(HostFiles(folder, fsync=False))
    counts = [1] if edits == 1 else sizes(2, edits)
    for size in megabytes:
        for count in counts:
            work = many_edits(tool, folder, count, megabytes=size, most=max(20, count))
            yield (size if edits == 1 else count), await least(work)


@function_tool
async def echo(text: str) -> str:
    """The same text."""
    await asyncio.sleep(0)
    return text


async def parallel(convert: Callable[[list[Tool]], list[Any]], counts: Sequence[int]) -> Points:
    """Calls at once, twenty times over."""
    (tool,) = convert([echo])
    for count in counts:
        yield count, await least(lambda count=count: rounds_of(tool, count))


async def rounds_of(tool: Any, count: int) -> None:
    """Calls at once, twenty times."""
    for _ in range(20):
        calls = [
            tool.ainvoke({"text": "x"}) if hasattr(tool, "ainvoke") else tool.acall(text="x") for _ in range(count)
        ]
        await asyncio.gather(*calls)


async def converting(convert: Callable[[list[Tool]], list[Any]]) -> Points:
    """From core tools to the framework's, schemas included."""
    for count in (10, 30, 100, 300, 1_000):
        tools = [renamed(number) for number in range(count)]
        yield count, await least(lambda tools=tools: schemas(convert(tools)))


def renamed(number: int) -> Tool:
    """A tool with a name of its own."""

    async def body(text: str, times: int = 1) -> str:
        """The same text, some times."""
        return text * times

    return function_tool(body, name=f"echo_{number}")


def schemas(tools: list[Any]) -> None:
    """What a model is sent."""
    for tool in tools:
        if hasattr(tool, "tool_call_schema"):
            _ = tool.tool_call_schema
        else:
            tool.metadata.to_openai_tool()


def entry(number: int, result: ToolResult[Any]) -> LedgerEntry:
    """A small call."""
    return LedgerEntry(f"e{number}", "s", "", "echo", {"text": "x"}, "ok", result.to_dict(), 1.7e9 + number, 0.01)


async def recording(folder: Path, most: int) -> Points:
    """Recording so many entries, and reading the last one."""
    result = ToolResult.ok("done", {"lines": 3})
    for number, count in enumerate(sizes(10, most)):
        ledger = SQLiteLedger(folder / f"ledger{number}.sqlite")

        async def fill(ledger: SQLiteLedger = ledger, count: int = count) -> None:
            for start in range(0, count, 200):
                entries = [entry(place, result) for place in range(start, min(count, start + 200))]
                await asyncio.gather(*(ledger.record(each) for each in entries))
            await ledger.read(f"e{count - 1}", session="s")

        yield count, await seconds(fill)
        await ledger.aclose()
