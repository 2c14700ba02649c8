"""What a session has read: before an existing file is changed, it must have been seen as it is now."""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.limits import FILE_BLOCK_BYTES, HASHED_FILE_BYTES, RACY_CLOCK_NS, READ_RECORDS
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit_core.ports.files import Content, FileStat, OpenFile, Resolved, Written


@dataclass(frozen=True)
class _Seen:
    """One file as a session knows it.

    Attributes:
        stat: When it was read or written.
        certain: Whether an equal `stat` means equal bytes.
        digest: SHA-256 of its bytes, None for a large file.
        expected: SHA-256 of what this session is about to write there.
    """

    stat: FileStat | None = None
    certain: bool = False
    digest: bytes | None = None
    expected: bytes | None = None


class ReadRecord:
    """The record of one set of tools, keyed by session and real path, bounded; the oldest are forgotten first.

    A file that was forgotten must be read again before it is changed: forgetting is safe.
    """

    def __init__(self, *, max_files: int = READ_RECORDS) -> None:
        self._max_files = max_files
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()

    def note_read(self, session: str, file: OpenFile, digest: bytes | None) -> None:
        """A session has read a file, or a slice of it; `digest` is that of the whole file."""
        self._put(session, file.path.real, _Seen(file.stat, _is_certain(file.stat), digest))

    def note_written(self, session: str, written: Written, digest: bytes | None) -> None:
        """A session has written a file, so it knows what is there."""
        self._put(session, written.path.real, _Seen(written.stat, _is_certain(written.stat), digest))

    def expect(self, session: str, path: Resolved, digest: bytes | None) -> None:
        """A session is about to write these bytes; from then on it knows them, should they be found there."""
        key = (session, path.real)
        self._put(session, path.real, replace(self._seen.get(key, _Seen()), expected=digest))

    def check(self, session: str, file: OpenFile, digest: Callable[[], bytes | None]) -> None:
        """Refuse to change a file that the session does not know as it is now.

        Args:
            session: Whose knowledge counts.
            file: The file as it is.
            digest: Its SHA-256, asked for only where the times do not settle it.

        Raises:
            ToolError: `not_read`, `stale_file`.
        """
        seen = self._seen.get((session, file.path.real), _Seen())
        known = {seen.digest, seen.expected} - {None}
        if seen.stat == file.stat and (seen.certain or (not known and file.stat.inode)):
            return
        if known and digest() in known:
            return
        shown = one_line_name(file.path.subject)
        if seen.stat is None:
            message = f"{shown} exists and has not been read in this session; nothing was written."
            raise ToolError(message, code="not_read", hint="Read the file first (a slice is enough), then change it.")
        message = f"{shown} has changed since it was read; nothing was written."
        raise ToolError(message, code="stale_file", hint="Read the file again, then change it.")

    async def aclose(self) -> None:
        """Forget everything."""
        self._seen.clear()

    def _put(self, session: str, real: str, seen: _Seen) -> None:
        self._seen[session, real] = seen
        with suppress(KeyError):  # other threads make room as well
            self._seen.move_to_end((session, real))
            while len(self._seen) > self._max_files:
                self._seen.popitem(last=False)


class DigestingFile:
    """An `OpenFile` that hashes what is read of it from the start on."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._digest = sha256()
        self._hashed_bytes = 0
        self._too_large = file.stat.size_bytes > HASHED_FILE_BYTES

    @property
    def path(self) -> Resolved:
        """Where it lies."""
        return self._file.path

    @property
    def stat(self) -> FileStat:
        """As it was when it was opened."""
        return self._file.stat

    def read_at(self, offset: int, size: int) -> bytes:
        """As the file's own."""
        data = self._file.read_at(offset, size)
        if not self._too_large and offset <= self._hashed_bytes < offset + len(data):
            self._digest.update(memoryview(data)[self._hashed_bytes - offset :])
            self._hashed_bytes = offset + len(data)
        return data

    def finish(self) -> bytes | None:
        """The SHA-256 of the whole file, its rest read now; None where it is too large for that."""
        if self._too_large:
            return None
        while self._hashed_bytes <= HASHED_FILE_BYTES:
            if not self.read_at(self._hashed_bytes, FILE_BLOCK_BYTES):
                return self._digest.digest()
        return None


def digest_of(file: OpenFile) -> bytes | None:
    """The SHA-256 of a whole file; None where it is too large."""
    return DigestingFile(file).finish()


def digest_of_content(content: Content) -> bytes | None:
    """The SHA-256 of what will be written; None where it is too large."""
    digest, size = sha256(), 0
    for part in (content,) if isinstance(content, bytes) else content.parts:
        size += len(part)
        if size > HASHED_FILE_BYTES:
            return None
        digest.update(part)
    return digest.digest()


def _is_certain(stat: FileStat) -> bool:
    """Whether the times can tell a later change: they exist, and are not of this very moment."""
    if not stat.inode or not stat.ctime_ns:
        return False
    return time.time_ns() - max(stat.mtime_ns, stat.ctime_ns) >= RACY_CLOCK_NS
