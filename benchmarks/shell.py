"""The shell tool against the bare machine in the same run: `python -m benchmarks.shell [--rounds N]`.

Each row is the median of paired rounds: first the yardstick, then the whole tool with all that it adds (validation,
the supervisor, capped and drained streams, the text). Absolute times mean little on a shared machine; ratios do.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from toolkit_core.host.commands import HostCommands
from toolkit_core.tools import shell_tool

ROUNDS = 15
AT_ONCE = 64
FLOOD = "yes 0123456789 | head -c 200000000"
Work = Callable[[], Awaitable[Any]]


@dataclass(frozen=True)
class Row:
    """One line of the table; `target` is the most that the value may be."""

    name: str
    value: float
    target: float
    unit: str = "x"


class Gap:
    """The worst time that the event loop stood still while something ran."""

    def __init__(self) -> None:
        self.worst_seconds = 0.0

    async def __aenter__(self) -> Gap:
        self._task = asyncio.create_task(self._tick())
        await asyncio.sleep(0.005)
        self.worst_seconds = 0.0
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _tick(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            self.worst_seconds = max(self.worst_seconds, time.perf_counter() - before - 0.001)


async def seconds(work: Work) -> float:
    """How long it takes."""
    before = time.perf_counter()
    await work()
    return time.perf_counter() - before


async def ratio(yardstick: Work, ours: Work, rounds: int) -> float:
    """The median of paired ratios."""
    await yardstick()
    await ours()
    return median([1 / (await seconds(yardstick)) * await seconds(ours) for _ in range(rounds)])


async def bare(command: str) -> None:
    """asyncio's own subprocess, in a session of its own, both streams read."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    )
    await process.communicate()


async def in_thread(*argv: str) -> None:
    """A program that is waited for without Python reading anything."""
    await asyncio.to_thread(subprocess.run, argv, stdout=subprocess.DEVNULL, check=True)


async def measure(rounds: int) -> list[Row]:
    """All rows."""
    with tempfile.TemporaryDirectory() as folder:
        commands = HostCommands(folder)
        tool = shell_tool(commands)

        async def shell(command: str = "true") -> None:
            result = await tool(command=command)
            if result.is_error:
                sys.exit(result.text)

        async def several(work: Callable[[], Awaitable[None]]) -> None:
            for _ in range(10):
                await work()

        async def burst(command: str) -> None:
            await asyncio.gather(*(shell(command) for _ in range(AT_ONCE)))

        def xargs(command: str) -> Work:
            listed = f"seq {AT_ONCE} | xargs -P{AT_ONCE} -I@ bash -c '{command}'"
            return lambda: in_thread("sh", "-c", listed)

        rows = [
            Row(
                "`true`, against asyncio with its own session",
                await ratio(lambda: several(lambda: bare("true")), lambda: several(shell), rounds),
                1.4,
            ),
            Row(
                f"{AT_ONCE} x `true` at once, against xargs",
                await ratio(xargs("true"), lambda: burst("true"), rounds),
                1.4,
            ),
            Row(
                f"{AT_ONCE} x `sleep 0.2` at once, against xargs",
                await ratio(xargs("sleep 0.2"), lambda: burst("sleep 0.2"), rounds),
                1.4,
            ),
        ]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        piped = ("sh", "-c", f"bash -c '{FLOOD}' | cat > /dev/null")
        flood = await ratio(lambda: in_thread(*piped), lambda: commands.run(FLOOD), rounds)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024
        async with Gap() as gap:
            await commands.run(FLOOD)
        rows += [
            Row("200 MB of output, against `sh | cat`", flood, 1.3),
            Row("200 MB of output, memory", grown, 8, "MiB"),
            Row("200 MB of output, worst event-loop gap", gap.worst_seconds * 1000, 10, "ms"),
        ]
        async with Gap() as idle:
            await asyncio.sleep(0.5)
        rows.append(Row("worst event-loop gap of an idle half second", idle.worst_seconds * 1000, 10, "ms"))
        async with Gap() as gap:
            await shell(FLOOD)
        rows.append(Row("the same through the tool, worst event-loop gap", gap.worst_seconds * 1000, 10, "ms"))
        await commands.aclose()
    return rows


def main(rounds: int = ROUNDS) -> None:
    """Print the table."""
    for row in asyncio.run(measure(rounds)):
        verdict = "ok" if row.value <= row.target else "MISSED"
        sys.stdout.write(f"{row.name:<55} {row.value:7.2f} {row.unit:<4} target <= {row.target:g}  {verdict}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    main(parser.parse_args().rounds)
