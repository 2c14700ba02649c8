"""The ledger in a file: whole, within its session, and never the reason that a call fails."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support import soak
from toolkit_core import ImageBlock, LedgerEntry, ToolContext, ToolError, ToolResult, function_tool
from toolkit_core.host.sqlite import SQLiteLedger
from toolkit_core.tools import recall_tool


@function_tool
async def speak(text: str, fail: bool = False) -> Any:
    """Speak."""
    if fail:
        raise ToolError("no voice", code="unavailable", detail=text)
    return ToolResult.ok(text, {"said": text}, images=(ImageBlock("image/png", b"\x89PNG"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "run.ledger"


async def test_calls_come_back_whole_in_order_and_by_session(path: Path) -> None:
    ledger = SQLiteLedger(path)
    assert not path.exists()
    for session, text in (("a", "one \u00e9\n"), ("b", "two"), ("a", "x" * 100_000)):
        await speak.call({"text": text}, ToolContext(session_id=session, ledger=ledger, call_id="c"))
    await speak.call({"text": "t", "fail": True}, ToolContext(session_id="a", ledger=ledger))

    calls = list(ledger.calls())
    assert [call.entry.session_id for call in calls] == ["a", "b", "a", "a"]
    assert [call.code for call in calls] == ["", "", "", "unavailable"]
    assert len(list(ledger.calls(session="b"))) == 1
    whole = ledger.call(calls[2].entry.entry_id)
    assert whole is not None
    assert whole.entry.arguments == {"text": "x" * 100_000}
    assert ToolResult.from_dict(whole.entry.result or {}).images == (ImageBlock("image/png", b"\x89PNG"),)
    again = SQLiteLedger(path)
    assert [call.entry.entry_id for call in again.calls()] == [call.entry.entry_id for call in calls]


async def test_recall_reads_only_its_own_session(path: Path) -> None:
    ledger = SQLiteLedger(path)
    mine = await speak.call({"text": "a\nb\nc"}, ToolContext(session_id="a", ledger=ledger))
    recall = recall_tool(ledger)

    part = await recall.call({"entry_id": mine.entry_id, "start_line": 2, "end_line": 3}, ToolContext(session_id="a"))
    assert part.text == "b\nc"
    assert part.data == {"entry_id": mine.entry_id, "first_line": 2, "last_line": 3}
    chars = await recall.call({"entry_id": mine.entry_id, "start_char": 1, "end_char": 3}, ToolContext(session_id="a"))
    assert (chars.text, chars.data) == ("\nb", {"entry_id": mine.entry_id, "start_char": 1, "end_char": 3})
    for session, entry_id in (("b", mine.entry_id), ("a", "nope")):
        other: Any = await recall.call({"entry_id": entry_id}, ToolContext(session_id=session))
        assert other.error.code == "not_found"
    for arguments in ({"start_line": 3, "end_line": 2}, {"start_line": 1, "start_char": 1}, {"start_line": 9}):
        wrong: Any = await recall.call({"entry_id": mine.entry_id, **arguments}, ToolContext(session_id="a"))
        assert wrong.error.code == "invalid_arguments"
    with pytest.raises(TypeError, match="needs a ledger"):
        recall_tool(None)  # pyright: ignore[reportArgumentType]  (the point of the test)


async def test_secrets_are_redacted_on_the_way_in(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sk-1234567890")
    monkeypatch.setenv("db_password", "hunter2hunter2")
    monkeypatch.setenv("SHORT_KEY", "abc")
    ledger = SQLiteLedger(path, redact=["xyz"])
    said = 'sk-1234567890 and hunter2hunter2 and "xyz" and abc\n'
    result = await speak.call({"text": said}, ToolContext(ledger=ledger))

    assert result.text == said
    assert result.entry_id is not None
    kept = ledger.call(result.entry_id)
    assert kept is not None
    assert kept.entry.arguments == {"text": '[redacted]*** and [redacted]**** and "***" and abc\n'}
    await ledger.shown(result.entry_id, "seen sk-1234567890")
    await ledger.aclose()
    raw = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for secret in (b"sk-1234567890", b"hunter2", b"xyz"):
        assert secret not in raw
    again = ledger.call(result.entry_id)
    assert again is not None
    assert again.shown == "seen [redacted]***"


async def test_ranges_of_a_recorded_text_mean_what_they_meant_before_redaction(path: Path) -> None:
    secret = "line one\nline two of a key"
    said = f"{secret} {secret}" + "x" * 5_000 + "\nend"
    ledger = SQLiteLedger(path, redact=[secret])
    result = await speak.call({"text": said}, ToolContext(session_id="a", ledger=ledger))
    kept = ToolResult.from_dict((await ledger.read(result.entry_id or "", session="a")).result or {}).text
    assert secret not in kept
    assert [i for i, c in enumerate(kept) if c == "\n"] == [i for i, c in enumerate(said) if c == "\n"]
    assert kept[-5_000:] == said[-5_000:]
    recalled = await recall_tool(ledger).call(
        {"entry_id": result.entry_id, "start_char": 10**9}, ToolContext(session_id="a")
    )
    assert f"the text has {len(said)} characters" in recalled.text


async def test_the_oldest_content_is_dropped_first_and_said(path: Path) -> None:
    ledger = SQLiteLedger(path, max_bytes=50_000)
    ids = [
        (await speak.call({"text": "y" * 5_000}, ToolContext(session_id="a", ledger=ledger))).entry_id for _ in range(8)
    ]

    calls = list(ledger.calls())
    assert len(calls) == 8
    dropped = [call.dropped for call in calls]
    assert dropped == sorted(dropped, reverse=True)
    assert 0 < sum(dropped) < 8
    assert sum(call.size_bytes for call in calls if not call.dropped) <= 50_000
    with pytest.raises(ToolError, match="was dropped to keep the ledger within 50,000 bytes"):
        await ledger.read(ids[0] or "", session="a")
    assert (await ledger.read(ids[-1] or "", session="a")).arguments == {"text": "y" * 5_000}


async def test_what_models_read_counts_towards_the_size(path: Path) -> None:
    ledger = SQLiteLedger(path, max_bytes=50_000)
    for _ in range(20):
        result = await speak.call({"text": "y"}, ToolContext(session_id="a", ledger=ledger))
        for text in ("a first try", "\u00e9" * 5_000):
            await ledger.shown(result.entry_id or "", text)
    calls = list(ledger.calls())
    kept = [call for call in calls if not call.dropped]
    assert 3 <= len(kept) <= 5
    assert sum(call.size_bytes for call in kept) <= 50_000
    with sqlite3.connect(path) as connection:
        [total] = connection.execute("SELECT kept_bytes FROM totals").fetchone()
        [real] = connection.execute(
            "SELECT sum(length(CAST(arguments AS BLOB)) + length(CAST(result AS BLOB)) + length(CAST(shown AS BLOB)))"
            " FROM contents"
        ).fetchone()
    connection.close()
    assert total == real == sum(call.size_bytes for call in kept)


def not_a_database(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 100)


def somebody_elses(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()


def newer(path: Path) -> None:
    asyncio.run(speak.call({"text": "x"}, ToolContext(ledger=SQLiteLedger(path))))
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def a_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("spoil", [not_a_database, somebody_elses, newer, a_folder])
def test_a_file_that_is_no_ledger_fails_no_call_and_is_said_once(
    path: Path, spoil: Any, caplog: pytest.LogCaptureFixture
) -> None:
    path.parent.mkdir()
    spoil(path)
    before = path.read_bytes() if path.is_file() else None
    ledger = SQLiteLedger(path)

    async def three() -> list[Any]:
        return [await speak.call({"text": "fine"}, ToolContext(ledger=ledger)) for _ in range(3)]

    with caplog.at_level(logging.ERROR, "toolkit_core"):
        results = asyncio.run(three())
    assert [(r.text, r.entry_id) for r in results] == [("fine", None)] * 3
    assert ledger.failures == 3
    assert caplog.text.count("no longer recorded") == 1
    if spoil is not newer:
        assert before == (path.read_bytes() if path.is_file() else None)
    with pytest.raises(ToolError):
        list(ledger.calls())


async def test_a_locked_ledger_fails_no_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = SQLiteLedger(path)
    await speak.call({"text": "x"}, ToolContext(ledger=ledger))
    monkeypatch.setattr("toolkit_core.host.sqlite.database.SQLITE_BUSY_SECONDS", 0.1)
    waiting = SQLiteLedger(path)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert (await speak.call({"text": "x"}, ToolContext(ledger=waiting))).text == "x"
        assert waiting.failures == 1
    finally:
        holder.close()
    assert (await speak.call({"text": "x"}, ToolContext(ledger=waiting))).entry_id is not None


def test_a_full_disk_fails_no_call(path: Path) -> None:
    code = f"""
        import asyncio, resource, signal
        from toolkit_core import ToolContext, function_tool
        from toolkit_core.host.sqlite import SQLiteLedger
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        ledger = SQLiteLedger({str(path)!r})

        @function_tool
        async def speak(text: str) -> str:
            "Speak."
            return text

        async def main():
            first = await speak.call({{"text": "x"}}, ToolContext(ledger=ledger))
            assert first.entry_id
            resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
            for _ in range(5):
                assert (await speak.call({{"text": "y" * 500_000}}, ToolContext(ledger=ledger))).text
            assert ledger.failures == 5, ledger.failures

        asyncio.run(main())
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)
    assert len(list(SQLiteLedger(path).calls())) == 1


async def test_a_ledger_in_a_folder_that_cannot_be_written_fails_no_call() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders keep other users out
        Path(folder).chmod(0o555)
        code = f"""
            import asyncio, os
            from toolkit_core import ToolContext, function_tool
            from toolkit_core.host.sqlite import SQLiteLedger

            @function_tool
            async def speak(text: str) -> str:
                "Speak."
                return text

            async def main():
                await asyncio.to_thread(int)  # another user may not be able to import the standard library
                if os.geteuid() == 0:
                    os.setgid(65534)
                    os.setuid(65534)
                ledger = SQLiteLedger({folder + "/deep/l"!r})
                for _ in range(3):
                    result = await speak.call({{"text": "x"}}, ToolContext(ledger=ledger))
                    assert result.text == "x"
                    assert result.entry_id is None
                assert ledger.failures == 3, ledger.failures

            asyncio.run(main())
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("no longer recorded") == 1
        assert os.listdir(folder) == []
        Path(folder).chmod(0o755)


@pytest.mark.parametrize("how", ["removed", "replaced"])
async def test_what_is_acknowledged_after_the_file_was_taken_away_is_in_the_new_file(path: Path, how: str) -> None:
    ledger = SQLiteLedger(path)
    await speak.call({"text": "before"}, ToolContext(ledger=ledger))
    for part in path.parent.iterdir():
        part.rename(path.parent.parent / part.name)
    if how == "replaced":
        await SQLiteLedger(path).record(LedgerEntry("other", "s", "", "t", {}, "ok", None, 0.0, 0.0))
    result = await speak.call({"text": "after"}, ToolContext(ledger=ledger))
    assert result.entry_id in [call.entry.entry_id for call in SQLiteLedger(path).calls()]


async def test_many_threads_and_loops_write_one_ledger(path: Path) -> None:
    ledger = SQLiteLedger(path)

    def work() -> None:
        async def many() -> None:
            await asyncio.gather(*(speak.call({"text": str(i)}, ToolContext(ledger=ledger)) for i in range(25)))

        asyncio.run(many())

    await asyncio.gather(*(asyncio.to_thread(work) for _ in range(4)))
    assert len(list(ledger.calls())) == 100
    assert ledger.failures == 0


WRITER = """
import asyncio, sys, time
from toolkit_core import LedgerEntry
from toolkit_core.host.sqlite import SQLiteLedger

async def main():
    ledger = SQLiteLedger(sys.argv[1])
    result = {"content": [{"type": "text", "text": "z" * 3000}]}
    for i in range(100_000):
        entry = LedgerEntry(f"{sys.argv[2]}-{i}", "s", "", "t", {"n": i}, "ok", result, 0.0, 0.0)
        if await ledger.record(entry):
            print(entry.entry_id, flush=True)

asyncio.run(main())
"""


def acknowledged_before_they_were_killed(path: Path, round_: int) -> set[str]:
    """Eight processes write; once all of them are at it, all are killed, at no moment in particular."""
    argv = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*argv, f"{round_}.{n}"], stdout=subprocess.PIPE) for n in range(8)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.read(1) == str(round_)[0].encode()  # it has acknowledged its first entry
    time.sleep(0.2 + random.random() / 2)
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
    seen: set[str] = set()
    for writer in writers:
        rest, _ = writer.communicate()
        whole = (str(round_)[0] + rest.decode()).split("\n")[:-1]
        seen.update(whole)
    return seen


def test_killed_writers_lose_no_acknowledged_entry_and_never_the_file(path: Path) -> None:
    acknowledged: set[str] = set()
    for round_ in range(soak(20)):
        acknowledged |= acknowledged_before_they_were_killed(path, round_)
    assert len(acknowledged) >= 8 * soak(20)
    ledger = SQLiteLedger(path)
    stored = {call.entry.entry_id for call in ledger.calls()}
    assert acknowledged <= stored
    for entry_id in list(stored)[:200]:
        call = ledger.call(entry_id)
        assert call is not None
        assert ToolResult.from_dict(call.entry.result or {}).text == "z" * 3000
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_opens_the_file_anew(path: Path) -> None:
    ledger = SQLiteLedger(path)
    entry = LedgerEntry("parent", "s", "", "t", {}, "ok", None, 0.0, 0.0)
    assert asyncio.run(ledger.record(entry))
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            child = LedgerEntry("child", "s", "", "t", {}, "ok", None, 0.0, 0.0)
            code = 0 if asyncio.run(ledger.record(child)) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert [call.entry.entry_id for call in ledger.calls()] == ["parent", "child"]


def test_the_cost_of_an_entry_does_not_grow_with_the_ledger(path: Path) -> None:
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > 0
    ledger = SQLiteLedger(path, max_bytes=20_000)

    async def fill(first: int, count: int) -> float:
        start = time.perf_counter()
        for i in range(first, first + count):
            await ledger.record(LedgerEntry(str(i), "s", "", "t", {"n": "m" * 100}, "ok", None, 0.0, 0.0))
        return time.perf_counter() - start

    early = asyncio.run(fill(0, 300))
    asyncio.run(fill(300, 1200))
    late = asyncio.run(fill(1500, 300))
    assert late < 10 * early + 0.5


async def test_ids_that_have_no_utf8_form_are_recorded_and_found(path: Path) -> None:
    ledger = SQLiteLedger(path)
    odd = ToolContext(session_id="s\udcff", call_id="c\ud800", traceparent="\udfff", ledger=ledger)
    result = await speak.call({"text": "x\ud800"}, odd)
    assert result.entry_id is not None
    assert (await ledger.read(result.entry_id, session="s\udcff")).arguments == {"text": "x\\ud800"}
    assert len(list(ledger.calls(session="s\udcff"))) == 1
    await ledger.shown("\ud800", "x\ud800")
    with pytest.raises(ToolError, match="no recorded call"):
        await ledger.read("\ud800", session="s\udcff")
    assert ledger.failures == 0


@pytest.mark.parametrize("damage", ["{", "[" * 100_000, "9" * 5_000, "\x00", ""])
async def test_a_damaged_entry_is_an_error_of_its_own_and_hides_no_other(path: Path, damage: str) -> None:
    ledger = SQLiteLedger(path)
    ids = [(await speak.call({"text": "x"}, ToolContext(ledger=ledger))).entry_id or "" for _ in range(3)]
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE contents SET result = ? WHERE number = 2", (damage,))
    connection.close()
    assert [call.entry.entry_id for call in ledger.calls()] == ids
    with pytest.raises(ToolError, match="is damaged") as caught:
        ledger.call(ids[1])
    assert caught.value.code == "io_error"
    recalled: Any = await recall_tool(ledger).call({"entry_id": ids[1]}, ToolContext(session_id="default"))
    assert recalled.error.code == "io_error"
    assert ledger.call(ids[2]) is not None


def test_an_empty_path_and_one_string_of_secrets_are_refused(path: Path) -> None:
    for read_only in (False, True):
        with pytest.raises(ValueError, match="path is empty"):
            SQLiteLedger("", read_only=read_only)
    with pytest.raises(TypeError, match="list of values"):
        SQLiteLedger(path, redact="secret")
