"""Files: what read_file, write_file, edit_file and memory need of a filesystem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

T = TypeVar("T")

FileKind = Literal["file", "directory", "link", "other"]


@dataclass(frozen=True)
class Resolved:
    """Where a path leads.

    Attributes:
        absolute: The path made absolute against the root, `.` and `..` still as spelled where links matter.
        real: The same with every link followed; of a missing path the nearest existing ancestor is real.
        inside: Whether `real` lies in one of the roots.
        subject: The spelling that rules and results show: relative to the root with `/` when inside it
            (`.` for the root), else absolute.
    """

    absolute: str
    real: str
    inside: bool
    subject: str = ""


@dataclass(frozen=True)
class FileStat:
    """What is known of an open file. Two equal identities with equal times hold the same bytes."""

    size_bytes: int
    mode: int = 0o644
    device: int = 0
    inode: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0


class OpenFile(Protocol):
    """A regular file, open for reading: what a consumer sees of it, in the thread that runs it."""

    @property
    def path(self) -> Resolved:
        """Where it lies."""
        ...

    @property
    def stat(self) -> FileStat:
        """As it was when it was opened. A kernel file's size may be 0 though it has content."""
        ...

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`; `b""` at the end. Raises OSError, and stops a cancelled call.

        With a size of 0 it only does the latter: long work that has read enough asks so whether to go on.
        """
        ...


class MemoryOpenFile:
    """An `OpenFile` over bytes, for planes that hand over whole files and for documents turned into text."""

    def __init__(self, path: Resolved, data: bytes, stat: FileStat | None = None) -> None:
        self._path, self._data = path, data
        self._stat = stat or FileStat(size_bytes=len(data))

    @property
    def path(self) -> Resolved:
        """Where it lies."""
        return self._path

    @property
    def stat(self) -> FileStat:
        """Its size; other fields where they were given."""
        return self._stat

    def read_at(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`."""
        return self._data[offset : offset + size]


@dataclass(frozen=True)
class Written:
    """What a write did.

    Attributes:
        path: Where the bytes are.
        stat: The file afterwards.
        created: Whether there was no such file before.
        recovery_copy: Where the old bytes are kept, when the file had to be changed in place.
    """

    path: Resolved
    stat: FileStat
    created: bool
    recovery_copy: str | None = None


@dataclass(frozen=True)
class Entry:
    """One entry of a folder."""

    name: str
    kind: FileKind


@dataclass(frozen=True)
class Listing:
    """The first entries of a folder, by name, and how many there are in all."""

    entries: tuple[Entry, ...]
    total: int


@dataclass(frozen=True)
class Pieces:
    """New content in pieces, so that a large file is never joined in memory. `bytes(pieces)` joins it."""

    parts: Sequence[bytes | memoryview]

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __bytes__(self) -> bytes:
        return b"".join(self.parts)


Content = bytes | Pieces
"""What a file is replaced by; an adapter that needs it whole calls `bytes(content)`."""


class Files(Protocol):
    """A filesystem under one or more roots.

    Every method raises `ToolError`: `access_denied` (outside the roots), `not_found`, `is_a_directory`,
    `not_a_file` (FIFO, device, socket), `io_error` (the system's errno text in the message),
    `invalid_arguments` (NUL, lone surrogate, too long), `unavailable` (the plane is gone).
    """

    async def resolve(self, path: str) -> Resolved:
        """Judge a path by the same rules as the other methods, without opening it."""
        ...

    async def read(self, path: str, consume: Callable[[OpenFile], T]) -> T:
        """Open a regular file and run `consume` on it off the event loop; what it returns or raises passes."""
        ...

    async def replace(self, path: str, produce: Callable[[OpenFile | None], Content]) -> Written:
        """Replace a whole file by what `produce` makes of the old one (None: there is none), atomically.

        Callers of one file are serialised. `produce` runs off the event loop; what it raises passes, and
        then nothing is changed. Raises `stale_file` too: the file was changed by somebody else meanwhile.
        """
        ...

    async def list(self, path: str, limit: int) -> Listing:
        """The first `limit` entries of a folder."""
        ...
