"""An in-memory `Search`: the same semantics over a dict of path and bytes, for tests and for planes without files."""

from __future__ import annotations

import codecs
import re
from dataclasses import replace
from posixpath import normpath
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.file_tree import FileTree, Found
from toolkit_core.glob_pattern import BadGlobError, GlobPattern, parse_filter, parse_glob
from toolkit_core.ports.files import Resolved
from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery, Row
from toolkit_core.search_text import cut_line
from toolkit_core.text import shown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class InMemorySearch:
    """A `Search` over files that exist only here. Folders follow from the paths; there are no links.

    Args:
        files: Path relative to the root -> content; `.gitignore` files count.
        root: The absolute path that the root pretends to have.
        folders: Folders that may hold nothing.

    Example:
        >>> search = InMemorySearch({"src/a.py": b"import os"})
        >>> found = await search.grep(GrepQuery("import"))  # doctest: +SKIP
    """

    def __init__(self, files: Mapping[str, bytes], *, root: str = "/workspace", folders: Iterable[str] = ()) -> None:
        self._tree = FileTree(dict(files), folders)
        self._root = root.rstrip("/")

    async def resolve(self, path: str) -> Resolved:
        """Judge a path. Raises `ToolError`: `access_denied`, `invalid_arguments`."""
        if not path or "\0" in path:
            raise ToolError("The path is empty or has a NUL character.", code="invalid_arguments")
        absolute = normpath(path if path.startswith("/") else f"{self._root}/{path}")
        inside = absolute == self._root or absolute.startswith(self._root + "/")
        if not inside:
            hint = "Paths are relative to the root."
            raise ToolError(f"{path} is outside the root {self._root}.", code="access_denied", hint=hint)
        inner = absolute[len(self._root) + 1 :]
        return Resolved(absolute, absolute, True, shown_name(inner) or ".")

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Find files and folders by name; every file is as old as the next, so `sort` keeps the order of path."""
        start = await self._start(query.path)
        if not self._tree.is_folder(start):
            raise ToolError(f"{query.path} is a file, not a folder.", code="invalid_arguments")
        pattern = _parsed(query.pattern)
        folders, rest = pattern.split_folder()
        base = "/".join((start, *folders)).lstrip("/") if folders else start
        entries: list[Found] = []
        if self._tree.is_folder(base):
            entries = list(self._matching(base, rest, pattern, query.include_ignored))
        paths = [entry.path + "/" * entry.folder for entry in entries if not entry.ignored]
        shown = GlobFound(tuple(paths[: query.limit]), len(paths) > query.limit)
        if paths:
            return shown
        ignored = sum(entry.ignored for entry in self._matching(start, pattern, pattern, query.include_ignored))
        deeper = None
        if not pattern.has_any_depth:
            below = self._matching(start, pattern.deeper(), pattern, query.include_ignored)
            deeper = sum(not entry.ignored for entry in below)
        return replace(shown, ignored_count=ignored, deeper_count=deeper)

    def _matching(self, start: str, pattern: GlobPattern, named: GlobPattern, everything: bool) -> Iterator[Found]:
        heed = not everything and not self._tree.scope(start)[1]
        for entry in self._tree.walk(start, pattern, named=named, heed=heed, everything=everything):
            if entry.folder or not pattern.folders_only:
                yield entry

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Find lines by content, with Python's `re`; a hostile pattern is not stopped."""
        start = await self._start(query.path)
        expression = _compiled(query)
        files = self._filter(start, query.glob) if query.glob else None
        rows: list[Row] = []
        counts: list[tuple[str, int]] = []
        ignored = binary = 0
        for path, is_ignored in self._searched(start, files, query.include_ignored):
            content = _as_utf8(self._tree.files[path])
            if is_ignored or b"\0" in content:
                ignored += is_ignored
                binary += not is_ignored
                continue
            hits, matches = _hits(content, expression, query)
            if hits:
                counts.append((path, matches if query.mode == "count" else 1))
                rows += _rows(path, content, hits, query.context_lines)
        if query.mode == "content":
            kept, more = _first(rows, query.limit)
            found = GrepFound(rows=kept, truncated=more, engine="python re")
        else:
            more = len(counts) > query.limit
            found = GrepFound(counts=tuple(counts[: query.limit]), truncated=more, engine="python re")
        named = not query.include_ignored and self.names_ignored(start, query.glob)
        found = replace(found, named_ignored=named)
        return found if rows else replace(found, skipped_ignored=ignored, skipped_binary=binary)

    def _filter(self, start: str, glob: str) -> GlobPattern:
        """The file filter; the plain name of a folder stands for all that is in it."""
        plain = not any(c in glob for c in "*?[{\\")
        if plain and self._tree.is_folder("/".join((start, glob.strip("/"))).lstrip("/")):
            glob = f"{glob.rstrip('/')}/"
        return _parsed(glob, parse_filter)

    async def _start(self, path: str) -> str:
        resolved = await self.resolve(path)
        inner = resolved.real[len(self._root) + 1 :]
        if not self._tree.is_folder(inner) and inner not in self._tree.files:
            raise ToolError(f"There is nothing at {path}.", code="not_found")
        return inner

    def names_ignored(self, start: str, glob: str) -> bool:
        """Whether the start lies in an ignored place or the file filter names one, so that nothing is ignored."""
        if not self._tree.is_folder(start):
            return False
        return self._tree.scope(start)[1] or bool(glob and self._tree.names_ignored(start, self._filter(start, glob)))

    def searched(self, start: str, glob: str, *, everything: bool) -> Iterator[tuple[str, bool]]:
        """The files below a start (a path from the root) that a filter fits, and whether each is ignored."""
        return self._searched(start, self._filter(start, glob) if glob else None, everything)

    def _searched(self, start: str, files: GlobPattern | None, everything: bool) -> Iterator[tuple[str, bool]]:
        if not self._tree.is_folder(start):
            if files is None or files.matches(start.rpartition("/")[2]) or files.matches(start):
                yield start, False
            return
        heed = not everything and not self._tree.scope(start)[1]
        heed = heed and (files is None or not self._tree.names_ignored(start, files))
        prefix = f"{start}/" if start else ""
        for entry in self._tree.walk(start, parse_glob("**/*"), named=files, heed=heed, everything=everything):
            inner = entry.path[len(prefix) :]
            if not entry.folder and (files is None or files.matches(inner) or files.matches(entry.path)):
                yield entry.path, entry.ignored


def _as_utf8(content: bytes) -> bytes:
    """What a byte order mark says is decoded, as ripgrep does."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace").encode("utf-8", "replace")
    return content.removeprefix(codecs.BOM_UTF8)


def _parsed(text: str, parse: Callable[[str], GlobPattern] = parse_glob) -> GlobPattern:
    try:
        return parse(text)
    except BadGlobError as e:
        raise ToolError(f"{text!r} is no usable glob pattern: {e}.", code="invalid_arguments") from e


def _compiled(query: GrepQuery) -> re.Pattern[str]:
    if "\n" in query.pattern and not query.multiline:
        raise ToolError("The pattern holds a line feed.", code="invalid_arguments", hint="Set multiline to true.")
    flags = (re.IGNORECASE if query.ignore_case else 0) | (re.MULTILINE if query.multiline else 0)
    try:
        return re.compile(re.escape(query.pattern) if query.fixed_strings else query.pattern, flags)
    except (re.error, OverflowError, RecursionError) as e:
        raise ToolError(f"The pattern is no valid regular expression: {e}", code="invalid_arguments") from e


def _lines(content: bytes) -> list[str]:
    lines = content.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    return lines[:-1] if not lines[-1] else lines


def _hits(content: bytes, expression: re.Pattern[str], query: GrepQuery) -> tuple[dict[int, int], int]:
    """Matching lines (from 0) and where the match begins in them; and the number of matches to count."""
    lines = _lines(content)
    if not query.multiline:
        found = ((number, expression.search(line)) for number, line in enumerate(lines))
        hits = {number: match.start() for number, match in found if match is not None}
        return hits, len(hits)
    hits, number = dict[int, int](), 0
    for match in expression.finditer("\n".join(lines)):
        number += 1
        first = match.string.count("\n", 0, match.start())
        last = match.string.count("\n", 0, max(match.start(), match.end() - 1))
        hits.setdefault(first, match.start() - (match.string.rfind("\n", 0, match.start()) + 1))
        for line in range(first + 1, last + 1):
            hits.setdefault(line, 0)
    return hits, number


def _rows(path: str, content: bytes, hits: dict[int, int], context: int) -> Iterator[Row]:
    lines = _lines(content)
    shown = {at for hit in hits for at in range(hit - context, hit + context + 1) if 0 <= at < len(lines)}
    before = None
    for number in sorted(shown):
        line = lines[number].encode("utf-8", "surrogateescape")
        column = len(lines[number][: hits.get(number, 0)].encode("utf-8", "surrogateescape"))
        text, cut = cut_line(line, column)
        gap = context > 0 and before != number - 1
        yield Row(path, number + 1, text, number not in hits, gap, cut)
        before = number


def _first(rows: list[Row], limit: int) -> tuple[tuple[Row, ...], bool]:
    kept: list[Row] = []
    left = limit
    for row in rows:
        if not row.context:
            left -= 1
        if left < 0:
            return tuple(kept), True
        if left > 0 or not (row.context and row.gap):
            kept.append(row)
    return tuple(kept), False
