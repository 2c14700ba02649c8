"""CodeActAgent: tools as plain functions that its code calls."""

from __future__ import annotations

import contextlib
import inspect
import io
from typing import Any

import pytest
from llama_index.core.agent.workflow import CodeActAgent
from llama_index.core.workflow import Context

from toolkit_core import function_tool, schema_tool
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel

from .agents import echo, follow


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@function_tool
async def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@function_tool
def broken() -> str:
    """Fail."""
    raise RuntimeError("inside")


def executor(tools: list[Any]) -> Any:
    """Runs code with the tools as functions."""
    names = {tool.metadata.name: tool.real_fn for tool in tools}

    async def execute(code: str) -> str:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, dict(names))
        return out.getvalue()

    return execute


async def test_its_code_calls_the_tools() -> None:
    tools: list[Any] = to_llamaindex([add, shout, broken], bind_context=False)
    code = "<execute>print(add(2), add(a=2, b=3), shout('hi'), broken(), add('x'))</execute>"
    model = ScriptedModel([code, "done"])
    agent: Any = CodeActAgent(code_execute_fn=executor(tools), tools=[*tools], llm=model)
    run = await follow(agent.run(user_msg="go", ctx=Context(agent)), model)
    assert run.text == "done"
    shown = run.output.content
    assert shown.startswith("3 5 HI Error (internal): ")
    assert "Error (invalid_arguments): add cannot take these arguments" in shown
    prompt = model.calls[0].messages[0].content or ""
    assert "def add(a: int, b: int = 1) -> str:" in prompt
    assert "Add two numbers." in prompt
    assert "ctx" not in prompt.partition("def add")[2]


async def test_control_a_tool_that_takes_the_context_is_refused() -> None:
    model = ScriptedModel(["done"])
    agent: Any = CodeActAgent(code_execute_fn=executor([]), tools=[*to_llamaindex(add)], llm=model)
    with pytest.raises(ValueError, match="requires context"):
        await follow(agent.run(user_msg="go"), model)


def test_the_signature_has_what_can_be_written_in_code() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "a": {"type": "array"},
            "not-a-name": {"type": "string"},
            "class": {"type": "string"},
            "must": {"type": "boolean"},
            "any": {},
        },
        "required": ["must"],
    }
    core = schema_tool(echo, name="odd", description="Odd.", parameters=parameters)
    [tool] = to_llamaindex(core, bind_context=False)
    assert str(inspect.signature(tool.real_fn)) == "(must: bool, a: list = None, any: Any = None) -> str"
    assert tool.real_fn(True) == '{"must": true}'
    assert not tool.requires_context


async def test_the_async_form_gives_the_same_text() -> None:
    [tool] = to_llamaindex(add, bind_context=False)
    assert await tool.async_fn(a=1) == tool.fn(1) == "2"
    [bound] = to_llamaindex(add)
    assert await bound.async_fn(a=1) == "2"
