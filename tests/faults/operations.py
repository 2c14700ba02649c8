"""What is run while one of its system calls fails: a process that does one operation for each line that it reads.

A line names an operation and a fresh folder; the answer is what came of it, and whether anything was left behind.
The work of tools that use a thread is always done by the same one, so that a tracer can be attached before.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from toolkit_core import ToolResult
from toolkit_core.host import search as host_search
from toolkit_core.host import stoppable
from toolkit_core.host.bubblewrap import BubblewrapSandbox
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.egress import Egress
from toolkit_core.host.files import HostFiles
from toolkit_core.host.search import HostSearch
from toolkit_core.host.web import HostWeb
from toolkit_core.tools import (
    edit_file_tool,
    glob_tool,
    grep_tool,
    read_file_tool,
    shell_tool,
    web_fetch_tool,
    write_file_tool,
)

OLD, NEW = "old = 1\nrest\n", "old = 2\nrest\n"

Call = Callable[[], Awaitable[ToolResult[Any]]]
EDIT = {"old_text": "old = 1", "new_text": "old = 2"}

OPERATIONS: dict[str, Callable[[str], Call]] = {
    "read": lambda folder: partial(read_file_tool(HostFiles(folder)), path="a.txt"),
    "edit": lambda folder: partial(edit_file_tool(HostFiles(folder)), path="a.txt", edits=[EDIT]),
    "overwrite": lambda folder: partial(write_file_tool(HostFiles(folder)), path="a.txt", content=NEW),
    "create": lambda folder: partial(write_file_tool(HostFiles(folder)), path="b.txt", content=NEW),
    "create in a new folder": lambda folder: partial(write_file_tool(HostFiles(folder)), path="x/y/b.txt", content=NEW),
    "glob": lambda folder: partial(glob_tool(HostSearch(folder)), pattern="**/*.txt"),
    "grep": lambda folder: partial(grep_tool(HostSearch(folder)), pattern="rest"),
    "grep with Python's re": lambda folder: partial(grep_tool(HostSearch(folder)), pattern="(?=r)rest"),
    "shell": lambda folder: partial(shell_tool(HostCommands(folder)), command="cat a.txt"),
    "shell, confined": lambda folder: _confined(folder),
    "shell, confined: its preparation": lambda folder: _confined(folder),
    "web_fetch": lambda folder: partial(
        web_fetch_tool(HostWeb(egress=Egress(allow_private=["127.0.0.1/32"]))), url=os.environ["TOOLKIT_FAULTS_PAGE"]
    ),
}
ON_THE_LOOP = frozenset({"shell", "shell, confined", "web_fetch"})
"""Whose calls are made by the event loop's own thread."""


def _confined(folder: str) -> Call:
    return partial(shell_tool(HostCommands(folder, wrap=BubblewrapSandbox(folder))), command="cat a.txt")


@dataclass
class Outcome:
    """What came of one operation.

    Attributes:
        code: Of the error; "" where it went well.
        text: What the model reads.
        kept: The files afterwards.
        descriptors: How many more are open than before.
        children: How many child processes are left.
    """

    code: str
    text: str
    kept: dict[str, str]
    descriptors: int
    children: int


def prepare(folder: Path) -> None:
    """What every operation starts from."""
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text(OLD)
    (folder / "sub" / "c.txt").write_text("rest\n")
    (folder / ".gitignore").write_text("ignored\n")


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _children() -> list[int]:
    found: list[int] = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ended just now
            found += map(int, (task / "children").read_text().split())
    return found


async def _outcome(name: str, folder: Path) -> Outcome:
    call = OPERATIONS[name](os.fspath(folder))
    before = _descriptors()
    os.getsid(0)  # marks in the trace where the operation begins and ends
    result = await asyncio.wait_for(call(), 15)
    os.getsid(0)
    until = asyncio.get_running_loop().time() + 2
    while (_descriptors() > before or _children()) and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(0.02)  # the supervisor of commands leaves a moment after the last one
    kept = {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}
    code = "" if result.error is None else str(result.error.code)
    return Outcome(code, result.text, kept, _descriptors() - before, len(_children()))


def _one_thread_for_searches(pool: ThreadPoolExecutor) -> None:
    """A search makes a thread for itself; here it is always the same one."""

    class Thread:
        def __init__(self, *, target: Callable[[], None], **_: Any) -> None:
            self._target = target

        def start(self) -> None:
            pool.submit(self._target)

    class Threading:
        Thread: Any
        Lock = staticmethod(threading.Lock)

    Threading.Thread = Thread
    stoppable.threading = Threading  # pyright: ignore[reportAttributeAccessIssue]  (stands in for the module)
    assert host_search.in_thread is stoppable.in_thread


def _answer(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer line after line until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loop = asyncio.new_event_loop()
    pool = ThreadPoolExecutor(1)
    loop.set_default_executor(pool)
    worker = pool.submit(threading.get_native_id).result()
    _one_thread_for_searches(pool)
    _answer(json.dumps({"loop": threading.get_native_id(), "worker": worker}))
    for line in sys.stdin:
        name, folder = json.loads(line)
        prepare(Path(folder))
        try:
            answer = asdict(loop.run_until_complete(_outcome(name, Path(folder))))
        except BaseException as e:  # noqa: BLE001 - whatever came through is the finding
            answer = asdict(Outcome(f"raised {type(e).__name__}", str(e), {}, 0, 0))
        _answer(json.dumps(answer))
    with suppress(RuntimeError):
        loop.close()


if __name__ == "__main__":
    main()
