"""Approval: by the middleware's policy, and by LangChain's own middleware over interrupt_on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from tests.langchain.agents import WAYS, Way, create_agent, run, tool_messages
from toolkit_core.effects import Effects
from toolkit_core.factories import Arguments, function_tool, port_tool
from toolkit_core.policy import Policy
from toolkit_core.result import ToolResult
from toolkit_core.tool import Tool, ToolSet
from toolkit_langchain import ToolkitMiddleware, default_tools, interrupt_on, to_langchain
from toolkit_langchain.approvals import parse_reply
from toolkit_langchain.testing import ScriptedCall, ScriptedModel, tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}
EACH_WAY = pytest.mark.parametrize("way", WAYS)


class SendArguments(Arguments):
    to: str
    text: str = ""


class Post:
    """A tool with a subject that can move, as a path behind a link does."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.meaning: dict[str, str] = {}

    def tool(self) -> Tool[Any]:
        async def send(arguments: SendArguments, context: Any) -> ToolResult[Any]:
            self.sent.append(f"{self._real(arguments)}:{arguments.text}")
            return ToolResult.ok(f"sent to {self._real(arguments)}", {"to": self._real(arguments)})

        async def subject(arguments: SendArguments) -> str:
            return self._real(arguments)

        async def writes(arguments: SendArguments) -> tuple[str, ...]:
            return (f"/post/{self._real(arguments)}",)

        return port_tool(
            SendArguments, send, kind="send", describe=lambda siblings: "Send a text.", payload=dict[str, Any],
            effects=Effects(writes=True, destructive=True), subject=subject, writes=writes,
        )  # fmt: skip

    def _real(self, arguments: SendArguments) -> str:
        return self.meaning.get(arguments.to, arguments.to)


def by_policy(post: Post, turns: Any, policy: Any = None, checkpointer: Any = None) -> Any:
    middleware = ToolkitMiddleware(ToolSet([post.tool()]), policy=policy or Policy())
    return create_agent(ScriptedModel(turns), middleware=[middleware], checkpointer=checkpointer or InMemorySaver())


def by_langchain(post: Post, turns: Any, policy: Any = None, checkpointer: Any = None, mode: Any = "batched") -> Any:
    tools = to_langchain([post.tool()])
    middleware = HumanInTheLoopMiddleware(interrupt_on(tools, policy), interrupt_mode=mode)
    return create_agent(
        ScriptedModel(turns), tools, middleware=[middleware], checkpointer=checkpointer or InMemorySaver()
    )


def per_call(*args: Any, **kwargs: Any) -> Any:
    return by_langchain(*args, **kwargs, mode="per_call")


BUILDS = pytest.mark.parametrize("build", [by_policy, by_langchain, per_call])


def answer_for(build: Any, decision: dict[str, Any]) -> Any:
    return {"decisions": [decision]} if build is by_langchain else decision


async def pauses_of(graph: Any) -> list[Any]:
    return [pause.value for pause in (await graph.aget_state(CONFIG)).interrupts]


TURNS = [tool_call("send", to="ann", text="hi"), "done"]


@EACH_WAY
@BUILDS
async def test_approve_runs_the_call_once(build: Any, way: Way) -> None:
    post = Post()
    graph = build(post, TURNS)
    await run(graph, way=way, config=CONFIG)
    [shown] = await pauses_of(graph)
    assert "ann" in str(shown)
    assert "/post/ann" in str(shown)
    assert post.sent == []
    state = await run(graph, Command(resume=answer_for(build, {"type": "approve"})), way=way, config=CONFIG)
    assert tool_messages(state)[0].content == "sent to ann"
    assert post.sent == ["ann:hi"]


@EACH_WAY
@BUILDS
async def test_reject_and_respond_run_nothing(build: Any, way: Way) -> None:
    post = Post()
    graph = build(post, [*TURNS[:1], tool_call("send", to="bob"), "done"])
    await run(graph, way=way, config=CONFIG)
    rejection = answer_for(build, {"type": "reject", "message": "not now"})
    await run(graph, Command(resume=rejection), way=way, config=CONFIG)
    response = answer_for(build, {"type": "respond", "message": "I called him instead."})
    state = await run(graph, Command(resume=response), way=way, config=CONFIG)
    [rejected, responded] = tool_messages(state)
    assert rejected.status == "error"
    assert "not now" in str(rejected.content)
    assert (responded.status, responded.content) == ("success", "I called him instead.")
    assert post.sent == []


@BUILDS
async def test_an_edited_call_runs_as_edited_and_is_judged_again(build: Any) -> None:
    post = Post()
    policy = Policy(ask=["send"], deny=["send(eve)"])
    graph = build(post, [*TURNS[:1], tool_call("send", to="bob"), "done"], policy)
    await run(graph, config=CONFIG)
    for name in ("carl", "eve"):
        edit = {"type": "edit", "edited_action": {"name": "send", "args": {"to": name, "text": "edited"}}}
        state = await run(graph, Command(resume=answer_for(build, edit)), config=CONFIG)
    [ran, refused] = tool_messages(state)
    assert "sent to carl" in str(ran.content)
    assert refused.artifact["error"]["code"] == "denied"
    assert post.sent == ["carl:edited"]


@BUILDS
async def test_a_denied_call_is_refused_without_asking_and_an_allowed_one_runs(build: Any) -> None:
    post = Post()
    policy = Policy(allow=["send(ann)"], deny=["send(eve)"])
    graph = build(post, [[tool_call("send", to="ann"), tool_call("send", to="eve")], "done"], policy)
    state = await run(graph, config=CONFIG)
    [ran, refused] = tool_messages(state)
    assert ran.content == "sent to ann"
    assert refused.artifact["error"]["code"] == "denied"
    assert "send(eve)" in str(refused.content)


@BUILDS
async def test_an_approval_of_what_has_moved_since_is_refused(build: Any) -> None:
    post = Post()
    graph = build(post, TURNS)
    await run(graph, config=CONFIG)
    post.meaning["ann"] = "eve"
    state = await run(graph, Command(resume=answer_for(build, {"type": "approve"})), config=CONFIG)
    [refused] = tool_messages(state)
    assert refused.artifact["error"]["code"] == "denied"
    assert post.sent == []


async def test_a_rejection_counts_though_the_policy_would_allow_by_now() -> None:
    class Fickle:
        def __init__(self) -> None:
            self.first = True

        async def decide(self, tool: Any, arguments: Any) -> Any:
            from toolkit_core.policy import Decision

            asks, self.first = self.first, False
            return Decision("ask" if asks else "allow", "")

    post = Post()
    graph = by_policy(post, TURNS, Fickle())
    await run(graph, config=CONFIG)
    state = await run(graph, Command(resume={"type": "reject"}), config=CONFIG)
    assert post.sent == []
    assert tool_messages(state)[0].status == "error"


async def test_parallel_approvals_go_each_to_its_own_call() -> None:
    post = Post()
    graph = by_policy(post, [[tool_call("send", to="ann"), tool_call("send", to="bob")], "done"])
    await run(graph, config=CONFIG)
    answers = {
        pause.id: {"type": "approve" if pause.value["subject"] == "bob" else "reject"}
        for pause in (await graph.aget_state(CONFIG)).interrupts
    }
    state = await run(graph, Command(resume=answers), config=CONFIG)
    assert [m.status for m in tool_messages(state)] == ["error", "success"]
    assert post.sent == ["bob:"]


@pytest.mark.parametrize(
    "nonsense", ["", "sure?", 7, [], {"x": 1}, {"type": "aprove"}, {"decisions": []}, {"type": "edit"}, False]
)
async def test_nonsense_is_no_approval(nonsense: Any) -> None:
    post = Post()
    graph = by_policy(post, TURNS)
    await run(graph, config=CONFIG)
    state = await run(graph, Command(resume=nonsense), config=CONFIG)
    assert tool_messages(state)[0].artifact["error"]["code"] == "denied"
    assert post.sent == []


def test_an_edit_cannot_switch_tools() -> None:
    edit = {"type": "edit", "edited_action": {"name": "shell", "args": {"command": "rm -rf /"}}}
    assert parse_reply(edit, "send").action == "reject"
    assert parse_reply({"type": "edit", "args": {"to": "x"}}, "send").arguments == {"to": "x"}
    assert parse_reply(True, "send").action == "approve"


async def test_headless_an_asked_call_is_refused_and_the_run_goes_on() -> None:
    post = Post()
    middleware = ToolkitMiddleware(ToolSet([post.tool()]), policy=Policy())
    state = await run(create_agent(ScriptedModel(TURNS), middleware=[middleware]), config=CONFIG)
    assert tool_messages(state)[0].artifact["error"]["code"] == "denied"
    assert "nobody can be asked" in str(tool_messages(state)[0].content)


async def test_a_policy_that_fails_denies() -> None:
    class Broken:
        async def decide(self, tool: Any, arguments: Any) -> Any:
            raise RuntimeError("rules.toml is gone")

    post = Post()
    state = await run(by_policy(post, TURNS, Broken()), config=CONFIG)
    assert tool_messages(state)[0].artifact["error"]["code"] == "denied"
    assert "rules.toml" not in str(tool_messages(state)[0].content)


async def test_bad_arguments_are_said_and_nobody_is_asked() -> None:
    post = Post()
    for build in (by_policy, by_langchain):
        state = await run(build(post, [tool_call("send", to=3, more=1), "done"], Policy()), config=CONFIG)
        assert tool_messages(state)[0].artifact["error"]["code"] == "invalid_arguments"


def test_without_a_policy_what_harms_is_asked_about_and_what_only_reads_is_not() -> None:
    def body() -> str:
        return ""

    effects = {
        "reads": Effects(reads=True), "writes": Effects(writes=True), "destroys": Effects(destructive=True),
        "runs": Effects(executes=True), "goes_out": Effects(network=True), "unknown": None,
    }  # fmt: skip
    tools = to_langchain([function_tool(body, name=n, description="d", effects=e) for n, e in effects.items()])
    assert list(interrupt_on(tools)) == ["destroys", "runs", "goes_out", "unknown"]
    with pytest.raises(TypeError, match="to_langchain"):
        interrupt_on([Post().tool()])  # pyright: ignore[reportArgumentType]  (this is the test)


async def test_both_together_ask_once() -> None:
    post = Post()
    policy = Policy()
    tools = to_langchain([post.tool()])
    middleware: list[Any] = [
        HumanInTheLoopMiddleware(interrupt_on(tools, policy)),
        ToolkitMiddleware(ToolSet([]), policy=policy),
    ]
    graph = create_agent(ScriptedModel(TURNS), tools, middleware=middleware, checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    state = await run(graph, Command(resume={"decisions": [{"type": "approve"}]}), config=CONFIG)
    assert tool_messages(state)[0].content == "sent to ann"
    assert post.sent == ["ann:hi"]


SCRIPT = """
    import asyncio, sys
    from langchain.agents import create_agent
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.types import Command
    from tests.langchain.test_approvals import CONFIG, Post
    from toolkit_core.policy import Policy
    from toolkit_core.tool import ToolSet
    from toolkit_langchain import ToolkitMiddleware
    from toolkit_langchain.testing import ScriptedModel

    async def main():
        post = Post()
        if sys.argv[2]:
            post.meaning["ann"] = sys.argv[2]
        async with AsyncSqliteSaver.from_conn_string(sys.argv[1]) as saver:
            middleware = ToolkitMiddleware(ToolSet([post.tool()]), policy=Policy())
            agent = create_agent(ScriptedModel(["done"]), middleware=[middleware], checkpointer=saver)
            state = await agent.ainvoke(Command(resume={"type": "approve"}), CONFIG)
        print(state["messages"][-2].status, state["messages"][-2].content.splitlines()[0])

    asyncio.run(main())
"""


@pytest.mark.parametrize(("meaning", "expected"), [
    ("", "success sent to ann"),
    ("eve", "error Error (denied): what send would act on is no longer what was approved (now 'eve')"),
])  # fmt: skip
async def test_an_approval_given_in_another_process_is_held_to_what_was_shown(
    tmp_path: Path, meaning: str, expected: str
) -> None:
    file = tmp_path / "state.sqlite"
    async with AsyncSqliteSaver.from_conn_string(str(file)) as saver:
        await run(by_policy(Post(), TURNS[:1], checkpointer=saver), config=CONFIG)
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(file), meaning]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == expected, done.stderr


async def test_an_agent_started_blocking_inside_a_tool_can_be_judged() -> None:
    """Hooks without an async form run on the bridge's own thread here, which refuses to wait for itself."""
    post = Post()

    async def delegate() -> str:
        """Run another agent, blocking."""
        tools = to_langchain([post.tool()])
        allowed = Policy(allow=["send"])
        hooks: list[Any] = [
            HumanInTheLoopMiddleware(interrupt_on(tools, allowed)),
            ToolkitMiddleware(ToolSet([]), policy=allowed),
        ]
        inner = create_agent(ScriptedModel(TURNS), tools, middleware=hooks)
        state = await inner.ainvoke({"messages": [{"role": "user", "content": "go"}]})
        return str(state["messages"][-1].content)

    [tool] = to_langchain([function_tool(delegate)])
    assert await asyncio.to_thread(tool.invoke, {}) == "done"
    assert post.sent == ["ann:hi"]


@BUILDS
async def test_a_rejected_call_made_again_under_the_same_id_is_asked_about_again(build: Any) -> None:
    """Call ids are not unique with every provider: an approval belongs to one turn."""
    post = Post()
    same = ScriptedCall("send", {"to": "ann"}, id="same")
    graph = build(post, [same, same, "done"])
    await run(graph, config=CONFIG)
    await run(graph, Command(resume=answer_for(build, {"type": "reject"})), config=CONFIG)
    assert len(await pauses_of(graph)) == 1
    assert post.sent == []


async def test_a_file_that_became_a_link_after_it_was_shown_is_not_written(workspace: Path) -> None:
    (workspace / "config.toml").write_text("old")
    tools = default_tools(workspace, require_read=False)
    turns = [tool_call("write_file", path="notes.txt", content="new"), "done"]
    for middleware in (
        HumanInTheLoopMiddleware(interrupt_on(tools, Policy(ask=["write_file"]))),
        ToolkitMiddleware(ToolSet([]), policy=Policy(ask=["write_file"])),
    ):
        (workspace / "notes.txt").unlink(missing_ok=True)
        graph = create_agent(ScriptedModel(turns), tools, middleware=[middleware], checkpointer=InMemorySaver())
        await run(graph, config=CONFIG)
        assert str(workspace / "notes.txt") in str(await pauses_of(graph))
        (workspace / "notes.txt").symlink_to("config.toml")
        approval = {"type": "approve"}
        batched = isinstance(middleware, HumanInTheLoopMiddleware)
        state = await run(graph, Command(resume={"decisions": [approval]} if batched else approval), config=CONFIG)
        assert tool_messages(state)[0].artifact["error"]["code"] == "denied"
        assert (workspace / "config.toml").read_text() == "old"
