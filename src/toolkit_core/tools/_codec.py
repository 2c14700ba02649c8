"""Text as a file's bytes: how wide a character unit is, and what its line ends are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from toolkit_core.text import decoded, newlines_in, shown_text

if TYPE_CHECKING:
    from toolkit_core.tools._scan import Encoding


@dataclass(frozen=True)
class Codec:
    """Encodes what is searched for and put in; the file itself is never decoded as a whole.

    Attributes:
        name: Of Python's codec.
        width: Bytes of a unit: 1 for UTF-8 and any other bytes, 2 for UTF-16.
        bom_bytes: Bytes of a UTF-16 mark, which are no text; a UTF-8 mark is found as text.
    """

    name: str = "utf-8"
    width: int = 1
    bom_bytes: int = 0

    @staticmethod
    def of(encoding: Encoding) -> Codec:
        """The codec of a file's encoding."""
        return Codec(encoding.name, 2, encoding.bom_bytes) if encoding.wide else Codec()

    @cached_property
    def lf(self) -> bytes:
        """A line feed."""
        return self.encode("\n")

    @cached_property
    def cr(self) -> bytes:
        """A carriage return."""
        return self.encode("\r")

    def encode(self, text: str) -> bytes:
        """Text as bytes. Raises UnicodeEncodeError for a lone surrogate."""
        return text.encode(self.name)

    def decode(self, data: bytes) -> str:
        """Bytes as text, each that is none as a surrogate of PEP 383."""
        if self.width == 1:
            return decoded(data)
        whole = len(data) & ~1
        return data[:whole].decode(self.name, "surrogatepass") + decoded(data[whole:])

    def show(self, data: bytes) -> str:
        """Bytes as text for display."""
        text = self.decode(data)
        if self.width == 1:
            return shown_text(text)
        return text.encode("utf-8", "backslashreplace").decode("utf-8").replace("\0", "\\x00")

    def find(self, buffer: bytes, wanted: bytes, low: int, high: int) -> int:
        """The first index of `wanted` on a unit's boundary, -1 where it is missing. Buffers start on a boundary."""
        at = buffer.find(wanted, low, high)
        while at >= 0 and at % self.width:
            at = buffer.find(wanted, at + 1, high)
        return at

    def rfind(self, buffer: bytes, wanted: bytes, low: int, high: int) -> int:
        """The last index of `wanted` on a unit's boundary, -1 where it is missing."""
        at = buffer.rfind(wanted, low, high)
        while at >= 0 and at % self.width:
            at = buffer.rfind(wanted, low, at + len(wanted) - 1)
        return at

    def count(self, block: bytes, wanted: bytes) -> int:
        """How often a text occurs in a block that starts on a unit's boundary."""
        if self.width == 1:
            return block.count(wanted)
        return self.decode(block).count(self.decode(wanted))

    def count_lines(self, block: bytes) -> int:
        """How many line feeds a block has that starts on a unit's boundary."""
        return newlines_in(block) if self.width == 1 else self.count(block, self.lf)

    def split_lines(self, data: bytes) -> list[bytes]:
        """Lines with their line feeds; the last one may lack it."""
        lines: list[bytes] = []
        start = 0
        while start < len(data):
            end = self.find(data, self.lf, start, len(data))
            stop = len(data) if end < 0 else end + self.width
            lines.append(data[start:stop])
            start = stop
        return lines
