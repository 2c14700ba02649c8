"""An SQLite file that is only read: nothing is created, changed or locked by it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.host.sqlite.database import schema_version
from toolkit_core.limits import SQLITE_BUSY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_Seen = tuple[int, int, int, bool]


class ReadOnlyDatabase:
    """A file of a known schema, opened when it is first used; has the methods of `Database`.

    While somebody has it open for writing, its write-ahead log lies beside it, and it is read with SQLite's locks.
    Otherwise it is read as it is (`immutable=1`, https://www.sqlite.org/c3ref/open.html), since in any other way SQLite
    would make the log's two files; should it change meanwhile, the work is done once more.

    Args:
        path: The file.
        application_id: As it was made with.
        version: The schema's version that is read.
    """

    def __init__(self, path: str | os.PathLike[str], *, application_id: int, version: int) -> None:
        if not os.fspath(path):
            raise ValueError("the path is empty: name the file")
        self.path: str = os.path.abspath(os.path.expanduser(path))
        self._application_id, self._wanted = application_id, version
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._seen: _Seen | None = None
        self._pid = 0

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a worker thread; see `run_blocking`."""
        return await asyncio.to_thread(self.run_blocking, work)

    def run_blocking(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on the file as it stands.

        Raises:
            ToolError: `not_found` (there is no such file), `io_error` with SQLite's own words.
        """
        with self._lock:
            try:
                while True:
                    seen, answer = self._attempt(work)
                    if self._look() == seen or seen[3]:
                        return answer
            except FileNotFoundError as e:
                raise ToolError(f"there is no file {self.path}", code="not_found", hint="Check the path.") from e
            except (sqlite3.Error, OSError) as e:
                raise ToolError(
                    f"{self.path} cannot be read: {e}",
                    code="io_error",
                    hint="Check that the file is what it should be. One that another program has open can be read "
                    "only where its folder can be written; elsewhere copy it together with its -wal file.",
                ) from e

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._close()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> tuple[_Seen, T]:
        seen = self._look()
        if self._connection is None or self._pid != os.getpid() or self._seen != seen:
            self._close()
            self._connection, self._seen, self._pid = self._open(has_log=seen[3]), seen, os.getpid()
        connection = self._connection
        if not seen[3]:
            try:
                return seen, work(connection)
            except sqlite3.DatabaseError:
                if self._look() == seen:
                    raise
                return self._attempt(work)  # half of it was from before somebody wrote
        connection.execute("BEGIN")
        try:
            return seen, work(connection)
        finally:
            connection.execute("ROLLBACK")

    def _look(self) -> _Seen:
        """What tells whether somebody wrote to it, and whether its log is there."""
        about = os.stat(self.path)
        has_log = os.path.exists(f"{self.path}-wal")
        return (0, 0, about.st_ino, True) if has_log else (about.st_mtime_ns, about.st_size, about.st_ino, False)

    def _open(self, *, has_log: bool) -> sqlite3.Connection:
        if not os.path.isfile(self.path):
            raise OSError("it is no regular file")
        address = f"{Path(self.path).as_uri()}?{'mode=ro' if has_log else 'mode=ro&immutable=1'}"
        connection = sqlite3.connect(
            address, uri=True, timeout=SQLITE_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            version = schema_version(connection, application_id=self._application_id, newest=self._wanted)
            if version < self._wanted:
                what = "it is empty" if version == 0 else f"it was made by an older version (schema {version})"
                raise sqlite3.DatabaseError(what)
        except BaseException:
            connection.close()
            raise
        return connection

    def _close(self) -> None:
        if self._connection is not None and self._pid == os.getpid():
            self._connection.close()
        self._connection = None
