"""write_file: a whole file, made or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, overload

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.ports.files import Pieces
from toolkit_core.result import ToolResult
from toolkit_core.text import first_surrogate, one_line_name
from toolkit_core.tools._approved import check_approved
from toolkit_core.tools._file_arguments import PATH_ALIASES, PathJudges, need_port
from toolkit_core.tools._hinted_files import hinted_files
from toolkit_core.tools._read_record import digest_of, digest_of_content

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.files import Files, OpenFile, Written
    from toolkit_core.tool import Siblings, Tool
    from toolkit_core.tools._read_record import ReadRecord

_ENCODED_CHARS: Final = 262_144
"""Encoding holds the GIL: a quarter of a megabyte a step keeps the event loop alive, and the buffer in the cache."""


class WriteFileArguments(Arguments):
    """The arguments of write_file."""

    path: str = Field(min_length=1, description="File to write, relative to the root or absolute inside it.")
    content: str = Field(description="The whole new content, written exactly as it is, in UTF-8.")


class WriteFileData(TypedDict):
    """The payload of write_file."""

    path: str
    created: bool
    bytes_written: int
    recovery_copy: str | None


def write_file_tool(
    files: Files,
    *,
    record: ReadRecord | None = None,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[WriteFileData]:
    """The tool write_file over a `Files` port.

    Args:
        files: Where files lie.
        record: Requires that an existing file was read in the session; None requires nothing.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.

    Raises:
        TypeError: No port.

    Error codes: not_read, stale_file, is_a_directory, not_a_file, access_denied, invalid_arguments, io_error,
    unavailable.
    """
    need_port(files, "write_file_tool")
    files = hinted_files(files)

    judges = PathJudges(files)

    async def run(args: WriteFileArguments, context: ToolContext) -> ToolResult[WriteFileData]:
        _check_content(args.content)
        digests: list[bytes | None] = []

        def produce(old: OpenFile | None) -> Pieces:
            content = Pieces(_Encoded(args.content))
            if record is not None:
                digests.append(digest_of_content(content))
            if old is not None:
                check_approved(context, old.path)
                if record is not None:
                    record.check(context.session, old, lambda: digest_of(old))
                    record.expect(context.session, old.path, digests[-1])
            return content

        written = await files.replace(args.path, produce)
        if record is not None:
            record.note_written(context.session, written, digests[-1])
        return _result(written)

    return port_tool(
        WriteFileArguments,
        run,
        kind="write_file",
        describe=partial(_describe, record is not None),
        payload=WriteFileData,
        effects=Effects(writes=True, destructive=True),
        argument_aliases={**PATH_ALIASES, "contents": "content", "text": "content"},
        subject=judges.subject,
        writes=judges.writes,
        claims=judges.claims,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describe(needs_reading: bool, siblings: Siblings) -> str:
    return (
        "Write a whole file: it is made, with the folders above it, or replaced. The content is written exactly "
        "as given, in UTF-8, and its size is reported."
        + (" A file that exists must have been read in this session since it last changed." if needs_reading else "")
        + (f" To change a part of a file use {siblings['edit_file']}." if "edit_file" in siblings else "")
    )


def _check_content(content: str) -> None:
    at = first_surrogate(content)
    if at is not None:
        message = (
            f"content has a lone surrogate U+{ord(content[at]):04X} at index {at}, which is no character and has no "
            "UTF-8 form; nothing was written."
        )
        raise ToolError(message, code="invalid_arguments", hint="Send the whole character.")


class _Encoded(Sequence[bytes]):
    """A text in UTF-8, encoded a step at a time as it is written: no second copy of it is ever whole."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __len__(self) -> int:
        return -(-len(self._text) // _ENCODED_CHARS)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._text[index * _ENCODED_CHARS : (index + 1) * _ENCODED_CHARS].encode("utf-8")


def _result(written: Written) -> ToolResult[WriteFileData]:
    size = written.stat.size_bytes
    verb = "Created" if written.created else "Replaced"
    text = f"{verb} {one_line_name(written.path.subject)} ({size:,} byte{'s' if size != 1 else ''})."
    text += recovery_note(written)
    data = WriteFileData(
        path=written.path.subject,
        created=written.created,
        bytes_written=size,
        recovery_copy=written.recovery_copy,
    )
    return ToolResult.ok(text, data)


def recovery_note(written: Written) -> str:
    """What to say of a file that had to be changed in place; "" otherwise."""
    if written.recovery_copy is None:
        return ""
    return (
        "\nIts name is a mount point, so it was changed in place; the old content is kept in "
        f"{one_line_name(written.recovery_copy)}."
    )
