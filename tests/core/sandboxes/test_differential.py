"""The same calls on this machine, in bubblewrap, in memory, over plain commands and over SSH: the same envelopes.

Decisions, each a difference that is meant (all else is identical to the byte, times apart):

- in memory there is no shell: rows of shell run on the other planes.
- a bad pattern is refused everywhere, in the words of the engine that refused it: on this machine ripgrep's and
  Python's, over a client ripgrep's, in memory Python's.
- a shell that ended by a signal is `killed` here, and an exit code of 128 + the signal over SSH, where the keeper is
  a POSIX shell; both texts name the signal.
- paths outside the root are refused here and reachable in a separate sandbox: there the sandbox is the boundary.
- a syntax error is told with the shell's own name and line, so its text is not compared, its code is.
- names that a missing path may have meant are looked for here; there each look would cost a round trip.
- of a timeout, bubblewrap tells the exit code of its own shell (143) where the others tell the signal; and what it
  left running dies with its process namespace, uncounted.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from tests.core.sandboxes.planes import FolderPlane
from tests.core.sandboxes.scenarios import FILE_ROWS, FILES, SHELL_ROWS, Row
from tests.core.sshd import Server, running_sshd
from tests.support import require
from toolkit_core import BubblewrapSandbox, ClientSearch, InMemorySandbox, Search, ToolContext, ToolSet, default_tools


class SearchingPlane(FolderPlane):
    def search(self, cwd: str) -> Search:
        return ClientSearch(self, cwd)


@dataclass(frozen=True)
class Plane:
    """Tools over a plane, and its files from outside."""

    name: str
    root: str
    tools: ToolSet
    put: Callable[[str, bytes], None]
    get: Callable[[str], bytes | None]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_sshd() as running:
        yield running


@pytest.fixture
async def planes(tmp_path: Path, server: Server) -> AsyncIterator[list[Plane]]:
    async with AsyncExitStack() as stack:
        found: list[Plane] = []
        for name in ("host", "bubblewrap", "commands"):
            root = tmp_path.resolve() / name
            root.mkdir()
            tools = default_tools(root)
            if name == "bubblewrap":
                sandbox = BubblewrapSandbox(root)
                require(sandbox.probe().available, "bubblewrap cannot start here")
                tools = default_tools(root, sandbox=sandbox)
            elif name == "commands":
                tools = default_tools(root, sandbox=SearchingPlane(root))
            found.append(_over_disk(name, root, await stack.enter_async_context(tools), None))
        remote = Path(server.new_folder("differential"))
        client = await stack.enter_async_context(server.sandbox(remote))
        found.append(_over_disk("ssh", remote, default_tools(remote, sandbox=client), server.uid))
        memory = InMemorySandbox()
        found.append(_over_memory(memory))
        yield found


def _over_disk(name: str, root: Path, tools: ToolSet, user: int | None) -> Plane:
    def put(path: str, content: bytes) -> None:
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        if user is not None:
            for each in (target, *target.parents):
                if each == root:
                    break
                os.chown(each, user, user)

    def get(path: str) -> bytes | None:
        target = root / path
        return target.read_bytes() if "\0" not in path and target.is_file() else None

    return Plane(name, str(root), tools, put, get)


def _over_memory(memory: InMemorySandbox) -> Plane:
    def put(path: str, content: bytes) -> None:
        memory.put(path, content)

    def get(path: str) -> bytes | None:
        return memory.files.get(f"/workspace/{path}")

    return Plane("memory", "/workspace", default_tools("/workspace", sandbox=memory), put, get)


async def _outcome(plane: Plane, row: Row, session: str) -> dict[str, Any]:
    context = ToolContext(session_id=session)
    for tool, arguments in row.before:
        assert not (await plane.tools[tool].call(arguments, context)).is_error
    for path, content in row.outside.items():
        plane.put(path, content)
    result = await plane.tools[row.tool].call(row.arguments, context)
    whole: dict[str, Any] = result.to_dict()
    whole["content"] = [_plain(plane, block) for block in whole["content"]]
    whole["error"] = _plain(plane, whole["error"])
    whole["data"] = _plain(plane, whole["data"])
    if whole["data"] is not None:
        whole["data"].pop("duration_seconds", None)
        whole["data"].pop("survivors_killed", None)
    error: dict[str, Any] | None = whole["error"]
    data: dict[str, Any] = whole["data"] or {}
    if error is not None and error["code"] == "not_found":
        error["hint"], whole["content"] = "", whole["content"][0]["text"].splitlines()[0]
    if error is not None and error["code"] == "timed_out":
        del data["exit_code"], data["signal"]
    if row.after:
        whole["file"] = plane.get(row.after)
    return whole


def _plain(plane: Plane, value: Any) -> Any:
    """Without what names the plane: its root, and which engine refused a pattern."""
    if isinstance(value, dict):
        return {key: _plain(plane, inner) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_plain(plane, inner) for inner in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    text = value.replace(plane.root, "ROOT")
    if "no valid regular expression" in text:
        return "the pattern is refused"
    return re.sub(r"\nbackground survivors killed: 1", "", text)


@pytest.mark.parametrize("group", range(4))
async def test_files_and_search_answer_the_same_everywhere(planes: list[Plane], group: int) -> None:
    await _compare(planes, FILE_ROWS[group::4])


async def test_shell_answers_the_same_wherever_there_is_one(planes: list[Plane]) -> None:
    await _compare([plane for plane in planes if plane.name != "memory"], SHELL_ROWS)


async def _compare(planes: list[Plane], rows: list[Row]) -> None:
    differing: list[str] = []
    for number, row in enumerate(rows):
        outcomes: dict[str, Any] = {}
        for plane in planes:
            for path, content in FILES.items():
                if number == 0 or plane.get(path) != content:
                    plane.put(path, content)
            outcomes[plane.name] = await _outcome(plane, row, f"session-{number}")
        reference = outcomes["host"]
        if row.name == "shell syntax error":
            outcomes = {name: one["data"]["exit_code"] for name, one in outcomes.items()}
            reference = outcomes["host"]
        differing += [
            f"{row.name}\n  host: {reference}\n  {name}: {one}" for name, one in outcomes.items() if one != reference
        ]
    assert not differing, "\n".join(differing)


def test_the_list_is_long_enough() -> None:
    assert len(FILE_ROWS) >= 60
    assert len({row.name for row in FILE_ROWS + SHELL_ROWS}) == len(FILE_ROWS) + len(SHELL_ROWS)


async def test_a_path_outside_the_root_is_refused_here_and_reachable_in_a_separate_sandbox(planes: list[Plane]) -> None:
    for plane in planes:
        result = await plane.tools["read_file"](path="/etc/hostname-that-is-missing")
        assert result.error is not None
        expected = "access_denied" if plane.name in ("host", "bubblewrap") else "not_found"
        assert result.error.code == expected, plane.name


async def test_what_a_command_left_running_is_killed_and_counted(planes: list[Plane]) -> None:
    for plane in planes:
        if plane.name not in ("memory", "bubblewrap"):
            result = await plane.tools["shell"](command="sleep 30 & echo on")
            assert result.to_dict()["data"]["survivors_killed"] == 1, plane.name


async def test_death_by_a_signal_is_named_everywhere(planes: list[Plane]) -> None:
    for plane in planes:
        if plane.name != "memory":
            result = await plane.tools["shell"](command="kill -9 $$")
            assert "SIGKILL" in result.text, plane.name
