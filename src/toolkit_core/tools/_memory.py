"""memory_read and memory_write: plain files in one folder, which are the agent's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Claims, Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import MEMORY_FILE_BYTES, MEMORY_HEAD_LINES
from toolkit_core.output_window import bounded
from toolkit_core.result import ToolResult
from toolkit_core.text import decoded, one_line_name, shown_text
from toolkit_core.tools._hinted_files import hinted_files
from toolkit_core.tools._memory_file import read_whole

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.files import Files, OpenFile
    from toolkit_core.tool import Siblings, Tool

MEMORY_INDEX = "MEMORY.md"


class MemoryReadArguments(Arguments):
    """What memory_read takes."""

    path: str = Field(default=MEMORY_INDEX, min_length=1, description="File in the memory folder.")


class MemoryWriteArguments(Arguments):
    """What memory_write takes."""

    path: str = Field(min_length=1, description="File in the memory folder.")
    content: str = Field(description="The whole new content of the file.")


class MemoryReadData(TypedDict):
    """Which file was read."""

    path: str
    size_bytes: int


class MemoryWriteData(TypedDict):
    """Which file was written."""

    path: str
    created: bool
    bytes_written: int


def memory_read_tool(
    files: Files, *, name: str = "memory_read", description: str | None = None, siblings: Collection[str] | None = None
) -> Tool[MemoryReadData]:
    """Read one file of the memory folder.

    Codes: not_found, access_denied (outside the folder by any spelling or link), binary_file, too_large, io_error.
    """
    _require(files)
    files = hinted_files(files)

    async def run(arguments: MemoryReadArguments, context: ToolContext) -> ToolResult[MemoryReadData]:
        text, data = await files.read(arguments.path, _consume)
        return ToolResult.ok(text or f"{data['path']} is empty.", data)

    async def subject(arguments: MemoryReadArguments) -> str:
        return (await files.resolve(arguments.path)).subject

    async def claims(arguments: MemoryReadArguments) -> Claims:
        return Claims(paths=((await files.resolve(arguments.path)).real,), read_only=True)

    return port_tool(
        MemoryReadArguments,
        run,
        kind="memory_read",
        describe=_describe_read,
        payload=MemoryReadData,
        effects=Effects(reads=True),
        argument_aliases={"file_path": "path", "file": "path"},
        subject=subject,
        claims=claims,
        name=name,
        description=description,
        siblings=siblings,
    )


def memory_write_tool(
    files: Files, *, name: str = "memory_write", description: str | None = None, siblings: Collection[str] | None = None
) -> Tool[MemoryWriteData]:
    """Create or replace one file of the memory folder; it need not have been read before.

    Codes: access_denied, is_a_directory, stale_file (changed by somebody else meanwhile), io_error.
    """
    _require(files)
    files = hinted_files(files)

    async def run(arguments: MemoryWriteArguments, context: ToolContext) -> ToolResult[MemoryWriteData]:
        content = arguments.content.encode("utf-8")
        written = await files.replace(arguments.path, lambda _: content)
        path = written.path.subject
        verb = "Created" if written.created else "Replaced"
        data: MemoryWriteData = {"path": path, "created": written.created, "bytes_written": len(content)}
        return ToolResult.ok(f"{verb} {one_line_name(path)} ({len(content)} bytes).", data)

    async def subject(arguments: MemoryWriteArguments) -> str:
        return (await files.resolve(arguments.path)).subject

    async def writes(arguments: MemoryWriteArguments) -> tuple[str, ...]:
        return ((await files.resolve(arguments.path)).real,)

    return port_tool(
        MemoryWriteArguments,
        run,
        kind="memory_write",
        describe=_describe_write,
        payload=MemoryWriteData,
        effects=Effects(writes=True),
        argument_aliases={"file_path": "path", "file": "path", "text": "content"},
        subject=subject,
        writes=writes,
        name=name,
        description=description,
        siblings=siblings,
    )


async def memory_instructions(files: Files) -> str:
    """The rule of memory and the first 200 lines of its index, within the output window, as they are now."""
    rule = (
        "You have a memory: a folder of plain text files that outlives this conversation. "
        f"{MEMORY_INDEX} is its index. Keep there what will matter later, one line a fact; details go into files of "
        "their own that the index names. What it says was true when it was written: check before you rely on it."
    )
    try:
        text, _ = await files.read(MEMORY_INDEX, _consume)
    except ToolError as e:
        kept = "empty so far" if e.code == "not_found" else f"unreadable now ({e.message})"
        return f"{rule}\n\n{MEMORY_INDEX} is {kept}."
    if not text.strip():
        return f"{rule}\n\n{MEMORY_INDEX} is empty so far."
    lines = text.splitlines()
    more = len(lines) - MEMORY_HEAD_LINES
    tail = [f"[{more} more lines]"] if more > 0 else []
    return "\n".join([rule, "", f"{MEMORY_INDEX}:", bounded("\n".join(lines[:MEMORY_HEAD_LINES])), *tail])


def _consume(file: OpenFile) -> tuple[str, MemoryReadData]:
    data = read_whole(file, MEMORY_FILE_BYTES)
    if b"\0" in data:
        raise ToolError(
            f"{one_line_name(file.path.subject)} is no text ({len(data)} bytes)",
            code="binary_file",
            hint="Memory holds plain text files; write it anew to use that name.",
        )
    text = shown_text(decoded(data.removeprefix(b"\xef\xbb\xbf")))
    return text, {"path": file.path.subject, "size_bytes": len(data)}


def _require(files: Files) -> None:
    if files is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers without types)
        raise TypeError("memory needs a Files port over its folder, such as HostFiles(memory_dir)")


def _describe_read(siblings: Siblings) -> str:
    return (
        f"Read a text file of the memory folder, {MEMORY_INDEX} unless path says otherwise. Memory is kept between "
        "conversations. Paths are relative to that folder and stay inside it."
    )


def _describe_write(siblings: Siblings) -> str:
    return (
        "Create or replace a text file of the memory folder, which is kept between conversations. content is the "
        "whole new file. Paths are relative to that folder and stay inside it; folders are made."
    )
