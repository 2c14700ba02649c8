"""The default tools on real agents: the reports of other systems' failures, and the schemas that providers get."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool

import toolkit_core
from tests.langchain.agents import WAYS, Way, agent, final_text, graph_with_tool_node, run, tool_messages
from tests.support import require
from toolkit_core.factories import function_tool
from toolkit_langchain import default_tools, to_langchain
from toolkit_langchain.testing import tool_call


def by_name(workspace: Path, **options: Any) -> dict[str, Any]:
    return {tool.name: tool for tool in default_tools(workspace, **options)}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": "c", "name": name, "args": arguments}


def children_of(marker: str) -> list[str]:
    """Command lines of running processes that hold a marker."""
    found: list[str] = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(line)
    return found


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", [agent, graph_with_tool_node])
async def test_a_missing_file_is_an_error_that_the_model_reads(workspace: Path, build: Any, way: Way) -> None:
    turns = [[tool_call("read_file", path="missing.txt"), tool_call("read_file"), tool_call("read_file", p=1)], "ok"]
    state = await run(build(default_tools(workspace), turns), way=way)
    codes = [message.artifact["error"]["code"] for message in tool_messages(state)]
    assert codes == ["not_found", "invalid_arguments", "invalid_arguments"]
    assert {message.status for message in tool_messages(state)} == {"error"}
    assert final_text(state) == "ok"


async def test_a_commands_exit_code_is_data_and_a_round_error_when_asked_for(workspace: Path) -> None:
    message = await by_name(workspace)["shell"].ainvoke(call("shell", command="echo out; exit 3"))
    assert message.status == "success"
    assert message.content.startswith("exit code: 3")
    assert message.artifact["data"]["exit_code"] == 3


async def test_every_tool_answers_sync_and_async_alike_in_a_loop_and_in_a_thread(workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\ntwo\n")
    tools = by_name(workspace, without=["web_fetch"])
    examples: dict[str, dict[str, Any]] = {
        "read_file": {"path": "a.txt"}, "glob": {"pattern": "*"}, "grep": {"pattern": "two"},
        "write_file": {"path": "a.txt", "content": "one\ntwo\n"}, "edit_file": {"path": "missing", "edits": []},
    }  # fmt: skip
    for name, arguments in examples.items():
        tool = tools[name]
        expected = await tool.ainvoke(arguments)
        assert tool.invoke(arguments) == expected, name
        assert await asyncio.to_thread(tool.invoke, arguments) == expected, name
    assert "hi" in tools["shell"].invoke({"command": "echo hi"})


async def test_stringified_edits_with_raw_newlines_work(workspace: Path) -> None:
    (workspace / "f.txt").write_bytes(b"a\n")
    tools = by_name(workspace)
    await tools["read_file"].ainvoke({"path": "f.txt"})
    edits = '[{"old_text":"a","new_text":"first\n\tsecond"}]'
    message = await tools["edit_file"].ainvoke(call("edit_file", path="f.txt", edits=edits))
    assert message.status == "success", message.content
    assert (workspace / "f.txt").read_bytes() == b"first\n\tsecond\n"


@pytest.mark.parametrize("arguments", [
    {"file_path": "f.txt", "old_string": "a", "new_string": "b"}, {"file": "f.txt", "oldText": "a", "newText": "b"},
    {"path": "f.txt", "old_text": "a", "new_text": "b"}, {"path": "f.txt", "edits": {"old_text": "a", "new_text": "b"}},
])  # fmt: skip
async def test_names_that_models_were_trained_on_work_end_to_end(workspace: Path, arguments: dict[str, Any]) -> None:
    (workspace / "f.txt").write_bytes(b"a\n")
    turns = [tool_call("read_file", file_path="f.txt"), tool_call("edit_file", arguments), "ok"]
    state = await run(agent(default_tools(workspace), turns))
    assert [message.status for message in tool_messages(state)] == ["success", "success"]
    assert (workspace / "f.txt").read_bytes() == b"b\n"


@pytest.mark.parametrize("way", WAYS)
async def test_fifty_edits_of_one_file_in_one_turn_all_land(workspace: Path, way: Way) -> None:
    (workspace / "f.txt").write_text("".join(f"line {n:02}\n" for n in range(50)))
    edits = [
        tool_call("edit_file", path="f.txt", edits=[{"old_text": f"line {n:02}\n", "new_text": f"LINE {n:02}\n"}])
        for n in range(50)
    ]
    state = await run(agent(default_tools(workspace), [tool_call("read_file", path="f.txt"), edits, "ok"]), way=way)
    assert [message.status for message in tool_messages(state)] == ["success"] * 51
    assert (workspace / "f.txt").read_text() == "".join(f"LINE {n:02}\n" for n in range(50))


@pytest.mark.parametrize("way", ["async", "wait_for"])
async def test_cancelling_stops_the_commands_whole_tree(workspace: Path, way: str) -> None:
    marker = f"31.{os.getpid()}"
    shell = by_name(workspace)["shell"]
    command = f"sh -c 'sleep {marker} & sleep {marker}'"
    work = shell.ainvoke({"command": command})
    if way == "wait_for":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(work, 1.5)
    else:
        task = asyncio.create_task(work)
        await asyncio.sleep(1.5)
        assert children_of(f"sleep {marker}"), "CONTROL: the command runs"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert children_of(f"sleep {marker}") == []


async def test_cancelling_the_agent_stops_its_command(workspace: Path) -> None:
    marker = f"32.{os.getpid()}"
    graph = agent(default_tools(workspace), [tool_call("shell", command=f"sleep {marker}"), "x"])
    task = asyncio.create_task(run(graph))
    while not children_of(f"sleep {marker}"):
        await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert children_of(f"sleep {marker}") == []


async def test_live_output_of_a_command_is_streamed(workspace: Path) -> None:
    graph = agent(default_tools(workspace), [tool_call("shell", command="echo one; sleep 0.5; echo two"), "ok"])
    texts = [event["text"] async for event in graph.astream({"messages": "go"}, stream_mode="custom") if event["text"]]
    assert len(texts) >= 2
    assert "".join(texts) == "one\ntwo\n"


async def test_what_a_thread_has_read_it_may_change_and_another_may_not(workspace: Path) -> None:
    (workspace / "f.txt").write_text("a\n")
    tools = default_tools(workspace)
    read = agent(tools, [tool_call("read_file", path="f.txt"), "ok"])
    await run(read, config={"configurable": {"thread_id": "1"}})
    edit = [{"old_text": "a", "new_text": "b"}]
    for thread, code in (("2", "not_read"), ("1", None)):
        graph = agent(tools, [tool_call("edit_file", path="f.txt", edits=edit), "ok"])
        state = await run(graph, config={"configurable": {"thread_id": thread}})
        error = tool_messages(state)[0].artifact["error"]
        assert (error and error["code"]) == code


# --- schemas ------------------------------------------------------------------------------------------


def nodes_of(value: Any) -> Any:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        node = cast("dict[str, Any]", value)
        yield node
        yield from nodes_of(list(node.values()))
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from nodes_of(item)


def schemas(workspace: Path) -> dict[str, dict[str, Any]]:
    tools = default_tools(workspace, ask=True, processes=True)
    return {tool.name: convert_to_openai_tool(tool)["function"]["parameters"] for tool in tools}


def test_no_schema_holds_what_a_provider_refuses(workspace: Path) -> None:
    for name, schema in schemas(workspace).items():
        assert schema["type"] == "object", name
        for node in nodes_of(schema):
            assert not {"$ref", "$defs", "definitions", "const", "oneOf", "allOf"} & set(node), (name, node)
            assert not isinstance(node.get("type"), list), (name, node)
            assert {"type": "null"} not in node.get("anyOf", []), (name, node)
            if "enum" in node:
                assert "type" in node, (name, node)
            if node.get("type") == "array":
                assert "items" in node, (name, node)
            for parameter, declared in node.get("properties", {}).items():
                if isinstance(node.get("type"), str):
                    assert declared["description"], (name, parameter)


def provider(module: str, model: str, options: dict[str, Any]) -> Any:
    """A provider's chat model, for its conversion alone: nothing is sent."""
    try:
        package = importlib.import_module(module)
    except ImportError:
        require(False, f"{module} is not installed")
        raise
    return getattr(package, model)(**options)


PROVIDERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai": ("langchain_openai", "ChatOpenAI", {"model": "gpt-x", "api_key": "none"}),
    "anthropic": ("langchain_anthropic", "ChatAnthropic", {"model_name": "claude-x", "api_key": "none"}),
    "google": ("langchain_google_genai", "ChatGoogleGenerativeAI", {"model": "gemini-x", "api_key": "none"}),
    "ollama": ("langchain_ollama", "ChatOllama", {"model": "x"}),
}


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_takes_every_schema(workspace: Path, name: str) -> None:
    module, model, options = PROVIDERS[name]
    core = toolkit_core.default_tools(workspace, ask=True, processes=True)
    bound = provider(module, model, options).bind_tools(to_langchain(core))
    text = json.dumps(bound.kwargs["tools"], default=str)
    for tool in core:
        assert f'"{tool.name}"' in text or f"'{tool.name}'" in text, tool.name
        for parameter in tool.parameters["properties"]:
            assert parameter in text, (tool.name, parameter)


def test_openai_takes_the_schemas_strict_too(workspace: Path) -> None:
    for tool in default_tools(workspace, ask=True):
        shown = convert_to_openai_tool(tool, strict=True)["function"]
        assert shown["strict"] is True
        assert json.loads(json.dumps(shown)) == shown


async def test_a_schema_in_a_result_is_text_and_holds_no_live_reference() -> None:
    from toolkit_core.factories import schema_tool
    from toolkit_core.tools import catalogued

    parameters = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "string", "description": "An A."}},
    }

    def body(arguments: dict[str, Any]) -> str:
        return "x"

    tool = schema_tool(body, name="that_tool", description="Has a $ref.", parameters=parameters, deferred=True)
    [search] = [t for t in catalogued([tool])[0] if t.kind == "tool_search"]
    message = await to_langchain(search)[0].ainvoke(call("tool_search", names=["that_tool"]))
    assert isinstance(message.content, str)
    assert "$defs" not in json.dumps(message.artifact)


def test_names_that_providers_refuse_are_refused_when_the_tool_is_made() -> None:
    for name in ("service.do it", "x" * 71, "", "a/b"):
        with pytest.raises(ValueError, match="name"):
            function_tool(lambda: 1, name=name, description="d")


def test_parameters_called_args_and_kwargs_are_just_parameters() -> None:
    def fn(args: list[str], kwargs: dict[str, int]) -> str:
        return f"{args}{kwargs}"

    [tool] = to_langchain([function_tool(fn, name="f", description="d")])
    assert set(tool.args) == {"args", "kwargs"}
    assert tool.invoke({"args": ["a"], "kwargs": {"b": 1}}) == "['a']{'b': 1}"
