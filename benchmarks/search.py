"""glob and grep against bare ripgrep."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.corpus import RARE, TWO_THOUSAND, tree
from benchmarks.row import Row, Work
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.host.search import HostSearch
from toolkit_core.tools import glob_tool, grep_tool

if TYPE_CHECKING:
    from benchmarks.peers import Peers

Call = Callable[[], Awaitable[Any]]
MANY = 100_000


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """All rows."""
    root = tree(8_000) if quick else tree()
    search = HostSearch(root)
    grep, glob = grep_tool(search), glob_tool(search)

    def grep_row(name: str, target: float, pattern: str, limit: int = 200, *rg: str) -> Row:
        given = {"root": str(root), "pattern": pattern}
        others = {
            "deepagents grep": ("deepagents", "grep", given),
            "LangChain file search": ("deepagents", "lang_grep", given),
        }
        call = answered(lambda: grep(pattern=pattern, limit=limit))
        return Row(name, target, call, bare(root, *rg, pattern, "."), peers.of(others))

    yield grep_row("grep, whole tree, rare literal", 1.15, RARE)
    yield grep_row("grep, 2,000 hits", 1.2, TWO_THOUSAND, MANY, "-n")
    yield grep_row("grep, first 200 of a common pattern", 0.12, "return", 200, "-n")
    yield grep_row("grep, 100,000 hits", 8.0, "return", MANY, "-n")
    given = {"root": str(root), "pattern": "**/*.py"}
    others = {"deepagents glob": ("deepagents", "glob", given), "LangChain glob": ("deepagents", "lang_glob", given)}
    listing = bare(root, "--files", "-g", "**/*.py")
    for name, target, sort in (("glob **/*.py", 1.4, "path"), ("glob **/*.py, sorted by time", 1.7, "modified")):
        call = answered(lambda sort=sort: glob(pattern="**/*.py", sort=sort, limit=MANY))
        yield Row(name, target, call, listing, peers.of(others))
    yield Row(
        "cancel a running grep, to reaped",
        10.0,
        lambda: cancelled(lambda: grep(pattern="r.*t.*u.*r.*n.*q", limit=MANY), 0.05),
        unit="ms",
    )
    big = folder / "big"
    big.mkdir()
    with (big / "big.txt").open("wb") as file:
        for _ in range(54 if quick else 545):
            file.write(b"some words on a line that is not special\n" * 24_385)
    in_big = grep_tool(HostSearch(big))
    yield Row(
        "cancel a grep in one 545 MB file, to reaped",
        25.0,
        lambda: cancelled(lambda: in_big(pattern="s.*q.*l.*z"), 0.03),
        unit="ms",
    )


def bare(root: Path, *arguments: str) -> Work:
    """ripgrep alone, its output read to the end."""
    program = find_ripgrep()
    if program is None:
        sys.exit("no ripgrep here: pip install ripgrep")
    argv = [program, "--no-config", "--hidden", *arguments]  # the tools search hidden files, too
    return lambda: subprocess.run(argv, cwd=root, stdout=subprocess.PIPE, check=False)


def answered(call: Call) -> Work:
    """A tool's call that must not fail."""

    async def work() -> None:
        (await call()).raise_for_error()

    return work


async def cancelled(call: Call, after_seconds: float) -> float:
    """Milliseconds from a cancellation to its surfacing, everything reaped."""
    task = asyncio.ensure_future(call())
    await asyncio.sleep(after_seconds)
    before = time.perf_counter()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return 1000 * (time.perf_counter() - before)
