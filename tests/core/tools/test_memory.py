"""Memory: plain files in one folder, and nothing outside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import ToolError
from toolkit_core.host.files import HostFiles
from toolkit_core.tools._memory import memory_instructions, memory_read_tool, memory_write_tool


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "mem"
    made.mkdir()
    return made


async def read(folder: Path, **arguments: Any) -> Any:
    return await memory_read_tool(HostFiles(folder)).call(arguments)


async def write(folder: Path, path: str, content: str = "x") -> Any:
    return await memory_write_tool(HostFiles(folder)).call({"path": path, "content": content})


async def test_what_was_written_is_read_byte_for_byte(folder: Path) -> None:
    text = "# Facts\r\n\n- caf\u00e9\t \n"
    made = await write(folder, "MEMORY.md", text)
    assert made.data == {"path": "MEMORY.md", "created": True, "bytes_written": len(text.encode())}
    assert (folder / "MEMORY.md").read_bytes() == text.encode()
    found = await read(folder)
    assert (found.text, found.data) == (text, {"path": "MEMORY.md", "size_bytes": len(text.encode())})
    again = await write(folder, "people/ann.md", "kind")
    assert again.data["created"]
    replaced = await write(folder, "people/ann.md", "very kind")
    assert not replaced.data["created"]
    assert (await read(folder, path="people/ann.md")).text == "very kind"


async def test_an_empty_a_missing_and_a_binary_file_are_said_apart(folder: Path) -> None:
    assert (await read(folder)).error.code == "not_found"
    (folder / "MEMORY.md").write_bytes(b"")
    assert (await read(folder)).text == "MEMORY.md is empty."
    (folder / "MEMORY.md").write_bytes(b"a\0b")
    assert (await read(folder)).error.code == "binary_file"
    (folder / "MEMORY.md").write_bytes(b"\xef\xbb\xbfcaf\xe9\n")
    assert (await read(folder)).text == "caf\\xE9\n"
    (folder / "MEMORY.md").write_bytes(b"x" * (2**20 + 1))
    assert (await read(folder)).error.code == "too_large"


def planted(folder: Path) -> None:
    (folder.parent / "secret").write_text("host secret")
    (folder / "leak.md").symlink_to(folder.parent / "secret")
    (folder / "d").symlink_to(folder.parent)
    (folder / "MEMORY.md").symlink_to(folder.parent / "secret")


async def test_control_a_plain_join_would_read_the_host_through_a_planted_link(folder: Path) -> None:
    planted(folder)
    assert Path(os.path.join(folder, "leak.md")).read_text() == "host secret"


@pytest.mark.parametrize("path", ["leak.md", "d/secret", "MEMORY.md", "../secret", "/etc/passwd", "a/../../secret"])
async def test_no_spelling_or_link_leaves_the_folder(folder: Path, path: str) -> None:
    planted(folder)
    refused = await read(folder, path=path)
    assert refused.error.code in {"access_denied", "not_found"}
    assert "host secret" not in refused.text
    denied = await write(folder, path)
    assert denied.is_error
    assert (folder.parent / "secret").read_text() == "host secret"
    assert sorted(p.name for p in folder.parent.iterdir()) == ["mem", "secret"]
    instructions = await memory_instructions(HostFiles(folder))
    assert "host secret" not in instructions
    assert "unreadable now" in instructions


async def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mem").symlink_to(tmp_path / "out")
    assert not (await write(tmp_path / "mem", "n.md", "kept")).is_error
    assert (tmp_path / "out" / "n.md").read_text() == "kept"


async def test_instructions_show_the_head_of_the_index(folder: Path) -> None:
    files = HostFiles(folder)
    assert "empty so far" in await memory_instructions(files)
    (folder / "MEMORY.md").write_text("".join(f"fact {i}\n" for i in range(250)))
    text = await memory_instructions(files)
    assert "fact 199" in text
    assert "fact 200" not in text
    assert "[50 more lines]" in text


async def test_effects_subjects_and_writes(folder: Path) -> None:
    reader, writer = memory_read_tool(HostFiles(folder)), memory_write_tool(HostFiles(folder))
    assert reader.effects is not None
    assert writer.effects is not None
    assert (reader.effects.risk, writer.effects.risk, writer.effects.destructive) == ("inspect", "modify", False)
    for path in ("a.md", "./a.md", f"{folder}/a.md", "b/../a.md"):
        assert await writer.subject({"path": path, "content": ""}) == "a.md"
        assert await writer.writes({"path": path, "content": ""}) == (str(folder.resolve() / "a.md"),)
        assert await reader.subject({"path": path}) == "a.md"
    assert (await reader.claims({})).read_only
    with pytest.raises(ToolError):
        await writer.subject({"path": "../x", "content": ""})
    with pytest.raises(TypeError, match="needs a Files port"):
        memory_read_tool(None)  # pyright: ignore[reportArgumentType]  (the point of the test)
