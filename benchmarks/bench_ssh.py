"""What a call costs over SSH on loopback, against the same call on this machine: python -m benchmarks.bench_ssh."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from tests.core.sshd import CuttingProxy, running_sshd
from toolkit_core import ToolSet, default_tools

ROUNDS = 15


class CountingProxy(CuttingProxy):
    """Counts the bytes of both directions."""

    passed = 0

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            while block := await reader.read(65_536):
                CountingProxy.passed += len(block)
                writer.write(block)
                await writer.drain()


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, float]:
    """Median milliseconds and bytes on the wire of one call."""
    await work()
    times: list[float] = []
    before = CountingProxy.passed
    for _ in range(ROUNDS):
        started = time.perf_counter()
        result = await work()
        times.append(time.perf_counter() - started)
        assert not result.is_error, result.text
    return statistics.median(times) * 1000, (CountingProxy.passed - before) / ROUNDS


async def measure(name: str, tools: ToolSet) -> None:
    await tools["write_file"](path="a.txt", content="one\ntwo\n" * 200)
    await tools["read_file"](path="a.txt")
    for number in range(50):
        await tools["write_file"](path=f"src/m{number}.py", content=f"import os\nx = {number}\n")
    counter = iter(range(10**6))

    def edit() -> Awaitable[Any]:
        return tools["write_file"](path="a.txt", content=f"{next(counter)}\n" * 300)

    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "shell true": lambda: tools["shell"](command="true"),
        "read_file 2 KB": lambda: tools["read_file"](path="a.txt"),
        "write_file 2 KB": edit,
        "glob **/*.py (50)": lambda: tools["glob"](pattern="**/*.py"),
        "grep import (50)": lambda: tools["grep"](pattern="import"),
    }
    for call, work in calls.items():
        milliseconds, size = await timed(work)
        print(f"{name:6} {call:20} {milliseconds:8.1f} ms {size / 1024:8.1f} KiB on the wire")


async def main() -> None:
    with tempfile.TemporaryDirectory() as here, running_sshd() as server:
        await measure("host", default_tools(here))
        async with CountingProxy(server.port) as proxy:
            known = server.known_hosts_for(proxy.port)
            async with server.sandbox(port=proxy.port, known_hosts=known) as sandbox:
                await measure("ssh", default_tools(server.workspace, sandbox=sandbox))


if __name__ == "__main__":
    asyncio.run(main())
