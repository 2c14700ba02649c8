"""An existing file is changed only by a session that has read it as it is now."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from toolkit_core.context import ToolContext
from toolkit_core.host.files import HostFiles
from toolkit_core.limits import RACY_CLOCK_NS
from toolkit_core.result import ToolResult
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tool import ToolSet
from toolkit_core.tools import ReadRecord, edit_file_tool, read_file_tool, write_file_tool

EDIT = [{"old_text": "a", "new_text": "A"}]


class Session:
    """Three tools that share a record."""

    def __init__(self, workspace: Path, *, record: ReadRecord | None = None) -> None:
        files = HostFiles(workspace, fsync=False)
        self.record = record or ReadRecord()
        self.tools = ToolSet(
            [
                read_file_tool(files, record=self.record),
                write_file_tool(files, record=self.record),
                edit_file_tool(files, record=self.record),
            ]
        )

    async def read(self, path: str = "a.txt", *, session: str = "s", **arguments: Any) -> ToolResult:
        return await self.tools["read_file"].call({"path": path, **arguments}, ToolContext(session_id=session))

    async def write(self, content: str, path: str = "a.txt", *, session: str = "s") -> ToolResult:
        arguments = {"path": path, "content": content}
        return await self.tools["write_file"].call(arguments, ToolContext(session_id=session))

    async def edit(self, old: str, new: str, path: str = "a.txt", *, session: str = "s") -> ToolResult:
        arguments = {"path": path, "edits": [{"old_text": old, "new_text": new}]}
        return await self.tools["edit_file"].call(arguments, ToolContext(session_id=session))


def code(result: ToolResult) -> str:
    return result.error.code if result.error is not None else "ok"


@pytest.fixture
def session(workspace: Path) -> Session:
    """A session over a file that is old enough for its times to tell."""
    (workspace / "a.txt").write_text("a b c\n")
    time.sleep(2 * RACY_CLOCK_NS / 1e9)
    return Session(workspace)


async def test_an_unread_file_is_not_changed(session: Session, workspace: Path) -> None:
    for result in (await session.edit("a", "A"), await session.write("x")):
        assert code(result) == "not_read"
        assert "Read the file first" in result.text
    assert (workspace / "a.txt").read_text() == "a b c\n"


async def test_after_a_read_it_is(session: Session) -> None:
    await session.read()
    assert code(await session.edit("a", "A")) == "ok"


async def test_a_slice_counts(session: Session) -> None:
    await session.read(limit=1, offset=-1)
    assert code(await session.edit("a", "A")) == "ok"


async def test_a_read_that_failed_does_not_count(session: Session) -> None:
    await session.read(offset=99)
    assert code(await session.edit("a", "A")) == "not_read"


async def test_new_files_are_exempt_and_known_afterwards(session: Session) -> None:
    assert code(await session.write("new", "b.txt")) == "ok"
    assert code(await session.write("newer", "b.txt")) == "ok"
    assert code(await session.edit("newer", "newest", "b.txt")) == "ok"


async def test_own_writes_count(session: Session) -> None:
    await session.read()
    for old, new in (("a", "A"), ("b", "B"), ("c", "C")):
        assert code(await session.edit(old, new)) == "ok"


async def test_every_spelling_is_the_same_file(session: Session, workspace: Path) -> None:
    (workspace / "link").symlink_to("a.txt")
    await session.read("link")
    assert code(await session.edit("a", "A", "./x/../a.txt")) == "ok"
    assert code(await session.edit("A", "a", os.fspath(workspace / "link"))) == "ok"


async def test_sessions_do_not_share_what_they_read(session: Session) -> None:
    await session.read(session="one")
    assert code(await session.edit("a", "A", session="two")) == "not_read"
    assert code(await session.edit("a", "A", session="one")) == "ok"


@pytest.mark.parametrize("way", ["rewritten", "replaced", "same size and time", "racing"])
async def test_a_change_by_somebody_else_is_stale(session: Session, workspace: Path, way: str) -> None:
    path = workspace / "a.txt"
    await session.read()
    before = path.stat()
    if way == "replaced":
        (workspace / "b").write_text("a x c\n")
        os.replace(workspace / "b", path)
    elif way == "same size and time":
        path.write_text("a x c\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert path.stat().st_mtime_ns == before.st_mtime_ns
    elif way == "racing":
        path.write_text("a 1 c\n")
        await session.read()
        path.write_text("a 2 c\n")  # within the same tick of a coarse clock
    else:
        path.write_text("a b c d\n")
    assert code(await session.edit("a", "A")) == "stale_file"
    assert code(await session.write("x")) == "stale_file"
    await session.read()
    assert code(await session.edit("a", "A")) == "ok"


async def test_the_same_bytes_are_accepted_whatever_the_times_say(session: Session, workspace: Path) -> None:
    path = workspace / "a.txt"
    await session.read()
    path.touch()
    assert code(await session.edit("a", "A")) == "ok"
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    assert code(await session.write("x")) == "ok"


async def test_a_file_that_was_removed_and_made_by_others_must_be_read(session: Session, workspace: Path) -> None:
    await session.read()
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").write_text("theirs a")
    assert code(await session.edit("a", "A")) == "stale_file"


async def test_fifty_parallel_edits_after_one_read_all_land(session: Session, workspace: Path) -> None:
    (workspace / "a.txt").write_text("".join(f"<{n}>\n" for n in range(50)))
    await session.read()
    results = await asyncio.gather(*(session.edit(f"<{n}>", f"[{n}]") for n in range(50)))
    assert {code(result) for result in results} == {"ok"}
    assert (workspace / "a.txt").read_text() == "".join(f"[{n}]\n" for n in range(50))


async def test_parallel_writes_after_one_read_all_land(session: Session, workspace: Path) -> None:
    await session.read()
    results = await asyncio.gather(*(session.write(f"{n}") for n in range(10)))
    assert {code(result) for result in results} == {"ok"}
    assert (workspace / "a.txt").read_text() in {f"{n}" for n in range(10)}


async def test_what_was_forgotten_must_be_read_again(workspace: Path) -> None:
    session = Session(workspace, record=ReadRecord(max_files=2))
    for name in ("a", "b", "c"):
        (workspace / name).write_text("a")
        await session.read(name)
    assert code(await session.edit("a", "A", "a")) == "not_read"
    assert code(await session.edit("a", "A", "c")) == "ok"


async def test_closing_forgets_all(session: Session) -> None:
    await session.read()
    await session.record.aclose()
    assert code(await session.edit("a", "A")) == "not_read"


async def test_without_times_the_bytes_decide() -> None:
    class Timeless(MemoryFiles):
        def _stat(self, path: str):
            stat = super()._stat(path)
            return type(stat)(stat.size_bytes)

    files, record = Timeless({"f": "abc"}), ReadRecord()
    read, edit = read_file_tool(files, record=record), edit_file_tool(files, record=record)
    await read(path="f")
    files.put("f", "abX")
    assert code(await edit(path="f", edits=EDIT)) == "stale_file"
    files.put("f", "abc")
    assert code(await edit(path="f", edits=EDIT)) == "ok"


async def test_the_description_says_so(session: Session) -> None:
    for name in ("write_file", "edit_file"):
        assert "must have been read" in session.tools[name].description


UNREADABLE = {
    "a.bin": b"\x7fELF\0\0",
    "damaged.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1",
    "huge.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0",
    "no.pdf": b"%PDF-1.4\n\0 nothing of the kind",
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_what_cannot_be_shown_counts_as_seen_so_that_it_can_be_replaced(
    session: Session, workspace: Path, name: str
) -> None:
    (workspace / name).write_bytes(UNREADABLE[name])
    assert code(await session.write("new", name)) == "not_read"
    refused = await session.read(name)
    assert code(refused) in ("binary_file", "too_large", "unsupported")
    assert name.endswith("pdf") or "To replace the whole file nothing more need be read" in refused.text
    assert code(await session.write("new", name, session="another")) == "not_read"
    assert code(await session.write("new", name)) == "ok"


async def test_what_changed_after_it_could_not_be_shown_is_stale(session: Session, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"\0one")
    assert code(await session.read("a.bin")) == "binary_file"
    (workspace / "a.bin").write_bytes(b"\0two")
    assert code(await session.write("new", "a.bin")) == "stale_file"
    assert (workspace / "a.bin").read_bytes() == b"\0two"
