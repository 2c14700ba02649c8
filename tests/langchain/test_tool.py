"""The shape of a converted tool."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import inspect
import json
import subprocess
import sys
from typing import Any, cast

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool as langchain_tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel

from tests.langchain.agents import agent
from toolkit_core.context import ToolContext
from toolkit_core.effects import Effects
from toolkit_core.errors import ToolError
from toolkit_core.factories import function_tool, model_tool, schema_tool
from toolkit_core.output_window import Window
from toolkit_core.result import ImageBlock, TextBlock, ToolResult
from toolkit_core.tool import Tool, ToolSet
from toolkit_langchain import to_langchain
from toolkit_langchain.testing import ScriptedModel, tool_call


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    if a == 13:
        raise ToolError("13 is not added here", hint="Try 14.")
    return a + b


ADD = function_tool(add, effects=Effects(reads=True))


def call(name: str, call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "name": name, "id": call_id, "args": arguments}


def test_name_description_and_schema_are_the_cores() -> None:
    [tool] = to_langchain([ADD])
    shown = convert_to_openai_tool(tool)["function"]
    assert (shown["name"], shown["description"]) == (ADD.name, ADD.description)
    assert shown["parameters"] == ADD.parameters


def test_a_tool_call_gives_a_message_with_the_envelope_and_arguments_give_bare_content() -> None:
    [tool] = to_langchain([ADD])
    message = tool.invoke(call("add", a=1))
    assert isinstance(message, ToolMessage)
    assert (message.content, message.status, message.name, message.tool_call_id) == ("2", "success", "add", "c1")
    assert ToolResult.from_dict(message.artifact) == ToolResult.ok("2", 2)
    assert tool.invoke({"a": "1"}) == "2"


def test_an_error_is_a_status_and_an_artifact_with_code_and_hint() -> None:
    [tool] = to_langchain([ADD])
    message = tool.invoke(call("add", a=13))
    assert message.status == "error"
    assert message.content == "Error (failed): 13 is not added here\nTry 14."
    assert message.artifact["error"] == {
        "code": "failed", "message": "13 is not added here", "hint": "Try 14.", "retryable": False, "hard": False,
    }  # fmt: skip


async def test_invoke_and_ainvoke_agree_in_a_loop_in_a_thread_and_in_a_plain_script() -> None:
    [tool] = to_langchain([ADD])
    from_loop = tool.invoke(call("add", a=2))
    from_thread = await asyncio.to_thread(tool.invoke, call("add", a=2))
    awaited = await tool.ainvoke(call("add", a=2))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        many = list(pool.map(tool.invoke, [{"a": 20 + n} for n in range(20)]))
    assert from_loop == from_thread == awaited
    assert many == [str(n + 21) for n in range(20)]


async def test_ids_of_parallel_calls_never_cross() -> None:
    async def who(n: int, ctx: ToolContext) -> str:
        """Say whose call it is."""
        await asyncio.sleep(0.01 * (5 - n))
        return f"{n}:{ctx.call_id}:{ctx.session_id}"

    [tool] = to_langchain([function_tool(who)])
    config: Any = {"configurable": {"thread_id": 7}}
    messages = await asyncio.gather(*(tool.ainvoke(call("who", f"id{n}", n=n), config) for n in range(5)))
    assert [m.content for m in messages] == [f"{n}:id{n}:7" for n in range(5)]
    assert [m.tool_call_id for m in messages] == [f"id{n}" for n in range(5)]


def test_a_session_can_be_fixed_or_computed_from_the_config() -> None:
    def whose(ctx: ToolContext) -> str:
        """Say whose session it is."""
        return str(ctx.session_id)

    tool = function_tool(whose)
    config: Any = {"configurable": {"thread_id": "t", "user": "ann"}}
    assert to_langchain([tool], session="mine")[0].invoke({}, config) == "mine"
    by_user = to_langchain([tool], session=lambda c: c.get("configurable", {})["user"])[0]
    assert by_user.invoke({}, config) == "ann"
    tools = ToolSet([tool])
    assert to_langchain(tools)[0].invoke({}) == tools.identity


def test_duplicate_names_raise_where_langchain_would_keep_the_last_silently() -> None:
    node = ToolNode([*to_langchain([ADD]), *to_langchain([ADD])])
    assert len(node.tools_by_name) == 1  # CONTROL: one is lost without a word
    with pytest.raises(ValueError, match="'add'"):
        to_langchain([ADD, ADD])


def test_what_is_no_core_tool_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match="function_tool"):
        to_langchain(cast("Any", [add]))
    with pytest.raises(TypeError, match="LangChain tool already"):
        to_langchain(cast("Any", to_langchain([ADD])))
    assert [tool.name for tool in to_langchain(ADD)] == ["add"]


def to_agent(tool: Any) -> Any:
    return agent([tool], ["x"])


def to_node(tool: Any) -> Any:
    return ToolNode([tool])


def to_model(tool: Any) -> Any:
    return ScriptedModel(["x"]).bind_tools([tool])


@pytest.mark.parametrize("hand_over", [to_agent, to_node, to_model, langchain_tool])
def test_an_unconverted_tool_fails_with_a_sentence_that_names_the_converter(hand_over: Any) -> None:
    with pytest.raises(TypeError, match=r"toolkit_langchain\.to_langchain\(tools\)"):
        hand_over(ADD)


def test_the_sentence_does_not_disturb_those_who_only_look() -> None:
    assert ADD.__name__ == "add"
    assert callable(ADD)
    assert "name" in inspect.signature(Tool).parameters


def test_other_libraries_get_copies_and_may_write_into_them() -> None:
    [tool] = to_langchain([ADD])
    for schema in (tool.args, tool.get_input_jsonschema(), cast("dict[str, Any]", tool.tool_call_schema)):
        for part in [schema, *schema.get("properties", schema).values()]:
            part.clear()
    assert convert_to_openai_tool(tool)["function"]["parameters"] == ADD.parameters
    assert tool.get_input_jsonschema() == ADD.parameters
    assert set(tool.args) == {"a", "b"}


def test_effects_are_in_the_metadata_and_the_core_is_not_dumped() -> None:
    [known, unknown] = to_langchain([ADD, function_tool(lambda: 1, name="x", description="d", effects=None)])
    metadata = known.metadata or {}
    assert metadata["effects"]["reads"] is True
    assert metadata["effects"]["writes"] is False
    assert metadata["risk"] == "inspect"
    assert (unknown.metadata or {})["effects"] is None
    assert "core" not in known.model_dump()
    assert "core" not in repr(known)
    assert copy.deepcopy(known).invoke({"a": 1}) == "2"


NAMES = ("config", "runtime", "args", "kwargs", "ctx", "state", "store", "id", "name", "type", "schema", "json", "copy",
         "model_config", "_x", "run_manager", "callbacks", "tool_call_id", "input", "lc_config_", "self")  # fmt: skip


@pytest.mark.parametrize("parameter", NAMES)
def test_every_parameter_name_reaches_the_function(parameter: str) -> None:
    def take(arguments: dict[str, Any]) -> Any:
        return arguments

    parameters = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    [tool] = to_langchain([schema_tool(take, name="take", description="Takes one.", parameters=parameters)])
    node = agent([tool], [tool_call("take", {parameter: "tool_call"}), "done"])
    [_, _, message, _] = node.invoke({"messages": "go"})["messages"]
    assert json.loads(message.content) == {parameter: "tool_call"}
    assert json.loads(tool.invoke({parameter: "tool_call"})) == {parameter: "tool_call"}


@pytest.mark.parametrize("junk", ["a.txt", 7, None, ["x"], {1: 2}, {"type": "tool_call", "id": "c", "args": "x"}])
async def test_arguments_that_are_no_object_give_an_envelope(junk: Any) -> None:
    [tool] = to_langchain([ADD])
    for outcome in (tool.invoke(junk), await tool.ainvoke(junk)):
        text = outcome.content if isinstance(outcome, ToolMessage) else outcome
        assert str(text).startswith("Error (invalid_arguments): ")


def test_images_arrive_as_standard_blocks_in_their_order() -> None:
    def look() -> ToolResult[Any]:
        """Look."""
        return ToolResult((TextBlock("before"), ImageBlock("image/png", b"\x89PNG"), TextBlock("after")))

    [tool] = to_langchain([function_tool(look)])
    message = tool.invoke(call("look"))
    assert [block["type"] for block in message.content_blocks] == ["text", "image", "text"]
    assert message.content[1] == {"type": "image", "base64": "iVBORw==", "mime_type": "image/png"}
    assert message.artifact["content"][1]["size_bytes"] == 4


def test_long_output_is_windowed_for_the_model_and_whole_in_the_artifact() -> None:
    def long() -> str:
        """Say much."""
        return "\n".join(f"line {n}" for n in range(20_000))

    windowed, small, whole = (
        to_langchain([function_tool(long)], **options)[0].invoke(call("long"))
        for options in cast("list[dict[str, Any]]", [{}, {"window": Window(100, 50, 50)}, {"window": None}])
    )
    assert len(windowed.content) < 31_000
    assert "omitted" in windowed.content
    assert len(small.content) < 300
    assert whole.content == long()
    assert windowed.artifact["data"] == long()


def test_a_result_of_100_megabytes_neither_fills_the_context_nor_the_checkpoint() -> None:
    def huge() -> str:
        """Say far too much."""
        return "x" * 100_000_000

    message = to_langchain([function_tool(huge)])[0].invoke(call("huge"))
    assert len(message.content) < 31_000
    assert len(json.dumps(message.artifact)) < 100_000
    assert "more characters" in message.artifact["data"]


def test_an_empty_result_still_says_something() -> None:
    [tool] = to_langchain([function_tool(lambda: "", name="quiet", description="Says nothing.")])
    assert tool.invoke(call("quiet")).content == "(no output)"


async def test_arguments_fit_for_the_core_alone_are_judged_once_there() -> None:
    class Point(BaseModel):
        x: int
        y: int = 0

    async def show(point: Point) -> str:
        return f"{point.x},{point.y}"

    [tool] = to_langchain([model_tool(Point, show, name="show", description="Shows a point.")])
    message = await tool.ainvoke(call("show", x="no", z=1))
    assert message.status == "error"
    assert "x" in message.content
    assert (await tool.ainvoke(call("show", x="3", y=None))).content == "3,0"


def test_the_smallest_extra_is_enough_for_tools() -> None:
    """langchain-core alone: no langgraph, no langchain, no deepagents."""
    code = """
import sys
for name in ("langgraph", "langchain", "deepagents"):
    sys.modules[name] = None
from toolkit_core import function_tool
from toolkit_langchain import default_tools, to_langchain
from toolkit_langchain.testing import ScriptedModel, tool_call

def fail() -> str:
    "Fail."
    raise ValueError("x")

[tool] = to_langchain([function_tool(fail)])
print(tool.invoke({}).split(":")[0])
print(ScriptedModel([tool_call("fail")]).bind_tools([tool]).invoke("go").tool_calls[0]["name"])
print(len(default_tools(".")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.split() == ["Error", "(internal)", "fail", "7"], done.stderr
