from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import SQLiteLedger, ToolContext, ToolError, ToolResult, function_tool
from toolkit_core.cli import ledger as ledger_command
from toolkit_core.cli import main


@function_tool
async def speak(text: str, fail: bool = False) -> Any:
    """Speak."""
    if fail:
        raise ToolError("no voice", code="unavailable")
    return ToolResult.ok(text, {"said": text})


@function_tool
async def think() -> str:
    """Think."""
    return "hm"


@pytest.fixture
async def path(tmp_path: Path) -> Path:
    ledger = SQLiteLedger(tmp_path / "run.ledger")
    one, two = ToolContext(session_id="one", ledger=ledger), ToolContext(session_id="two", ledger=ledger)
    await speak.call({"text": "first words\nand more"}, one)
    await speak.call({"text": "x", "fail": True}, one)
    await think.call({}, two)
    result = await speak.call({"text": "y" * 50_000}, two)
    await ledger.shown(result.entry_id or "", "a part of it")
    await ledger.aclose()
    return ledger_path(ledger)


def ledger_path(ledger: SQLiteLedger) -> Path:
    return Path(ledger.path)


def listed(capsys: pytest.CaptureFixture[str], *argv: object) -> list[dict[str, Any]]:
    assert main(["ledger", *map(str, argv), "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_it_lists_every_call_on_a_line(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", str(path)]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert "speak  [one]" in lines[0]
    assert " unavailable " in lines[1]


@pytest.mark.parametrize(
    ("options", "tools"),
    [
        ((), ["speak", "speak", "think", "speak"]),
        (("--session", "two"), ["think", "speak"]),
        (("--tool", "think"), ["think"]),
        (("--outcome", "error"), ["speak"]),
        (("--outcome", "unavailable"), ["speak"]),
        (("--outcome", "ok", "--tool", "speak", "--session", "one"), ["speak"]),
        (("--session", "nobody"), []),
    ],
)
def test_calls_are_chosen(
    path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], tools: list[str]
) -> None:
    assert [call["tool"] for call in listed(capsys, path, *options)] == tools


def test_one_call_is_shown_whole_by_the_beginning_of_its_id(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = listed(capsys, path)
    for spelled in (calls[0]["entry_id"], calls[0]["entry_id"][:10]):
        assert main(["ledger", str(path), spelled]) == 0
        out = capsys.readouterr().out
        assert "first words\nand more" in out
        assert '"text": "first words\\nand more"' in out
    assert main(["ledger", str(path), calls[3]["entry_id"]]) == 0
    assert "y" * 50_000 in capsys.readouterr().out
    assert main(["ledger", str(path), calls[3]["entry_id"], "--shown"]) == 0
    assert capsys.readouterr().out == "a part of it\n"
    assert main(["ledger", str(path), calls[3]["entry_id"], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["data"] == {"said": "y" * 50_000}


def test_an_unknown_and_an_ambiguous_entry_are_said(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", str(path), "zzz"]) == 1
    assert "there is no entry 'zzz'" in capsys.readouterr().err
    assert main(["ledger", str(path), ""]) == 1
    assert "4 entries begin with ''" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["ledger", "report"])
def test_a_missing_file_and_one_that_is_no_ledger_are_said_and_nothing_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([command, "nothere"]) == 1
    assert f"toolkit {command}: there is no file {tmp_path / 'nothere'}" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "notes.txt").write_text("no ledger " * 100)
    assert main([command, "notes.txt"]) == 1
    assert "file is not a database" in capsys.readouterr().err
    assert main([command, "."]) == 1
    assert "no regular file" in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["notes.txt"]


async def test_an_empty_ledger_and_a_dropped_call_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ledger = SQLiteLedger(tmp_path / "small", max_bytes=10)
    result = await speak.call({"text": "z" * 100}, ToolContext(ledger=ledger))
    await ledger.aclose()
    assert main(["ledger", str(tmp_path / "small")]) == 0
    assert "(content dropped)" in capsys.readouterr().out
    assert main(["ledger", str(tmp_path / "small"), result.entry_id or ""]) == 0
    assert "was dropped to keep the ledger within its size" in capsys.readouterr().out
    assert main(["ledger", str(tmp_path / "small"), "--tool", "nope"]) == 0
    assert "no call fits" in capsys.readouterr().out


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("terminal", [True, False])
async def test_only_a_terminal_is_spared_what_would_steer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    said = "\x1b]0;title\x07 \x1b[2J \x9b31m \u202e abc\r\n\tend"
    ledger = SQLiteLedger(tmp_path / "l\x1b[2J")
    result = await speak.call({"text": said}, ToolContext(ledger=ledger, session_id="s\x1b[2J"))
    await ledger.aclose()
    out = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["ledger", ledger.path, result.entry_id or ""]) == 0
    assert main(["ledger", ledger.path]) == 0
    shown = out.getvalue()
    assert (said in shown) is not terminal
    if terminal:
        assert not any(steering in shown for steering in "\x1b\x07\x9b\u202e\r")
        assert "\\x1b]0;title\\x07" in shown


def test_moments_out_of_range_are_numbers() -> None:
    assert ledger_command.moment(1e300) == "1e+300"
