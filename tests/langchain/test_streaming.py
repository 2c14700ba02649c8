"""Progress on LangGraph's streams, and the scripted model in every way of running."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from tests.langchain.agents import agent, final_text, run, tool_messages
from toolkit_core.context import ToolContext
from toolkit_core.factories import function_tool
from toolkit_langchain import to_langchain
from toolkit_langchain.testing import ScriptedModel, ScriptExhaustedError, tool_call


async def work(steps: int, ctx: ToolContext) -> str:
    """Work and tell.

    Args:
        steps: How many.
    """
    for step in range(steps):
        ctx.report("stdout", f"step {step}\n", done=step + 1, total=steps)
        await asyncio.sleep(0.12)
    return "worked"


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_progress_appears_in_the_custom_stream_and_as_deltas_of_the_tools_output(way: str) -> None:
    graph = agent(to_langchain([function_tool(work)]), [tool_call("work", steps=3), "done"])
    given: Any = {"messages": "go"}
    modes = ["custom", "tools"]
    if way == "sync":
        events = await asyncio.to_thread(lambda: list(graph.stream(given, stream_mode=modes)))
    else:
        events = [event async for event in graph.astream(given, stream_mode=modes)]
    custom = [event for mode, event in events if mode == "custom"]
    assert "".join(event["text"] for event in custom) == "step 0\nstep 1\nstep 2\n"
    assert {event["tool_call_id"] for event in custom} == {"call_1"}
    assert custom[-1]["done"] == custom[-1]["total"] == 3
    tools = [event for mode, event in events if mode == "tools"]
    assert [event["event"] for event in tools] == [
        "tool-started",
        *["tool-output-delta"] * len(custom),
        "tool-finished",
    ]
    assert [e["delta"] for e in tools if e["event"] == "tool-output-delta"] == custom


async def test_progress_of_parallel_calls_keeps_their_ids() -> None:
    turns = [[tool_call("work", steps=2), tool_call("work", steps=1)], "done"]
    graph = agent(to_langchain([function_tool(work)]), turns)
    texts: dict[str, str] = {}
    async for event in graph.astream({"messages": "go"}, stream_mode="custom"):
        texts[event["tool_call_id"]] = texts.get(event["tool_call_id"], "") + event["text"]
    assert texts == {"call_1": "step 0\nstep 1\n", "call_2": "step 0\n"}


async def test_progress_outside_a_graph_goes_nowhere_and_harms_nothing() -> None:
    assert await to_langchain([function_tool(work)])[0].ainvoke({"steps": 1}) == "worked"


async def test_events_carry_the_effects() -> None:
    graph = agent(to_langchain([function_tool(work)]), [tool_call("work", steps=0), "all is done"])
    kinds: dict[str, Any] = {}
    spoken = ""
    async for event in graph.astream_events({"messages": "go"}, version="v2"):
        kinds[event["event"]] = event
        if event["event"] == "on_chat_model_stream":
            spoken += str(event["data"]["chunk"].content)
    assert kinds["on_tool_start"]["metadata"]["effects"] is None
    assert kinds["on_tool_end"]["data"]["output"].status == "success"
    assert spoken == "all is done"


async def test_a_turn_may_be_computed_from_the_messages_so_far() -> None:
    def look(messages: list[Any]) -> Any:
        return tool_call("work", steps=len(messages)) if len(messages) < 3 else f"saw {messages[-1].content}"

    graph = agent(to_langchain([function_tool(work)]), [look, look])
    state = await run(graph)
    assert final_text(state) == "saw worked"
    assert len(tool_messages(state)) == 1


async def test_the_model_records_what_it_was_given() -> None:
    model = ScriptedModel(["hello there", AIMessage("raw")])
    tools = to_langchain([function_tool(work)])
    bound = model.bind_tools(tools, tool_choice="work")
    assert bound.invoke([HumanMessage("hi")]).content == "hello there"
    assert (await bound.ainvoke("again")).content == "raw"
    assert model.calls[0].messages == [HumanMessage("hi")]
    assert model.calls[0].tool_names == ["work"]
    assert model.calls[0].options["tool_choice"] == "work"
    with pytest.raises(ScriptExhaustedError, match="2 turns"):
        model.invoke("more")


async def test_streams_give_the_same_message_as_a_plain_call() -> None:
    turn = ["I call two.", tool_call("a", {"x": [1, {"y": "\ud800"}], "name": "n"}), tool_call("b")]
    plain = ScriptedModel([turn]).invoke("go")
    chunks = [chunk async for chunk in ScriptedModel([turn]).astream("go")]
    whole = sum(chunks[1:], chunks[0])
    assert (whole.content, whole.tool_calls) == (plain.content, plain.tool_calls)
    assert len(chunks) > 5


def test_a_turn_may_be_a_failure() -> None:
    model = ScriptedModel([TimeoutError("the provider is down"), "ok"])
    with pytest.raises(TimeoutError):
        model.invoke("go")
    assert model.invoke("go").content == "ok"


def test_nonsense_in_a_script_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="tool_call"):
        ScriptedModel([[3]]).invoke("go")  # pyright: ignore[reportArgumentType]  (this is the test)
