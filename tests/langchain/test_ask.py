"""Questions over interrupt(): asked once, answered once, never crossed, never guessed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from tests.langchain.agents import WAYS, Way, agent, final_text, graph_with_tool_node, run, tool_messages
from toolkit_core.context import ToolContext
from toolkit_core.errors import ToolError
from toolkit_core.factories import function_tool
from toolkit_core.ports.ask import Answer, Option, Question
from toolkit_langchain import to_langchain
from toolkit_langchain.ask import parse_answer
from toolkit_langchain.testing import tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Deeds:
    """What a tool did, so that a replay shows."""

    def __init__(self) -> None:
        self.before: list[str] = []
        self.after: list[str] = []

    async def decide(self, what: str, ctx: ToolContext, delay: float = 0.0) -> str:
        """Ask, then do."""
        self.before.append(what)
        await asyncio.sleep(delay if len(self.before) <= 2 else 0.3 - delay)
        if ctx.ask is None:
            return "nobody to ask"
        answer = await ctx.ask(Question("q", what, options=(Option("yes"), Option("no"))))
        self.after.append(f"{what}={answer}")
        return f"{what} was answered {answer!r}"


def tools_of(deeds: Deeds) -> Any:
    return to_langchain([function_tool(deeds.decide, name="decide", description="Asks.")])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("build", [agent, graph_with_tool_node])
async def test_the_run_pauses_with_the_question_and_goes_on_with_the_answer(build: Any, way: Way) -> None:
    deeds = Deeds()
    graph = build(tools_of(deeds), [tool_call("decide", what="Delete?"), "done"], checkpointer=InMemorySaver())
    await run(graph, way=way, config=CONFIG)
    [pause] = (await graph.aget_state(CONFIG)).interrupts
    assert pause.value["question"] == "Delete?"
    assert pause.value["type"] == "question"
    assert [option["label"] for option in pause.value["options"]] == ["yes", "no"]
    assert deeds.after == []
    state = await run(graph, Command(resume="yes"), way=way, config=CONFIG)
    assert tool_messages(state)[0].content == "Delete? was answered 'yes'"
    assert deeds.after == ["Delete?=yes"]
    assert final_text(state) == "done"


async def test_parallel_questions_are_told_apart_by_interrupt_id() -> None:
    deeds = Deeds()
    turns = [[tool_call("decide", what="A"), tool_call("decide", what="B")], "done"]
    graph = agent(tools_of(deeds), turns, checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    pauses = (await graph.aget_state(CONFIG)).interrupts
    answers = {pause.id: f"for {pause.value['question']}" for pause in reversed(pauses)}
    state = await run(graph, Command(resume=answers), config=CONFIG)
    assert [m.content for m in tool_messages(state)] == ["A was answered 'for A'", "B was answered 'for B'"]


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_parallel_questions_in_one_hand_built_tool_node_never_cross(way: Way) -> None:
    """The calls share one task, and the replay asks in the other order."""
    deeds = Deeds()
    turns = [[tool_call("decide", what="A", delay=0.3), tool_call("decide", what="B", delay=0.0)], "done"]
    graph = graph_with_tool_node(tools_of(deeds), turns, checkpointer=InMemorySaver())
    await run(graph, way=way, config=CONFIG)
    state: dict[str, Any] = {}
    for _ in range(2):
        [pause] = (await graph.aget_state(CONFIG)).interrupts
        state = await run(graph, Command(resume=f"for {pause.value['question']}"), way=way, config=CONFIG)
    assert [m.content for m in tool_messages(state)] == ["A was answered 'for A'", "B was answered 'for B'"]


async def test_without_a_graph_or_a_checkpointer_there_is_no_port_and_nobody_waits() -> None:
    deeds = Deeds()
    [tool] = tools_of(deeds)
    assert await tool.ainvoke({"what": "A"}) == "nobody to ask"
    state = await run(agent([tool], [tool_call("decide", what="A"), "done"]), config=CONFIG)
    assert tool_messages(state)[0].content == "nobody to ask"
    assert "__interrupt__" not in state


async def test_a_port_that_the_set_was_given_stands_before_the_interrupt() -> None:
    from dataclasses import replace

    from toolkit_core.tool import ToolSet

    async def port(question: Question) -> str:
        return f"port says {question.question}"

    deeds = Deeds()
    core = ToolSet([function_tool(deeds.decide, name="decide", description="Asks.")], surroundings=_with(port))
    assert replace(core[0]).surroundings.ask is port
    graph = agent(to_langchain(core), [tool_call("decide", what="A"), "done"], checkpointer=InMemorySaver())
    state = await run(graph, config=CONFIG)
    assert tool_messages(state)[0].content == "A was answered 'port says A'"


def _with(port: Any) -> ToolContext:
    return ToolContext(ask=port)


async def test_two_questions_of_one_call_with_one_id_are_two_questions() -> None:
    async def twice(ctx: ToolContext) -> str:
        """Ask twice."""
        assert ctx.ask is not None
        first = await ctx.ask(Question("q", "First?"))
        second = await ctx.ask(Question("q", "Second?"))
        return f"{first},{second}"

    turns = [tool_call("twice"), "done"]
    graph = agent(to_langchain([function_tool(twice)]), turns, checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    await run(graph, Command(resume="1"), config=CONFIG)
    state = await run(graph, Command(resume="2"), config=CONFIG)
    assert tool_messages(state)[0].content == "1,2"


async def test_a_tool_that_catches_everything_it_should_does_not_swallow_the_pause() -> None:
    async def careful(ctx: ToolContext) -> str:
        """Catch broadly."""
        assert ctx.ask is not None
        try:
            return str(await ctx.ask(Question("q", "Sure?")))
        except Exception as e:  # noqa: BLE001 - this breadth is the test
            return f"swallowed {type(e).__name__}"

    graph = agent(to_langchain([function_tool(careful)]), [tool_call("careful"), "x"], checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    state = await run(graph, Command(resume="yes"), config=CONFIG)
    assert tool_messages(state)[0].content == "yes"


async def test_cancelling_while_a_question_is_open_leaves_it_open() -> None:
    deeds = Deeds()
    graph = agent(tools_of(deeds), [tool_call("decide", what="A", delay=0.2), "x"], checkpointer=InMemorySaver())
    task = asyncio.create_task(run(graph, config=CONFIG))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert deeds.after == []


@pytest.mark.parametrize(("reply", "answer"), [
    ("yes", "yes"), ("  ", None), ("", None), (None, None), (False, None), (7, None), ({}, None), ([], None),
    (["a", "b"], Answer(("a", "b"))), ([1], None),
    ({"values": ["a"]}, Answer(("a",))), ({"values": "a"}, Answer(("a",))),
    ({"text": "own"}, Answer((), "own")), ({"values": [], "text": " "}, None), ({"values": [3]}, None),
    ({"answer": "yes"}, "yes"), ({"message": ["a"]}, Answer(("a",))), ({"text": 3}, None), ({"dismissed": True}, None),
    ({"type": "approve"}, None), (True, None),
])  # fmt: skip
def test_nonsense_and_emptiness_are_dismissals(reply: Any, answer: Any) -> None:
    assert parse_answer(reply) == answer


SCRIPT = """
    import sys
    from langchain.agents import create_agent
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.types import Command
    from toolkit_core.context import ToolContext
    from toolkit_core.factories import function_tool
    from toolkit_core.ports.ask import Question
    from toolkit_langchain import to_langchain
    from toolkit_langchain.testing import ScriptedModel

    @function_tool
    async def decide(what: str, ctx: ToolContext) -> str:
        "Asks."
        return f"{what} was answered {await ctx.ask(Question('q', what))!r}"

    with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
        agent = create_agent(ScriptedModel(["done"]), to_langchain([decide]), checkpointer=saver)
        state = agent.invoke(Command(resume="from afar"), {"configurable": {"thread_id": "t"}})
    print(state["messages"][-2].content, state["messages"][-1].content)
"""


async def test_a_question_in_a_sqlite_checkpoint_is_answered_in_another_process(tmp_path: Path) -> None:
    file = tmp_path / "state.sqlite"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        graph = agent(tools_of(Deeds()), [tool_call("decide", what="A")], checkpointer=saver)
        graph.invoke({"messages": "go"}, CONFIG)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(file)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "A was answered 'from afar' done", done.stderr


async def test_an_answer_that_names_another_question_is_kept_for_it() -> None:
    deeds = Deeds()
    turns = [[tool_call("decide", what="A"), tool_call("decide", what="B")], "done"]
    graph = graph_with_tool_node(tools_of(deeds), turns, checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    await run(graph, Command(resume={"id": "call_2:q", "answer": "for B"}), config=CONFIG)
    state = await run(graph, Command(resume={"id": "call_1:q", "answer": "for A"}), config=CONFIG)
    assert [m.content for m in tool_messages(state)] == ["A was answered 'for A'", "B was answered 'for B'"]


async def test_asking_outside_a_graph_says_unavailable() -> None:
    from toolkit_langchain.ask import InterruptAsk

    with pytest.raises(ToolError) as caught:
        await InterruptAsk("t", "c")(Question("q", "Hm?"))
    assert caught.value.code == "unavailable"
