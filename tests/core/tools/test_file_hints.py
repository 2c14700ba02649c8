"""Every error of the file tools says what to do next."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host.documents import PdfDocuments
from toolkit_core.host.files import HostFiles
from toolkit_core.ports.files import Files
from toolkit_core.testing.files import MemoryFiles
from toolkit_core.tool import Tool
from toolkit_core.tools import edit_file_tool, memory_read_tool, memory_write_tool, read_file_tool, write_file_tool

TOOLS: dict[str, Callable[[Files], Tool]] = {
    "read_file": lambda files: read_file_tool(files, documents=PdfDocuments()),
    "write_file": write_file_tool,
    "edit_file": edit_file_tool,
    "memory_read": memory_read_tool,
    "memory_write": memory_write_tool,
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "write_file": {"content": "x"},
    "edit_file": {"edits": [{"old_text": "not there", "new_text": "y"}]},
    "memory_write": {"content": "x"},
}
REFUSED_BY_ALL = {
    "folder": "is_a_directory",
    "folder/": "is_a_directory",
    "empty": "is_a_directory",
    "fifo": "not_a_file",
    "socket": "not_a_file",
    "circle": "io_error",
    "text/below": "not_found not_a_file",
    "a\0b": "invalid_arguments",
    "a\ud83db": "invalid_arguments",
    "n" * 256: "invalid_arguments",
    "n/" * 2_100: "invalid_arguments",
    "../outside": "access_denied",
    "/etc/passwd": "access_denied",
    "~/x": "access_denied",
    "out": "access_denied",
}
MISSING = ("xyz", "xyz/", "folder/xyz", "xyz/deep/er", "dangling", "dangling_folder/x", "TEXT")


@pytest.fixture
def files(workspace: Path) -> HostFiles:
    """A folder with something of every kind."""
    (workspace / "text").write_text("one\n")
    for name in ("folder", "empty"):
        (workspace / name).mkdir()
    (workspace / "folder" / "in_it").touch()
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(workspace / "socket"))
    for name, target in (("circle", "circle"), ("dangling", "nowhere"), ("dangling_folder", "no/folder"), ("out", "/")):
        (workspace / name).symlink_to(target)
    return HostFiles(workspace, fsync=False)


async def refused(tool: Tool, codes: str, **arguments: Any) -> ToolError:
    result = await tool.call(arguments)
    assert result.error is not None, (tool.name, arguments, result.text)
    error = result.error
    assert error.code in codes.split(), (tool.name, arguments, result.text)
    assert error.hint, (tool.name, arguments, result.text)
    return ToolError(error.message, code=error.code, hint=error.hint)


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("path", REFUSED_BY_ALL, ids=lambda path: ascii(path)[:20])
async def test_what_every_tool_refuses_has_a_hint(files: HostFiles, name: str, path: str) -> None:
    codes = REFUSED_BY_ALL[path]
    await refused(TOOLS[name](files), f"{codes} io_error", path=path, **ARGUMENTS.get(name, {}))


@pytest.mark.parametrize("name", ["read_file", "edit_file", "memory_read"])
@pytest.mark.parametrize("path", MISSING)
async def test_what_is_missing_has_a_hint(files: HostFiles, name: str, path: str) -> None:
    error = await refused(TOOLS[name](files), "not_found invalid_arguments", path=path, **ARGUMENTS.get(name, {}))
    if path.startswith("dangling"):
        assert path in error.message
        assert "link" in error.message
        assert "nowhere" in error.message or "no/folder/x" in error.message
    if name == "edit_file" and error.code == "not_found":
        assert "Write the whole file to create it." in error.hint


@pytest.mark.parametrize(
    ("content", "arguments", "code"),
    [
        (b"one\n", {"char_offset": 99}, "invalid_arguments"),
        (b"one\n", {"offset": 0}, "invalid_arguments"),
        (b"one\n", {"offset": 9}, "invalid_arguments"),
        (b"", {"offset": 2}, "invalid_arguments"),
        (b"one\n", {"view": "cells"}, "unsupported"),
        (b"\0\1", {}, "binary_file"),
        (b"\x89PNG\r\n\x1a\n", {}, "binary_file"),
    ],
)
async def test_what_cannot_be_shown_has_a_hint(
    files: HostFiles, workspace: Path, content: bytes, arguments: dict[str, Any], code: str
) -> None:
    (workspace / "text").write_bytes(content)
    await refused(TOOLS["read_file"](files), code, path="text", **arguments)


async def test_a_document_that_does_not_parse_has_a_hint(files: HostFiles, workspace: Path) -> None:
    (workspace / "a.pdf").write_bytes(b"%PDF-1.4\nnothing of the kind")
    await refused(TOOLS["read_file"](files), "unsupported", path="a.pdf")
    await refused(read_file_tool(files), "unsupported", path="a.pdf")


@pytest.mark.parametrize(
    ("content", "edits", "code"),
    [
        ("a b", [("x", "y")], "no_match"),
        ("a a", [("a", "b")], "ambiguous_match"),
        ("a", [("a", "a")], "no_change"),
        ("a", [("a", "b"), ("b", "a")], "no_change"),
        ("a\r\nb", [("a\n", "a\r\n")], "no_change"),
        ("a", [("", "b")], "invalid_arguments"),
        ("a", [("\ud83d", "b")], "invalid_arguments"),
    ],
)
async def test_edits_that_fail_have_a_hint(content: str, edits: list[tuple[str, str]], code: str) -> None:
    tool = edit_file_tool(MemoryFiles({"f": content}))
    await refused(tool, code, path="f", edits=[{"old_text": old, "new_text": new} for old, new in edits])


@pytest.mark.parametrize("name", ["write_file", "memory_write"])
async def test_text_that_is_none_has_a_hint(files: HostFiles, name: str) -> None:
    await refused(TOOLS[name](files), "invalid_arguments", path="new", content="a\ud83d")


async def test_a_device_has_a_hint() -> None:
    require(os.path.exists("/dev/null"), "no /dev/null here")
    for name, make in TOOLS.items():
        await refused(make(HostFiles("/dev")), "not_a_file io_error", path="null", **ARGUMENTS.get(name, {}))


@pytest.mark.parametrize("name", TOOLS)
async def test_a_port_that_says_nothing_of_the_next_step_is_helped_out(name: str) -> None:
    class Silent(MemoryFiles):
        async def read(self, path: str, consume: Any) -> Any:
            raise ToolError("No.", code="io_error")

        async def replace(self, path: str, produce: Any) -> Any:
            raise ToolError("No.", code="not_found", retryable=True)

    await refused(TOOLS[name](Silent()), "io_error not_found", path="f", **ARGUMENTS.get(name, {}))
