"""The ledger in an SQLite file."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit_core.errors import ToolError
from toolkit_core.host.redaction import Redaction
from toolkit_core.host.sqlite.database import Database
from toolkit_core.host.sqlite.reading import ReadOnlyDatabase
from toolkit_core.limits import LEDGER_MAX_BYTES, LEDGER_PAGE_ENTRIES
from toolkit_core.ports.ledger import LedgerEntry
from toolkit_core.schema import encodable

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

_log = logging.getLogger("toolkit_core")

_APPLICATION_ID: Final = 0x746B4C47  # "tkLG"

_MIGRATIONS: Final = (
    """
    CREATE TABLE entries (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        entry_id TEXT NOT NULL UNIQUE,
        parent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        call_id TEXT NOT NULL,
        tool TEXT NOT NULL,
        outcome TEXT NOT NULL,
        code TEXT NOT NULL,
        risk TEXT NOT NULL,
        traceparent TEXT NOT NULL,
        started_at REAL NOT NULL,
        duration_seconds REAL NOT NULL,
        size_bytes INTEGER NOT NULL,
        dropped INTEGER NOT NULL DEFAULT 0
    );
    CREATE INDEX entries_by_session ON entries (session_id, number);
    CREATE INDEX entries_kept ON entries (number) WHERE dropped = 0;
    CREATE TABLE contents (
        number INTEGER PRIMARY KEY REFERENCES entries (number),
        arguments TEXT NOT NULL,
        result TEXT,
        shown TEXT
    );
    CREATE TABLE totals (kept_bytes INTEGER NOT NULL);
    INSERT INTO totals VALUES (0)
    """,
)

_COLUMNS: Final = (
    "entry_id, parent_id, session_id, call_id, tool, outcome, code, risk, traceparent, "
    "started_at, duration_seconds, size_bytes, dropped, number"
)


@dataclass(frozen=True)
class RecordedCall:
    """One row of a ledger, its content apart.

    Attributes:
        entry: The call; arguments and result are empty where the content was dropped or not asked for.
        code: The error's code, "" for none.
        size_bytes: How much the content takes.
        dropped: The content was dropped to keep the ledger within its size.
        shown: What a model read of it, where that was not the whole.
    """

    entry: LedgerEntry
    code: str
    size_bytes: int
    dropped: bool
    shown: str | None = None


class SQLiteLedger:
    """Records every call whole in one file; safe from several threads, loops and processes.

    What fails (a locked, read-only or foreign file, a full disk) is logged once, counted in `failures`, and never
    fails a call.

    Args:
        path: The file. Nothing is read or written before the first call.
        redact: Secret values to replace, besides those of environment variables named KEY, TOKEN, SECRET, PASSWORD.
        max_bytes: Content beyond this is dropped, the oldest first; the rows stay and say so.
        read_only: Look at a ledger without making or changing anything; recording fails.

    Example:
        >>> tools = default_tools(".", ledger=SQLiteLedger("run.ledger"))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        redact: Iterable[str] = (),
        max_bytes: int = LEDGER_MAX_BYTES,
        read_only: bool = False,
    ) -> None:
        self._database: Database | ReadOnlyDatabase = (
            ReadOnlyDatabase(path, application_id=_APPLICATION_ID, version=len(_MIGRATIONS))
            if read_only
            else Database(path, _MIGRATIONS, application_id=_APPLICATION_ID)
        )
        self._redaction = Redaction(redact)
        self._max_bytes = max_bytes
        self.failures: int = 0

    @property
    def path(self) -> str:
        """The absolute path of the file."""
        return self._database.path

    async def record(self, entry: LedgerEntry) -> bool:
        """Store an entry; False where the file could not take it."""
        try:
            await self._database.run(lambda connection: self._insert(connection, entry))
        except ToolError as e:
            self.failures += 1
            if self.failures == 1:
                _log.error("calls are no longer recorded: %s", e.message)
            return False
        return True

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        """An entry of the same session, whole.

        Raises:
            ToolError: `not_found` (no such entry in this session, or its content was dropped), `io_error`.
        """
        found = await self._database.run(lambda connection: _one(connection, entry_id))
        if found is None or found.entry.session_id != encodable(session):
            raise ToolError(f"this session has no recorded call {entry_id!r}", code="not_found")
        if found.dropped:
            raise ToolError(
                f"the content of {entry_id} was dropped to keep the ledger within {self._max_bytes:,} bytes",
                code="not_found",
                hint="Make the call again.",
            )
        return found.entry

    async def shown(self, entry_id: str, text: str) -> None:
        """Keep what a model read of an entry; a failure is counted."""
        text = encodable(self._redaction(text))
        try:
            await self._database.run(lambda connection: self._keep_shown(connection, encodable(entry_id), text))
        except ToolError:
            self.failures += 1

    def calls(self, *, session: str | None = None) -> Iterator[RecordedCall]:
        """All calls in the order in which they were recorded, without their content.

        Raises:
            ToolError: `io_error`.
        """
        after = 0
        while True:
            page = self._database.run_blocking(partial(_page, after=after, session=session))
            yield from (call for _, call in page)
            if len(page) < LEDGER_PAGE_ENTRIES:
                return
            after = page[-1][0]

    def call(self, entry_id: str) -> RecordedCall | None:
        """One call with its content, whatever its session. Raises `ToolError` `io_error`."""
        return self._database.run_blocking(lambda connection: _one(connection, entry_id))

    def ids(self, beginning: str, *, limit: int = 10) -> list[str]:
        """Ids of entries that begin so, the oldest first. Raises `ToolError` `io_error`."""
        sql = "SELECT entry_id FROM entries WHERE substr(entry_id, 1, ?) = ? ORDER BY number LIMIT ?"
        beginning = encodable(beginning)
        values = (len(beginning), beginning, limit)
        return [row[0] for row in self._database.run_blocking(lambda found: found.execute(sql, values).fetchall())]

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()

    def _insert(self, connection: sqlite3.Connection, entry: LedgerEntry) -> None:
        arguments = json.dumps(self._redaction(dict(entry.arguments)), ensure_ascii=False)
        result = None if entry.result is None else self._redaction(dict(entry.result))
        content = None if result is None else json.dumps(result, ensure_ascii=False)
        error = cast("dict[str, Any]", (result or dict[str, Any]()).get("error") or {})
        size = len(arguments.encode()) + (0 if content is None else len(content.encode()))
        cursor = connection.execute(
            "INSERT INTO entries (entry_id, parent_id, session_id, call_id, tool, outcome, code, risk, traceparent, "
            "started_at, duration_seconds, size_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *map(encodable, (entry.entry_id, entry.parent_id, entry.session_id, entry.call_id, entry.tool)),
                entry.outcome,
                str(error.get("code", "")),
                entry.risk,
                encodable(entry.traceparent),
                entry.started_at,
                entry.duration_seconds,
                size,
            ),
        )
        connection.execute(
            "INSERT INTO contents (number, arguments, result) VALUES (?, ?, ?)", (cursor.lastrowid, arguments, content)
        )
        connection.execute("UPDATE totals SET kept_bytes = kept_bytes + ?", (size,))
        self._drop_oldest(connection)

    def _keep_shown(self, connection: sqlite3.Connection, entry_id: str, text: str) -> None:
        found = connection.execute(
            "SELECT number, coalesce(length(CAST(shown AS BLOB)), 0) FROM contents "
            "WHERE number = (SELECT number FROM entries WHERE entry_id = ?)",
            (entry_id,),
        ).fetchone()
        if found is None:  # dropped meanwhile, or never recorded
            return
        number, before = found
        more = len(text.encode()) - before
        connection.execute("UPDATE contents SET shown = ? WHERE number = ?", (text, number))
        connection.execute("UPDATE entries SET size_bytes = size_bytes + ? WHERE number = ?", (more, number))
        connection.execute("UPDATE totals SET kept_bytes = kept_bytes + ?", (more,))
        self._drop_oldest(connection)

    def _drop_oldest(self, connection: sqlite3.Connection) -> None:
        [kept] = connection.execute("SELECT kept_bytes FROM totals").fetchone()
        if kept <= self._max_bytes:
            return
        oldest = connection.execute("SELECT number, size_bytes FROM entries WHERE dropped = 0 ORDER BY number")
        gone: list[tuple[int]] = []
        for number, size in oldest:
            if kept <= self._max_bytes:
                break
            kept -= size
            gone.append((number,))
        oldest.close()
        connection.executemany("UPDATE entries SET dropped = 1 WHERE number = ?", gone)
        connection.executemany("DELETE FROM contents WHERE number = ?", gone)
        connection.execute("UPDATE totals SET kept_bytes = ?", (kept,))


def _one(connection: sqlite3.Connection, entry_id: str) -> RecordedCall | None:
    sql = f"SELECT {_COLUMNS} FROM entries WHERE entry_id = ?"  # noqa: S608 - constant columns
    row = connection.execute(sql, (encodable(entry_id),)).fetchone()
    if row is None:
        return None
    content = connection.execute(
        "SELECT arguments, result, shown FROM contents WHERE number = ?", (row[13],)
    ).fetchone()
    return _recorded(row, content)


def _page(connection: sqlite3.Connection, after: int, session: str | None) -> list[tuple[int, RecordedCall]]:
    where, values = ("AND session_id = ?", (encodable(session),)) if session is not None else ("", ())
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM entries WHERE number > ? {where} ORDER BY number LIMIT ?",  # noqa: S608 - constant parts
        (after, *values, LEDGER_PAGE_ENTRIES),
    )
    return [(row[13], _recorded(row, None)) for row in rows]


def _recorded(row: tuple[Any, ...], content: tuple[str, str | None, str | None] | None) -> RecordedCall:
    """The row as a call. Raises sqlite3.DatabaseError where somebody has changed it into what is none."""
    arguments, result, shown = content or ("{}", None, None)
    try:
        entry = LedgerEntry(
            entry_id=row[0],
            parent_id=row[1],
            session_id=row[2],
            call_id=row[3],
            tool=row[4],
            arguments=json.loads(arguments),
            outcome=row[5],
            result=None if result is None else json.loads(result),
            started_at=float(row[9]),
            duration_seconds=float(row[10]),
            risk=row[7],
            traceparent=row[8],
        )
        return RecordedCall(entry, code=row[6], size_bytes=int(row[11]), dropped=bool(row[12]), shown=shown)
    except (ValueError, TypeError, RecursionError) as e:
        raise sqlite3.DatabaseError(f"entry {row[0]!r} is damaged ({type(e).__name__})") from e
