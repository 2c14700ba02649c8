"""Reported failures of output windows, memory folders and questions to people, each as a test of ours."""

from __future__ import annotations

import asyncio
import os
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import Answer, Policy, Question, ToolContext, default_tools, memory, window
from toolkit_core.testing.ask import Answers
from toolkit_core.testing.ledger import InMemoryLedger
from toolkit_core.tools import ask_user_question_tool

# --- output ---


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
@pytest.mark.parametrize("around", ["", "small line\n" * 40])
def test_a_line_over_the_budget_never_windows_to_nothing(end: str, around: str) -> None:
    after = around if end else ""
    shown = window(f"{around}{'Z' * 250_000}{end}{after}")
    assert "ZZZ" in shown
    assert "line continues for 248" in shown
    assert shown.count("small line") == (around + after).count("small line")
    assert len(shown) < 31_000


@pytest.mark.parametrize("character", ["\u0431", "\U0001f600", "e\u0301", "\U0001f468\u200d\U0001f469", "\u0e01\u0e33"])
def test_a_cut_inside_other_scripts_breaks_no_character_and_counts_right(character: str) -> None:
    text = character * (40_000 // len(character))
    shown = window(text)
    shown.encode("utf-8")
    assert "\ufffd" not in shown
    head, _, note = shown.partition("[line continues for ")
    assert len(head) + int(note.split()[0]) == len(text)
    assert not unicodedata.combining(text[len(head)])


async def test_both_the_capture_and_the_window_say_what_they_cut(workspace: Path) -> None:
    ledger = InMemoryLedger()
    tools = default_tools(workspace, ledger=ledger)
    result: Any = await tools["shell"](command="yes a | head -c 3000000; echo the end")
    assert result.data["stdout_cut"]
    shown = window(result.text, recall_id=result.entry_id)
    assert len(shown) < 31_000
    assert "stdout was cut: 1,951,432 of 3,000,008 bytes are left out" in shown
    assert "omitted (" in shown
    assert shown.rstrip().endswith("the end")
    await tools.aclose()


async def test_what_the_window_left_out_is_recalled_from_an_in_memory_ledger_too(workspace: Path) -> None:
    (workspace / "log").write_text("".join(f"line {i}\n" for i in range(5_000)))
    ledger = InMemoryLedger()
    tools = default_tools(workspace, ledger=ledger)
    result: Any = await tools["shell"](command="cat log")
    found: Any = await tools["recall"](entry_id=result.entry_id, start_line=2_502, end_line=2_502)
    assert found.text == "line 2500"
    other: Any = await tools["recall"].call({"entry_id": result.entry_id}, ToolContext(session_id="another"))
    assert other.error.code == "not_found"
    await tools.aclose()


# --- memory ---


async def test_a_folder_below_a_link_is_judged_by_where_it_really_lies(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mem").symlink_to("out")
    for folder in (tmp_path / "mem", tmp_path / "mem" / "topic"):
        kept = memory(folder)
        assert not (await kept.tools["memory_write"](path="n.md", content="kept")).is_error
        for path in ("../x.md", "/tmp/x.md", "a/../../x.md", "../../x.md"):
            refused: Any = await kept.tools["memory_write"](path=path, content="x")
            assert refused.error.code == "access_denied"
    assert (tmp_path / "out" / "topic" / "n.md").read_text() == "kept"
    assert not (tmp_path / "x.md").exists()


async def test_a_link_planted_at_a_guessable_temporary_name_is_not_followed(tmp_path: Path) -> None:
    kept = memory(tmp_path / "mem")
    victim = tmp_path / "victim"
    victim.write_text("safe")
    for name in ("n.md.tmp", ".n.md.tmp", "n.md~", ".n.md.swp", "n.md.0", "tmp", f"n.md.{os.getpid()}"):
        (tmp_path / "mem" / name).symlink_to(victim)
    planted = sorted(os.listdir(tmp_path / "mem"))
    assert not (await kept.tools["memory_write"](path="n.md", content="new")).is_error
    assert victim.read_text() == "safe"
    assert sorted(os.listdir(tmp_path / "mem")) == sorted([*planted, "n.md"])


def binary(path: Path) -> None:
    path.write_bytes(b"\0\1\2")


def half_a_character(path: Path) -> None:
    path.write_bytes("fact caf\u00e9".encode()[:-1])


def folder(path: Path) -> None:
    path.mkdir()


def fifo(path: Path) -> None:
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.symlink_to(path.name)


def outside(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def huge(path: Path) -> None:
    path.write_bytes(b"fact\n" * 1_000_000)


@pytest.mark.parametrize("spoil", [binary, folder, fifo, endless, outside, huge])
async def test_a_corrupt_index_is_said_and_the_rest_of_the_memory_works(tmp_path: Path, spoil: Any) -> None:
    kept = memory(tmp_path / "mem")
    spoil(tmp_path / "mem" / "MEMORY.md")
    text = await asyncio.wait_for(kept.instructions(), 20)
    assert "MEMORY.md is unreadable now" in text
    assert len(text) < 2_000
    assert (await asyncio.wait_for(kept.tools["memory_read"](), 20)).is_error
    assert not (await kept.tools["memory_write"](path="other.md", content="fine")).is_error
    assert (await kept.tools["memory_read"](path="other.md")).text == "fine"


async def test_bytes_that_are_no_text_are_shown_as_what_they_are(tmp_path: Path) -> None:
    kept = memory(tmp_path / "mem")
    half_a_character(tmp_path / "mem" / "MEMORY.md")
    assert "fact caf\\xC3" in await kept.instructions()


async def test_an_index_of_giant_lines_does_not_fill_the_system_prompt(tmp_path: Path) -> None:
    kept = memory(tmp_path / "mem")
    (tmp_path / "mem" / "MEMORY.md").write_text("first fact\n" + ("x" * 9_000 + "\n") * 100)
    text = await kept.instructions()
    assert "first fact" in text
    assert len(text) < 32_000
    assert "omitted (" in text


# --- questions ---

DELETE = {"question": "Delete?", "options": ["yes", "no"]}


@pytest.mark.parametrize("reply", [None, "", Answer(), Answer(values=("",))])
async def test_approving_the_call_is_no_answer(answers: Answers, reply: Any) -> None:
    tool = ask_user_question_tool()
    arguments = {"questions": [DELETE]}
    assert (await Policy(mode="bypass").decide(tool, arguments)).action == "allow"
    answers.give(reply)
    context = ToolContext(ask=answers, approved_subject=await tool.subject(arguments))
    result = await tool.call(arguments, context)
    assert result.data == {"answers": [{"question": "Delete?", "cancelled": True}]}
    assert len(answers.questions) == 1


async def test_a_question_that_nobody_sees_ends_when_it_is_cancelled_and_answers_before_are_in_the_record() -> None:
    asked: list[str] = []

    async def port(question: Question) -> str:
        asked.append(question.question)
        if len(asked) == 2:
            await asyncio.Event().wait()
        return "fine"

    ledger = InMemoryLedger()
    questions = [{"question": f"Q{n}"} for n in (1, 2, 3)]
    call = ask_user_question_tool().call({"questions": questions}, ToolContext(ask=port, ledger=ledger))
    task = asyncio.ensure_future(call)
    while len(asked) < 2:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)
    assert asked == ["Q1", "Q2"]
    assert [entry.outcome for entry in ledger.entries] == ["cancelled"]


async def test_answers_before_a_dismissal_are_kept_apart_from_it(answers: Answers) -> None:
    answers.give("first", None)
    questions = [{"question": f"Q{n}"} for n in (1, 2, 3)]
    result: Any = await ask_user_question_tool().call({"questions": questions}, ToolContext(ask=answers))
    assert result.data["answers"] == [
        {"question": "Q1", "values": [], "text": "first"},
        {"question": "Q2", "cancelled": True},
        {"question": "Q3", "cancelled": True},
    ]
    assert len(answers.questions) == 2
