"""Rows of the error table: with our tools the run goes on, the model reads the error, the program sees the code.

The controls run LangChain's own shape of the same tool, so that the danger is seen to be real.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.tools import ToolException
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, ValidationError

from tests.langchain.agents import WAYS, Way, agent, final_text, graph_with_tool_node, run, tool_messages
from toolkit_core.context import ToolContext
from toolkit_core.errors import ToolError
from toolkit_core.factories import function_tool, schema_tool
from toolkit_langchain import to_langchain
from toolkit_langchain.testing import tool_call

GRAPHS = pytest.mark.parametrize("build", [agent, graph_with_tool_node])
EACH_WAY = pytest.mark.parametrize("way", WAYS)


class Inner(BaseModel):
    number: int


def _never_ends() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


async def _stray_cancel() -> None:
    raise asyncio.CancelledError("nobody asked for it")


async def _group() -> None:
    raise ExceptionGroup("both", [ValueError("a"), KeyError("b")])


def _raise(error: BaseException) -> Callable[[], Any]:
    def body() -> Any:
        raise error

    return body


def _exit() -> None:
    sys.exit(2)


BODIES: dict[str, tuple[Callable[[], Any], str]] = {
    "ValueError": (_raise(ValueError("secret path /root")), "internal"),
    "KeyError": (_raise(KeyError("k")), "internal"),
    "ToolException": (_raise(ToolException("no")), "internal"),
    "pydantic error inside": (lambda: Inner.model_validate({"number": "x"}), "internal"),
    "SystemExit": (_exit, "internal"),
    "stray CancelledError": (_stray_cancel, "internal"),
    "StopIteration": (_raise(StopIteration()), "internal"),
    "RecursionError": (_raise(RecursionError()), "internal"),
    "MemoryError": (_raise(MemoryError()), "internal"),
    "exception group": (_group, "internal"),
    "a result without a JSON form": (lambda: object(), "invalid_result"),
    "a result that contains itself": (_never_ends, "invalid_result"),
    "ToolError": (_raise(ToolError("no luck", code="not_found", hint="Look elsewhere.")), "not_found"),
    "retryable ToolError": (_raise(ToolError("busy", code="rate_limited", retryable=True)), "rate_limited"),
}


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("x"), ToolException("x")])
async def test_control_an_exception_in_a_plain_langchain_tool_ends_the_run(error: Exception) -> None:
    @langchain_tool
    def break_down() -> str:
        """Fail."""
        raise error

    with pytest.raises(type(error)):
        await run(agent([break_down], [tool_call("break_down"), "done"]))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@GRAPHS
@EACH_WAY
async def test_no_body_ends_the_run(build: Any, way: Way) -> None:
    tools = to_langchain([
        function_tool(body, name=f"t{number}", description=f"Case: {name}.")
        for number, (name, (body, _)) in enumerate(BODIES.items())
    ])  # fmt: skip
    turns = [[tool_call(tool.name) for tool in tools], "I saw it all"]
    state = await run(build(tools, turns), way=way)
    assert final_text(state) == "I saw it all"
    for message, (case, (_, code)) in zip(tool_messages(state), BODIES.items(), strict=True):
        assert message.status == "error", case
        assert str(message.content).startswith(f"Error ({code}): "), case
        assert message.artifact["error"]["code"] == code, case
        assert "secret" not in str(message.content), case
    retryable = [m.artifact["error"]["retryable"] for m in tool_messages(state)]
    assert retryable == [code == "rate_limited" for _, code in BODIES.values()]


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"a": value}
    return value


HOSTILE: dict[str, dict[str, Any]] = {
    "missing": {},
    "wrong type": {"path": {"not": "a string"}},
    "extra": {"path": "a", "surprise": 1},
    "null": {"path": None},
    "null everywhere": {"path": None, "count": None, "items": None},
    "NaN": {"path": "a", "count": float("nan")},
    "infinity": {"path": "a", "count": float("inf")},
    "huge integer": {"path": "a", "count": [10**400]},
    "lone surrogates": {"path": "\ud800\udc00x\udfff", "surprise\ud800": 1},
    "NUL": {"path": "a\x00b", "count": "x"},
    "deep": {"path": "a", "items": _deep(150)},
    "wide": {"path": "a", "items": list(range(20_000)), "count": []},
    "a megabyte": {"path": ["x" * 1_000_000]},
    "empty name": {"": 1, "path": "a"},
}


def take(path: str, count: int = 1, items: list[str] | None = None) -> str:
    """Take arguments.

    Args:
        path: A path.
        count: How many.
        items: What.
    """
    return "taken"


@GRAPHS
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_no_arguments_end_the_run(build: Any, way: Way) -> None:
    [tool] = to_langchain([function_tool(take)])
    turns = [[tool_call("take", arguments) for arguments in HOSTILE.values()], "still here"]
    state = await run(build([tool], turns), way=way)
    assert final_text(state) == "still here"
    for message, case in zip(tool_messages(state), HOSTILE, strict=True):
        assert str(message.content).startswith("Error (invalid_arguments): "), case
        assert message.artifact["error"]["code"] == "invalid_arguments", case
        assert len(str(message.content)) < 5_000, case


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_arguments_nested_1000_deep_and_integers_past_the_digit_limit_give_an_envelope(way: Way) -> None:
    wild: Any = {"path": "a", "items": _deep(1_000), "count": 10**5_000}
    with pytest.raises((RecursionError, ValueError)):
        str(wild)  # CONTROL: LangChain shows arguments to callbacks with str()
    [tool] = to_langchain([function_tool(take)])
    state = await run(agent([tool], [tool_call("take", wild), "still here"]), way=way)
    assert final_text(state) == "still here"
    [message] = tool_messages(state)
    assert message.artifact["error"]["code"] == "invalid_arguments"


@GRAPHS
@EACH_WAY
async def test_an_unknown_tool_is_an_error_that_the_model_reads(build: Any, way: Way) -> None:
    state = await run(build(to_langchain([function_tool(take)]), [tool_call("nope"), "ok"]), way=way)
    [message] = tool_messages(state)
    assert message.status == "error"
    assert "take" in str(message.content)
    assert final_text(state) == "ok"


async def test_success_and_failure_of_one_turn_arrive_each_at_its_own_call() -> None:
    turns = [[tool_call("take", path="a"), tool_call("take"), tool_call("take", path="b")], "ok"]
    state = await run(agent(to_langchain([function_tool(take)]), turns))
    assert [m.status for m in tool_messages(state)] == ["success", "error", "success"]
    assert [m.tool_call_id for m in tool_messages(state)] == ["call_1", "call_2", "call_3"]


async def test_return_direct_does_not_lose_the_error() -> None:
    [tool] = to_langchain([function_tool(take)])
    tool.return_direct = True
    state = await run(agent([tool], [tool_call("take"), "never said"]))
    assert tool_messages(state)[-1].status == "error"


async def test_a_failure_is_plain_json_in_every_checkpoint() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    def odd() -> dict[str, Any]:
        """Return what msgpack refuses."""
        return {"big": 2**70, "nan": float("nan"), "text": "\ud800", "bytes": b"\x00", "set": {1}}

    graph = agent(to_langchain([function_tool(odd)]), [tool_call("odd"), "ok"], checkpointer=InMemorySaver())
    state = await run(graph, config={"configurable": {"thread_id": "1"}})
    [message] = tool_messages(state)
    assert message.artifact["data"] == {"big": str(2**70), "nan": "nan", "text": "\\ud800", "bytes": "AA==", "set": [1]}
    again = await graph.aget_state({"configurable": {"thread_id": "1"}})
    assert tool_messages(again.values)[0].artifact == message.artifact


async def test_control_a_big_integer_in_a_plain_artifact_crashes_the_run() -> None:
    from langgraph.checkpoint.memory import InMemorySaver

    @langchain_tool(response_format="content_and_artifact")
    def odd() -> tuple[str, Any]:
        """Return what msgpack refuses."""
        return "x", {"big": 2**70}

    graph = agent([odd], [tool_call("odd"), "ok"], checkpointer=InMemorySaver())
    with pytest.raises(TypeError):
        await run(graph, config={"configurable": {"thread_id": "1"}})


async def test_cancelling_the_run_stops_the_tool_and_raises() -> None:
    events: list[str] = []

    async def wait() -> None:
        """Wait."""
        events.append("started")
        try:
            await asyncio.sleep(60)
        finally:
            events.append("stopped")

    task = asyncio.create_task(run(agent(to_langchain([function_tool(wait)]), [tool_call("wait"), "x"])))
    while not events:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events == ["started", "stopped"]


async def test_wait_for_times_the_run_out() -> None:
    stopped = asyncio.Event()

    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    graph = agent(to_langchain([function_tool(wait)]), [tool_call("wait"), "x"])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(run(graph), 0.5)
    assert stopped.is_set()


async def test_a_tool_may_call_another_tool_directly_without_taking_its_call() -> None:
    [inner] = to_langchain([function_tool(take, name="inner")])

    async def outer(ctx: ToolContext) -> str:
        """Call inner."""
        through_run = await inner.ainvoke({"path": "a"})
        direct, _ = await inner._arun(path=1)  # pyright: ignore[reportPrivateUsage]  (as other libraries' bridges do)
        return f"{ctx.call_id} {through_run} {direct.splitlines()[0][:25]}"

    state = await run(agent(to_langchain([function_tool(outer)]), [tool_call("outer"), "ok"]))
    assert tool_messages(state)[0].content == "call_1 taken Error (invalid_arguments)"


def test_a_blocking_call_from_inside_the_bridge_is_refused_and_hangs_nothing() -> None:
    [inner] = to_langchain([function_tool(take, name="inner")])

    async def outer() -> str:
        """Block the loop."""
        return inner.invoke({"path": "a"})

    [tool] = to_langchain([function_tool(outer)])
    assert tool.invoke({}).startswith("Error (internal): ")
    assert tool.invoke({}).startswith("Error (internal): ")
    assert inner.invoke({"path": "a"}) == "taken"


async def test_a_raw_ai_message_with_a_call_that_did_not_parse_is_said_to_the_model() -> None:
    broken = AIMessage(
        "",
        invalid_tool_calls=[
            {"type": "invalid_tool_call", "name": "take", "args": '{"path": ', "id": "bad", "error": "unparseable"}
        ],
        tool_calls=[{"type": "tool_call", "name": "take", "args": {"path": "a"}, "id": "good"}],
    )
    state = await run(agent(to_langchain([function_tool(take)]), [broken, "ok"]))
    assert final_text(state) == "ok"


def take_all(arguments: dict[str, Any]) -> str:
    return "x"


def test_validation_is_the_cores_alone() -> None:
    @langchain_tool
    def strict(number: int) -> str:
        """Take a number."""
        return "x"

    with pytest.raises(ValidationError):
        strict.invoke({"number": "x"})  # CONTROL: a direct call of LangChain's shape raises
    parameters = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
    [tool] = to_langchain([schema_tool(take_all, name="s", description="d", parameters=parameters)])
    assert tool.invoke({"number": "x"}).startswith("Error (invalid_arguments)")
