"""A ledger that is only looked at: nothing is made, and nothing is missed."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import LedgerEntry, ToolError
from toolkit_core.host.sqlite import SQLiteLedger
from toolkit_core.host.sqlite.reading import ReadOnlyDatabase


def entry(number: int, text: str = "x") -> LedgerEntry:
    result = {"content": [{"type": "text", "text": text}], "data": None, "error": None}
    return LedgerEntry(f"e{number}", "s", "", "t", {"n": number}, "ok", result, 1.0, 0.0)


async def fill(path: Path, count: int) -> SQLiteLedger:
    ledger = SQLiteLedger(path)
    for number in range(count):
        assert await ledger.record(entry(number))
    return ledger


def there(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_control_a_plain_connection_makes_the_file(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "x").execute("PRAGMA user_version").connection.close()
    assert there(tmp_path) == ["x"]


async def test_reading_makes_no_file_and_changes_none(tmp_path: Path) -> None:
    with pytest.raises(ToolError) as missing:
        list(SQLiteLedger(tmp_path / "deep" / "nothere", read_only=True).calls())
    assert missing.value.code == "not_found"
    assert there(tmp_path) == []

    await (await fill(tmp_path / "l", 3)).aclose()
    before = (tmp_path / "l").read_bytes()
    reader = SQLiteLedger(tmp_path / "l", read_only=True)
    assert [call.entry.entry_id for call in reader.calls()] == ["e0", "e1", "e2"]
    assert reader.call("e1") is not None
    assert reader.ids("e", limit=2) == ["e0", "e1"]
    assert not await reader.record(entry(9))
    await reader.aclose()
    assert there(tmp_path) == ["l"]
    assert (tmp_path / "l").read_bytes() == before


async def test_what_a_live_writer_has_just_recorded_is_seen(tmp_path: Path) -> None:
    writer = await fill(tmp_path / "l", 1)
    reader = SQLiteLedger(tmp_path / "l", read_only=True)
    assert len(list(reader.calls())) == 1
    for number in range(1, 40):
        await writer.record(entry(number, "y" * 50_000))
        assert len(list(reader.calls())) == number + 1
    await writer.aclose()
    assert len(list(reader.calls())) == 40
    again = await fill(tmp_path / "l", 0)
    await again.record(entry(99))
    assert len(list(reader.calls())) == 41
    await again.aclose()
    assert len(list(reader.calls())) == 41
    await reader.aclose()


async def test_a_reader_neither_waits_for_a_writer_nor_holds_one_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolkit_core.host.sqlite.reading.SQLITE_BUSY_SECONDS", 0.1)
    monkeypatch.setattr("toolkit_core.host.sqlite.database.SQLITE_BUSY_SECONDS", 0.1)
    writer = await fill(tmp_path / "l", 2)
    holder = sqlite3.connect(tmp_path / "l", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    reader = SQLiteLedger(tmp_path / "l", read_only=True)
    assert len(list(reader.calls())) == 2
    holder.close()
    walk = reader.calls()
    next(walk)
    assert await writer.record(entry(9))
    await writer.aclose()
    await reader.aclose()


async def test_a_ledger_whose_writer_was_killed_is_read_whole(tmp_path: Path) -> None:
    code = f"""
import asyncio, os, signal
from toolkit_core import LedgerEntry
from toolkit_core.host.sqlite import SQLiteLedger
async def main():
    ledger = SQLiteLedger({str(tmp_path / "l")!r})
    for i in range(5):
        assert await ledger.record(LedgerEntry(f"e{{i}}", "s", "", "t", {{}}, "ok", None, 0.0, 0.0))
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(main())
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == -9
    assert there(tmp_path) == ["l", "l-shm", "l-wal"]
    assert len(list(SQLiteLedger(tmp_path / "l", read_only=True).calls())) == 5


async def test_a_file_in_a_folder_that_cannot_be_written_is_read() -> None:
    with tempfile.TemporaryDirectory() as made:  # pytest's own folders keep other users out
        folder = Path(made)
        await (await fill(folder / "l", 2)).aclose()
        (folder / "l").chmod(0o444)
        folder.chmod(0o555)
        code = f"""
import os, urllib.parse
from toolkit_core.host.sqlite import SQLiteLedger
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
assert not os.access({made!r}, os.W_OK)
print(len(list(SQLiteLedger({str(folder / "l")!r}, read_only=True).calls())))
"""
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout.strip() == "2", done.stderr
        assert there(folder) == ["l"]
        folder.chmod(0o755)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def text(path: Path) -> None:
    path.write_bytes(b"no database at all" * 300)


def cut_short(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.executescript("CREATE TABLE t (a); PRAGMA application_id = 1953188935;")
    made.close()
    path.write_bytes(path.read_bytes()[:1500])


def folder(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def older(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.executescript(f"CREATE TABLE t (a); PRAGMA application_id = {0x746B4C47}; PRAGMA user_version = 0;")
    made.close()


@pytest.mark.parametrize("spoil", [empty, text, cut_short, folder, fifo, older])
def test_what_is_no_ledger_is_said_and_left_as_it_is(tmp_path: Path, spoil: Any) -> None:
    spoil(tmp_path / "l")
    before = (tmp_path / "l").read_bytes() if (tmp_path / "l").is_file() else None
    with pytest.raises(ToolError) as refused:
        list(SQLiteLedger(tmp_path / "l", read_only=True).calls())
    assert refused.value.code == "io_error"
    assert there(tmp_path) == ["l"]
    assert before is None or (tmp_path / "l").read_bytes() == before


async def test_work_on_a_file_that_changed_meanwhile_is_done_once_more(tmp_path: Path) -> None:
    path = tmp_path / "l"
    await (await fill(path, 1)).aclose()
    reader = ReadOnlyDatabase(path, application_id=0x746B4C47, version=1)
    seen: list[int] = []

    def work(connection: sqlite3.Connection) -> int:
        [number] = connection.execute("SELECT count(*) FROM entries").fetchone()
        seen.append(number)
        if len(seen) == 1:
            with sqlite3.connect(path) as writer:
                writer.execute("UPDATE entries SET entry_id = 'changed'")
            writer.close()
        return connection.execute("SELECT entry_id FROM entries").fetchone()[0]

    assert reader.run_blocking(work) == "changed"
    assert len(seen) == 2
    reader.close()


async def test_odd_names_are_no_addresses(tmp_path: Path) -> None:
    for name in ("a?mode=rwc", "b#c", "d%41", "e f", "g\udcff"):
        await (await fill(tmp_path / name, 1)).aclose()
        assert len(list(SQLiteLedger(tmp_path / name, read_only=True).calls())) == 1
    assert len(there(tmp_path)) == 5
