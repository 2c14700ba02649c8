"""One SQLite file: opened when it is first used, safe from threads, processes and forks."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from typing import TYPE_CHECKING, TypeVar

from toolkit_core.errors import ToolError
from toolkit_core.limits import SQLITE_BUSY_SECONDS
from toolkit_core.worker_threads import begin_in_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")


class Database:
    """A file with a schema of numbered versions.

    Write-ahead logging: readers and one writer of any process work beside each other, and a process killed at
    any moment loses at most the transaction it was in (https://www.sqlite.org/wal.html).

    Args:
        path: The file; it and its folder are made when it is first written.
        migrations: SQL scripts; the n-th leads from version n to n + 1 (`PRAGMA user_version`).
        application_id: Marks the file as ours (`PRAGMA application_id`).
    """

    def __init__(self, path: str | os.PathLike[str], migrations: Sequence[str], *, application_id: int) -> None:
        if not os.fspath(path):
            raise ValueError("the path is empty: name the file")
        self.path: str = os.path.abspath(os.path.expanduser(path))
        self._migrations, self._application_id = tuple(migrations), application_id
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._pid = 0
        self._file: tuple[int, int] | None = None

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a worker thread, within one transaction.

        Raises:
            ToolError: `io_error`, with SQLite's own words, whatever kept it from working.
        """
        return await begin_in_thread(lambda: self.run_blocking(work))

    def run_blocking(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The same in the caller's thread."""
        with self._lock:
            try:
                connection = self._open()
                with connection:  # commits, or rolls back where it raises
                    connection.execute("BEGIN IMMEDIATE")
                    return work(connection)
            except (sqlite3.Error, OSError) as e:
                raise ToolError(
                    f"the database {self.path} cannot be used: {e}",
                    code="io_error",
                    hint="Check that the file is a database of the toolkit, that its folder can be written, "
                    "that the disk is not full and that nobody keeps it locked.",
                ) from e

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._connection is not None and self._pid == os.getpid():
                self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is not None and self._pid == os.getpid():
            if self._is_in_place():
                return self._connection
            self._connection.close()  # what is written to a file that was removed or replaced is lost
            self._connection = None
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        # A connection must not cross a fork; the child opens its own and leaves the parent's alone.
        connection = sqlite3.connect(
            self.path, timeout=SQLITE_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid, self._file = connection, os.getpid(), self._identity()
        weakref.finalize(self, _close, connection, self._pid)
        return connection

    def _is_in_place(self) -> bool:
        return self._identity() == self._file

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._version(connection)  # before anything is set: somebody else's file is left as it is
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for script in self._migrations[self._version(connection) :]:
                for statement in filter(str.strip, script.split(";")):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._application_id}")
            connection.execute(f"PRAGMA user_version = {len(self._migrations)}")

    def _version(self, connection: sqlite3.Connection) -> int:
        return schema_version(connection, application_id=self._application_id, newest=len(self._migrations))


def _close(connection: sqlite3.Connection, pid: int) -> None:
    """Close what nobody closed; a forked child leaves its parent's connection alone."""
    if pid == os.getpid():
        connection.close()


def schema_version(connection: sqlite3.Connection, *, application_id: int, newest: int) -> int:
    """The schema's version; raises where the file is not ours, or from the future."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    [owner] = connection.execute("PRAGMA application_id").fetchone()
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if owner != application_id and (owner or tables):
        raise sqlite3.DatabaseError("it is the database of another program")
    if version > newest:
        raise sqlite3.DatabaseError(f"it was made by a newer version (schema {version})")
    return int(version)
