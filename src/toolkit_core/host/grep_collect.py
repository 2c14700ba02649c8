"""What an engine reports, collected, filtered, put in order, judged and cut at the limit."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from toolkit_core.host.ripgrep_rows import RawRow, RowReader
from toolkit_core.host.search_place import Judge, Place
from toolkit_core.ports.search import Rows
from toolkit_core.search_text import path_order

if TYPE_CHECKING:
    from toolkit_core.glob_pattern import GlobPattern

_path = itemgetter(0)
_Row = tuple[str, int, str, bool, bool, str]


@dataclass
class FileFilter:
    """Which of the reported files count: those that the pattern fits, seen from the searched folder or the root."""

    place: Place
    pattern: GlobPattern | None
    chosen: frozenset[str] | None = None
    _known: dict[bytes, str | None] = field(default_factory=dict[bytes, "str | None"])

    def path(self, reported: bytes) -> str | None:
        """The path from the root that the engine's `./PATH` stands for; None where it does not count."""
        if reported not in self._known:
            self._known[reported] = self._path(reported)
        return self._known[reported]

    def _path(self, reported: bytes) -> str | None:
        if not reported.startswith(b"./"):
            return None
        path = os.fsdecode(reported[2:])
        return path if self.accepts(path) else None

    def accepts(self, path: str) -> bool:
        """Whether a path from the root fits, and is not hidden."""
        if any(path == hidden or path.startswith(f"{hidden}/") for hidden in self.place.hidden):
            return False
        if self.chosen is not None:
            return path in self.chosen
        if self.pattern is None:
            return True
        prefix = self.place.prefix
        inner = path[len(prefix) :] if path.startswith(prefix) else path
        return self.pattern.matches(inner) or (bool(prefix) and self.pattern.matches(path))


@dataclass
class RowCollector:
    """Rows of mode content.

    Attributes:
        stop_after: Matches after which `take` says that it is enough.
        matches: How many were taken.
    """

    files: FileFilter
    stop_after: int
    context: bool
    matches: int = 0
    reader: RowReader = field(default_factory=RowReader)
    _rows: dict[str, list[RawRow]] = field(default_factory=dict[str, "list[RawRow]"])
    _last: tuple[bytes, list[RawRow] | None] = (b"", None)

    def take(self, block: bytes) -> bool:
        """Take a block of output; False when there is enough."""
        reported, rows = self._last
        for row in self.reader.feed(block):
            if row[0] != reported:
                reported = row[0]
                rows = self._rows_of(reported)
            if rows is None:
                continue
            if not row[3]:
                self.matches += 1
                if self.matches > self.stop_after:
                    return False
            rows.append(row)
        self._last = (reported, rows)
        return True

    def _rows_of(self, reported: bytes) -> list[RawRow] | None:
        path = self.files.path(reported)
        return None if path is None else self._rows.setdefault(path, [])

    @property
    def binary(self) -> int:
        """Files that the engine left out or left early as binary."""
        return self.reader.binary

    def result(self, limit: int) -> tuple[Rows, int]:
        """The first rows in order of path, `limit` matches at most, each file judged; and how many files fell out."""
        rows: list[_Row] = []
        dropped = 0
        place, left = self.files.place, limit
        with Judge(place.root) as judge:
            for path in sorted(self._rows, key=path_order):
                if left <= 0:
                    break
                if not judge.is_file(path):
                    dropped += 1
                    continue
                left = self._show(place.shown + path, self._rows[path], left, rows)
        return Rows(rows), dropped

    def _show(self, shown: str, raw: list[RawRow], left: int, rows: list[_Row]) -> int:
        first = self.context
        for _, line, text, context, gap, cut in raw:
            if not context:
                left -= 1
            if left < 0 or (left == 0 and context and gap):
                return 0
            rows.append((shown, line, text, context, first or gap, cut))
            first = False
        return left


@dataclass
class CountCollector:
    """Files of the modes count and files_with_matches, from the same rows that the mode content shows."""

    files: FileFilter
    stop_after: int
    with_numbers: bool
    reader: RowReader = field(default_factory=lambda: RowReader(texts=False))
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def matches(self) -> int:
        """Files so far."""
        return len(self._counts)

    @property
    def binary(self) -> int:
        """Files that the engine left out or left early as binary."""
        return self.reader.binary

    def take(self, block: bytes) -> bool:
        """Take a block of output; False when there is enough."""
        counts = self._counts
        for reported, number in Counter(map(_path, self.reader.feed(block))).items():
            path = self.files.path(reported)
            if path is not None:
                counts[path] = counts.get(path, 0) + number if self.with_numbers else 1
                if len(counts) > self.stop_after:
                    return False
        return True

    def result(self, limit: int) -> tuple[tuple[tuple[str, int], ...], int]:
        """The first files in order of path, each judged; and how many fell out."""
        place = self.files.place
        kept: list[tuple[str, int]] = []
        dropped = 0
        with Judge(place.root) as judge:
            for path in sorted(self._counts, key=path_order):
                if len(kept) == limit:
                    break
                if judge.is_file(path):
                    kept.append((place.shown + path, self._counts[path]))
                else:
                    dropped += 1
        return tuple(kept), dropped
