"""Reading a page of lines from an open file: what deepagents' `read` needs, in blocks, whatever the size."""

from __future__ import annotations

import base64
import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ToolError
from toolkit_core.limits import BACKEND_BINARY_MAX_BYTES, BACKEND_PAGE_MAX_BYTES, BACKEND_SCAN_MAX_BYTES

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile

_BLOCK: Final = 1_048_576
_HEAD: Final = 8_192
"""A NUL in the first 8 KiB makes a file binary, as for read_file."""

_ANY_READ_BIT: Final = 0o444


@dataclass(frozen=True)
class Page:
    """Lines of a text file, or a whole binary one in base64.

    Attributes:
        content: The text without the last line's ending, or base64.
        encoding: "utf-8" or "base64".
        first: 1-based number of the first line; 0 for a page without lines.
        count: How many lines it has.
        total: Lines of the file, where its end was seen.
    """

    content: str
    encoding: str = "utf-8"
    first: int = 0
    count: int = 0
    total: int | None = None


def read_page(file: OpenFile, offset: int, limit: int) -> Page:
    """The lines `offset` to `offset + limit`, counted from 0.

    Raises:
        ToolError: `too_large` for a binary file past the preview size, `invalid_arguments` past the end,
            `exhausted` where the page lies too far in, `access_denied` where nobody may read the file.
    """
    refuse_unreadable(file)
    head = file.read_at(0, _HEAD)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _page_of(_all_lines(_whole(file).decode("utf-16", "replace")), offset, limit)
    if b"\x00" in head:
        return _binary(file)
    return _text_page(file, max(offset, 0), limit)


def refuse_unreadable(file: OpenFile) -> None:
    """A file whose mode lets nobody read it stays closed, to root too, who could."""
    if not file.stat.mode & _ANY_READ_BIT:
        raise ToolError(f"permission denied: the mode of {file.path.subject} lets nobody read it", code="access_denied")


def _binary(file: OpenFile) -> Page:
    if file.stat.size_bytes > BACKEND_BINARY_MAX_BYTES:
        message = f"Binary file exceeds maximum preview size of {BACKEND_BINARY_MAX_BYTES} bytes"
        raise ToolError(message, code="too_large")
    return Page(base64.b64encode(_whole(file)).decode("ascii"), "base64")


def _whole(file: OpenFile) -> bytes:
    parts: list[bytes] = []
    place = 0
    while block := file.read_at(place, _BLOCK):
        parts.append(block)
        place += len(block)
        if place > BACKEND_SCAN_MAX_BYTES:
            raise ToolError(f"the file has more than {BACKEND_SCAN_MAX_BYTES} bytes", code="exhausted")
    return b"".join(parts)


def _all_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _page_of(lines: list[str], offset: int, limit: int) -> Page:
    wanted = lines[max(offset, 0) : max(offset, 0) + max(limit, 0)]
    return _finished([line.removesuffix("\r") for line in wanted], max(offset, 0), len(lines), limit)


def _finished(lines: list[str], offset: int, total: int | None, limit: int) -> Page:
    if not lines and total and limit > 0:
        raise ToolError(
            f"Line offset {offset} exceeds file length ({total} lines)", code="invalid_arguments", hint="Read from 0."
        )
    return Page("\n".join(lines), "utf-8", offset + 1 if lines else 0, len(lines), total)


def _text_page(file: OpenFile, offset: int, limit: int) -> Page:
    """One pass in blocks; it ends soon after the page is full."""
    scan = _Scan(offset, max(limit, 0))
    place = 0
    while block := file.read_at(place, _BLOCK):
        place += len(block)
        scan.feed(block)
        if scan.full and file.read_at(place, 1):
            return _finished(scan.lines(), offset, None, limit)
        if place > BACKEND_SCAN_MAX_BYTES:
            raise ToolError(f"the page lies past the first {BACKEND_SCAN_MAX_BYTES} bytes", code="exhausted")
    scan.end()
    return _finished(scan.lines(), offset, scan.seen, limit)


class _Scan:
    """Counts lines and keeps those of the page, as far as a page's bytes go."""

    def __init__(self, offset: int, limit: int) -> None:
        self._offset, self._end = offset, offset + limit
        self._kept: list[bytes] = []
        self._kept_bytes = 0
        self._open: list[bytes] = []
        self._is_open = False
        self.seen = 0

    @property
    def full(self) -> bool:
        """Whether the page has its lines, or all that fit."""
        return self.seen >= self._end or self._kept_bytes > BACKEND_PAGE_MAX_BYTES

    def feed(self, block: bytes) -> None:
        *whole, rest = block.split(b"\n")
        for piece in whole:
            self._take(piece)
            self._close()
        if rest:
            self._take(rest)

    def end(self) -> None:
        if self._is_open:
            self._close()

    def _take(self, piece: bytes) -> None:
        """A piece of the line that is open."""
        self._is_open = True
        if self._offset <= self.seen < self._end and self._kept_bytes <= BACKEND_PAGE_MAX_BYTES:
            self._open.append(piece)
            self._kept_bytes += len(piece)

    def _close(self) -> None:
        if self._open:
            self._kept.append(b"".join(self._open))
        self._open, self._is_open = [], False
        self.seen += 1

    def lines(self) -> list[str]:
        kept = [*self._kept, b"".join(self._open)] if self._open else self._kept
        decoded = [line.removesuffix(b"\r").decode("utf-8", "backslashreplace") for line in kept]
        if decoded and self._offset == 0:
            decoded[0] = decoded[0].removeprefix("\ufeff")
        return decoded
