"""glob and grep against bare ripgrep in the same run: `python -m benchmarks.search [--files N] [--rounds N]`.

Each row is the median of paired rounds: ripgrep alone, then the tool with all that it adds (judging, parsing, text,
payload). Absolute times mean little on a shared machine; the ratios carry over. A loop's worst gap counts as met
below 10 ms, or below what the same loop shows on this machine while nothing runs at all.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.search_corpus import FILES, RARE, TWO_THOUSAND, make_corpus
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.host.search import HostSearch
from toolkit_core.tools import glob_tool, grep_tool

Call = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    value: float
    target: float
    unit: str = "x"
    worst_gap_ms: float = 0.0


class Loop:
    """The worst time that the event loop stood still while something ran."""

    def __init__(self) -> None:
        self.worst_seconds = 0.0

    async def __aenter__(self) -> Loop:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.worst_seconds = max(self.worst_seconds, time.perf_counter() - before - 0.001)


def bare(root: Path, *arguments: str) -> float:
    """Seconds that ripgrep alone takes, its output read to the end."""
    program = find_ripgrep()
    if program is None:
        sys.exit("no ripgrep here: pip install ripgrep")
    before = time.perf_counter()
    subprocess.run([program, "--no-config", *arguments], cwd=root, stdout=subprocess.PIPE, check=False)
    return time.perf_counter() - before


async def compare(name: str, target: float, root: Path, arguments: Sequence[str], call: Call, rounds: int) -> Row:
    """The median ratio, and the median of each round's worst gap."""
    ratios: list[float] = []
    gaps: list[float] = []
    for _ in range(rounds):
        base = bare(root, *arguments)
        async with Loop() as loop:
            before = time.perf_counter()
            result = await call()
            took = time.perf_counter() - before
        result.raise_for_error()
        ratios.append(took / base)
        gaps.append(1000 * loop.worst_seconds)
    return Row(name, median(ratios), target, worst_gap_ms=median(gaps))


async def cancelled(name: str, target_ms: float, call: Call, after_seconds: float, rounds: int) -> Row:
    """Milliseconds from a cancellation to its surfacing, everything reaped."""
    took: list[float] = []
    for _ in range(rounds):
        task = asyncio.ensure_future(call())
        await asyncio.sleep(after_seconds)
        before = time.perf_counter()
        if not task.cancel():
            continue
        await asyncio.gather(task, return_exceptions=True)
        took.append(1000 * (time.perf_counter() - before))
    return Row(name, median(took), target_ms, unit="ms")


async def measure(root: Path, rounds: int) -> list[Row]:
    """All rows."""
    search = HostSearch(root)
    grep, glob = grep_tool(search), glob_tool(search)
    await grep(pattern="warm", path=".gitignore")

    def grepping(**arguments: Any) -> Call:
        return lambda: grep(**arguments)

    def globbing(**arguments: Any) -> Call:
        return lambda: glob(**arguments)

    many = {"limit": 100_000}
    listing = ("--files", "-g", "**/*.py")
    rows = [
        await compare("grep, rare literal", 1.15, root, (RARE, "."), grepping(pattern=RARE), rounds),
        await compare(
            "grep, 2,000 hits", 1.2, root, ("-n", TWO_THOUSAND, "."), grepping(pattern=TWO_THOUSAND, **many), rounds
        ),
        await compare("grep, first 200", 0.12, root, ("-n", "return", "."), grepping(pattern="return"), rounds),
        await compare(
            "grep, 100,000 hits", 8.0, root, ("-n", "return", "."), grepping(pattern="return", **many), rounds
        ),
        await compare("grep, nothing found", 3.0, root, ("absent_word", "."), grepping(pattern="absent_word"), rounds),
        await compare("glob **/*.py", 1.4, root, listing, globbing(pattern="**/*.py", **many), rounds),
        await compare(
            "glob **/*.py, by time", 1.7, root, listing, globbing(pattern="**/*.py", sort="modified", **many), rounds
        ),
        await cancelled("cancel a grep", 10.0, grepping(pattern="r.*t.*u.*r.*n.*q", **many), 0.05, 4 * rounds),
        await cancelled("cancel a look-around", 10.0, grepping(pattern="(?=(a+)+$)b|(?<=x)y", **many), 0.2, rounds),
    ]
    with tempfile.TemporaryDirectory() as folder:
        make_big_file(Path(folder, "big.txt"), megabytes=545)
        in_big = grep_tool(HostSearch(folder))
        await in_big(pattern="warm", path=".", glob="*.none")
        rows.append(await cancelled("cancel in 545 MB", 25.0, lambda: in_big(pattern="s.*q.*l.*z"), 0.03, 2 * rounds))
    return rows


async def idle_gap_ms(rounds: int) -> float:
    """The worst gap while nothing runs but the machine's other work."""
    gaps: list[float] = []
    for _ in range(rounds):
        async with Loop() as loop:
            await asyncio.sleep(0.5)
        gaps.append(1000 * loop.worst_seconds)
    return median(gaps)


def make_big_file(path: Path, *, megabytes: int) -> None:
    """A text file of that size."""
    with path.open("wb") as file:
        for _ in range(megabytes):
            file.write(b"some words on a line that is not special\n" * 24_385)


def show(rows: Sequence[Row], idle_ms: float) -> bool:
    """Print the table; whether every target is met."""
    met = True
    print(f"idle loop: worst gap {idle_ms:.1f} ms")
    for row in rows:
        good = row.value <= row.target and row.worst_gap_ms <= max(10, idle_ms)
        met = met and good
        gap = f"loop {row.worst_gap_ms:5.1f} ms" if row.unit == "x" else ""
        verdict = "met" if good else "MISSED"
        print(f"{row.name:26} {row.value:8.2f} {row.unit:2} (target {row.target:g})  {gap:14} {verdict}")
    return met


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "toolkit-bench-search"))
    parser.add_argument("--remove", action="store_true", help="remove the corpus afterwards")
    options = parser.parse_args()
    root = make_corpus(options.folder, files=options.files)
    idle_ms = asyncio.run(idle_gap_ms(options.rounds))
    rows = asyncio.run(measure(root, options.rounds))
    if options.remove:
        shutil.rmtree(options.folder)
    return 0 if show(rows, idle_ms) else 1


if __name__ == "__main__":
    sys.exit(main())
