"""Failures on real agents: the run goes on, the model reads the error, the program sees code and payload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from workflows.errors import WorkflowCancelledByUser

from toolkit_core import CODES, ErrorCode, ToolError, ToolResult, function_tool, schema_tool
from toolkit_core.errors import HARD_CODES
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, ScriptExhaustedError, tool_call

from .agents import KINDS, Kind, Run, echo, run_agent, texts


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@function_tool
def fail(code: str) -> str:
    """Fail with a code."""
    raise ToolError("it broke", code=cast("ErrorCode", code), hint="Mend it.", detail="partial", data={"seen": 3})


def deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"x": value}
    return value


async def recover(kind: Kind, tools: Any, first: Any) -> Run:
    """The model makes a call that fails, reads why, makes a good one, and answers."""
    run = await run_agent(kind, to_llamaindex(tools), [first, tool_call("add", a=1, b=2), "done"])
    assert run.text == "done"
    assert run.outputs[1].content == "3"
    assert not run.outputs[1].is_error
    assert run.outputs[0].content in texts(run.model.calls[1].messages)
    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", sorted(CODES))
async def test_every_code_reaches_model_and_program(kind: Kind, code: str) -> None:
    output = (await recover(kind, [add, fail], tool_call("fail", code=code))).outputs[0]
    assert output.is_error
    assert output.content == f"Error ({code}): it broke\nMend it.\n\npartial"
    error = output.raw_output["error"]
    assert (error["code"], error["hard"]) == (code, code in HARD_CODES)
    assert output.raw_output["data"] == (None if code in HARD_CODES else {"seen": 3})


BAD_ARGUMENTS: dict[str, dict[str, Any]] = {
    "missing": {"a": 1},
    "extra": {"a": 1, "b": 2, "c": 3},
    "wrong type": {"a": "x", "b": 2},
    "null": {"a": None, "b": None},
    "nested": {"a": {"a": 1}, "b": 2},
    "list": {"a": [1], "b": 2},
    "deep": {"a": deep(400), "b": 2},
    "huge": {"a": "x" * 1_000_000, "b": 2},
    "not a number": {"a": float("nan"), "b": 2},
    "infinite": {"a": float("inf"), "b": 2},
    "lone surrogate": {"a": "\ud800", "b": 2},
    "surrogate name": {"\ud800": 1},
    "odd name": {"__class__": 1, "": 2},
    "reserved name": {"self": 1, "ctx": 2, "tool": 3},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arguments", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
async def test_bad_arguments_are_told_to_the_model(kind: Kind, arguments: dict[str, Any]) -> None:
    if kind == "react" and arguments == BAD_ARGUMENTS["deep"]:
        arguments = {"a": deep(30), "b": 2}  # ReActAgent itself shows them with repr(), which recurses
    output = (await recover(kind, [add], tool_call("add", arguments))).outputs[0]
    assert output.is_error
    assert output.raw_output["error"]["code"] == "invalid_arguments"
    assert "add takes a (integer, required), b (integer, required)" in output.content
    assert len(output.content) < 3_000
    output.model_dump_json()


@pytest.mark.parametrize("text", ["not json", "[1, 2]", '"text"', "null", ""])
async def test_arguments_that_are_no_object_are_told_to_the_model(text: str) -> None:
    output = (await recover("function", [add], tool_call("add", text))).outputs[0]
    assert output.raw_output["error"]["code"] == "invalid_arguments"


async def test_a_thousand_levels_of_nesting_do_not_end_the_call() -> None:
    [tool] = to_llamaindex(schema_tool(echo, name="any", description="Any.", parameters={"type": "object"}))
    for levels in (1_000, 100_000):
        output = await tool.acall(x=deep(levels))
        assert output.is_error
        output.model_dump_json()


@pytest.mark.parametrize("kind", KINDS)
async def test_an_unknown_tool_is_told_to_the_model(kind: Kind) -> None:
    output = (await recover(kind, [add], tool_call("nothing", a=1))).outputs[0]
    assert output.is_error
    assert "not found" in output.content


async def test_react_output_that_names_no_object_is_tried_again() -> None:
    turns = ["Thought: x\nAction: add\nAction Input: nonsense", tool_call("add", a=1, b=2), "done"]
    run = await run_agent("react", to_llamaindex(add), turns)
    assert run.text == "done"
    assert run.outputs[-1].content == "3"


class Unserialisable:
    """Has no JSON form."""


def raise_value_error() -> str:
    raise ValueError("secret detail")


def exit_the_process() -> str:
    raise SystemExit(3)


async def cancel_without_being_asked() -> str:
    raise asyncio.CancelledError


async def await_a_cancelled_future() -> str:
    future = asyncio.get_running_loop().create_future()
    future.cancel()
    return await future


def raise_in_a_group() -> str:
    raise BaseExceptionGroup("several", [ValueError("x"), SystemExit(1)])


def return_unserialisable() -> Any:
    return Unserialisable()


def return_an_envelope_without_json_form() -> Any:
    return ToolResult.ok("fine", Unserialisable())


def return_a_cycle() -> Any:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def stop_iteration() -> str:
    raise StopIteration


def exit_a_generator() -> str:
    raise GeneratorExit


async def exit_a_generator_later() -> str:
    await asyncio.sleep(0)
    raise GeneratorExit


def recurse() -> str:
    return recurse()


def exception_that_cannot_be_shown() -> str:
    class HostileError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

        __repr__ = __str__

    raise HostileError


BODIES = [
    raise_value_error,
    exit_the_process,
    cancel_without_being_asked,
    await_a_cancelled_future,
    raise_in_a_group,
    return_unserialisable,
    return_an_envelope_without_json_form,
    return_a_cycle,
    stop_iteration,
    exit_a_generator,
    exit_a_generator_later,
    recurse,
    exception_that_cannot_be_shown,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", BODIES)
async def test_a_body_that_misbehaves_ends_no_run(kind: Kind, body: Callable[..., Any]) -> None:
    tool = function_tool(body, name="bad", description="Misbehave.")
    output = (await recover(kind, [add, tool], tool_call("bad"))).outputs[0]
    assert output.is_error
    assert output.raw_output["error"]["code"] in {"internal", "invalid_result"}
    assert "secret detail" not in output.content
    output.model_dump_json()


@pytest.mark.parametrize("body", BODIES)
def test_a_body_that_misbehaves_ends_no_blocking_call(body: Callable[..., Any]) -> None:
    [bad, good] = to_llamaindex([function_tool(body, name="bad", description="Misbehave."), add])
    assert bad.call().is_error
    assert good.call(a=1, b=2).content == "3"


async def test_control_a_stock_tool_that_cancels_itself_hangs_the_run() -> None:
    stock = FunctionTool.from_defaults(async_fn=cancel_without_being_asked, name="bad", description="x")
    agent: Any = FunctionAgent(tools=[stock], llm=ScriptedModel([tool_call("bad"), "done"]))
    handler = agent.run(user_msg="go")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(handler), 1)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler


VALUES: dict[str, Any] = {
    "surrogate": "a\ud800b",
    "not a number": {"x": float("nan")},
    "a great integer": {"x": 10**400},
    "nothing": None,
    "empty": "",
    "blank": " \n ",
    "bytes": {"x": b"\xff"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
async def test_results_that_encoders_refuse_are_made_plain(kind: Kind, value: Any) -> None:
    tool = function_tool(lambda: value, name="odd", description="Return something odd.")
    run = await run_agent(kind, to_llamaindex([tool]), [tool_call("odd"), "done"])
    assert run.output.content.strip()
    run.output.model_dump_json().encode("utf-8")
    for message in run.last_messages:
        message.model_dump_json().encode("utf-8")


async def test_a_false_looking_result_is_no_failure() -> None:
    tool = function_tool(lambda: {"success": False}, name="odd", description="Return a mapping.")
    run = await run_agent("function", to_llamaindex(tool), [tool_call("odd"), "done"])
    assert not run.output.is_error
    assert run.output.raw_output == {"ok": True, "data": {"success": False}, "error": None}


async def test_a_model_that_fails_is_not_hidden() -> None:
    with pytest.raises(ScriptExhaustedError):
        await run_agent("function", to_llamaindex(add), [tool_call("add", a=1, b=2)])


async def test_return_direct_does_not_end_the_run_on_an_error() -> None:
    [tool] = to_llamaindex(add)
    tool.metadata.return_direct = True
    run = await run_agent("function", [tool], [tool_call("add", a="x", b=2), tool_call("add", a=1, b=2)])
    assert run.text == "3"
    assert [output.is_error for output in run.outputs] == [True, False]
