"""What read_file answers: the header, the numbered lines and the payload of a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, cast

from typing_extensions import TypedDict

from toolkit_core.result import ToolResult
from toolkit_core.text import one_line_name
from toolkit_core.tools._line import ShownLine
from toolkit_core.tools._scan import UTF8

if TYPE_CHECKING:
    from toolkit_core.ports.files import Resolved
    from toolkit_core.tools._scan import Encoding
    from toolkit_core.tools._slice import Slice

_NUMBER: Final = "%6d\t"

TextKind = Literal["text", "document", "cells"]


class ReadFileData(TypedDict):
    """The payload of read_file."""

    path: str
    kind: Literal["text", "image", "document", "cells"]
    first_line: int
    last_line: int
    total_lines: int | None
    next_offset: int | None
    encoding: str
    size_bytes: int


def text_result(
    found: Slice, path: Resolved, size_bytes: int, encoding: Encoding, kind: TextKind
) -> ToolResult[ReadFileData]:
    """A slice as a model reads it: a header with the range and how to go on, then numbered lines."""
    shown = one_line_name(path.subject)
    if not found.lines:
        only_mark = f" but for its byte order mark ({encoding.label})" if encoding.bom_bytes else ""
        text = f"{shown}: the {_NOUNS[kind]} is empty{only_mark} ({size_bytes:,} bytes)"
        return ToolResult.ok(text, payload_of(path, kind, found, encoding.name, size_bytes))
    odd = found.mixed and any(isinstance(line, ShownLine) and line.odd for line in found.lines)
    header = f"{shown}: {_range(found)}" + "".join(f"; {note}" for note in _notes(found, encoding, odd))
    name = "unknown-8bit" if odd and encoding is UTF8 else encoding.name  # the name of RFC 1428
    numbers = range(found.first_line, found.first_line + len(found.lines))
    lines = map(_row, found.lines, numbers) if found.mixed else cast("list[str]", found.lines)
    rows = map(str.__add__, map(_NUMBER.__mod__, numbers), lines)  # in C throughout: numbering costs more than reading
    return ToolResult.ok("\n".join([header, *rows]), payload_of(path, kind, found, name, size_bytes))


_NOUNS: Final = {"text": "file", "document": "document's text", "cells": "notebook"}


def _range(found: Slice) -> str:
    last = found.first_line + len(found.lines) - 1
    lines = f"lines {found.first_line}-{last}"
    if found.total_lines is not None:
        lines += f" of {found.total_lines}"
    elif found.more:
        lines += ", more follow"
    if not found.more:
        return lines
    return f"{lines}; offset={last + 1} reads on"


def _notes(found: Slice, encoding: Encoding, odd: bool) -> list[str]:
    notes = [encoding.label] if encoding.label else []
    if odd:
        notes.append("NUL and bytes that are not UTF-8 are shown as \\xEF")
    if found.crlf_lines:
        notes.append("mixed line endings (LF and CRLF)" if found.lf_lines else "CRLF line endings")
    if found.full:
        notes.append("the limit of text for one call ended it")
    if found.scan_ended:
        notes.append("the limit of bytes scanned in one call ended it")
    if found.total_lines is not None and not found.more and not found.final_newline:
        notes.append("no newline at the end")
    return notes


def _row(line: ShownLine | str, number: int) -> str:
    if isinstance(line, str):
        return line
    if not line.cut:
        return line.text
    of = f"of {line.total:,}" if line.total is not None else "of more"
    range_shown = f"characters {line.start:,} to {line.end:,} {of}"
    return f"{line.text} [cut: {range_shown}; offset={number}, char_offset={line.end} reads on]"


def payload_of(
    path: Resolved, kind: TextKind | Literal["image"], found: Slice, encoding: str, size_bytes: int
) -> ReadFileData:
    """What a program reads of it."""
    last = found.first_line + len(found.lines) - 1 if found.lines else 0
    return ReadFileData(
        path=path.subject,
        kind=kind,
        first_line=found.first_line,
        last_line=last,
        total_lines=found.total_lines,
        next_offset=last + 1 if found.more else None,
        encoding=encoding,
        size_bytes=size_bytes,
    )
