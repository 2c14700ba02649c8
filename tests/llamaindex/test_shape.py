"""The converted tool: what LlamaIndex and its providers see of it."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.tools import FunctionTool
from llama_index.core.tools import calling as _calling
from llama_index.core.workflow import Context

from toolkit_core import ToolSet, function_tool, schema_tool
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, ScriptedReActModel, tool_call

from .agents import echo, run_agent

NESTED = {
    "type": "object",
    "properties": {"edits": {"type": "array", "items": {"type": "object", "properties": {"old": {"type": "string"}}}}},
    "required": ["edits"],
    "additionalProperties": False,
}
calling: Any = _calling  # half typed

ODD_NAMES = [
    "self", "config", "runtime", "args", "kwargs", "ctx", "context", "state", "store", "id", "name", "type",
    "schema", "json", "copy", "model_config", "_x", "input", "instance", "func", "tool", "fn",
]  # fmt: skip


def echo_tool(*names: str) -> Any:
    """Returns its arguments."""
    parameters = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
    return schema_tool(echo, name="echo", description="Echo.", parameters=parameters)


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def test_the_schema_reaches_the_model_whole_and_a_changed_copy_changes_nothing() -> None:
    core = schema_tool(echo, name="edit", description="Edit.", parameters=NESTED)
    tool: Any = to_llamaindex([core])[0]
    stock: Any = FunctionTool.from_defaults(fn=echo, name="stock")
    assert "additionalProperties" not in stock.metadata.get_parameters_dict()  # CONTROL: the stock class drops it

    shown = tool.metadata.to_openai_tool()["function"]
    assert shown == {"name": "edit", "description": "Edit.", "parameters": core.parameters}
    shown["parameters"]["additionalProperties"] = True
    shown["parameters"]["properties"]["edits"]["items"]["properties"].clear()
    assert tool.metadata.get_parameters_dict() == core.parameters
    assert tool.metadata.fn_schema.model_fields == {}
    assert '"additionalProperties": false' in tool.metadata.fn_schema_str


def test_a_description_of_the_greatest_length_passes_the_length_check() -> None:
    core = function_tool(lambda: "x", name="long", description="d" * 1024)
    [tool] = to_llamaindex(core)
    assert tool.metadata.to_openai_tool()["function"]["description"] == "d" * 1024


def test_the_context_keyword_is_public_and_no_parameter_has_its_name() -> None:
    [plain] = to_llamaindex(add)
    [clash] = to_llamaindex(echo_tool("ctx", "context", "workflow_context", "run_context", "agent_context", "ctx2"))
    assert (plain.requires_context, plain.ctx_param_name) == (True, "ctx")
    assert clash.ctx_param_name == "ctx3"
    signature = inspect.signature(plain.async_fn)
    assert signature.parameters["ctx"].annotation is Context
    assert not any(name.startswith("_") for name in signature.parameters)


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_parameter_of_any_name_arrives(name: str) -> None:
    [tool] = to_llamaindex(echo_tool(name))
    assert tool.call(**{name: "v"}).raw_output["data"] == {name: "v"}
    assert (await tool.acall(**{name: "v"})).raw_output["data"] == {name: "v"}
    assert tool(**{name: "v"}).raw_output["data"] == {name: "v"}


async def test_every_odd_name_at_once_arrives_through_an_agent() -> None:
    arguments = dict.fromkeys(ODD_NAMES, "v")
    tools = to_llamaindex(echo_tool(*ODD_NAMES))
    run = await run_agent("function", tools, [tool_call("echo", arguments), "done"])
    assert run.output.raw_output["data"] == arguments


async def test_a_context_that_a_model_makes_up_is_an_argument_like_any_other() -> None:
    [tool] = to_llamaindex(add)
    output = await calling.acall_tool(tool, {"a": 1, "b": 2, "ctx": "mine"})
    assert output.is_error
    assert "ctx" in output.content


async def test_one_property_and_one_argument_run_the_tool_once() -> None:
    calls: list[str] = []

    @function_tool
    def note(path: str) -> str:
        """Note a path."""
        calls.append(path)
        raise ValueError(path)

    [tool] = to_llamaindex(note)
    assert calling.call_tool(tool, {"path": "a"}).is_error
    assert (await calling.acall_tool(tool, {"path": "b"})).is_error
    assert calls == ["a", "b"]
    assert (await calling.acall_tool(tool, {"other": "c"})).raw_output["error"]["code"] == "invalid_arguments"
    assert calls == ["a", "b"]


async def test_positional_arguments_are_a_mapping_or_the_parameters_in_order() -> None:
    [tool] = to_llamaindex(add)
    assert tool.call({"a": 2, "b": 3}).content == "5"
    assert (await tool.acall(2, 3)).content == "5"
    assert tool.call('{"a": 2, "b": 3}').content == "5"
    assert tool.call("nonsense").raw_output["error"]["code"] == "invalid_arguments"


def test_an_output_holds_name_arguments_text_and_envelope() -> None:
    [tool] = to_llamaindex(add)
    output = tool.call(a=2)
    assert (output.tool_name, output.content, output.is_error, output.exception) == ("add", "3", False, None)
    assert output.raw_input == {"args": [], "kwargs": {"a": 2}}
    assert output.raw_output == {"ok": True, "data": 3, "error": None}
    failed = tool.call(a="x")
    assert failed.is_error
    assert failed.content.startswith("Error (invalid_arguments): ")
    assert failed.raw_output["error"]["code"] == "invalid_arguments"
    assert failed.raw_output["ok"] is False
    assert type(failed.exception).__name__ == "ToolError"


def test_duplicate_names_and_foreign_tools_are_refused() -> None:
    with pytest.raises(ValueError, match="two tools are called 'add'"):
        to_llamaindex([add, add])
    with pytest.raises(TypeError, match="LlamaIndex tool already"):
        to_llamaindex(to_llamaindex(add))  # pyright: ignore[reportArgumentType]  (that is the mistake)
    with pytest.raises(TypeError, match="function_tool"):
        to_llamaindex([len])  # pyright: ignore[reportArgumentType]  (that is the mistake)


@pytest.mark.parametrize("tools", [[add], ToolSet([add])], ids=["list", "set"])
def test_an_unconverted_tool_is_refused_with_the_converters_name(tools: Any) -> None:
    workflow: Any = AgentWorkflow
    with pytest.raises((AttributeError, TypeError), match="to_llamaindex"):
        FunctionAgent(tools=tools, llm=ScriptedModel())
    with pytest.raises((AttributeError, TypeError), match="to_llamaindex"):
        ReActAgent(tools=tools, llm=ScriptedReActModel())
    with pytest.raises((AttributeError, TypeError), match="to_llamaindex"):
        workflow.from_tools_or_functions(tools, llm=ScriptedModel())
    with pytest.raises((AttributeError, TypeError), match="to_llamaindex"):
        FunctionTool.from_defaults(fn=tools[0])
