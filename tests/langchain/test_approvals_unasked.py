"""Calls that need an approval which these tool objects know nothing of: refused, never run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage
from langchain_core.messages.tool import invalid_tool_call
from langchain_core.messages.tool import tool_call as call_of
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.langchain.agents import WAYS, Way, agent, create_agent, final_text, graph_with_tool_node, run, tool_messages
from toolkit_core.factories import function_tool
from toolkit_core.policy import Policy
from toolkit_core.tool import ToolSet
from toolkit_langchain import ToolkitMiddleware, default_tools, interrupt_on, to_langchain
from toolkit_langchain.testing import ScriptedCall, ScriptedModel, tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}
APPROVAL: dict[str, Any] = {"type": "approve"}
WRITE = tool_call("write_file", path="a.txt", content="new")
EACH_WAY = pytest.mark.parametrize("way", WAYS)
EACH_MODE = pytest.mark.parametrize("mode", ["batched", "per_call"])
EACH_POLICY = pytest.mark.parametrize("policy", [Policy(ask=["write_file"]), None])


def asking(folder: Path, saver: Any, turns: Any, mode: Any, policy: Any) -> Any:
    """An agent of new tool objects, as another process builds it."""
    tools = default_tools(folder, require_read=False)
    middleware = HumanInTheLoopMiddleware(interrupt_on(tools, policy), interrupt_mode=mode)
    return create_agent(ScriptedModel(turns), tools, middleware=[middleware], checkpointer=saver)


def approval(mode: str) -> Any:
    return Command(resume={"decisions": [APPROVAL]} if mode == "batched" else APPROVAL)


@EACH_WAY
@EACH_MODE
@EACH_POLICY
async def test_an_approval_that_new_tool_objects_know_nothing_of_writes_nothing(
    workspace: Path, way: Way, mode: str, policy: Any
) -> None:
    saver = InMemorySaver()
    await run(asking(workspace, saver, [WRITE], mode, policy), way=way, config=CONFIG)
    (workspace / "b.txt").write_text("old")
    (workspace / "a.txt").symlink_to("b.txt")
    again = ScriptedCall("write_file", {"path": "b.txt", "content": "newer"}, id="again")
    restarted = asking(workspace, saver, [again, "done"], mode, policy)
    state = await run(restarted, approval(mode), way=way, config=CONFIG)
    [refused] = tool_messages(state)
    assert refused.artifact["error"]["code"] == "denied"
    assert "ToolkitMiddleware(policy=" in str(refused.content)
    assert (workspace / "b.txt").read_text() == "old"
    state = await run(restarted, approval(mode), way=way, config=CONFIG)
    assert final_text(state) == "done"
    assert (workspace / "b.txt").read_text() == "newer", "made again, it was asked about and ran"


@EACH_WAY
async def test_an_agent_that_asks_nobody_over_the_same_tools_runs_no_call_that_the_policy_asks_about(
    workspace: Path, way: Way
) -> None:
    tools = default_tools(workspace, require_read=False)
    control = await run(agent(tools, [WRITE, "done"]), way=way)
    assert (tool_messages(control)[0].status, (workspace / "a.txt").read_text()) == ("success", "new")
    (workspace / "a.txt").unlink()
    interrupt_on(tools, Policy(ask=["write_file"]))
    for build in (agent, graph_with_tool_node):
        state = await run(build(tools, [WRITE, tool_call("read_file", path="notes.txt"), "done"]), way=way)
        assert tool_messages(state)[0].artifact["error"]["code"] == "denied"
        assert not (workspace / "a.txt").exists()


async def test_an_approval_by_the_toolkits_middleware_counts_for_tools_that_are_held_to_a_policy(
    workspace: Path,
) -> None:
    tools, policy = default_tools(workspace, require_read=False), Policy(ask=["write_file"])
    interrupt_on(tools, policy)
    middleware = ToolkitMiddleware(ToolSet([]), policy=policy)
    graph = create_agent(ScriptedModel([WRITE, "done"]), tools, middleware=[middleware], checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    await run(graph, Command(resume=APPROVAL), config=CONFIG)
    assert (workspace / "a.txt").read_text() == "new"


async def test_an_agent_within_a_tool_may_ask_twice(workspace: Path) -> None:
    tools = default_tools(workspace, require_read=False)
    hitl = HumanInTheLoopMiddleware(interrupt_on(tools, Policy(ask=["write_file"])))
    second = tool_call("write_file", path="c.txt", content="c")

    def turn(messages: Any) -> Any:
        return [WRITE, second, "done"][len(tool_messages({"messages": messages}))]

    inner = create_agent(ScriptedModel([turn] * 9), tools, middleware=[hitl])

    async def delegate() -> str:
        """Run another agent."""
        state = await inner.ainvoke({"messages": [{"role": "user", "content": "go"}]})
        return str([m.content for m in tool_messages(state)])

    outer = agent(to_langchain(function_tool(delegate)), [tool_call("delegate"), "over"], checkpointer=InMemorySaver())
    await run(outer, config=CONFIG)
    await run(outer, approval("batched"), config=CONFIG)
    state = await run(outer, approval("batched"), config=CONFIG)
    assert "denied" not in str(tool_messages(state)[0].content)
    assert [(workspace / name).exists() for name in ("a.txt", "c.txt")] == [True, True]


def test_a_second_policy_for_the_same_tools_is_refused_and_the_same_one_is_not(workspace: Path) -> None:
    tools = default_tools(workspace)
    first = interrupt_on(tools, Policy(deny=["shell"]))
    assert interrupt_on(tools, Policy(deny=["shell"])).keys() == first.keys()
    with pytest.raises(ValueError, match="another policy"):
        interrupt_on(tools, Policy(allow=["shell"]))


@EACH_WAY
@pytest.mark.parametrize("build", [agent, graph_with_tool_node])
async def test_a_call_without_an_id_is_answered_with_a_message(workspace: Path, build: Any, way: Way) -> None:
    tools = default_tools(workspace, require_read=False)
    nameless = call_of(name="write_file", args={"path": "a.txt", "content": "new"}, id=None)
    state = await run(build(tools, [AIMessage("", tool_calls=[nameless]), "done"]), way=way)
    [message] = tool_messages(state)
    assert (message.status, message.tool_call_id, final_text(state)) == ("success", "", "done")
    [write] = [tool for tool in tools if tool.name == "write_file"]
    assert isinstance(write.invoke(nameless), str), "outside a graph it is bare content"
    interrupt_on(tools, Policy(ask=["write_file"]))
    state = await run(build(tools, [AIMessage("", tool_calls=[nameless]), "done"]), way=way)
    assert tool_messages(state)[0].artifact["error"]["code"] == "denied"


@EACH_WAY
async def test_an_unreadable_call_without_an_id_is_answered(workspace: Path, way: Way) -> None:
    broken = invalid_tool_call(name="shell", args='{"comm', id=None, error="cut")
    model = ScriptedModel([AIMessage("", invalid_tool_calls=[broken]), "done"])
    state = await run(create_agent(model, middleware=[ToolkitMiddleware(str(workspace))]), way=way)
    assert tool_messages(state)[0].artifact["error"]["code"] == "invalid_arguments"
    assert final_text(state) == "done"
