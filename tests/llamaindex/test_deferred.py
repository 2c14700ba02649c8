"""Deferred tools on real agents."""

from __future__ import annotations

import asyncio
import json
import warnings
from typing import Any

import pytest
from llama_index.core.workflow import Context

from toolkit_core import Tool, ToolSet, function_tool
from toolkit_llamaindex import ToolRetriever, to_llamaindex
from toolkit_llamaindex.testing import tool_call

from .agents import agent_of, follow, memory, run_agent


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def hidden(name: str) -> Tool[Any]:
    """A deferred tool."""
    return function_tool(lambda: f"{name} ran", name=name, description=f"The tool {name}.", deferred=True)


FIND = tool_call("tool_search", query="weather")
CALL = tool_call("weather")


@pytest.mark.parametrize("kind", ["function", "workflow", "react"])
async def test_a_tool_is_shown_after_it_was_looked_up(kind: Any) -> None:
    retriever = ToolRetriever(ToolSet([add, hidden("weather"), hidden("stocks")]))
    run = await run_agent(kind, None, [CALL, FIND, CALL, "done"], tool_retriever=retriever)
    assert run.text == "done"
    early, found, called = run.outputs
    assert early.is_error  # not there before it was looked up
    assert found.raw_output["data"]["loaded"] == [{"name": "weather", "description": "The tool weather."}]
    assert called.content == "weather ran"
    if kind != "react":
        assert [call.tool_names for call in run.model.calls] == [
            ["add", "tool_search"],
            ["add", "tool_search"],
            ["add", "tool_search", "weather"],
            ["add", "tool_search", "weather"],
        ]


async def test_what_one_context_loaded_no_other_sees() -> None:
    retriever = ToolRetriever([add, hidden("weather")])
    agent, model = agent_of("function", None, [FIND, "one", CALL, "two", CALL, "three"], tool_retriever=retriever)
    ctx: Context[Any] = Context(agent)
    await follow(agent.run(user_msg="go", ctx=ctx), model)
    same = await follow(agent.run(user_msg="go", ctx=ctx), model)
    other = await follow(agent.run(user_msg="go"), model)
    assert same.output.content == "weather ran"
    assert other.output.is_error


async def test_contexts_with_one_session_id_share_what_was_loaded() -> None:
    retriever = ToolRetriever([add, hidden("weather")])
    agent, model = agent_of("function", None, [FIND, "one", CALL, "two"], tool_retriever=retriever)
    runs: list[Any] = []
    for _ in range(2):
        ctx: Context[Any] = Context(agent)
        await ctx.store.set("session_id", "ada")
        runs.append(await follow(agent.run(user_msg="go", ctx=ctx), model))
    assert runs[1].output.content == "weather ran"


async def test_what_was_loaded_is_serialised_with_the_context() -> None:
    turns = [FIND, "one", CALL, "two"]
    agent, model = agent_of("function", None, turns, tool_retriever=ToolRetriever([add, hidden("weather")]))
    ctx: Context[Any] = Context(agent)
    await follow(agent.run(user_msg="go", ctx=ctx), model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = json.dumps(ctx.to_dict())

    fresh = ToolRetriever([add, hidden("weather")])
    agent, model = agent_of("function", None, turns[2:], tool_retriever=fresh)
    restored: Context[Any] = Context.from_dict(agent, json.loads(text))
    handler = agent.run(user_msg="go", ctx=restored, memory=memory(model))
    assert (await follow(handler, model)).output.content == "weather ran"


async def test_parallel_look_ups_of_a_turn_all_stay() -> None:
    names = [f"tool_{n}" for n in range(6)]
    retriever = ToolRetriever([add, *map(hidden, names)])
    turn = [tool_call("tool_search", names=[name]) for name in names]
    run = await run_agent(
        "function", None, [turn, [tool_call(name) for name in names], "done"], tool_retriever=retriever
    )
    assert sorted(output.content for output in run.outputs[6:]) == [f"{name} ran" for name in names]


async def test_without_a_context_a_session_id_is_remembered() -> None:
    retriever = ToolRetriever([add, hidden("weather")])
    await retriever.keep(None, "ada", ["weather"])
    assert await retriever.loaded(None, "ada") == {"weather"}
    assert await retriever.loaded(None, "bob") == frozenset()


async def test_an_unknown_name_loads_nothing() -> None:
    retriever = ToolRetriever([add, hidden("weather")])
    turns = [tool_call("tool_search", names=["weather", "wether"]), CALL, "done"]
    run = await run_agent("function", None, turns, tool_retriever=retriever)
    assert run.outputs[0].raw_output["error"]["code"] == "not_found"
    assert run.outputs[1].is_error


async def test_three_hundred_tools_are_found_by_name() -> None:
    retriever = ToolRetriever([add, *(hidden(f"tool_{n}") for n in range(300))])
    turns = [tool_call("tool_search", query="tool_277"), tool_call("tool_277"), "done"]
    run = await run_agent("function", None, turns, tool_retriever=retriever)
    assert run.outputs[1].content == "tool_277 ran"
    assert len(run.model.calls[-1].tools) == 3


def test_a_set_in_which_all_are_deferred_is_refused() -> None:
    with pytest.raises(ValueError, match="deferred"):
        ToolRetriever([hidden("weather")])


async def test_a_plain_list_shows_all_and_a_set_without_deferred_tools_has_no_search() -> None:
    assert [tool.metadata.name for tool in to_llamaindex([add, hidden("weather")])] == ["add", "weather"]
    retriever = ToolRetriever([add])
    assert [tool.metadata.name for tool in await retriever.aretrieve("x")] == ["add"]
    assert [tool.metadata.name for tool in retriever.retrieve("x")] == ["add"]
    assert await asyncio.to_thread(retriever.retrieve, "x")
