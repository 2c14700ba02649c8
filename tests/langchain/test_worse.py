"""Worse cases: threads, forks, nested agents, closed streams, double answers, siblings that fail."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
import uuid
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from tests.langchain.agents import WAYS, Way, agent, create_agent, final_text, graph_with_tool_node, run, tool_messages
from tests.langchain.test_default_tools import children_of
from tests.support import require
from toolkit_core.context import ToolContext
from toolkit_core.factories import function_tool
from toolkit_core.ports.ask import Question
from toolkit_langchain import AgentToolkit, ToolkitMiddleware, default_tools, to_langchain
from toolkit_langchain.testing import ScriptedModel, tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}


async def ask(what: str, ctx: ToolContext) -> str:
    """Ask."""
    assert ctx.ask is not None
    return f"{what}: {await ctx.ask(Question('q', what))}"


def test_thirty_agents_in_threads_share_one_set_of_tools(workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    tools = default_tools(workspace)

    def one(number: int) -> str:
        turns = [[tool_call("read_file", path="a.txt"), tool_call("shell", command=f"echo {number}")], f"done {number}"]
        state = agent(tools, turns).invoke({"messages": "go"}, {"configurable": {"thread_id": str(number)}})
        read, shell = tool_messages(state)
        assert "hello" in read.content
        assert shell.artifact["data"]["stdout"] == f"{number}\n"
        return final_text(state)

    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        assert list(pool.map(one, range(30))) == [f"done {n}" for n in range(30)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # fork in a process with threads is the case under test
def test_a_forked_child_has_a_bridge_of_its_own() -> None:
    require(hasattr(os, "fork"), "this system cannot fork")
    [tool] = to_langchain([function_tool(lambda: "parent or child", name="say", description="Says.")])
    assert tool.invoke({}) == "parent or child"
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write, str(tool.invoke({})).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"parent or child"
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("way", WAYS)
async def test_a_body_that_interrupts_by_itself_pauses_the_graph(way: Way) -> None:
    async def own() -> str:
        """Interrupt without the toolkit's port."""
        return f"told {interrupt('what?')}"

    graph = agent(to_langchain([function_tool(own)]), [tool_call("own"), "ok"], checkpointer=InMemorySaver())
    await run(graph, way=way, config=CONFIG)
    assert (await graph.aget_state(CONFIG)).interrupts[0].value == "what?"
    state = await run(graph, Command(resume="this"), way=way, config=CONFIG)
    assert tool_messages(state)[0].content == "told this"


async def test_a_question_of_an_agent_inside_a_tool_reaches_the_outer_caller() -> None:
    inner = agent(to_langchain([function_tool(ask)]), [tool_call("ask", what="Sure?"), "inner is done"])

    async def delegate(task: str) -> str:
        """Run another agent."""
        state = await inner.ainvoke({"messages": [{"role": "user", "content": task}]})
        return f"{tool_messages(state)[0].content}; {final_text(state)}"

    graph = agent(to_langchain([function_tool(delegate)]), [tool_call("delegate", task="Sure?"), "ok"],
                  checkpointer=InMemorySaver())  # fmt: skip
    await run(graph, config=CONFIG)
    [pause] = (await graph.aget_state(CONFIG)).interrupts
    assert pause.value["question"] == "Sure?"
    state = await run(graph, Command(resume="yes"), config=CONFIG)
    assert tool_messages(state)[0].content == "Sure?: yes; inner is done"


async def test_closing_the_stream_early_stops_the_command(workspace: Path) -> None:
    marker = f"33.{os.getpid()}"
    graph = agent(default_tools(workspace), [tool_call("shell", command=f"echo one; sleep {marker}"), "x"])
    stream = graph.astream({"messages": "go"}, stream_mode="custom")
    async for event in stream:
        if event["text"]:
            assert children_of(f"sleep {marker}")  # CONTROL: it runs
            break
    await stream.aclose()
    assert children_of(f"sleep {marker}") == []


async def test_a_step_timeout_of_the_graph_stops_the_command(workspace: Path) -> None:
    marker = f"34.{os.getpid()}"
    graph = agent(default_tools(workspace), [tool_call("shell", command=f"sleep {marker}"), "x"])
    graph.step_timeout = 1.0
    with pytest.raises(TimeoutError):
        await run(graph)
    for _ in range(100):  # LangGraph does not wait for what it cancels
        if not children_of(f"sleep {marker}"):
            break
        await asyncio.sleep(0.05)
    assert children_of(f"sleep {marker}") == []


async def test_a_sibling_of_another_maker_that_fails_does_not_leave_our_command_running(workspace: Path) -> None:
    marker = f"35.{os.getpid()}"

    @langchain_tool
    async def explode() -> str:
        """Fail soon."""
        while not children_of(f"sleep {marker}"):
            await asyncio.sleep(0.05)
        raise ValueError("boom")

    turns = [[tool_call("shell", command=f"sleep {marker}"), tool_call("explode")], "x"]
    with pytest.raises(ValueError, match="boom"):
        await run(agent([*default_tools(workspace), explode], turns))
    for _ in range(100):
        if not children_of(f"sleep {marker}"):
            break
        await asyncio.sleep(0.05)
    assert children_of(f"sleep {marker}") == []


async def test_an_answer_that_is_sent_twice_runs_the_tool_once() -> None:
    done: list[str] = []

    async def once(ctx: ToolContext) -> str:
        """Ask, then do."""
        assert ctx.ask is not None
        done.append(str(await ctx.ask(Question("q", "Sure?"))))
        return "done"

    graph = agent(to_langchain([function_tool(once)]), [tool_call("once"), "ok"], checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    [pause] = (await graph.aget_state(CONFIG)).interrupts
    await run(graph, Command(resume={pause.id: "yes"}), config=CONFIG)
    state = await run(graph, Command(resume={pause.id: "no"}), config=CONFIG)
    assert done == ["yes"]
    assert final_text(state) == "ok"


async def test_many_questions_in_one_tool_node_each_get_their_own_answer() -> None:
    calls = [tool_call("ask", what=f"q{n}") for n in range(12)]
    graph = graph_with_tool_node(to_langchain([function_tool(ask)]), [calls, "ok"], checkpointer=InMemorySaver())
    state = await run(graph, config=CONFIG)
    while pauses := (await graph.aget_state(CONFIG)).interrupts:
        state = await run(graph, Command(resume=f"for {pauses[0].value['question']}"), config=CONFIG)
    assert [m.content for m in tool_messages(state)] == [f"q{n}: for q{n}" for n in range(12)]


async def test_two_graphs_on_one_thread_id_do_not_answer_each_other() -> None:
    graphs = [
        agent(to_langchain([function_tool(ask)]), [tool_call("ask", what=w), "ok"], checkpointer=InMemorySaver())
        for w in "AB"
    ]
    for graph in graphs:
        await run(graph, config=CONFIG)
    states = [await run(graph, Command(resume=f"answer {n}"), config=CONFIG) for n, graph in enumerate(graphs)]
    assert [tool_messages(state)[0].content for state in states] == ["A: answer 0", "B: answer 1"]


async def test_batches_and_chains_of_tools_work() -> None:
    def up(text: str) -> str:
        """Upper case."""
        return text.upper()

    def loud(text: Any) -> str:
        return f"{text}!"

    [tool] = to_langchain([function_tool(up)])
    assert tool.batch([{"text": "a"}, {"text": "b"}, {"nope": 1}])[:2] == ["A", "B"]
    assert await tool.abatch([{"text": "a"}, {"text": "b"}]) == ["A", "B"]
    assert (tool | loud).invoke({"text": "a"}) == "A!"


async def test_structured_answers_and_our_tools_go_together(workspace: Path) -> None:
    class Verdict(BaseModel):
        """The verdict."""

        good: bool

    (workspace / "a.txt").write_text("x")
    model = ScriptedModel([tool_call("read_file", path="a.txt"), tool_call("Verdict", good=True)])
    from langchain.agents.structured_output import ToolStrategy

    graph = create_agent(model, default_tools(workspace), response_format=ToolStrategy(Verdict))
    state = await run(graph)
    assert state["structured_response"] == Verdict(good=True)


async def test_a_flood_of_progress_neither_blocks_nor_grows_without_end() -> None:
    async def flood(ctx: ToolContext) -> str:
        """Report much."""
        for number in range(20_000):
            ctx.report("stdout", f"{number}\n", done=number)
        return "done"

    graph = agent(to_langchain([function_tool(flood)]), [tool_call("flood"), "ok"])
    events = [event async for event in graph.astream({"messages": "go"}, stream_mode="custom")]
    assert len(events) < 100
    assert events[-1]["done"] == 19_999


@pytest.mark.parametrize("thread", [7, "naïve/..\x00", uuid.uuid4(), ""])
async def test_odd_thread_ids_are_just_sessions(thread: Any) -> None:
    def whose(ctx: ToolContext) -> str:
        """Say whose."""
        return repr(ctx.session_id)

    [tool] = to_langchain([function_tool(whose)])
    said = await tool.ainvoke({}, {"configurable": {"thread_id": thread}})
    assert said == repr(str(thread)) or (thread == "" and said)


async def test_pictures_travel_through_an_agent(workspace: Path) -> None:
    from tests.adapters.scenario_tools import PNG

    (workspace / "dot.png").write_bytes(PNG)
    graph = agent(
        default_tools(workspace), [tool_call("read_file", path="dot.png"), "a dot"], checkpointer=InMemorySaver()
    )
    [message] = tool_messages(await run(graph, config=CONFIG))
    assert [block["type"] for block in message.content_blocks] == ["text", "image"]
    assert message.artifact["data"]["kind"] == "image"


async def test_a_folder_is_enough_for_the_middleware_and_the_toolkit(workspace: Path) -> None:
    (workspace / "a.txt").write_text("hello\n")
    model = ScriptedModel([tool_call("read_file", path="a.txt"), "ok"])
    state = await run(create_agent(model, middleware=[ToolkitMiddleware(workspace)]), config=CONFIG)
    assert "hello" in tool_messages(state)[0].content
    assert {"read_file", "edit_file", "grep", "shell", "web_fetch"} <= set(model.calls[0].tool_names)
    names = {tool.name for tool in AgentToolkit(workspace).get_tools()}
    assert names == set(model.calls[0].tool_names)
    assert isinstance(await AgentToolkit(str(workspace)).instructions(), str)


async def test_the_loop_stays_free_while_a_sync_tool_works() -> None:
    gate = threading.Event()

    def slow() -> str:
        """Block a thread."""
        gate.wait(20)
        return "done"

    task = asyncio.create_task(run(agent(to_langchain([function_tool(slow)]), [tool_call("slow"), "ok"])))
    await asyncio.sleep(0.3)
    assert not task.done()
    gate.set()
    assert final_text(await task) == "ok"
