"""How long the event loop stands still while a tool works."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.corpus import tree
from benchmarks.files import MB, write_log
from benchmarks.measuring import gap_ms
from benchmarks.row import Row
from benchmarks.shell import FLOOD
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.files import HostFiles
from toolkit_core.host.search import HostSearch
from toolkit_core.tools import edit_file_tool, glob_tool, grep_tool, read_file_tool, shell_tool, write_file_tool

if TYPE_CHECKING:
    from benchmarks.peers import Peers

TARGET_MS = 10.0


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """One row a tool; the idle loop first, for the machine's own part."""
    files, search = HostFiles(folder), HostSearch(tree(8_000) if quick else tree())
    last = write_log(folder / "gap.log", 52)
    (folder / "gap.txt").write_bytes((b"y" * 79 + b"\n") * 60_000 + b"limit = 10\n")
    read, write, edit = read_file_tool(files), write_file_tool(files), edit_file_tool(files)
    grep, glob, shell = grep_tool(search), glob_tool(search), shell_tool(HostCommands(folder))
    works: dict[str, Callable[[], Awaitable[object]]] = {
        "nothing at all": lambda: asyncio.sleep(0.5),
        "a page near the end of 52 MB": lambda: read(path="gap.log", offset=last - 2500),
        "writing 5 MB": lambda: write(path="gap-written.txt", content="x" * 5 * MB),
        "a failing edit of 5 MB": lambda: edit(path="gap.txt", edits=[{"old_text": "limit = 11", "new_text": "x"}]),
        "a grep with 100,000 hits": lambda: grep(pattern="return", limit=100_000),
        "a glob of everything": lambda: glob(pattern="**/*.py", limit=100_000),
        "200 MB of a command's output": lambda: shell(command=FLOOD),
    }
    for name, work in works.items():
        yield Row(f"worst event-loop gap, {name}", TARGET_MS, lambda work=work: gap_ms(work), unit="ms", rounds=5)
