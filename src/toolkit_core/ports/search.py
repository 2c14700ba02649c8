"""Search: what glob and grep need of a filesystem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, overload

if TYPE_CHECKING:
    from toolkit_core.ports.files import Resolved

GrepMode = Literal["content", "files_with_matches", "count"]
GlobSort = Literal["path", "modified"]


@dataclass(frozen=True)
class GlobQuery:
    """What glob looks for. `path` is relative to the root, `limit` counts entries."""

    pattern: str
    path: str = "."
    limit: int = 1000
    sort: GlobSort = "path"
    include_ignored: bool = False


@dataclass(frozen=True)
class GlobFound:
    """What glob found.

    Attributes:
        paths: Relative to the root (absolute outside it), folders with a trailing `/`, in the order asked for;
            bytes that are not UTF-8 as surrogates (PEP 383).
        truncated: More exist than `limit`.
        ignored_count: For an empty answer: entries that match but are ignored.
        deeper_count: For an empty answer: how many `**/` in front of the pattern would match.
        counts_incomplete: The counts are lower bounds.
        literal: For an empty answer: the pattern, taken as a plain name, exists.
        unreadable: Folders that could not be read.
        incomplete: Why the walk ended early ("" where it did not); the tool then fails as `exhausted`.
    """

    paths: tuple[str, ...]
    truncated: bool = False
    ignored_count: int | None = None
    deeper_count: int | None = None
    counts_incomplete: bool = False
    literal: bool = False
    unreadable: int = 0
    incomplete: str = ""


@dataclass(frozen=True)
class GrepQuery:
    """What grep looks for. Names are those of the tool's parameters."""

    pattern: str
    path: str = "."
    glob: str = ""
    mode: GrepMode = "content"
    ignore_case: bool = False
    fixed_strings: bool = False
    multiline: bool = False
    context_lines: int = 0
    limit: int = 200
    include_ignored: bool = False


class Row(NamedTuple):
    r"""One line of a file.

    Attributes:
        path: As in `GlobFound.paths`.
        line: From 1.
        text: At most 500 characters, without its line ending; bytes that are not UTF-8 as `\xff`.
        context: A line around a match.
        gap: Lines are missing between the row before, of the same file, and this one.
        cut: Where characters of the line are left out: "", "end", "start", "both".
    """

    path: str
    line: int
    text: str
    context: bool = False
    gap: bool = False
    cut: str = ""


class Rows(Sequence[Row]):
    """Many rows without many objects: kept as plain tuples, which the garbage collector does not look at."""

    def __init__(self, rows: Iterable[tuple[str, int, str, bool, bool, str]]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, key: int | slice) -> Row | tuple[Row, ...]:
        """One row, or some."""
        if isinstance(key, slice):
            return tuple(map(Row._make, self._rows[key]))
        return Row._make(self._rows[key])

    def __iter__(self) -> Iterator[Row]:
        return map(Row._make, self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __eq__(self, other: object) -> bool:
        """Equal rows in the same order."""
        return isinstance(other, Rows) and other._rows == self._rows

    def __hash__(self) -> int:
        return hash(self._rows)

    def __repr__(self) -> str:
        return f"Rows({list(self)!r})"


@dataclass(frozen=True)
class GrepFound:
    """What grep found.

    Attributes:
        rows: For mode content, in order of path and line.
        counts: For the other modes: path and number of matching lines (1 for files_with_matches).
        truncated: More exist than `limit`.
        skipped_ignored: Ignored files not searched; counted only for an empty answer.
        skipped_binary: Binary files not searched or not shown; all of them only for an empty answer.
        skipped_unreadable: Files and folders that could not be read.
        counts_incomplete: The skipped counts are lower bounds.
        named_ignored: The path or the glob names an ignored place, so that ignored files were searched.
        engine: Which engine matched: "ripgrep", "python re".
        incomplete: Why the search ended early, "" where it did not; the tool then fails as `exhausted`.
    """

    rows: Sequence[Row] = ()
    counts: tuple[tuple[str, int], ...] = ()
    truncated: bool = False
    skipped_ignored: int = 0
    skipped_binary: int = 0
    skipped_unreadable: int = 0
    counts_incomplete: bool = False
    named_ignored: bool = False
    engine: str = ""
    incomplete: str = ""


class Search(Protocol):
    """Finding files by name and by content.

    Each method raises `ToolError`: `not_found`, `access_denied`, `invalid_arguments` (a bad pattern, with
    the engine's reason and place), `unavailable` (no engine), `io_error`.
    """

    async def resolve(self, path: str) -> Resolved:
        """Judge the folder or file that a search starts from."""
        ...

    async def glob(self, query: GlobQuery) -> GlobFound:
        """Find files, links and folders by name."""
        ...

    async def grep(self, query: GrepQuery) -> GrepFound:
        """Find lines by content."""
        ...
