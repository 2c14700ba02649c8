r"""The process that matches what ripgrep does not take (look-around, back-references) with Python's `re`.

Run by its path with `python -I -S`: standard library only, nothing of the package. `re` cannot be interrupted, so
the process is killed when its time is up; should its owner die first, its own alarm clock ends it (setitimer(2)).

stdin: one line of JSON, the job; then names, each ended by NUL, `./` from the folder of the descriptor `root`.
stdout: rows as ripgrep writes them (see ripgrep_rows). stderr: a line `rg: NAME: REASON` for what could not be read.
Exit status: 0 done, 3 the pattern is refused (stderr has the reason), 4 it can only match across lines.
"""

from __future__ import annotations

import codecs
import json
import os
import re
import signal
import stat
import sys
import time
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from io import BufferedReader

REFUSED, SPANS_LINES = 3, 4
_BLOCK = 262_144
_FLUSH_BYTES = 32_768
_FLUSH_SECONDS = 0.05
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_BOMS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))

Lines = Iterator[tuple[int, str]]


class _BinaryError(Exception):
    """A NUL byte: nothing from here on is text."""


def main() -> int:
    """Do one job."""
    source = cast("BufferedReader", sys.stdin.buffer)
    job: dict[str, Any] = json.loads(source.readline())
    signal.setitimer(signal.ITIMER_REAL, job["seconds"])
    flags = (re.IGNORECASE if job["ignore_case"] else 0) | (re.MULTILINE if job["multiline"] else 0)
    try:
        pattern = re.compile(job["pattern"], flags)
    except (re.error, OverflowError, RecursionError) as e:
        sys.stderr.write(_reason(job["pattern"], e))
        return REFUSED
    if not job["multiline"] and _spans_lines(job["pattern"], flags):
        return SPANS_LINES
    searcher = _Searcher(pattern, job, _Output())
    for name in _names(source):
        searcher.search(name)
    searcher.output.flush()
    return 0


def _reason(pattern: str, error: Exception) -> str:
    place = getattr(error, "pos", None)
    if place is None:
        return str(error)
    line_start = pattern.rfind("\n", 0, place) + 1
    line = pattern[line_start:].split("\n")[0]
    return f"{getattr(error, 'msg', error)} at position {place}\n    {line}\n    {' ' * (place - line_start)}^"


def _spans_lines(pattern: str, flags: int) -> bool:
    """Whether a line feed stands in the pattern itself: a line never holds one."""
    parser: Any = getattr(re, "_parser", None)
    if parser is None:
        return "\n" in pattern or r"\n" in pattern
    return _holds_line_feed(parser.parse(pattern, flags))


def _holds_line_feed(node: Any) -> bool:
    """Walk the parser's tree: pairs of an operator and its argument, sequences of them, plain values."""
    if isinstance(node, tuple):
        pair = cast("tuple[Any, ...]", node)
        operator = str(pair[0]) if len(pair) == 2 else ""
        if operator == "LITERAL":
            return pair[1] == 10
        if operator in ("IN", "NOT_LITERAL"):
            return False
        return any(_holds_line_feed(part) for part in pair)
    if isinstance(node, list) or hasattr(node, "data"):
        return any(_holds_line_feed(part) for part in cast("list[Any]", node))
    return False


def _names(source: BufferedReader) -> Iterator[bytes]:
    held = b""
    while block := source.read1(65_536):
        *names, held = (held + block).split(b"\0")
        yield from names


class _Output:
    """Standard output in few writes, but never long behind: what is out survives the kill."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._size = 0
        self._written_at = time.monotonic()

    def add(self, row: bytes) -> None:
        self._blocks.append(row)
        self._size += len(row)
        if self._size > _FLUSH_BYTES or time.monotonic() - self._written_at > _FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        data = memoryview(b"".join(self._blocks))
        while data:
            data = data[os.write(1, data) :]
        self._blocks, self._size, self._written_at = [], 0, time.monotonic()


class _Searcher:
    def __init__(self, pattern: re.Pattern[str], job: dict[str, Any], output: _Output) -> None:
        self._pattern, self.output = pattern, output
        self._root: int = job["root"]
        self._mode: str = job["mode"]
        self._context: int = job["context_lines"] if job["mode"] == "content" else 0
        self._multiline: bool = job["multiline"]
        self._keep_cr: bool = job["keep_cr"]
        self._max_bytes: int = job["max_bytes"]
        self._name, self._count, self._shown = b"", 0, 0
        self._anything = False

    def search(self, name: bytes) -> None:
        self._name, self._count, self._shown = name, 0, 0
        self.output.flush()
        try:
            descriptor = self._open(name)
            if descriptor is None:
                return
            try:
                self._search(descriptor)
            except _BinaryError as e:
                self._note_binary(e)
            finally:
                os.close(descriptor)
        except OSError as e:
            self._complain(os.strerror(e.errno) if e.errno else str(e))

    def _note_binary(self, found: _BinaryError) -> None:
        if self._count:
            note = 'WARNING: stopped searching binary file after match (found "\\0" byte around offset %s)'
            self.output.add(b"%b: %b\n" % (self._name, (note % found).encode("ascii")))

    def _complain(self, reason: str) -> None:
        self.output.flush()
        os.write(2, b"rg: %b: %b\n" % (self._name, reason.encode("utf-8", "replace")))

    def _open(self, name: bytes) -> int | None:
        """Open part by part from the root, no link followed; None for what is no regular file."""
        parts = name.removeprefix(b"./").split(b"/")
        folder = self._root
        try:
            for part in parts[:-1]:
                deeper = os.open(part, _FOLDER, dir_fd=folder)
                if folder != self._root:
                    os.close(folder)
                folder = deeper
            descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
        finally:
            if folder != self._root:
                os.close(folder)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        return None

    def _search(self, descriptor: int) -> None:
        start = os.pread(descriptor, 4, 0)
        encoding = next((name for bom, name in _BOMS if start.startswith(bom)), None)
        if encoding is None and not self._multiline:
            self._search_lines(self._lines(descriptor))
            return
        data = self._whole(descriptor)
        if data is None:
            return
        if encoding is not None:
            text = data.decode(encoding, "replace").lstrip("\ufeff")
        else:
            text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        null = text.find("\0")
        if null >= 0:
            text = text[: text.rfind("\n", 0, null) + 1]
        self._search_whole(text)
        if null >= 0:
            raise _BinaryError(null)

    def _search_whole(self, text: str) -> None:
        if self._multiline:
            self._search_text(text if self._keep_cr else text.replace("\r\n", "\n"))
        else:
            lines = text.split("\n")
            self._search_lines(enumerate(map(self._without_cr, _without_last_empty(lines)), 1))

    def _whole(self, descriptor: int) -> bytes | None:
        blocks: list[bytes] = []
        size = 0
        while block := os.read(descriptor, _BLOCK):
            blocks.append(block)
            size += len(block)
            if size > self._max_bytes:
                self._complain(f"larger than {self._max_bytes} bytes")
                return None
        return b"".join(blocks)

    def _lines(self, descriptor: int) -> Lines:
        number, held, offset = 0, [b""], 0
        first = True
        while block := os.read(descriptor, _BLOCK):
            if first:
                block, first = block.removeprefix(codecs.BOM_UTF8), False
            null = block.find(b"\0")
            *whole, rest = block[: null if null >= 0 else None].split(b"\n")
            for line in whole:
                number += 1
                yield number, self._text(b"".join((*held, line)))
                held = [b""]
            if null >= 0:
                raise _BinaryError(offset + null)
            held.append(rest)
            offset += len(block)
            if sum(map(len, held)) > self._max_bytes:
                self._complain(f"a line is longer than {self._max_bytes} bytes")
                return
        last = b"".join(held)
        if last:
            yield number + 1, self._text(last)

    def _text(self, line: bytes) -> str:
        return self._without_cr(line.decode("utf-8", "surrogateescape"))

    def _without_cr(self, line: str) -> str:
        return line if self._keep_cr else line.removesuffix("\r")

    def _search_lines(self, lines: Lines) -> None:
        search = self._pattern.search
        before: deque[tuple[int, str]] = deque(maxlen=self._context or None)
        after = 0
        for number, line in lines:
            match = search(line)
            if match is not None:
                self._count += 1
                for earlier in before:
                    self._row(*earlier, None)
                before.clear()
                self._row(number, line, match.start())
                if self._mode == "files_with_matches":
                    return
                after = self._context
            elif after:
                self._row(number, line, None)
                after -= 1
            elif self._context:
                before.append((number, line))

    def _search_text(self, text: str) -> None:
        lines = _without_last_empty(text.split("\n"))
        starts = [0]
        for line in lines:
            starts.append(starts[-1] + len(line) + 1)
        hits: dict[int, int] = {}
        number = 0
        for match in self._pattern.finditer(text):
            self._count += 1
            while number + 1 < len(lines) and starts[number + 1] <= match.start():
                number += 1
            at = number
            hits.setdefault(at, match.start() - starts[at])
            while at + 1 < len(lines) and starts[at + 1] < match.end():
                at += 1
                hits.setdefault(at, 0)
            if self._mode == "files_with_matches":
                break
        self._rows_around(lines, hits)

    def _rows_around(self, lines: list[str], hits: dict[int, int]) -> None:
        for at in hits if not self._context else sorted(self._near(hits, len(lines))):
            if at < len(lines):
                self._row(at + 1, lines[at], hits.get(at))

    def _near(self, hits: dict[int, int], count: int) -> set[int]:
        reach = range(-self._context, self._context + 1)
        return {at + away for at in hits for away in reach if 0 <= at + away < count}

    def _row(self, number: int, line: str, match_at: int | None) -> None:
        if self._mode != "content":
            line, match_at = "", 0
        if self._context and self._anything and number != self._shown + 1:
            self.output.add(b"--\n")
        self._shown, self._anything = number, True
        data = line.encode("utf-8", "surrogateescape")
        if match_at is None:
            self.output.add(b"%b\0%d-%b\n" % (self._name, number, data))
        else:
            column = len(line[:match_at].encode("utf-8", "surrogateescape")) + 1
            self.output.add(b"%b\0%d\0%d\0%b\n" % (self._name, number, column, data))


def _without_last_empty(lines: list[str]) -> list[str]:
    return lines[:-1] if lines and not lines[-1] else lines


if __name__ == "__main__":
    sys.exit(main())
