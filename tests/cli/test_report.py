from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.report.test_page import Parsed, rows
from toolkit_core import SQLiteLedger, ToolContext, default_tools
from toolkit_core.cli import main


@pytest.fixture
async def path(workspace: Path, tmp_path: Path) -> Path:
    (workspace / "a.txt").write_text("old line\n")
    ledger = SQLiteLedger(tmp_path / "run.ledger")
    async with default_tools(workspace, ledger=ledger) as tools:
        around = ToolContext(session_id="one")
        read = await tools["read_file"].call({"path": "a.txt"}, around)
        await ledger.shown(read.entry_id or "", "what the model read")
        await tools["edit_file"].call({"path": "a.txt", "edits": [{"old_text": "old", "new_text": "new"}]}, around)
        await tools["read_file"].call({"path": "missing"}, ToolContext(session_id="two"))
    await ledger.aclose()
    return tmp_path / "run.ledger"


def drawn(path: Path) -> Parsed:
    return Parsed(path.read_text(encoding="utf-8"))


def test_the_page_holds_the_calls_their_results_and_what_the_model_read(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(target)]) == 0

    assert f"{target}: 3 calls" in capsys.readouterr().out
    page = drawn(target)
    assert [(row["tool"], row["code"]) for row in rows(page)] == [
        ("read_file", ""),
        ("edit_file", ""),
        ("read_file", "not_found"),
    ]
    assert page.json["c0"]["shown"] == "what the model read"
    assert "+new line" in page.json["c1"]["data"]["diff"]
    assert page.json["index"]["command"] == f"toolkit ledger {path}"
    assert stat.S_IMODE(target.stat().st_mode) & 0o077 == 0


def test_calls_are_chosen_as_in_the_list(path: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.html"
    assert main(["report", str(path), "-o", str(target), "--session", "two", "--outcome", "not_found"]) == 0
    assert [row["session_id"] for row in rows(drawn(target))] == ["two"]


def test_the_page_goes_to_report_html_here_unless_it_is_named(
    path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace)
    assert main(["report", str(path)]) == 0
    assert len(rows(drawn(workspace / "report.html"))) == 3


def test_the_ledger_is_never_replaced_by_its_page(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = path.read_bytes()
    assert main(["report", str(path), "-o", str(path)]) == 2
    os.link(path, path.with_name("same"))
    assert main(["report", str(path), "-o", str(path.with_name("same"))]) == 2
    assert "would replace the ledger" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_ledger_that_is_not_there_is_named_though_a_page_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "page.html").write_text("kept")
    assert main(["report", str(tmp_path / "nope.sqlite"), "-o", str(tmp_path / "page.html")]) == 1
    assert "nope.sqlite" in capsys.readouterr().err
    assert (tmp_path / "page.html").read_text() == "kept"


def test_a_page_that_cannot_be_written_leaves_nothing_and_an_older_one_as_it_was(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(path), "-o", str(tmp_path / "no" / "page.html")]) == 1
    assert "cannot be written: No such file" in capsys.readouterr().err
    (tmp_path / "folder").mkdir()
    assert main(["report", str(path), "-o", str(tmp_path / "folder")]) == 1
    older = tmp_path / "page.html"
    older.write_text("older")
    (tmp_path / "bad").write_bytes(b"x" * 5000)
    assert main(["report", str(tmp_path / "bad"), "-o", str(older)]) == 1
    assert older.read_text() == "older"
    assert not list(tmp_path.glob(".report-*"))


def test_a_link_is_followed_and_a_pipe_is_written_to(path: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.html").symlink_to("real/page.html")
    assert main(["report", str(path), "-o", str(tmp_path / "link.html")]) == 0
    assert (tmp_path / "link.html").is_symlink()
    assert len(rows(drawn(tmp_path / "real" / "page.html"))) == 3
    argv = [sys.executable, "-m", "toolkit_core.cli", "report", str(path), "-o", "/dev/stdout"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert len(rows(Parsed(done.stdout))) == 3
    assert done.stderr == "/dev/stdout: 3 calls\n"


def test_one_damaged_call_hides_no_other(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE contents SET result = '{' WHERE number = 2")
    connection.close()
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 0
    page = drawn(tmp_path / "page.html")
    assert len(rows(page)) == 3
    assert "cannot be read" in page.json["c1"]["text"]
    damaged = rows(page)[1]["entry_id"]
    assert main(["ledger", str(path), damaged]) == 1
    assert "is damaged" in capsys.readouterr().err
    assert main(["ledger", str(path)]) == 0


def test_a_name_that_is_no_text_is_drawn(path: Path, tmp_path: Path) -> None:
    odd = path.rename(tmp_path / "l\udcff\u202e<b>")
    assert main(["report", str(odd), "-o", str(tmp_path / "p\udcfe.html")]) == 0
    html = (tmp_path / "p\udcfe.html").read_text(encoding="utf-8")
    assert "l\\xff\\u202e&lt;b&gt; - tool calls</title>" in html


def test_a_full_disk_leaves_the_older_page(path: Path, tmp_path: Path) -> None:
    older = tmp_path / "page.html"
    older.write_text("older")
    code = f"""
import resource, signal, sys
from toolkit_core.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
sys.exit(main(["report", {str(path)!r}, "-o", {str(older)!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr
    assert older.read_text() == "older"
    assert not list(tmp_path.glob(".report-*"))


async def test_a_ledger_that_is_being_written_is_drawn_and_stays_writable(path: Path, tmp_path: Path) -> None:
    writer = SQLiteLedger(path)
    async with default_tools(tmp_path, ledger=writer) as tools:
        await tools["glob"](pattern="*")
        assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 0
        assert len(rows(drawn(tmp_path / "page.html"))) == 4
        assert (await tools["glob"](pattern="*")).entry_id is not None
    await writer.aclose()


def test_the_page_needs_nothing_that_the_wheel_lacks() -> None:
    folder = Path(sys.modules["toolkit_core"].__file__ or "").parent / "report"
    assert {"page.css", "page.html", "page.js"} <= {one.name for one in folder.iterdir()}
