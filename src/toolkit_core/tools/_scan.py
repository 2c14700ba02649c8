"""Reading a file forward in blocks, whatever its encoding, within a budget."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolkit_core.limits import FILE_BLOCK_BYTES

if TYPE_CHECKING:
    from toolkit_core.ports.files import OpenFile

_UTF32_LE: Final = codecs.BOM_UTF32_LE
_UTF32_BE: Final = codecs.BOM_UTF32_BE


@dataclass(frozen=True)
class Encoding:
    """How a file's bytes are text.

    Attributes:
        name: utf-8, utf-8-sig, utf-16-le or utf-16-be (the last two with a BOM).
        bom_bytes: Length of the byte order mark.
        wide: Whether it is UTF-16.
    """

    name: str
    bom_bytes: int = 0
    wide: bool = False

    @property
    def label(self) -> str:
        """What a headline says of it; "" for plain UTF-8."""
        return _LABELS.get(self.name, "")


UTF8: Final = Encoding("utf-8")
_LABELS: Final = {
    "utf-8-sig": "UTF-8 with BOM",
    "utf-16-le": "UTF-16 LE with BOM",
    "utf-16-be": "UTF-16 BE with BOM",
}


def encoding_of(head: bytes) -> Encoding:
    """The encoding that a file's first bytes tell; without a BOM it is taken for UTF-8."""
    if head.startswith(codecs.BOM_UTF8):
        return Encoding("utf-8-sig", 3)
    if head.startswith((_UTF32_LE, _UTF32_BE)):
        return UTF8  # its NULs make it binary
    if head.startswith(codecs.BOM_UTF16_LE):
        return Encoding("utf-16-le", 2, wide=True)
    if head.startswith(codecs.BOM_UTF16_BE):
        return Encoding("utf-16-be", 2, wide=True)
    return UTF8


class OutOfBudget(Exception):  # noqa: N818 - a signal inside the read tool
    """The scan would read more than it may."""


class Scan:
    """Blocks of a file as UTF-8 (bytes that are not stay as they are), from a byte offset on.

    Attributes:
        seen_bytes: Bytes of the file read so far.
        at_line_start: Whether what was given out ends with LF, or nothing was.
    """

    def __init__(
        self, file: OpenFile, encoding: Encoding, *, max_bytes: int, head: bytes = b"", start: int = 0
    ) -> None:
        self._file, self._encoding, self._max_bytes = file, encoding, max_bytes
        self._offset = max(start, encoding.bom_bytes)
        self._head = head[encoding.bom_bytes :] if start == 0 else b""
        self._decoder = codecs.getincrementaldecoder(encoding.name)("surrogatepass") if encoding.wide else None
        self._ended = False
        self.seen_bytes = 0
        self.at_line_start = True

    @property
    def offset(self) -> int:
        """Where in the file the next block starts."""
        return self._offset

    def block(self) -> bytes:
        """The next block; `b""` at the end. Raises `OutOfBudget` and OSError."""
        if self._decoder is None:
            block = self._raw()
        else:
            block = b""
            while not block and not self._ended:
                block = self._transcoded(self._decoder)
        if block:
            self.at_line_start = block.endswith(b"\n")
        return block

    def _raw(self) -> bytes:
        if self.seen_bytes >= self._max_bytes and self._file.read_at(self._offset, 1):
            raise OutOfBudget
        block, self._head = self._head, b""
        if not block:
            block = self._file.read_at(self._offset, FILE_BLOCK_BYTES)
        self._offset += len(block)
        self.seen_bytes += len(block)
        return block

    def _transcoded(self, decoder: codecs.IncrementalDecoder) -> bytes:
        raw = self._raw()
        if raw:
            return decoder.decode(raw).encode("utf-8", "backslashreplace")
        self._ended = True
        pending, _ = decoder.getstate()
        return "".join(f"\\x{byte:02X}" for byte in pending).encode("ascii")
