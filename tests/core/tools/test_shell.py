from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.context import Progress, ToolContext
from toolkit_core.effects import Claims, conflicts
from toolkit_core.errors import ToolError
from toolkit_core.host.commands import HostCommands
from toolkit_core.output_window import bounded
from toolkit_core.ports.commands import CommandResult
from toolkit_core.result import ToolResult
from toolkit_core.testing.commands import ScriptedCommands
from toolkit_core.tool import Tool, ToolSet
from toolkit_core.tools import bash_tool, shell_tool
from toolkit_core.tools._command_text import LiveText, output_text, stripped

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
async def shell(tmp_path: Path) -> AsyncIterator[Tool[Any]]:
    commands = HostCommands(tmp_path)
    yield shell_tool(commands)
    await commands.aclose()


def scripted(outcome: CommandResult | str | Exception, **options: Any) -> tuple[Tool[Any], ScriptedCommands]:
    commands = ScriptedCommands({"x": outcome})
    return shell_tool(commands, **options), commands


def code_of(result: ToolResult[Any]) -> str:
    assert result.error is not None, result.text
    return result.error.code


def data(result: ToolResult[Any]) -> dict[str, Any]:
    assert result.data is not None
    return result.data


async def test_shows_exit_code_and_streams(shell: Tool[Any]) -> None:
    assert (await shell(command="echo hi")).text == "exit code: 0\nhi\n"
    both = await shell(command="printf out; echo err >&2; exit 3")
    assert both.text == "exit code: 3\nout\n--- stderr ---\nerr\n"
    assert not both.is_error
    assert (await shell(command="echo err >&2")).text == "exit code: 0\n--- stderr ---\nerr\n"


async def test_the_data_has_the_declared_keys(shell: Tool[Any]) -> None:
    result = await shell(command="echo a; echo b >&2; exit 7")
    duration = data(result).pop("duration_seconds")
    assert 0 < duration < 60
    assert data(result) == {
        "exit_code": 7,
        "signal": None,
        "stdout": "a\n",
        "stderr": "b\n",
        "stdout_cut": 0,
        "stderr_cut": 0,
        "timed_out": False,
        "survivors_killed": 0,
    }


@pytest.mark.parametrize(("command", "code"), [("true", 0), ("grep zzz /dev/null", 1)])
async def test_no_output_is_said(shell: Tool[Any], command: str, code: int) -> None:
    assert (await shell(command=command)).text == f"exit code: {code}\n(no output)"


async def test_non_zero_is_data_unless_it_shall_be_an_error(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    assert not (await shell_tool(commands)(command="echo out; exit 2")).is_error
    strict = await shell_tool(commands, nonzero_is_error=True)(command="echo out; exit 2")
    assert code_of(strict) == "failed"
    assert strict.text.startswith("Error (failed): exit code: 2")
    assert "out\n" in strict.text
    assert data(strict)["exit_code"] == 2
    assert not (await shell_tool(commands, nonzero_is_error=True)(command="true")).is_error
    await commands.aclose()


@pytest.mark.parametrize(
    ("command", "name", "number"), [("kill -9 $$", "SIGKILL", 9), ("kill -SEGV $$", "SIGSEGV", 11)]
)
async def test_death_by_signal_is_the_error_killed(shell: Tool[Any], command: str, name: str, number: int) -> None:
    result = await shell(command=f"echo start; {command}")
    assert code_of(result) == "killed"
    assert name in result.text
    assert "start\n" in result.text
    assert (data(result)["exit_code"], data(result)["signal"], data(result)["stdout"]) == (None, number, "start\n")


async def test_a_timeout_keeps_the_output_and_is_no_death_by_signal(shell: Tool[Any]) -> None:
    result = await shell(command="echo so far; echo err >&2; sleep 60", timeout_seconds=1)
    assert code_of(result) == "timed_out"
    assert "within 1 s" in result.text
    assert "so far\n--- stderr ---\nerr" in result.text
    assert (data(result)["timed_out"], data(result)["stdout"]) == (True, "so far\n")


async def test_survivors_are_named(shell: Tool[Any]) -> None:
    result = await shell(command="sleep 61 & sleep 62 & echo ok")
    assert result.text == "exit code: 0\nbackground survivors killed: 2\nok\n"
    assert data(result)["survivors_killed"] == 2


async def test_a_signal_inside_the_shell_is_explained(shell: Tool[Any]) -> None:
    result = await shell(command="bash -c 'kill -9 $$'; exit $?")
    assert result.text.startswith("exit code: 137\n")
    assert "SIGKILL" in result.text


async def test_bytes_that_are_no_text_are_escaped(shell: Tool[Any]) -> None:
    result = await shell(command="printf 'ok\\n\\377\\376\\nend\\n\\0z'")
    assert result.text == "exit code: 0\nok\n\\xff\\xfe\nend\n\\x00z"
    json.dumps(result.to_dict(), ensure_ascii=False).encode()


async def test_control_sequences_are_stripped(shell: Tool[Any]) -> None:
    lines = r"\033[1;31mred\033[0m\r\n10%%\r20%%\r\n\033]0;title\007x\033]8;;http://a\033\\link\033]8;;\033\\ b\bold\n"
    command = f"printf '{lines}'"
    assert (await shell(command=command)).text == "exit code: 0\nred\n10%\n20%\nxlink old\n"


async def test_both_cuts_are_said_where_no_window_removes_it(shell: Tool[Any]) -> None:
    result = await shell(command="yes a | head -c 3000000; yes b | head -c 2000000 >&2")
    shown = bounded(result.text)
    assert "stdout was cut: 1,951,424 of 3,000,000 bytes" in shown
    assert "stderr was cut: 951,424 of 2,000,000 bytes" in shown
    assert len(shown) < 31_000
    assert "[... 1,951,424 bytes of stdout left out ...]\n" in result.text
    assert (data(result)["stdout_cut"], data(result)["stderr_cut"]) == (1_951_424, 951_424)


async def test_a_cut_falls_on_a_character(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, max_output_bytes=50)
    result = await shell_tool(commands)(command="for i in $(seq 60); do printf '\u4e16'; done")
    assert "\\x" not in result.text
    assert result.text.count("\u4e16") == 16
    await commands.aclose()


async def test_a_longer_timeout_is_clamped_and_said() -> None:
    tool, commands = scripted("fine\n")
    assert (await tool(command="x", timeout_seconds=9999)).text == (
        "exit code: 0\ntimeout_seconds was clamped from 9999 to 600\nfine\n"
    )
    assert commands.calls[0].timeout_seconds == 600
    assert (await tool(command="x")).text == "exit code: 0\nfine\n"
    assert commands.calls[1].timeout_seconds == 120


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("-inf"), "soon", True])
async def test_an_impossible_timeout_starts_nothing(seconds: object) -> None:
    tool, commands = scripted("")
    result = await tool.call({"command": "x", "timeout_seconds": seconds})
    assert code_of(result) == "invalid_arguments"
    assert "timeout_seconds" in result.text
    assert commands.calls == []


async def test_bad_commands_and_folders_are_refused(shell: Tool[Any]) -> None:
    for arguments, code in (
        ({"command": ""}, "invalid_arguments"),
        ({"command": "  "}, "invalid_arguments"),
        ({"command": "a\0b"}, "invalid_arguments"),
        ({"command": "x" * 2_000_000}, "invalid_arguments"),
        ({}, "invalid_arguments"),
        ({"command": ["ls"]}, "invalid_arguments"),
        ({"command": "true", "cwd": ".."}, "access_denied"),
        ({"command": "true", "cwd": "nope"}, "not_found"),
    ):
        assert code_of(await shell.call(arguments)) == code


async def test_limits_are_keywords() -> None:
    tool, commands = scripted("", default_timeout_seconds=5, max_timeout_seconds=10)
    await tool(command="x")
    await tool(command="x", timeout_seconds=60)
    assert [call.timeout_seconds for call in commands.calls] == [5, 10]
    assert tool.parameters["properties"]["timeout_seconds"]["default"] == 5
    assert "at most 10" in tool.description
    with pytest.raises(ValueError, match="timeouts"):
        scripted("", default_timeout_seconds=0)
    with pytest.raises(ValueError, match="timeouts"):
        scripted("", default_timeout_seconds=601)


def test_needs_its_port() -> None:
    with pytest.raises(TypeError, match="Commands"):
        shell_tool(None)  # pyright: ignore[reportArgumentType]


def test_shell_and_bash_are_each_others_alias() -> None:
    commands = ScriptedCommands({})
    assert (shell_tool(commands).name, shell_tool(commands).aliases) == ("shell", ("bash",))
    assert (bash_tool(commands).name, bash_tool(commands).aliases) == ("bash", ("shell",))
    assert bash_tool(commands).description == shell_tool(commands).description
    assert set(shell_tool(commands, name="run").aliases) == {"shell", "bash"}


async def test_subject_effects_and_claims() -> None:
    tool, _ = scripted("")
    assert await tool.subject({"command": "git push --force"}) == "git push --force"
    assert await tool.writes({"command": "x"}) == ()
    assert tool.effects is not None
    assert tool.effects.risk == "execute"
    assert conflicts(await tool.claims({"command": "x"}), Claims(paths=("/a",)))


def test_the_description_claims_what_holds_and_hints_at_who_is_there() -> None:
    commands = ScriptedCommands({})
    alone = shell_tool(commands)
    words = set(re.findall(r"[a-z]+(?:_[a-z]+)+", alone.description))
    assert words <= alone.parameters["properties"].keys()
    assert "grep" not in alone.description
    hinted = shell_tool(commands, siblings=["grep", "read_file"]).description
    assert "grep" in hinted
    assert "read_file" in hinted
    assert "edit_file" not in hinted
    assert shell_tool(commands, description="Mine.").description == "Mine."
    whole = shell_tool(commands, siblings=["read_file", "edit_file", "glob", "grep", "process_start"])
    assert len(whole.description) <= 1024
    assert "grep" not in ToolSet([alone])["shell"].description


async def test_names_that_models_learned_are_accepted_and_not_advertised() -> None:
    tool, commands = scripted("")
    assert not (await tool.call({"cmd": "x", "workdir": "a", "timeout": 5})).is_error
    assert (commands.calls[0].cwd, commands.calls[0].timeout_seconds) == ("a", 5)
    assert set(tool.parameters["properties"]) == {"command", "timeout_seconds", "cwd"}


async def test_session_and_trace_come_from_the_context() -> None:
    tool, commands = scripted("")
    await tool.call({"command": "x"}, ToolContext(session_id="s1", traceparent=TRACE))
    assert (commands.calls[0].session, commands.calls[0].traceparent) == ("s1", TRACE)


async def test_progress_comes_while_it_runs_and_whole_characters(shell: Tool[Any]) -> None:
    seen: list[tuple[Progress, float]] = []
    started = time.monotonic()

    def listen(progress: Progress) -> None:
        seen.append((progress, time.monotonic() - started))

    code = "import os,time\nfor b in '\\u4e16\\n'.encode() * 3: os.write(1, bytes([b])); time.sleep(0.1)"
    result = await shell.call(
        {"command": f'{sys.executable} -I -S -c "{code}"; echo e >&2'}, ToolContext(progress=listen)
    )
    told = "".join(progress.text for progress, _ in seen if progress.kind == "stdout")
    assert told == "\u4e16\n" * 3 == data(result)["stdout"]
    assert "".join(progress.text for progress, _ in seen if progress.kind == "stderr") == "e\n"
    assert seen[0][1] < seen[-1][1] - 0.3


async def test_cancelling_the_call_ends_the_command(shell: Tool[Any], tmp_path: Path) -> None:
    running = asyncio.create_task(shell(command="sleep 2; touch survived"))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.sleep(2)
    assert not (tmp_path / "survived").exists()


async def test_errors_of_the_port_are_envelopes() -> None:
    tool, _ = scripted(ToolError("no shell here", code="unavailable"))
    assert code_of(await tool(command="x")) == "unavailable"
    broken, _ = scripted(RuntimeError("bug"))
    assert code_of(await broken(command="x")) == "internal"


async def test_a_note_of_the_sandbox_is_shown() -> None:
    tool, _ = scripted(CommandResult(0, None, b"out\n", b"", note="moved .mcp.json to quarantine"))
    assert (await tool(command="x")).text == "exit code: 0\nmoved .mcp.json to quarantine\nout\n"


async def test_an_end_that_nobody_saw_is_no_success() -> None:
    tool, _ = scripted(CommandResult(None, None, b"out", b""))
    assert code_of(await tool(command="x")) == "killed"


@given(st.text())
def test_stripped_text_holds_no_control_character(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", stripped(text))


@given(st.text(alphabet="ab\n \u00fc\u4e16\t~"))
def test_plain_text_is_not_changed(text: str) -> None:
    assert stripped(text) == text
    assert output_text(text.encode()) == text


@given(st.text(alphabet="ab\n\r\x1b[]m0;\x07\\\x9b\u00fc", max_size=60), st.lists(st.integers(0, 90), max_size=6))
def test_live_text_is_the_same_wherever_chunks_end(text: str, cuts: list[int]) -> None:
    data = text.encode()
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    live, whole = LiveText(), LiveText()
    pieces = "".join(live.feed(data[a:b]) for a, b in pairwise(places))
    assert len(pieces) >= 0
    if "\x1b" not in text and "\x9b" not in text and "\r" not in text:
        assert pieces == whole.feed(data)


def test_output_after_an_unfinished_sequence_does_not_disappear() -> None:
    assert "important" in stripped("\x1b]0;never ended\nimportant\n")
    assert "important" in stripped("\x1b[" + "9" * 5000 + " important")
    assert "important" in stripped("\x1bP" + "x" * 10_000 + " important")


def test_cleaning_takes_time_in_proportion() -> None:
    for piece in ("\x1b]", "\x1b[", "\x1b", "a\b", "\r", "\x9b1;", "\x1bP", "\x9d", "\x90a"):
        started = time.monotonic()
        output_text(piece.encode() * 200_000)
        assert time.monotonic() - started < 20, piece
