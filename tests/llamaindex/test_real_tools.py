"""The default tools on real agents: files, commands, the ledger, cancellation, the reports of other projects."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from llama_index.core.workflow import Context
from workflows.errors import WorkflowCancelledByUser

from toolkit_core import default_tools as core_default_tools
from toolkit_core.ports.ledger import LedgerEntry
from toolkit_llamaindex import ToolProgressEvent, default_tools, to_llamaindex
from toolkit_llamaindex.testing import Turn, tool_call

from .agents import KINDS, RUN_SECONDS, Kind, agent_of, follow, run_agent, texts

NAMES = ["read_file", "write_file", "edit_file", "glob", "grep", "shell", "web_fetch"]


def test_the_default_tools_are_the_cores_converted(tmp_path: Path) -> None:
    core = core_default_tools(str(tmp_path))
    tools: list[Any] = default_tools(str(tmp_path))
    assert [tool.metadata.name for tool in tools] == NAMES
    assert [tool.metadata.description for tool in tools] == [tool.description for tool in core]
    assert [tool.metadata.get_parameters_dict() for tool in tools] == [tool.parameters for tool in core]
    some: list[Any] = default_tools(str(tmp_path), only=["grep", "glob"])
    assert [tool.metadata.name for tool in some] == ["glob", "grep"]
    for tool in default_tools(str(tmp_path), bind_context=False):
        assert not tool.requires_context
    with pytest.raises(ValueError, match=r"root|empty"):
        default_tools("")


def _walk(schema: Any) -> Iterator[dict[str, Any]]:
    """Every mapping of a schema."""
    if isinstance(schema, dict):
        yield cast("dict[str, Any]", schema)
        schema = list(cast("dict[str, Any]", schema).values())
    for item in cast("list[Any]", schema) if isinstance(schema, list) else []:
        yield from _walk(item)


def test_every_schema_is_one_that_providers_take(tmp_path: Path) -> None:
    for tool in default_tools(str(tmp_path), ask=True, processes=True):
        spec: Any = tool.metadata.to_openai_tool()["function"]
        assert 1 <= len(spec["description"]) <= 1024
        for node in _walk(spec["parameters"]):
            assert not {"$ref", "$defs", "const", "anyOf", "oneOf"} & node.keys()
            assert not isinstance(node.get("type"), list)
        for name, node in spec["parameters"]["properties"].items():
            assert node.get("type"), name
            assert node.get("description"), name


@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_reads_edits_and_runs(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"print('helo')\r\n")
    edit = {"path": "a.py", "edits": [{"old_text": "helo", "new_text": "hello"}]}
    turns = [
        tool_call("edit_file", edit),  # not read yet
        tool_call("read_file", file_path="a.py"),  # the name that models were trained on
        tool_call("edit_file", file_path="a.py", old_string="helo", new_string="hello"),
        tool_call("shell", command="python3 a.py"),
        "done",
    ]
    run = await run_agent(kind, default_tools(str(tmp_path)), turns)
    assert [output.is_error for output in run.outputs] == [True, False, False, False]
    assert run.outputs[0].raw_output["error"]["code"] == "not_read"
    assert (tmp_path / "a.py").read_bytes() == b"print('hello')\r\n"
    assert run.outputs[3].raw_output["data"]["stdout"] == "hello\n"
    assert run.text == "done"


async def test_a_failing_command_is_data_and_a_missing_file_an_error(tmp_path: Path) -> None:
    turns = [[tool_call("shell", command="exit 3"), tool_call("read_file", path="missing.txt")], "done"]
    run = await run_agent("function", default_tools(str(tmp_path)), turns)
    shell, read = sorted(run.outputs, key=lambda output: output.tool_name == "read_file")
    assert not shell.is_error
    assert shell.raw_output["data"]["exit_code"] == 3
    assert read.is_error
    assert read.raw_output["error"]["code"] == "not_found"
    assert read.content.startswith("Error (not_found): ")
    assert read.raw_input["kwargs"] == {"path": "missing.txt"}
    assert read.tool_name == "read_file"


async def test_edits_as_text_with_raw_newlines_are_read(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("a\n")
    edits = '[{"old_text": "a", "new_text": "first\n\tsecond"}]'
    turns = [tool_call("read_file", path="f.txt"), tool_call("edit_file", path="f.txt", edits=edits), "done"]
    await run_agent("function", default_tools(str(tmp_path)), turns)
    assert (tmp_path / "f.txt").read_text() == "first\n\tsecond\n"


@pytest.mark.parametrize("kind", ["function", "workflow"])
async def test_fifty_edits_of_one_file_in_one_turn_all_land(tmp_path: Path, kind: Kind) -> None:
    (tmp_path / "f.txt").write_text("".join(f"<{n}>\n" for n in range(50)))
    edits = [
        tool_call("edit_file", path="f.txt", edits=[{"old_text": f"<{n}>", "new_text": f"[{n}]"}]) for n in range(50)
    ]
    run = await run_agent(kind, default_tools(str(tmp_path)), [tool_call("read_file", path="f.txt"), edits, "done"])
    assert [output.content for output in run.outputs if output.is_error] == []
    assert (tmp_path / "f.txt").read_text() == "".join(f"[{n}]\n" for n in range(50))


async def test_sync_calls_of_real_tools_give_the_same(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n")
    read = default_tools(str(tmp_path))[0]
    assert read.call(path="a.txt") == await read.acall(path="a.txt")
    assert (await asyncio.to_thread(read.call, path="a.txt")).content == read.call(path="a.txt").content


def processes_with(marker: str) -> str:
    found = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return "\n".join(line for line in found.splitlines() if marker in line and "ps -eo" not in line)


@pytest.mark.parametrize("kind", KINDS)
async def test_cancelling_the_run_leaves_no_child_process(kind: Kind, tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    command = f"sh -c 'sleep 61 & sleep 62; : {marker}'"
    agent, _ = agent_of(kind, default_tools(str(tmp_path)), [tool_call("shell", command=command), "done"])
    handler = agent.run(user_msg="go")
    for _ in range(200):
        if processes_with(marker):
            break
        await asyncio.sleep(0.05)
    assert processes_with(marker)  # CONTROL: it runs
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await asyncio.wait_for(handler, RUN_SECONDS)
    assert not processes_with(marker)


async def test_a_cancelled_call_of_the_shell_leaves_no_child_process(tmp_path: Path) -> None:
    marker = uuid.uuid4().hex
    [shell] = default_tools(str(tmp_path), only=["shell"])
    task = asyncio.ensure_future(shell.acall(command=f"sh -c 'sleep 61 & sleep 62; : {marker}'"))
    for _ in range(200):
        if processes_with(marker):
            break
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not processes_with(marker)


async def test_what_a_command_prints_is_on_the_stream_while_it_runs(tmp_path: Path) -> None:
    command = "echo first; sleep 0.5; echo second"
    run = await run_agent("function", default_tools(str(tmp_path)), [tool_call("shell", command=command), "done"])
    seen = [event for event in run.events if isinstance(event, ToolProgressEvent)]
    assert "first" in "".join(event.text for event in seen)
    assert {event.tool_id for event in seen} == {"call_1"}


class Notes:
    """A ledger in a list."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.texts: dict[str, str] = {}

    async def record(self, entry: LedgerEntry) -> bool:
        self.entries.append(entry)
        return True

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        [entry] = [entry for entry in self.entries if entry.entry_id == entry_id]
        return entry

    async def shown(self, entry_id: str, text: str) -> None:
        self.texts[entry_id] = text


@pytest.mark.parametrize("kind", KINDS)
async def test_with_a_ledger_bulk_is_left_to_the_entry_and_can_be_recalled(kind: Kind, tmp_path: Path) -> None:
    ledger = Notes()
    tools = default_tools(str(tmp_path), ledger=ledger)

    def recall(messages: Any) -> Turn:
        """As a model does: with the arguments that the cut itself names."""
        named = re.search(r"recall (\{.*?\})", texts(messages))
        assert named is not None
        return tool_call("recall", {**json.loads(named[1]), "end_line": json.loads(named[1])["start_line"] + 2})

    turns: list[Turn] = [tool_call("shell", command="seq 1 20000"), recall, "done"]
    agent, model = agent_of(kind, tools, turns)
    ctx: Context[Any] = Context(agent)
    await ctx.store.set("session_id", "ada")
    run = await follow(agent.run(user_msg="go", ctx=ctx), model)
    shell, recalled = run.outputs
    assert shell.raw_output["entry_id"] == shell.raw_output["data"]["stdout"] == ledger.entries[0].entry_id
    assert ledger.texts == {ledger.entries[0].entry_id: shell.content}
    assert len(shell.content) < 31_000
    assert not recalled.is_error
    assert len(recalled.content.splitlines()) <= 5
    first = ledger.entries[0]
    assert (first.session_id, first.tool, first.outcome) == ("ada", "shell", "ok")
    assert first.call_id
    assert texts(run.last_messages)


async def test_two_sessions_do_not_share_what_they_have_read(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("a\n")
    tools = to_llamaindex(core_default_tools(str(tmp_path)))
    outputs: list[Any] = []
    for session, turns in (
        ("ada", [tool_call("read_file", path="f.txt"), "done"]),
        ("bob", [tool_call("write_file", path="f.txt", content="b\n"), "done"]),
        ("ada", [tool_call("write_file", path="f.txt", content="c\n"), "done"]),
    ):
        agent, model = agent_of("function", tools, turns)
        ctx: Context[Any] = Context(agent)
        await ctx.store.set("session_id", session)
        outputs += (await follow(agent.run(user_msg="go", ctx=ctx), model)).outputs
    assert [output.is_error for output in outputs] == [False, True, False]
    assert outputs[1].raw_output["error"]["code"] == "not_read"
