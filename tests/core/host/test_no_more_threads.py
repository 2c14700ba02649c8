"""The system gives the process no further thread (pthread_create(3), EAGAIN)."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from toolkit_core import ToolError, ToolResult, function_tool
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.egress import Egress, SystemResolver
from toolkit_core.host.files import HostFiles
from toolkit_core.host.search import HostSearch
from toolkit_core.tools import glob_tool, grep_tool, read_file_tool, shell_tool, write_file_tool

CALLS: dict[str, Callable[[Path], Awaitable[ToolResult[Any]]]] = {
    "read_file": lambda root: read_file_tool(HostFiles(root))(path="a.txt"),
    "write_file": lambda root: write_file_tool(HostFiles(root))(path="a.txt", content="new\n"),
    "glob": lambda root: glob_tool(HostSearch(root))(pattern="*"),
    "grep": lambda root: grep_tool(HostSearch(root))(pattern="old"),
}


def refused(self: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def refused_to(*names: str) -> Callable[[threading.Thread], None]:
    whole = threading.Thread.start

    def start(self: threading.Thread) -> None:
        (refused if self.name.startswith(names) else whole)(self)

    return start


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("old\n")
    return tmp_path


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_needs_one_says_so_and_does_nothing_later(
    name: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        result = await CALLS[name](workspace)
    assert result.error is not None
    assert (result.error.code, result.error.retryable) == ("io_error", True)
    assert "thread" in result.error.message
    await asyncio.to_thread(int)  # a thread of the pool, which would find what was left in its queue
    assert (workspace / "a.txt").read_text() == "old\n"
    assert not before or len(os.listdir("/proc/self/fd")) <= before
    assert (await CALLS[name](workspace)).error is None


async def test_a_function_that_got_no_thread_is_not_run_later(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    @function_tool
    def effect() -> str:
        """Has an effect."""
        ran.append(1)
        return "done"

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        result = await effect()
    assert result.error is not None
    assert result.error.code == "io_error"
    await asyncio.to_thread(int)
    assert ran == []
    assert (await effect()).text == "done"
    assert ran == [1]


@pytest.mark.parametrize("thread", ["toolkit-confined-start", "toolkit-regex-feed"])
async def test_a_search_whose_helper_thread_is_refused_leaves_no_process(
    thread: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = HostSearch(workspace)
    assert (await grep_tool(search)(pattern="(?=o)old")).error is None
    before = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused_to(thread))
        result = await grep_tool(search)(pattern="(?=o)old")
    require(result.error is not None or thread == "toolkit-confined-start", "no Landlock here, so no such thread")
    assert result.error is None or (result.error.code, result.error.retryable) == ("io_error", True)
    assert len(os.listdir("/proc/self/fd")) == before
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


async def test_a_flood_without_a_thread_is_read_by_the_event_loop(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading.Thread, "start", refused_to("toolkit-drain"))
    result = await shell_tool(HostCommands(workspace))(command="head -c 3000000 /dev/zero | tr '\\0' x; echo end")
    assert result.error is None
    assert result.text.endswith("end\n") or "end" in result.text[-100:]


async def test_a_command_without_a_thread_to_wait_in_leaves_no_supervisor(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = shell_tool(HostCommands(workspace))
    assert (await shell(command="true")).error is None
    monkeypatch.setattr(threading.Timer, "start", refused, raising=False)
    result = await shell(command="echo hi")
    assert result.error is None
    assert "hi" in result.text
    children = [task.joinpath("children").read_text() for task in Path("/proc/self/task").iterdir()]
    assert "".join(children).strip() == ""


async def test_a_look_up_of_a_name_without_a_thread_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    egress = Egress(resolver=SystemResolver(max_threads=1))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        with pytest.raises(ToolError, match="no thread for the look-up") as caught:
            await egress.connect("example.com", 443)
    assert caught.value.code == "network_error"
    with pytest.raises(ToolError):  # the one thread that may be is not taken for used
        await asyncio.wait_for(egress.connect("name.invalid.example", 443), 30)
