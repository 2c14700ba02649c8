from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolkit_core.context import ToolContext
from toolkit_core.host.processes import HostProcesses
from toolkit_core.ports.processes import ProcessState
from toolkit_core.result import ToolResult
from toolkit_core.testing.commands import ScriptedProcesses
from toolkit_core.tool import ToolSet
from toolkit_core.tools import process_read_tool, process_start_tool, process_stop_tool, process_write_tool

FACTORIES = (process_start_tool, process_read_tool, process_write_tool, process_stop_tool)


def tool_set(processes: Any) -> ToolSet:
    return ToolSet([factory(processes) for factory in FACTORIES])


@pytest.fixture
async def tools(tmp_path: Path) -> AsyncIterator[ToolSet]:
    processes = HostProcesses(tmp_path)
    yield tool_set(processes)
    await processes.aclose()


def data(result: ToolResult[Any]) -> dict[str, Any]:
    assert result.data is not None
    return result.data


async def test_a_server_is_started_talked_to_and_stopped(tools: ToolSet) -> None:
    started = await tools["process_start"](command="echo listening; while read -r x; do echo got $x; done; sleep 60")
    assert data(started)["running"]
    process_id = data(started)["process_id"]
    assert f"process {process_id}: running" in started.text
    output = data(started)["output"]
    while "listening" not in output:
        output += data(await tools["process_read"](process_id=process_id, wait_seconds=5))["output"]
    answer = await tools["process_write"](process_id=process_id, text="hello\n")
    output = data(answer)["output"]
    while "got hello\n" not in output:
        output += data(await tools["process_read"](process_id=process_id, wait_seconds=5))["output"]
    silent = await tools["process_read"](process_id=process_id)
    assert silent.text == f"process {process_id}: running\n(no new output)"
    stopped = await tools["process_stop"](process_id=process_id)
    assert not data(stopped)["running"]
    assert "SIGTERM" in stopped.text
    assert set(data(stopped)) == {"process_id", "running", "exit_code", "signal", "output", "output_cut"}


async def test_the_end_is_told_with_its_code() -> None:
    tools = tool_set(ScriptedProcesses({"serve": ["one\n"]}))
    assert (await tools["process_start"](command="serve")).text == "process p1: running\none\n"
    assert (await tools["process_read"](process_id="p1")).text == "process p1: ended, exit code: 0\n(no new output)"
    missing = await tools["process_start"](command="unknown")
    assert data(missing)["exit_code"] == 127


async def test_dropped_output_and_notes_are_said() -> None:
    class Answers(ScriptedProcesses):
        async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
            return ProcessState(
                "p1", "x", False, output=b"\x1b[31mtail\xff", output_cut=5000, note="it was ended early"
            )

    result = await tool_set(Answers({}))["process_read"](process_id="p1")
    assert result.text == (
        "process p1: ended\nit was ended early\n5,000 bytes of older output were dropped before anybody read them\n"
        "tail\\xff"
    )


async def test_the_subject_is_the_command_that_it_was_started_with() -> None:
    tools = tool_set(ScriptedProcesses({"npm run dev": ["up\n"]}))
    assert await tools["process_start"].subject({"command": "npm run dev"}) == "npm run dev"
    await tools["process_start"](command="npm run dev")
    assert await tools["process_read"].subject({"process_id": "p1"}) == "npm run dev"
    assert await tools["process_write"].subject({"process_id": "p1", "text": "x"}) == "npm run dev"
    assert await tools["process_stop"].subject({"process_id": "p1"}) == "npm run dev"
    assert await tools["process_stop"].subject({"process_id": "p9"}) == ""
    for tool in tools:
        assert tool.effects is not None
        assert tool.effects.risk == "execute"


async def test_the_session_of_the_context_owns_it() -> None:
    tools = tool_set(ScriptedProcesses({"serve": ["one\n", "two\n"]}))
    mine, other = ToolContext(session_id="a"), ToolContext(session_id="b")
    await tools["process_start"].call({"command": "serve"}, mine)
    refused = await tools["process_read"].call({"process_id": "p1"}, other)
    assert refused.error is not None
    assert refused.error.code == "not_found"
    assert "two" in (await tools["process_read"].call({"process_id": "p1"}, mine)).text


async def test_what_is_written_is_not_tidied() -> None:
    processes = ScriptedProcesses({"serve": [""]})
    tools = tool_set(processes)
    await tools["process_start"](command="serve")
    for text in ("\x03", " a\\n \n", "\x1b[A", "\u00fc"):
        await tools["process_write"](process_id="p1", text=text)
    assert [text for _, text in processes.written] == ["\x03", " a\\n \n", "\x1b[A", "\u00fc"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("process_start", {}),
        ("process_start", {"command": ""}),
        ("process_start", {"command": "x", "pty": "maybe"}),
        ("process_read", {"process_id": "p1", "wait_seconds": -1}),
        ("process_read", {"process_id": "p1", "wait_seconds": float("nan")}),
        ("process_read", {}),
        ("process_write", {"process_id": "p1", "text": ""}),
        ("process_stop", {"process_id": ""}),
    ],
)
async def test_bad_arguments_are_refused(name: str, arguments: dict[str, object]) -> None:
    result = await tool_set(ScriptedProcesses({}))[name].call(arguments)
    assert result.error is not None
    assert result.error.code == "invalid_arguments"


async def test_unknown_ids_are_not_found(tools: ToolSet) -> None:
    for name, more in (("process_read", {}), ("process_write", {"text": "x"}), ("process_stop", {})):
        result = await tools[name].call({"process_id": "p77", **more})
        assert result.error is not None
        assert result.error.code == "not_found"


def test_a_port_is_needed_and_names_can_be_changed() -> None:
    for factory in FACTORIES:
        with pytest.raises(TypeError, match="Processes"):
            factory(None)  # pyright: ignore[reportArgumentType]
        assert factory(ScriptedProcesses({}), name="other").name == "other"
        assert factory(ScriptedProcesses({}), description="Mine.").description == "Mine."


def test_descriptions_name_only_parameters_and_tools_that_are_there() -> None:
    tools = tool_set(ScriptedProcesses({}))
    for tool in tools:
        words = set(re.findall(r"[a-z]+(?:_[a-z]+)+", tool.description))
        assert words <= tool.parameters["properties"].keys() | set(tools.names)
        assert len(tool.description) <= 1024
    assert "process_read" in tools["process_start"].description
    assert "process_" not in process_start_tool(ScriptedProcesses({})).description
