"""The shell tool and the sandbox against bare processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.row import Row, Work
from benchmarks.search import answered
from toolkit_core.host._native.sandbox import memfd, run_to_end
from toolkit_core.host.bubblewrap import BubblewrapSandbox
from toolkit_core.host.commands import HostCommands
from toolkit_core.ports.sandbox import Invocation
from toolkit_core.tools import shell_tool

if TYPE_CHECKING:
    from benchmarks.peers import Peers

AT_ONCE = 64
FLOOD = "yes 0123456789 | head -c 200000000"
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}


def rows(peers: Peers, folder: Path, *, quick: bool) -> Iterator[Row]:
    """All rows."""
    commands = HostCommands(folder)
    tool = shell_tool(commands)
    others = {"deepagents execute": ("deepagents", "execute", {"root": str(folder), "command": "true"})}
    shell = answered(lambda: tool(command="true"))
    yield Row("shell `true`, against asyncio with its own session", 1.4, shell, bare, peers.of(others), rounds=40)
    for command in ("true", "sleep 0.2"):
        name = f"{AT_ONCE} x `{command}` at once, against xargs -P"
        yield Row(name, 1.4, burst(answered(lambda command=command: tool(command=command))), xargs(command))
    given = {"root": str(folder), "command": FLOOD}
    yield Row(
        "200 MB of output, 1 MiB kept, against sh piped into cat",
        1.3,
        answered(lambda: tool(command=FLOOD)),
        lambda: asyncio.to_thread(subprocess.run, ["sh", "-c", f"bash -c '{FLOOD}' | cat > /dev/null"], check=True),
        peers.of({"deepagents execute": ("deepagents", "execute", given)}),
        memory_target_mb=8,
        rounds=5,
    )
    with tempfile.TemporaryDirectory(dir=Path.home()) as home:
        (Path(home) / ".git").mkdir()
        for strict in (False, True):
            yield confined(home, strict=strict)


async def bare() -> None:
    """asyncio's own subprocess, in a session of its own, both streams read."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        "bash", "-c", "true", stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, start_new_session=True
    )
    await process.communicate()


def burst(work: Callable[[], Awaitable[None]]) -> Work:
    """Many at once."""

    async def run() -> None:
        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    return run


def xargs(command: str) -> Work:
    """As many processes at once, without Python."""
    listed = f"seq {AT_ONCE} | xargs -P{AT_ONCE} -I@ bash -c '{command}'"
    return lambda: asyncio.to_thread(subprocess.run, ["sh", "-c", listed], check=True)


def confined(folder: str, *, strict: bool) -> Row:
    """A confined `true` against the very same bubblewrap arguments started by hand."""
    sandbox = BubblewrapSandbox(folder, strict=strict)

    async def by_hand() -> None:
        if not wrapped:
            wrapped.append(await sandbox.wrap(Invocation(("/bin/bash", "-c", "true"), folder, ENVIRONMENT), "true"))
        await asyncio.to_thread(start, wrapped[0].argv, wrapped[0].descriptors)

    wrapped: list[Invocation] = []
    name = "bubblewrap `true`, the same argv by hand" + (", strict" if strict else "")
    return Row(name, 1.2, lambda: sandbox.run("true"), by_hand, rounds=20)


def start(argv: tuple[str, ...], contents: Mapping[int, bytes]) -> None:
    """Start it, wait for it, close what was opened."""
    opened = {number: memfd(content) for number, content in contents.items()}
    status = os.open(os.devnull, os.O_WRONLY)
    try:
        code, said = run_to_end(argv, ENVIRONMENT, {**opened, 5: status, 6: status}, within_seconds=30)
    finally:
        for descriptor in (*opened.values(), status):
            os.close(descriptor)
    if code != 0:
        raise SystemExit(f"bubblewrap does not start here: {said.decode(errors='replace')}")
