"""An old text as something to search for: LF in it also stands for CRLF, anything else is exact."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from toolkit_core.limits import EDIT_SEARCH_BYTES

if TYPE_CHECKING:
    from toolkit_core.tools._codec import Codec

LineEnds = Literal["lf", "crlf", "mixed"]
"""What a text's line feeds are: all alone, all behind a carriage return, or some of each."""


@dataclass(frozen=True)
class Needle:
    """Finds one old text in buffers.

    Attributes:
        codec: Of the file.
        literal: The bytes, where only one spelling can occur.
        pattern: The spellings, where line ends are mixed.
        max_bytes: Length of the longest spelling.
        leads_with_line_end: Whether a match may start in the middle of a CRLF, which is none.
    """

    codec: Codec
    literal: bytes
    pattern: re.Pattern[bytes] | None = field(default=None)
    max_bytes: int = 0
    leads_with_line_end: bool = False

    @staticmethod
    def of(old_text: str, codec: Codec, line_ends: LineEnds) -> Needle:
        """The needle for a text whose line ends are such."""
        if "\n" not in old_text or "\r" in old_text or line_ends == "lf":
            literal = codec.encode(old_text)
            return Needle(codec, literal, max_bytes=len(literal))
        crlf = codec.encode(old_text.replace("\n", "\r\n"))
        if line_ends == "crlf":
            return Needle(codec, crlf, max_bytes=len(crlf))
        line_end = b"(?:" + re.escape(codec.cr) + b")?" + re.escape(codec.lf)
        parts = (re.escape(codec.encode(part)) for part in old_text.split("\n"))
        pattern = re.compile(line_end.join(parts), re.DOTALL)
        return Needle(codec, codec.encode(old_text), pattern, len(crlf), old_text.startswith("\n"))

    def find(self, buffer: bytes, low: int, high: int) -> tuple[int, int] | None:
        """The first match that lies in `buffer[low:high]` and starts on a unit's boundary.

        It searches in steps: a search holds the GIL, and 64 MiB in one would stall the event loop.
        """
        at = low
        while at < high:
            found = self._step(buffer, at, min(high, at + EDIT_SEARCH_BYTES + self.max_bytes))
            if found is None:
                at += EDIT_SEARCH_BYTES
            elif found[0] % self.codec.width:
                at = found[0] + 1
            else:
                return found
        return None

    def _step(self, buffer: bytes, low: int, high: int) -> tuple[int, int] | None:
        if self.pattern is None:
            at = buffer.find(self.literal, low, high)
            return None if at < 0 else (at, at + len(self.literal))
        match = self.pattern.search(buffer, low, high)
        return None if match is None else match.span()
