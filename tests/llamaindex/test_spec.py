"""Capabilities as a tool spec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools.types import ToolMetadata

from toolkit_core import Capability, ToolContext, ToolSet, function_tool
from toolkit_llamaindex import AgentToolSpec
from toolkit_llamaindex.testing import ScriptedModel, tool_call

from .agents import follow


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@function_tool(deferred=True)
def hidden() -> str:
    """Hidden until it is looked up."""
    return "found"


def capabilities() -> list[Capability]:
    count = iter(range(100))

    async def describe(context: ToolContext) -> str:
        return f"Add things. Read {next(count)} times, by {context.session}."

    return [Capability("maths", ToolSet([add]), describe), Capability("voice", ToolSet([shout]))]


async def test_tools_and_instructions_reach_an_agent() -> None:
    spec = AgentToolSpec(capabilities())
    model = ScriptedModel([tool_call("shout", text="hi"), "done"])
    instructions = await spec.instructions(ToolContext(session_id="ada"))
    agent: Any = FunctionAgent(tools=[*spec.to_tool_list()], system_prompt=instructions, llm=model)
    run = await follow(agent.run(user_msg="go"), model)
    assert run.output.content == "HI"
    assert model.calls[0].messages[0].content == "Add things. Read 0 times, by ada."
    assert model.calls[0].tool_names == ["add", "shout"]
    assert await spec.instructions() == "Add things. Read 1 times, by default."  # anew each time


async def test_some_tools_and_other_names() -> None:
    spec = AgentToolSpec(capabilities())
    assert [tool.metadata.name for tool in spec.to_tool_list(["shout"])] == ["shout"]
    renamed = spec.to_tool_list(None, {"add": ToolMetadata(name="plus", description="Plus.")})
    assert (renamed[0].metadata.name, renamed[0].metadata.description) == ("plus", "Plus.")
    assert renamed[0].call(a=1, b=2).content == "3"
    assert [tool.metadata.name for tool in await spec.to_tool_list_async()] == ["add", "shout"]


async def test_the_retriever_hides_deferred_tools() -> None:
    spec = AgentToolSpec([*capabilities(), Capability("more", ToolSet([shout_louder(), hidden]))])
    model = ScriptedModel([tool_call("tool_search", query="hidden"), tool_call("hidden"), "done"])
    agent: Any = FunctionAgent(tool_retriever=spec.to_retriever(), llm=model)
    run = await follow(agent.run(user_msg="go"), model)
    assert run.outputs[1].content == "found"
    assert "hidden" not in model.calls[0].tool_names


def shout_louder() -> Any:
    return function_tool(lambda: "HEY", name="shout_louder", description="Even louder.")


def test_two_tools_of_one_name_are_refused_and_options_belong_to_a_folder() -> None:
    with pytest.raises(ValueError, match="two tools"):
        AgentToolSpec([Capability("a", ToolSet([add])), Capability("b", ToolSet([add]))])
    with pytest.raises(TypeError, match="folder"):
        AgentToolSpec(capabilities(), config={})


async def test_closing_closes_the_sets() -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("x")

    spec = AgentToolSpec([Capability("maths", ToolSet([add], closers=[close]))])
    await spec.aclose()
    assert closed == ["x"]


async def test_a_folder_gives_the_standard_capabilities_in_it(workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    spec = AgentToolSpec(workspace, config={"web": False, "shell": False})
    names = [tool.metadata.name for tool in spec.to_tool_list()]
    assert {"read_file", "write_file", "edit_file", "glob", "grep"} <= set(names)
    assert not {"shell", "web_fetch"} & set(names)
    model = ScriptedModel([tool_call("read_file", path="a.txt"), "done"])
    agent: Any = FunctionAgent(tools=[*spec.to_tool_list()], system_prompt=await spec.instructions(), llm=model)
    run = await follow(agent.run(user_msg="go"), model)
    assert "hello" in run.output.content
    await spec.aclose()


def test_a_tool_set_is_one_capability_and_anything_else_is_refused() -> None:
    assert [tool.metadata.name for tool in AgentToolSpec(ToolSet([add])).to_tool_list()] == ["add"]
    nonsense: Any = [add]
    with pytest.raises(TypeError, match="expected capabilities"):
        AgentToolSpec(nonsense)
