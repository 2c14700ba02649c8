"""read_file, write_file and edit_file against the plain system in the same run: `python -m benchmarks.files`.

Each row is the median of paired rounds, first the bare work (sed, cat, open+write), then the tool with all that it
adds: judging, numbering, records, text, payload. Absolute times mean little on a shared machine; ratios carry over.
The options: --rounds N, --folder F (where the corpus is made), --only WORD (rows whose name holds it).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from toolkit_core.host.files import HostFiles
from toolkit_core.tools import ReadRecord, edit_file_tool, read_file_tool, write_file_tool

MB = 1_000_000
LINE = b"2024-05-01T12:00:00 INFO worker[%07d] finished the job and went on to the next one\n"
BETWEEN_SECONDS = 0.03  # an agent's calls are seconds apart; sooner than a clock's tick bytes are compared as well
ONE_LINE = "limit = 10  # the line that is edited\n"


@dataclass(frozen=True)
class Row:
    """One comparison: the target is a ratio."""

    name: str
    bare: Callable[[], object]
    tool: Callable[[], Awaitable[object]]
    target: float


class Files:
    """The corpus and the tools."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.record = ReadRecord()
        synced, fast = HostFiles(folder), HostFiles(folder, fsync=False)
        self.read = read_file_tool(synced, record=self.record)
        self.write_synced, self.write = write_file_tool(synced), write_file_tool(fast)
        self.edit = edit_file_tool(fast)

    def make(self) -> None:
        """Write the corpus."""
        block = b"".join(LINE % n for n in range(20_000))
        with open(self.folder / "large.log", "wb") as file:
            for _ in range(525 * MB // len(block)):
                file.write(block)
        (self.folder / "small.py").write_bytes(b"".join(b"    value_%d = compute(%d)\n" % (n, n) for n in range(2_000)))
        with open(self.folder / "oneline.js", "wb") as file:
            for _ in range(200):
                file.write(b"x" * MB)

    def path(self, name: str) -> str:
        return os.fspath(self.folder / name)

    def sed(self, name: str, first: int, last: int) -> Callable[[], object]:
        command = ["sed", "-n", f"{first},{last}p;{last}q", self.path(name)]
        return lambda: subprocess.run(command, check=True, stdout=subprocess.PIPE)

    def raw_write(self, name: str, data: bytes, *, sync: bool = False) -> Callable[[], object]:
        def write() -> None:
            with open(self.path(name), "wb") as file:
                file.write(data)
                if sync:
                    file.flush()
                    os.fsync(file.fileno())

        return write

    def bare_replace(self, name: str, data: bytes) -> Callable[[], object]:
        """The whole careful sequence by hand: temp, write, fsync, rename, fsync of the folder."""

        def replace() -> None:
            temporary = self.path(f".{name}.tmp")
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path(name))
            folder = os.open(self.folder, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

        return replace

    def raw_edit(self, name: str, old: bytes, new: bytes) -> Callable[[], object]:
        def edit() -> None:
            data = Path(self.path(name)).read_bytes()
            with open(self.path(name + ".out"), "wb") as file:
                file.write(data.replace(old, new, 1))

        return edit

    def rows(self) -> list[Row]:
        """All comparisons."""
        last = 525 * MB // len(b"".join(LINE % n for n in range(20_000))) * 20_000
        rows = [
            Row(
                "read lines 50,000-52,000 of 525 MB",
                self.sed("large.log", 50_000, 51_999),
                self._reading("large.log", 50_000),
                1.0,
            ),
            Row(
                "read by number near the end of 525 MB",
                self.sed("large.log", last - 2500, last - 501),
                self._reading("large.log", last - 2500),
                1.0,
            ),
            Row(
                "read from the end of 525 MB",
                self.sed("large.log", last - 1999, last),
                self._reading("large.log", -2000),
                1.0,
            ),
            Row("read 2,000 lines of a small file", self.sed("small.py", 1, 2_000), self._reading("small.py", 1), 0.8),
            Row(
                "read one line of 200 MB",
                lambda: subprocess.run(["cat", self.path("oneline.js")], check=True, stdout=subprocess.PIPE),
                self._reading("oneline.js", 1),
                0.8,
            ),
        ]
        for size, target in ((1_000, 2.2), (MB, 1.6), (50 * MB, 1.25)):
            text = "x" * (size - 1) + "\n"
            rows.append(
                Row(
                    f"write {size:,} bytes, no fsync",
                    self.raw_write("raw.txt", text.encode()),
                    self._writing(text),
                    target,
                )
            )
            rows.append(
                Row(
                    f"write {size:,} bytes, fsync",
                    self.bare_replace("bare.txt", text.encode()),
                    self._writing(text, sync=True),
                    1.15,
                )
            )
        for size, target in ((MB, 1.6), (50 * MB, 1.3)):
            name = f"edit{size}.txt"
            half = b"y" * 79 + b"\n"
            data = half * (size // 160) + ONE_LINE.encode() + half * (size // 160)
            Path(self.path(name)).write_bytes(data)
            rows.append(
                Row(
                    f"edit one line in {size:,} bytes",
                    self.raw_edit(name, b"limit = 10", b"limit = 20"),
                    self._editing(name),
                    target,
                )
            )
        return [*rows, self._many_edits()]

    def _reading(self, name: str, offset: int) -> Callable[[], Awaitable[object]]:
        async def read() -> None:
            (await self.read(path=name, offset=offset)).raise_for_error()

        return read

    def _writing(self, text: str, *, sync: bool = False) -> Callable[[], Awaitable[object]]:
        tool = self.write_synced if sync else self.write

        async def write() -> None:
            (await tool(path="tool.txt", content=text)).raise_for_error()

        return write

    def _editing(self, name: str) -> Callable[[], Awaitable[object]]:
        value = 10

        async def edit() -> None:
            nonlocal value
            edits = [{"old_text": f"limit = {value} ", "new_text": f"limit = {value + 1} "}]
            value += 1
            (await self.edit(path=name, edits=edits)).raise_for_error()

        return edit

    def _many_edits(self) -> Row:
        """Twenty edits against one, both with the tool."""
        lines = [f"name_{n} = {n}\n" + "z" * 480_000 + "\n" for n in range(20)]
        Path(self.path("many.txt")).write_text("".join(lines))
        turn = [0, 0]

        def edits(count: int, which: int) -> list[dict[str, str]]:
            suffix, turn[which] = turn[which], turn[which] + 1
            old = [f"name_{n} = {n}" + "+" * suffix + "\n" for n in range(count)]
            return [{"old_text": text, "new_text": text[:-1] + "+\n"} for text in old]

        Path(self.path("single.txt")).write_text("".join(lines))

        async def many() -> None:
            (await self.edit(path="many.txt", edits=edits(20, 0))).raise_for_error()

        def one() -> None:
            with ThreadPoolExecutor(1) as pool:
                call = self.edit(path="single.txt", edits=edits(1, 1))
                pool.submit(asyncio.run, call).result().raise_for_error()

        return Row("20 edits in 10 MB against one", one, many, 2.0)


async def gap_while(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time, in milliseconds, that the event loop did not come round while work went on."""
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            worst, last = max(worst, now - last - 0.001), now

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.01)
    worst = 0.0
    await work()
    watching.cancel()
    return 1000 * worst


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


async def measure(row: Row, rounds: int) -> tuple[float, float, float]:
    """Bare seconds, tool seconds, worst gap in milliseconds."""
    bare: list[float] = []
    tool: list[float] = []
    gaps: list[float] = []
    row.bare()
    await row.tool()
    for _ in range(rounds):
        bare.append(timed(row.bare))
        await asyncio.sleep(BETWEEN_SECONDS)
        start = time.perf_counter()
        await row.tool()
        tool.append(time.perf_counter() - start)
    for _ in range(3):
        gaps.append(await gap_while(row.tool))
    return median(bare), median(tool), median(gaps)


def main(argv: list[str] | None = None) -> None:
    """Print a line a row."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--folder")
    parser.add_argument("--only", default="")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        files = Files(folder)
        files.make()
        print(f"{'work':<42}{'bare ms':>10}{'tool ms':>10}{'ratio':>8}{'target':>8}{'gap ms':>8}{'rss +MB':>9}")
        for row in files.rows():
            if options.only not in row.name:
                continue
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            bare, tool, gap = asyncio.run(measure(row, options.rounds))
            grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            verdict = "" if tool / bare <= row.target else "  over"
            print(
                f"{row.name:<42}{1e3 * bare:>10.2f}{1e3 * tool:>10.2f}{tool / bare:>8.2f}{row.target:>8.2f}"
                f"{gap:>8.1f}{grown:>9.0f}{verdict}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
