"""Sync and async calls, cancellation, ids, sessions, progress."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.workflow import Context
from workflows.errors import WorkflowCancelledByUser, WorkflowTimeoutError

from toolkit_core import ToolContext, ToolSet, function_tool
from toolkit_llamaindex import ToolProgressEvent, to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, tool_call

from .agents import KINDS, Kind, agent_of, follow, run_agent

WAIT_SECONDS = 30


@function_tool
async def where(word: str, context: ToolContext) -> dict[str, Any]:
    """Say whose call this is."""
    await asyncio.sleep(0)
    return {"word": word, "session": context.session_id, "call": context.call_id}


async def test_sync_and_async_give_equal_results_in_a_running_loop() -> None:
    [tool] = to_llamaindex(ToolSet([where]))
    assert tool.call(word="a") == await tool.acall(word="a") == tool(word="a")


def test_sync_calls_work_in_a_plain_script_and_in_a_thread() -> None:
    [tool] = to_llamaindex(where)
    seen = [tool.call(word="a").raw_output["data"]["word"]]
    thread = threading.Thread(target=lambda: seen.append(tool.call(word="b").raw_output["data"]["word"]))
    thread.start()
    thread.join(WAIT_SECONDS)
    assert seen == ["a", "b"]


def test_calls_in_two_loops_one_after_the_other_work() -> None:
    [tool] = to_llamaindex(where)
    assert [asyncio.run(tool.acall(word=word)).raw_output["data"]["word"] for word in "ab"] == ["a", "b"]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_ids_come_from_the_framework(kind: Kind, streaming: bool) -> None:
    tools = to_llamaindex(ToolSet([where]))
    agent, model = agent_of(kind, tools, [tool_call("where", word="x"), "done"], streaming=streaming)
    ctx: Context[Any] = Context(agent)
    await ctx.store.set("session_id", "ada")
    run = await follow(agent.run(user_msg="go", ctx=ctx), model)
    data = run.output.raw_output["data"]
    assert data["session"] == "ada"
    assert data["call"]
    assert kind == "react" or data["call"] == "call_1"


async def test_one_context_is_one_session_over_several_runs() -> None:
    tools = to_llamaindex(ToolSet([where]))
    agent, model = agent_of(
        "function", tools, [tool_call("where", word="x"), "one", tool_call("where", word="x"), "two"]
    )
    ctx: Context[Any] = Context(agent)
    await ctx.store.set("session_id", 7)
    runs = [await follow(agent.run(user_msg="go", ctx=ctx), model) for _ in range(2)]
    assert [run.output.raw_output["data"]["session"] for run in runs] == ["7", "7"]
    assert [run.text for run in runs] == ["one", "two"]


async def test_without_a_session_the_set_is_the_session() -> None:
    tools = ToolSet([where])
    run = await run_agent("function", to_llamaindex(tools), [tool_call("where", word="x"), "done"])
    assert run.output.raw_output["data"]["session"] == tools.identity


async def test_parallel_calls_of_a_turn_keep_their_ids() -> None:
    turn = [tool_call("where", word=str(n)) for n in range(8)]
    run = await run_agent("function", to_llamaindex(where), [turn, "done"])
    got = {output.raw_output["data"]["word"]: output.raw_output["data"]["call"] for output in run.outputs}
    assert got == {str(n): f"call_{n + 1}" for n in range(8)}
    ids = [message.additional_kwargs["tool_call_id"] for message in run.last_messages if message.role == "tool"]
    assert sorted(ids) == [f"call_{n + 1}" for n in range(8)]


async def test_two_agents_share_one_set_of_tools() -> None:
    tools = to_llamaindex(ToolSet([where]))
    runs = await asyncio.gather(
        *(run_agent("function", tools, [tool_call("where", word=str(n)), str(n)]) for n in range(4))
    )
    assert [(run.text, run.output.raw_output["data"]["word"]) for run in runs] == [(str(n), str(n)) for n in range(4)]


@pytest.mark.parametrize("kind", KINDS)
async def test_progress_is_on_the_event_stream_before_the_result(kind: Kind) -> None:
    @function_tool
    async def build(context: ToolContext) -> str:
        """Build."""
        context.report("stdout", "compiling\n", done=1, total=2)
        await asyncio.sleep(0.3)
        context.report("stdout", "linking\n", done=2, total=2)
        return "built"

    run = await run_agent(kind, to_llamaindex(build), [tool_call("build"), "done"])
    seen = [event for event in run.events if isinstance(event, ToolProgressEvent)]
    assert [(e.tool_name, e.kind, e.text, e.done, e.total) for e in seen] == [
        ("build", "stdout", "compiling\n", 1, 2),
        ("build", "stdout", "linking\n", 2, 2),
    ]
    names = [type(event).__name__ for event in run.events]
    assert names.index("ToolProgressEvent") < names.index("ToolCallResult")


class Sleeper:
    """A tool that sleeps, and says when it was started and stopped."""

    def __init__(self) -> None:
        self.started, self.stopped = asyncio.Event(), False

        @function_tool
        async def sleep() -> str:
            """Sleep."""
            self.started.set()
            try:
                await asyncio.sleep(WAIT_SECONDS)
            finally:
                await asyncio.sleep(0.05)
                self.stopped = True
            return "slept"

        self.tools = to_llamaindex(sleep)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_cancelled_run_stops_the_tool_first(kind: Kind) -> None:
    """Cancelling only whoever awaits the handler is no cancellation to LlamaIndex: there the run goes on."""
    sleeper = Sleeper()
    agent, _ = agent_of(kind, sleeper.tools, [tool_call("sleep"), "done"])
    handler = agent.run(user_msg="go")
    task = asyncio.ensure_future(_awaited(handler))
    await asyncio.wait_for(sleeper.started.wait(), WAIT_SECONDS)
    await handler.cancel_run()
    with pytest.raises((asyncio.CancelledError, WorkflowCancelledByUser)):
        await task
    assert sleeper.stopped


async def _awaited(handler: Any) -> Any:
    return await handler


@pytest.mark.parametrize("wrapped", [False, True], ids=["agent", "workflow"])
async def test_a_run_past_its_time_stops_the_tool(wrapped: bool) -> None:
    sleeper = Sleeper()
    model = ScriptedModel([tool_call("sleep"), "done"])
    timeout = None if wrapped else 1
    agent: Any = FunctionAgent(tools=sleeper.tools, llm=model, timeout=timeout)
    agent = AgentWorkflow(agents=[agent], timeout=1) if wrapped else agent
    with pytest.raises(WorkflowTimeoutError):
        await agent.run(user_msg="go")
    assert sleeper.stopped


async def test_a_cancelled_call_without_an_agent_raises() -> None:
    sleeper = Sleeper()
    task = asyncio.ensure_future(sleeper.tools[0].acall())
    await asyncio.wait_for(sleeper.started.wait(), WAIT_SECONDS)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sleeper.stopped


def test_each_package_loads_its_own_framework_only() -> None:
    code = (
        "import sys, toolkit_llamaindex\n"
        "assert not any(m.split('.')[0] in ('llama_index', 'langchain', 'langchain_core') for m in sys.modules)\n"
        "assert not any(m.startswith('toolkit_core.host') for m in sys.modules)\n"
        "toolkit_llamaindex.to_llamaindex\n"
        "import toolkit_llamaindex.testing, toolkit_llamaindex.approvals, toolkit_llamaindex.deferred\n"
        "loaded = sorted(m for m in sys.modules if m.startswith(('langchain', 'langgraph', 'toolkit_core.host')))\n"
        "assert not loaded, loaded\n"
        "assert sorted(toolkit_llamaindex.__all__) == toolkit_llamaindex.__all__\n"
        "assert all(name in dir(toolkit_llamaindex) for name in toolkit_llamaindex.__all__)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
