"""Unsaved text of an editor stands before the disk, under the same rules."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from toolkit_core.host.files import HostFiles
from toolkit_core.ports.editor import Editor
from toolkit_core.result import ToolResult
from toolkit_core.testing.editor import MemoryEditor
from toolkit_core.tool import ToolSet
from toolkit_core.tools import ReadRecord, edit_file_tool, read_file_tool, with_editor, write_file_tool


def tools(workspace: Path, editor: Editor) -> ToolSet:
    files, record = with_editor(HostFiles(workspace), editor), ReadRecord()
    return ToolSet(
        [
            read_file_tool(files, record=record),
            write_file_tool(files, record=record),
            edit_file_tool(files, record=record),
        ]
    )


def code(result: ToolResult) -> str:
    return result.error.code if result.error is not None else "ok"


@pytest.fixture
def editor(workspace: Path) -> MemoryEditor:
    """An editor with one buffer, whose file on the disk is older."""
    (workspace / "open.txt").write_text("saved\n")
    (workspace / "closed.txt").write_text("on disk\n")
    return MemoryEditor(os.fspath(workspace), {"open.txt": "unsaved\n"})


async def test_unsaved_text_is_read_and_edited(workspace: Path, editor: MemoryEditor) -> None:
    t = tools(workspace, editor)
    assert "unsaved" in (await t["read_file"](path="open.txt")).text
    result = await t["edit_file"](path="open.txt", edits=[{"old_text": "unsaved", "new_text": "edited"}])
    assert code(result) == "ok"
    assert editor.buffers[os.fspath(workspace / "open.txt")] == "edited\n"
    assert code(await t["write_file"](path="open.txt", content="all new")) == "ok"
    assert editor.buffers[os.fspath(workspace / "open.txt")] == "all new"
    assert (workspace / "open.txt").read_text() == "saved\n"


async def test_a_file_without_a_buffer_is_the_one_on_the_disk(workspace: Path, editor: MemoryEditor) -> None:
    t = tools(workspace, editor)
    assert "on disk" in (await t["read_file"](path="closed.txt")).text
    assert code(await t["edit_file"](path="closed.txt", edits=[{"old_text": "on disk", "new_text": "x"}])) == "ok"
    assert (workspace / "closed.txt").read_text() == "x\n"


async def test_a_buffer_must_be_read_first_and_typing_makes_it_stale(workspace: Path, editor: MemoryEditor) -> None:
    t = tools(workspace, editor)
    edits = [{"old_text": "unsaved", "new_text": "x"}]
    assert code(await t["edit_file"](path="open.txt", edits=edits)) == "not_read"
    await t["read_file"](path="open.txt")
    editor.buffers[os.fspath(workspace / "open.txt")] = "unsaved and typed\n"
    assert code(await t["edit_file"](path="open.txt", edits=edits)) == "stale_file"


async def test_it_is_asked_after_the_path_was_judged(workspace: Path, editor: MemoryEditor) -> None:
    outside = workspace.parent / "outside.txt"
    outside.write_text("x")
    editor.buffers[os.fspath(outside)] = "secret"
    (workspace / "link").symlink_to(outside)
    (workspace / "inner").symlink_to("open.txt")
    t = tools(workspace, editor)
    for path in ("../outside.txt", "link", os.fspath(outside)):
        assert code(await t["read_file"](path=path)) == "access_denied"
    assert editor.asked == []
    assert "unsaved" in (await t["read_file"](path="inner")).text
    assert editor.asked == [os.fspath(workspace / "open.txt")]


async def test_the_limits_and_codes_are_those_of_files(workspace: Path, editor: MemoryEditor) -> None:
    t = tools(workspace, editor)
    assert code(await t["read_file"](path="open.txt", offset=7)) == "invalid_arguments"
    await t["read_file"](path="open.txt")
    assert code(await t["edit_file"](path="open.txt", edits=[{"old_text": "zzz", "new_text": "x"}])) == "no_match"
    editor.buffers[os.fspath(workspace / "open.txt")] = "a\0b"
    assert code(await t["read_file"](path="open.txt")) == "binary_file"


async def test_gone_is_unavailable_and_no_silent_switch(workspace: Path, editor: MemoryEditor) -> None:
    t = tools(workspace, editor)
    await t["read_file"](path="open.txt")
    editor.gone = True
    for name, arguments in (
        ("read_file", {"path": "open.txt"}),
        ("write_file", {"path": "open.txt", "content": "x"}),
        ("edit_file", {"path": "open.txt", "edits": [{"old_text": "saved", "new_text": "x"}]}),
    ):
        assert code(await t[name].call(arguments)) == "unavailable"
    assert (workspace / "open.txt").read_text() == "saved\n"


class Closing(MemoryEditor):
    """Closes the buffer, or raises, as soon as it was read once."""

    failing = False

    async def read(self, path: str) -> str | None:
        text = await super().read(path)
        if self.failing:
            raise ConnectionError("pipe closed")
        self.buffers.pop(path, None)
        return text


async def test_a_buffer_closed_during_the_call_is_unavailable(workspace: Path, editor: MemoryEditor) -> None:
    closing = Closing(os.fspath(workspace), {"open.txt": "unsaved\n"})
    result = await edit_file_tool(with_editor(HostFiles(workspace), closing))(
        path="open.txt", edits=[{"old_text": "saved", "new_text": "x"}]
    )
    assert code(result) == "unavailable"
    assert (workspace / "open.txt").read_text() == "saved\n"
    closing.failing = True
    assert code(await tools(workspace, closing)["read_file"](path="open.txt")) == "unavailable"


async def test_parallel_edits_of_one_buffer_all_land(workspace: Path) -> None:
    class Slow(MemoryEditor):
        async def write(self, path: str, text: str) -> bool:
            await asyncio.sleep(0)
            return await super().write(path, text)

    editor = Slow(os.fspath(workspace), {"a.txt": "".join(f"<{n}>\n" for n in range(20))})
    t = tools(workspace, editor)
    await t["read_file"](path="a.txt")
    calls = [t["edit_file"](path="a.txt", edits=[{"old_text": f"<{n}>", "new_text": f"[{n}]"}]) for n in range(20)]
    assert {code(result) for result in await asyncio.gather(*calls)} == {"ok"}
    assert editor.buffers[os.fspath(workspace / "a.txt")] == "".join(f"[{n}]\n" for n in range(20))


async def test_a_buffer_of_a_file_that_is_not_there_yet_is_read(workspace: Path) -> None:
    editor = MemoryEditor(os.fspath(workspace), {"draft.txt": "new\n"})
    t = tools(workspace, editor)
    assert "new" in (await t["read_file"](path="draft.txt")).text
    assert not (workspace / "draft.txt").exists()
