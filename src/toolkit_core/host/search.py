"""`Search` over this machine's files: a walk of our own for names, ripgrep for content."""

from __future__ import annotations

import heapq
import os
import stat
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.glob_pattern import BadGlobError, GlobPattern, parse_filter, parse_glob
from toolkit_core.host.grep import Grep
from toolkit_core.host.os_errors import system_refused
from toolkit_core.host.resolve import AnyPath, Outside, Roots
from toolkit_core.host.ripgrep import Ripgrep, start_ripgrep
from toolkit_core.host.search_place import Place, open_place
from toolkit_core.host.stoppable import Stop, StoppedError, in_thread
from toolkit_core.host.walk import Found, Walk
from toolkit_core.limits import GLOB_COUNT_ENTRIES, SEARCH_BUDGET_SECONDS
from toolkit_core.ports.search import GlobFound, GlobQuery, GrepFound, GrepQuery
from toolkit_core.text import first_surrogate, one_line_name

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from toolkit_core.ports.files import Resolved


_GLOB_HINT: Final = r"Mend the pattern; \ before a character takes it as it is."
_HINTS: Final[dict[ErrorCode, str]] = {
    "not_found": "Check the spelling, or find the name from a folder that exists with a pattern such as **/NAME.",
    "not_a_file": "Start from a folder or a regular file.",
    "access_denied": "Start from a folder inside the root.",
    "invalid_arguments": "Mend the argument that the message names.",
    "io_error": "Search another folder or file, or have its permissions and its disk looked at.",
}


class HostSearch:
    """Finding files by name and by content below one or more roots of this machine.

    Nothing outside the roots is listed, read or named: a search starts from an open folder that was judged by its
    real path, follows no link, and every reported file is judged again; where the kernel has Landlock, the engine
    cannot even open anything else. What a program changes while it is searched may be missed.

    Args:
        cwd: The root that relative paths start from.
        extra_roots: Further folders.
        outside: "refuse" or "policy", as for files.
        budget_seconds: What one search may take.
        ripgrep: The program; None looks beside this Python and on PATH. Without one, grep uses Python's `re`.
        hidden: Real paths that are neither listed nor searched, as for `Roots`.

    Raises:
        ValueError: A root is empty, missing or no folder.

    Example:
        >>> found = await HostSearch(".").grep(GrepQuery("TODO", glob="*.py"))  # doctest: +SKIP
    """

    def __init__(
        self,
        cwd: AnyPath,
        *,
        extra_roots: Sequence[AnyPath] = (),
        outside: Outside = "refuse",
        budget_seconds: float = SEARCH_BUDGET_SECONDS,
        ripgrep: str | None = None,
        hidden: Sequence[str] = (),
    ) -> None:
        self._roots = Roots(cwd, extra_roots, outside, hidden=hidden)
        self._budget_seconds = budget_seconds
        self._program = ripgrep
        self._engine: Ripgrep | None = None

    @property
    def root(self) -> str:
        """The absolute real path of the first root."""
        return self._roots.root

    async def resolve(self, path: str) -> Resolved:
        """Judge the folder or file that a search starts from."""
        return self._roots.resolve(path)

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Find files, links and folders by name. Raises `ToolError` as the port says."""
        _check_text("pattern", query.pattern)

        def work(stop: Stop) -> GlobFound:
            with _system_errors(query.path):
                return _Glob(self._roots, query, stop).run()

        return await in_thread(work, budget_seconds=self._budget_seconds, name="glob")

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Find lines by content. Raises `ToolError` as the port says."""
        _check_text("pattern", query.pattern)
        _check_text("glob", query.glob)
        text = _inside(self._roots, query.glob)
        if text:
            parsed(parse_filter, text)  # a bad one is refused before anything is opened

        def work(stop: Stop) -> GrepFound:
            with _system_errors(query.path), open_place(self._roots, query.path) as place:
                place.need_readable()
                files = parsed(parse_filter, _folder_as_filter(place, text)) if text else None
                return Grep(query, files, place, self._ripgrep(place), stop).run()

        return await in_thread(work, budget_seconds=self._budget_seconds, name="grep")

    def _ripgrep(self, place: Place) -> Ripgrep | None:
        """Tried until one runs; two first searches at a time may both try, which does no harm."""
        if self._engine is None:
            self._engine = start_ripgrep(self._program, place.root)
        return self._engine


class _Glob:
    """One search by name, in its thread."""

    def __init__(self, roots: Roots, query: GlobQuery, stop: Stop) -> None:
        self._roots, self._query, self._stop = roots, query, stop

    def run(self) -> GlobFound:
        path, pattern = self._start()
        folders, rest = pattern.split_folder()
        try:
            with open_place(self._roots, "/".join((path, *folders)) if folders else path) as place:
                if not place.is_file:
                    found = self._search(place, rest, pattern)
                    return found if found.paths or found.incomplete else self._explain(found, path, pattern)
                if not folders:
                    raise ToolError(
                        f"{one_line_name(path)} is a file; a search by name starts from a folder.",
                        code="invalid_arguments",
                        hint="Give the folder as the path and the name as the pattern.",
                    )
        except ToolError as e:
            if e.code != "not_found" or not folders:
                raise
        return self._explain(GlobFound(()), path, pattern)

    def _start(self) -> tuple[str, GlobPattern]:
        """Where to start and what to look for there: leading `..` and a leading `/` belong to the path."""
        text, path = self._query.pattern, self._query.path
        parts = text.split("/")
        if text.startswith("/"):
            for root in self._roots.roots:
                if (text + "/").startswith(root.rstrip("/") + "/"):
                    text = text[len(root.rstrip("/")) :].lstrip("/")
                    return root, parsed(parse_glob, text or "**")
            fixed = [part for part in parts if part and not any(c in part for c in "*?[{\\")]
            self._roots.resolve("/" + "/".join(fixed))
            path, parts = "/", [part for part in parts if part]
        if ".." in parts:
            last = len(parts) - parts[::-1].index("..")
            path, parts = "/".join((path, *parts[:last])).removeprefix("./"), parts[last:]
            if all(part in ("", ".") for part in parts):
                raise ToolError(
                    "The pattern ends with '..': it names a folder, not what is in it.",
                    code="invalid_arguments",
                    hint="Give that folder as the path and * as the pattern.",
                )
        if any(c in path for c in "*?[{") and ".." in path.split("/"):
            raise ToolError(
                "The pattern has '..' behind a part with pattern characters.",
                code="invalid_arguments",
                hint="Give the folder to start from as the path.",
            )
        return path, parsed(parse_glob, "/".join(parts) or "*")

    def _walk(self, place: Place, pattern: GlobPattern, *, show_ignored: bool = False) -> Walk:
        include = self._query.include_ignored
        return Walk(
            skipped=place.skipped(pattern, include_ignored=include),
            hidden=place.hidden,
            heed=not include and not place.ignored,
            show_ignored=show_ignored,
            times=self._query.sort == "modified",
            check=self._stop.check,
        )

    def _search(self, place: Place, rest: GlobPattern, whole: GlobPattern) -> GlobFound:
        walk = self._walk(place, whole)
        take = self._first if self._query.sort == "path" else self._newest
        paths: list[str] = []
        incomplete = ""
        try:
            with closing(self._entries(walk, place, rest)) as entries:
                take(entries, place.shown + place.prefix, paths)
        except StoppedError:
            if self._stop.requested:
                raise
            incomplete = "the walk"
        limit = self._query.limit
        shown = tuple(paths[:limit])
        return GlobFound(shown, len(paths) > limit, unreadable=walk.unreadable, incomplete=incomplete)

    def _first(self, entries: Iterator[Found], prefix: str, paths: list[str]) -> None:
        """Up to one more than the limit; the walk is in order."""
        for path, kind, _, _ in entries:
            paths.append(f"{prefix}{path}/" if kind == "directory" else prefix + path)
            if len(paths) > self._query.limit:
                return

    def _newest(self, entries: Iterator[Found], prefix: str, paths: list[str]) -> None:
        """Up to one more than the limit, the latest first; of equal times the first by path."""
        newest: list[tuple[int, int, str]] = []
        size = self._query.limit + 1
        try:
            for number, (path, kind, _, mtime_ns) in enumerate(entries):
                item = (mtime_ns, -number, f"{prefix}{path}/" if kind == "directory" else prefix + path)
                if len(newest) < size:
                    heapq.heappush(newest, item)
                elif item > newest[0]:
                    heapq.heapreplace(newest, item)
        finally:
            newest.sort(reverse=True)
            paths += [path for _, _, path in newest]

    def _entries(self, walk: Walk, place: Place, pattern: GlobPattern) -> Generator[Found]:
        scope = place.scope if walk.heed else None
        entries = walk.run(place.start, pattern.start, scope, prefix=place.prefix)
        return (found for found in entries if found[1] == "directory") if pattern.folders_only else entries

    def _explain(self, empty: GlobFound, path: str, pattern: GlobPattern) -> GlobFound:
        """What an empty answer left out: ignored matches, matches farther down, a name with pattern characters."""
        with open_place(self._roots, path) as place:
            if place.is_file:
                return empty
            ignored, bounded, unreadable = self._count(place, pattern, lambda found: found[2], show_ignored=True)
            deeper = None
            if not pattern.has_any_depth:
                deeper, cut, unreadable = self._count(place, pattern.deeper(), lambda found: not found[2])
                bounded = bounded or cut
            literal = _exists(place, self._query.pattern)
        return replace(
            empty,
            ignored_count=ignored,
            deeper_count=deeper,
            counts_incomplete=bounded,
            literal=literal,
            unreadable=max(empty.unreadable, unreadable),
        )

    def _count(
        self, place: Place, pattern: GlobPattern, counts: Callable[[Found], bool], *, show_ignored: bool = False
    ) -> tuple[int, bool, int]:
        """How many, whether the count was cut, and how many folders could not be read."""
        if show_ignored and self._query.include_ignored:
            return 0, False, 0
        walk = self._walk(place, pattern, show_ignored=show_ignored)
        walk.check = lambda: self._check_count(walk)
        number = 0
        try:
            for found in self._entries(walk, place, pattern):
                number += counts(found)
        except StoppedError:
            if self._stop.requested:
                raise
            return number, True, walk.unreadable
        return number, False, walk.unreadable

    def _check_count(self, walk: Walk) -> None:
        self._stop.check()
        if walk.entries > GLOB_COUNT_ENTRIES:
            raise StoppedError


def parsed(parse: Callable[[str], GlobPattern], text: str) -> GlobPattern:
    """A pattern, or `invalid_arguments` with what is wrong with it."""
    try:
        return parse(text)
    except BadGlobError as e:
        message = f"{one_line_name(text)!r} is no usable glob pattern: {e}."
        raise ToolError(message, code="invalid_arguments", hint=_GLOB_HINT) from e


@contextmanager
def _system_errors(path: str) -> Generator[None]:
    """What the system refuses outside of any one file: no descriptors left, no process, no memory."""
    try:
        yield
    except OSError as e:
        raise system_refused(e, one_line_name(path), "searched") from e
    except ToolError as e:
        if not e.hint and e.code in _HINTS:
            e.hint = _HINTS[e.code]
        raise


def _inside(roots: Roots, glob: str) -> str:
    """A file filter that was given as an absolute path below a root, seen from that root."""
    for root in roots.roots:
        if root != "/" and glob.startswith(root + "/"):
            return glob[len(root) :]
    return glob


def _folder_as_filter(place: Place, text: str) -> str:
    """A filter that is the plain name of a folder there stands for all that is in it."""
    if any(c in text for c in "*?[{\\") or place.is_file:
        return text
    try:
        status = os.stat(text.strip("/"), dir_fd=place.start, follow_symlinks=False)
    except (OSError, ValueError):
        return text
    return f"{text.rstrip('/')}/" if stat.S_ISDIR(status.st_mode) else text


def _check_text(what: str, text: str) -> None:
    if "\0" in text:
        message = f"The {what} has a NUL character at index {text.index(chr(0))}; no text file and no name holds one."
        raise ToolError(message, code="invalid_arguments", hint="Leave that character out.")
    place = first_surrogate(text)
    if place is not None:
        message = f"The {what} has a lone surrogate U+{ord(text[place]):04X} at index {place}."
        raise ToolError(message, code="invalid_arguments", hint="Leave that character out.")


def _exists(place: Place, name: str) -> bool:
    if not any(c in name for c in "[{*?\\") or ".." in name:
        return False
    try:
        os.stat(name.lstrip("/"), dir_fd=place.start, follow_symlinks=False)
    except (OSError, ValueError):
        return False
    return True
