"""An old text as something to search for: LF in it also stands for CRLF, anything else is exact."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from toolkit_core.limits import EDIT_SEARCH_BYTES

if TYPE_CHECKING:
    from toolkit_core.tools._codec import Codec

_SAMPLE_BYTES: Final = 16_384
_RARE_COUNT: Final = 4
"""Of the sample: a candidate every 4 KiB costs less than what the search saves."""

_RARE_FOUND: Final = 512
"""Candidates of one step; with more of them the byte is not rare."""

_RARE_LOOKED_AT: Final = 256

_WINDOW_BYTES: Final = 4_096

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
        rare: Index in `literal` of a byte that the file has seldom: looking for one byte is many times as fast as
            looking for several (memchr(3)).
        check: Called before each step of a search; raises once the call was cancelled.
    """

    codec: Codec
    literal: bytes
    pattern: re.Pattern[bytes] | None = field(default=None)
    max_bytes: int = 0
    leads_with_line_end: bool = False
    rare: int | None = None
    check: Callable[[], object] = field(default=int, compare=False)

    @staticmethod
    def of(
        old_text: str,
        codec: Codec,
        line_ends: LineEnds,
        common: Mapping[int, int] | None = None,
        check: Callable[[], object] = int,
    ) -> Needle:
        """The needle for a text whose line ends are such.

        Args:
            old_text: What to find.
            codec: Of the file.
            line_ends: Of the file.
            common: How often a sample of the file has each byte.
            check: As the attribute.
        """
        if "\n" not in old_text or "\r" in old_text or line_ends == "lf":
            return _literal(codec, codec.encode(old_text), common, check)
        crlf = codec.encode(old_text.replace("\n", "\r\n"))
        if line_ends == "crlf":
            return _literal(codec, crlf, common, check)
        line_end = b"(?:" + re.escape(codec.cr) + b")?" + re.escape(codec.lf)
        parts = (re.escape(codec.encode(part)) for part in old_text.split("\n"))
        pattern = re.compile(line_end.join(parts), re.DOTALL)
        return Needle(codec, codec.encode(old_text), pattern, len(crlf), old_text.startswith("\n"), check=check)

    def may_cross(self, byte: int) -> bool:
        """Whether a match may go on behind this byte."""
        return self.pattern is not None or self.literal.find(byte, 0, -1) >= 0

    def find(self, buffer: bytes, low: int, high: int) -> tuple[int, int] | None:
        """The first match that lies in `buffer[low:high]` and starts on a unit's boundary.

        It searches in steps: a search holds the GIL, and 64 MiB in one would stall the event loop.
        """
        at = low
        while at < high:
            self.check()
            found = self._step(buffer, at, min(high, at + EDIT_SEARCH_BYTES + self.max_bytes))
            if found is None:
                at += EDIT_SEARCH_BYTES
            elif found[0] % self.codec.width:
                at = found[0] + 1
            else:
                return found
        return None

    def find_all(self, buffer: bytes, low: int, high: int, most: int) -> list[tuple[int, int]]:
        """All matches in `buffer[low:high]` from the left, none overlapping another; one more than `most` at most."""
        found: list[tuple[int, int]] = []
        while len(found) <= most and (match := self.find(buffer, low, high)) is not None:
            found.append(match)
            low = match[1]
            if self.pattern is None and self.codec.width == 1:
                low = self._run_of_matches(buffer, low, high, most, found)
        return found

    def _run_of_matches(self, buffer: bytes, low: int, high: int, most: int, found: list[tuple[int, int]]) -> int:
        """The same for a literal, one step's worth without the overhead of a call a match."""
        literal, length, end = self.literal, len(self.literal), min(high, low + EDIT_SEARCH_BYTES)
        at = buffer.find(literal, low, end)
        while at >= 0 and len(found) <= most:
            low = at + length
            found.append((at, low))
            at = buffer.find(literal, low, end)
        return low

    def _step(self, buffer: bytes, low: int, high: int) -> tuple[int, int] | None:
        if self.pattern is None:
            at = buffer.find(self.literal, low, high) if self.rare is None else self._by_rare_byte(buffer, low, high)
            return None if at < 0 else (at, at + len(self.literal))
        if self.codec.width == 1:
            return self._by_line_feeds(buffer, low, high)
        match = self.pattern.search(buffer, low, high)
        return None if match is None else match.span()

    def _by_line_feeds(self, buffer: bytes, low: int, high: int) -> tuple[int, int] | None:
        """The same as the pattern's search, in linear time: where each CRLF is an LF, the text is a literal.

        The first windows are small, so that many matches close together cost no long window each.
        """
        assert self.pattern is not None  # noqa: S101 - for the type checker
        size = max(_WINDOW_BYTES, 2 * self.max_bytes)
        while low < high:
            window = buffer[low : min(high, low + size + self.max_bytes)]
            found = window.replace(b"\r\n", b"\n").find(self.literal)
            if found >= 0:
                match = self.pattern.match(buffer, low + _unfolded(window, found), high)
                return None if match is None else match.span()
            low += size
            size = min(2 * size, EDIT_SEARCH_BYTES)
        return None

    def _by_rare_byte(self, buffer: bytes, low: int, high: int) -> int:
        index = self.rare or 0
        byte, behind = self.literal[index : index + 1], len(self.literal) - index
        at = low + index
        for _ in range(_RARE_FOUND):
            at = buffer.find(byte, at, high - behind + 1)
            if at < 0 or buffer.startswith(self.literal, at - index):
                return at - index if at >= 0 else -1
            at += 1
        return buffer.find(self.literal, at - index, high)  # not so rare in this part


def _unfolded(text: bytes, place: int) -> int:
    """The index in a text of what is at `place` where each CRLF of it is an LF."""
    at = place
    while (further := place + text.count(b"\r\n", 0, at)) != at:
        at = further
    return at + 1 if text[at - 1 : at + 1] == b"\r\n" and at else at


def _literal(codec: Codec, literal: bytes, common: Mapping[int, int] | None, check: Callable[[], object]) -> Needle:
    rare = None
    if common and len(literal) > 1:
        index = min(range(min(len(literal), _RARE_LOOKED_AT)), key=lambda i: common.get(literal[i], 0))
        rare = index if common.get(literal[index], 0) <= _RARE_COUNT else None
    return Needle(codec, literal, max_bytes=len(literal), rare=rare, check=check)


def sample(data: bytes) -> Mapping[int, int]:
    """How often a few parts of a file have each byte."""
    parts = _SAMPLE_BYTES // 8
    return Counter(b"".join(data[len(data) * i // 8 : len(data) * i // 8 + parts] for i in range(8)))
