"""read_file: a slice of a text file, an image, a document by page, a notebook by cell."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import (
    BINARY_PROBE_BYTES,
    DOCUMENT_MAX_BYTES,
    FILE_BLOCK_BYTES,
    IMAGE_MAX_BYTES,
    IMAGE_MAX_PIXELS_A_SIDE,
    LISTING_ENTRIES,
    READ_LINE_CHARS,
    READ_LINES,
    READ_OUTPUT_BYTES,
    READ_SCAN_BYTES,
)
from toolkit_core.ports.files import MemoryOpenFile
from toolkit_core.result import ImageBlock, ToolResult
from toolkit_core.text import one_line_name
from toolkit_core.tools._approved import check_approved
from toolkit_core.tools._file_arguments import PATH_ALIASES, PathJudges, need_port
from toolkit_core.tools._file_types import binary_type
from toolkit_core.tools._hinted_files import hinted, hinted_files
from toolkit_core.tools._images import ImageKind, image_kind
from toolkit_core.tools._memory_file import read_whole
from toolkit_core.tools._notebook import notebook_cells
from toolkit_core.tools._read_record import DigestingFile, ReadRecord
from toolkit_core.tools._read_result import ReadFileData, payload_of, text_result
from toolkit_core.tools._scan import UTF8, Encoding, encoding_of
from toolkit_core.tools._slice import Slice, SliceQuery, read_slice

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.documents import Documents
    from toolkit_core.ports.files import FileKind, Files, FileStat, OpenFile, Resolved
    from toolkit_core.tool import Siblings, Tool


class ReadFileArguments(Arguments):
    """The arguments of read_file."""

    path: str = Field(min_length=1, description="File to read, relative to the root or absolute inside it.")
    offset: int = Field(
        default=1, description="First line to show, counted from 1; negative counts from the end (-1 is the last line)."
    )
    limit: int = Field(default=READ_LINES, ge=1, description="How many lines to show at most.")
    char_offset: int = Field(
        default=0, ge=0, description="Characters of the first line to leave out, to read on in a line that was cut."
    )
    view: Literal["text", "cells"] = Field(
        default="text", description='"cells" shows a Jupyter notebook cell by cell instead of as JSON.'
    )


_SEEN_ALL_THE_SAME: Final = ("binary_file", "too_large", "unsupported")
"""What the file is was said, and no other call would show more: to replace it, it need not be read again."""

_REPLACEABLE: Final = "To replace the whole file nothing more need be read of it."


@dataclass(frozen=True)
class _Limits:
    line_chars: int
    max_output_bytes: int
    max_scan_bytes: int
    max_image_bytes: int
    max_image_pixels: int

    def query(self, args: ReadFileArguments) -> SliceQuery:
        return SliceQuery(
            offset=args.offset,
            limit=args.limit,
            char_offset=args.char_offset,
            line_chars=self.line_chars,
            max_output_bytes=self.max_output_bytes,
            max_scan_bytes=self.max_scan_bytes,
        )


@dataclass(frozen=True)
class _Document:
    """A document's bytes, to be parsed elsewhere."""

    data: bytes
    path: Resolved
    stat: FileStat


def read_file_tool(
    files: Files,
    *,
    record: ReadRecord | None = None,
    documents: Documents | None = None,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
    max_line_chars: int = READ_LINE_CHARS,
    max_output_bytes: int = READ_OUTPUT_BYTES,
    max_scan_bytes: int = READ_SCAN_BYTES,
    max_image_bytes: int = IMAGE_MAX_BYTES,
    max_image_pixels: int = IMAGE_MAX_PIXELS_A_SIDE,
) -> Tool[ReadFileData]:
    """The tool read_file over a `Files` port.

    Args:
        files: Where files lie.
        record: Remembers what each session has read; shared with the tools that change files.
        documents: Reads PDF; None refuses them.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.
        max_line_chars: Characters shown of a line.
        max_output_bytes: Text of one call.
        max_scan_bytes: Bytes read to find the lines.
        max_image_bytes: Largest image handed over.
        max_image_pixels: Its longest side.

    Raises:
        TypeError: No port.

    Error codes: not_found, is_a_directory, not_a_file, binary_file, access_denied, too_large, exhausted,
    invalid_arguments, unsupported, timed_out, io_error, unavailable.
    """
    need_port(files, "read_file_tool")
    files = hinted_files(files)
    judges = PathJudges(files)
    limits = _Limits(max_line_chars, max_output_bytes, max_scan_bytes, max_image_bytes, max_image_pixels)

    def note(context: ToolContext, file: OpenFile) -> None:
        if record is not None and isinstance(file, DigestingFile):
            record.note_read(context.session, file, file.finish())

    async def run(args: ReadFileArguments, context: ToolContext) -> ToolResult[ReadFileData]:
        if args.offset == 0:
            hint = "Lines are counted from 1; a negative offset counts from the end."
            raise ToolError("offset 0 names no line.", code="invalid_arguments", hint=hint)

        def consume(file: OpenFile) -> ToolResult[ReadFileData] | _Document:
            check_approved(context, file.path)
            watched = DigestingFile(file) if record is not None else file
            try:
                found = _read(watched, args, limits)
            except ToolError as e:
                if e.code in _SEEN_ALL_THE_SAME:
                    note(context, watched)
                raise
            note(context, watched)
            return found

        try:
            found = await files.read(args.path, consume)
        except ToolError as e:
            raise (await _with_listing(files, args.path, e) if e.code == "is_a_directory" else e) from e.__cause__
        if isinstance(found, _Document):
            with hinted():
                return await _read_document(documents, found, limits.query(args))
        return found

    return port_tool(
        ReadFileArguments,
        run,
        kind="read_file",
        describe=_describer(documents is not None, max_line_chars, max_output_bytes),
        payload=ReadFileData,
        effects=Effects(reads=True),
        argument_aliases=PATH_ALIASES,
        subject=judges.subject,
        claims=judges.reading_claims,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describer(documents: bool, line_chars: int, output_bytes: int) -> Callable[[Siblings], str]:
    def describe(siblings: Siblings) -> str:
        text = (
            "Read a file. Shows up to `limit` lines from line `offset` on, each as its number, a tab and its text, "
            "under a header that names the range and how to go on. "
            f"A line is cut after {line_chars:,} characters; `char_offset` reads on in it. "
            f"One call gives at most {output_bytes // 1024} KiB of text. "
            "Text is UTF-8, or UTF-16 with a byte order mark; other bytes are shown as \\xEF. "
            "PNG, JPEG, GIF and WebP are shown as images"
            + (", PDF as text by page" if documents else "")
            + '; a Jupyter notebook is shown as JSON, or by cell with `view` "cells". '
            "Other binary files are refused. For a folder the error lists its first entries."
        )
        hints = [
            f" Find files by name with {siblings['glob']}." if "glob" in siblings else "",
            f" Find text in files with {siblings['grep']}." if "grep" in siblings else "",
        ]
        return text + "".join(hints)

    return describe


def _read(file: OpenFile, args: ReadFileArguments, limits: _Limits) -> ToolResult[ReadFileData] | _Document:
    head = file.read_at(0, FILE_BLOCK_BYTES)
    image = image_kind(head)
    if image is not None:
        return _image(file, image, limits)
    if head.startswith(b"%PDF-"):
        return _Document(read_whole(file, DOCUMENT_MAX_BYTES), file.path, file.stat)
    if args.view == "cells":
        data = read_whole(file, DOCUMENT_MAX_BYTES)
        cells = notebook_cells(data, one_line_name(file.path.subject))
        return _slice_of_text(cells, file.path, len(data), limits.query(args), "cells")
    encoding = encoding_of(head)
    _refuse_binary(file, head, encoding)
    found = read_slice(file, encoding, head, limits.query(args))
    return text_result(found, file.path, max(file.stat.size_bytes, len(head)), encoding, "text")


def _refuse_binary(file: OpenFile, head: bytes, encoding: Encoding) -> None:
    probe = head[:BINARY_PROBE_BYTES]
    if encoding.wide:
        probe = probe[: len(probe) & ~1].decode(encoding.name, "replace").encode("utf-8", "replace")
    if b"\0" not in probe:
        return
    size = max(file.stat.size_bytes, len(head))
    message = f"{one_line_name(file.path.subject)} is a binary file: {binary_type(head)}, {size:,} bytes."
    hint = f"Its content is not shown; examine it with a program for its type. {_REPLACEABLE}"
    raise ToolError(message, code="binary_file", hint=hint)


def _image(file: OpenFile, kind: ImageKind, limits: _Limits) -> ToolResult[ReadFileData]:
    shown, size = one_line_name(file.path.subject), file.stat.size_bytes
    data = file.read_at(0, limits.max_image_bytes + 1)
    while len(data) <= limits.max_image_bytes and (more := file.read_at(len(data), FILE_BLOCK_BYTES)):
        data += more
    pixels = kind.size_of(data)
    if pixels is None:
        message = f"{shown} starts like a {kind.name} image and cannot be decoded ({size:,} bytes)."
        raise ToolError(message, code="binary_file", hint=f"The file is damaged or of another type. {_REPLACEABLE}")
    what = f"{shown}: {kind.name} image, {pixels[0]} x {pixels[1]} pixels, {size:,} bytes"
    if len(data) > limits.max_image_bytes or max(pixels) > limits.max_image_pixels:
        message = (
            f"{what}. It is not shown: at most {limits.max_image_bytes:,} bytes and "
            f"{limits.max_image_pixels:,} pixels a side are."
        )
        raise ToolError(message, code="too_large", hint=f"Make a smaller copy and read that. {_REPLACEABLE}")
    if not kind.is_whole(data):
        message = f"{what}. It is damaged or cut short and cannot be decoded."
        raise ToolError(message, code="binary_file", hint=f"Make or fetch the file anew. {_REPLACEABLE}")
    found = payload_of(file.path, "image", Slice(0, total_lines=0), "", size)
    return ToolResult.ok(what, found, images=(ImageBlock(kind.mime_type, data),))


async def _read_document(documents: Documents | None, found: _Document, query: SliceQuery) -> ToolResult[ReadFileData]:
    shown = one_line_name(found.path.subject)
    if documents is None:
        message = f"{shown} is a PDF document ({len(found.data):,} bytes), and there is no reader for it here."
        raise ToolError(message, code="unsupported", hint="Extract its text with a program, then read that.")
    pages = await documents.pages(found.data, "application/pdf")
    text = "\n".join(f"--- page {page.number} of {len(pages)} ---\n{page.text}" for page in pages)
    return _slice_of_text(text, found.path, len(found.data), query, "document")


def _slice_of_text(
    text: str, path: Resolved, size_bytes: int, query: SliceQuery, kind: Literal["document", "cells"]
) -> ToolResult[ReadFileData]:
    data = text.encode("utf-8", "backslashreplace")
    file = MemoryOpenFile(path, data)
    found = read_slice(file, UTF8, data[:FILE_BLOCK_BYTES], query)
    return text_result(replace(found, final_newline=True), path, size_bytes, UTF8, kind)


_MARKS: Final[dict[FileKind, str]] = {"directory": "/", "link": " (link)", "other": " (special)", "file": ""}


async def _with_listing(files: Files, path: str, error: ToolError) -> ToolError:
    """The same error with the folder's first entries."""
    listing = await files.list(path, LISTING_ENTRIES)
    rows = [one_line_name(entry.name) + _MARKS[entry.kind] for entry in listing.entries]
    if listing.total > len(rows):
        rows.append(f"[{listing.total - len(rows):,} more entries]")
    detail = "\n".join(rows) if rows else "(the folder is empty)"
    hint = "Name one of its files; these are its first entries." if rows else "It is empty; name another path."
    return ToolError(error.message, code="is_a_directory", hint=hint, detail=detail)
