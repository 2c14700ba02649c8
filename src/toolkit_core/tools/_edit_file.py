"""edit_file: exact replacements in a file, all or none."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import Field
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import EDIT_FILE_BYTES
from toolkit_core.ports.files import Pieces
from toolkit_core.result import ToolResult
from toolkit_core.text import one_line_name
from toolkit_core.tools._approved import check_approved
from toolkit_core.tools._codec import Codec
from toolkit_core.tools._edit_engine import Edit, apply_edits
from toolkit_core.tools._file_arguments import PATH_ALIASES, PathJudges, need_port, rearranged_edits
from toolkit_core.tools._hinted_files import hinted_files
from toolkit_core.tools._memory_file import read_whole
from toolkit_core.tools._read_record import digest_of_content
from toolkit_core.tools._scan import encoding_of
from toolkit_core.tools._span_diff import Diff, span_diff
from toolkit_core.tools._write_file import recovery_note

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.files import Files, OpenFile, Written
    from toolkit_core.tool import Siblings, Tool
    from toolkit_core.tools._read_record import ReadRecord


class EditArguments(Arguments):
    """One replacement."""

    # The schema asks for one character; the engine refuses an empty text with more to say than a schema can.
    old_text: str = Field(
        json_schema_extra={"minLength": 1},
        description="Text to replace, exactly as in the file. LF also matches CRLF. It must occur exactly once.",
    )
    new_text: str = Field(description="Text to put there, taken literally. LF becomes the line ending of the place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence instead of exactly one.")


class EditFileArguments(Arguments):
    """The arguments of edit_file."""

    path: str = Field(min_length=1, description="File to change, relative to the root or absolute inside it.")
    edits: list[EditArguments] = Field(
        min_length=1, description="Replacements, each made on the text that the ones before it left."
    )


class EditFileData(TypedDict):
    """The payload of edit_file."""

    path: str
    replacements: int
    first_changed_line: int
    diff: str


_COUNTS_SHOWN = 20


@dataclass(frozen=True)
class _Made:
    """What one run of the edits made, kept until the file is written."""

    counts: tuple[int, ...]
    diff: Diff
    mixed_encoding: bool
    digest: bytes | None


def edit_file_tool(
    files: Files,
    *,
    record: ReadRecord | None = None,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
    max_file_bytes: int = EDIT_FILE_BYTES,
) -> Tool[EditFileData]:
    """The tool edit_file over a `Files` port.

    Args:
        files: Where files lie.
        record: Requires that the file was read in the session; None requires nothing.
        name: Another name.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.
        max_file_bytes: Largest file, before and after.

    Raises:
        TypeError: No port.

    Error codes: no_match, ambiguous_match, no_change, not_read, stale_file, not_found, is_a_directory, not_a_file,
    access_denied, too_large, invalid_arguments, io_error, unavailable.
    """
    need_port(files, "edit_file_tool")
    files = hinted_files(files)
    judges = PathJudges(files)

    async def run(args: EditFileArguments, context: ToolContext) -> ToolResult[EditFileData]:
        edits = [Edit(edit.old_text, edit.new_text, edit.replace_all) for edit in args.edits]
        runs: list[_Made] = []

        def produce(old: OpenFile | None) -> Pieces:
            if old is None:
                raise _missing(args.path)
            check_approved(context, old.path)
            content, made = _edit(old, edits, record, context.session, max_file_bytes)
            runs.append(made)
            return content

        try:
            written = await files.replace(args.path, produce)
        except ToolError as e:
            raise (await _with_what_was_meant(files, args.path, e) if e.code == "not_found" else e) from e.__cause__
        if record is not None:
            record.note_written(context.session, written, runs[-1].digest)
        return _result(written, runs[-1])

    return port_tool(
        EditFileArguments,
        run,
        kind="edit_file",
        describe=partial(_describe, record is not None),
        payload=EditFileData,
        effects=Effects(writes=True, destructive=True),
        argument_aliases=PATH_ALIASES,
        rearrange=rearranged_edits,
        subject=judges.subject,
        writes=judges.writes,
        claims=judges.claims,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describe(needs_reading: bool, siblings: Siblings) -> str:
    return (
        "Replace text in a file. Each of `edits` must find its `old_text` exactly once in the text that the edits "
        "before it left, or replaces every occurrence with `replace_all`; if one of them fails nothing is written. "
        "Replacement is literal. Bytes outside the replaced places never change, nor do encoding and line endings. "
        "The result is a unified diff."
        + (" The file must have been read in this session since it last changed." if needs_reading else "")
        + (f" For a new file use {siblings['write_file']}." if "write_file" in siblings else "")
    )


def _missing(path: str) -> ToolError:
    hint = "Write the whole file to create it."
    return ToolError(f"There is nothing at {one_line_name(path)} to edit.", code="not_found", hint=hint)


async def _with_what_was_meant(files: Files, path: str, missing: ToolError) -> ToolError:
    """The error of a read, which names what may have been meant, and how to make the file."""
    try:
        await files.read(path, lambda _file: None)
    except ToolError as e:
        hint = f"{e.hint} {missing.hint}" if e.code == "not_found" else e.hint
        return ToolError(e.message, code=e.code, hint=hint, retryable=e.retryable)
    return missing


def _edit(
    old: OpenFile, edits: Sequence[Edit], record: ReadRecord | None, session: str, max_bytes: int
) -> tuple[Pieces, _Made]:
    """The new content, the old file read and judged; runs in the thread that holds the file."""
    data = read_whole(old, max_bytes)
    if record is not None:
        record.check(session, old, lambda: sha256(data).digest())
    codec = Codec.of(encoding_of(data[:4]))
    edited = apply_edits(data, codec, edits, max_bytes=max_bytes, check=lambda: old.read_at(0, 0))
    content = Pieces(edited.table.parts)
    digest = None
    if record is not None:
        digest = digest_of_content(content)
        record.expect(session, old.path, digest)
    diff = span_diff(edited.table, codec, old.path.subject)
    return content, _Made(edited.counts, diff, _mixes_encodings(data, codec, edits), digest)


def _mixes_encodings(data: bytes, codec: Codec, edits: Sequence[Edit]) -> bool:
    """Whether text beyond ASCII was put as UTF-8 into a file that is not."""
    if codec.width != 1 or all(edit.new_text.isascii() for edit in edits):
        return False
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _result(written: Written, made: _Made) -> ToolResult[EditFileData]:
    count, line = sum(made.counts), made.diff.first_changed_line
    each = f" ({' + '.join(map(str, made.counts))})" if 1 < len(made.counts) <= _COUNTS_SHOWN else ""
    text = f"Edited {one_line_name(written.path.subject)}: {count:,} replacement{'s' if count != 1 else ''}{each}, "
    text += f"first changed line {line}.{recovery_note(written)}"
    if made.mixed_encoding:
        text += "\nThe file is not UTF-8; the new text was written as UTF-8."
    data = EditFileData(path=written.path.subject, replacements=count, first_changed_line=line, diff=made.diff.text)
    return ToolResult.ok(f"{text}\n{made.diff.text.rstrip()}", data)
