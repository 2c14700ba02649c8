"""Whatever a model sends comes back as an output that every encoder takes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from toolkit_core import function_tool, model_tool, schema_tool
from toolkit_core.policy import Policy
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, ScriptedReActModel, tool_call

from .agents import echo

TEXT = st.text(st.characters(exclude_categories=()), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
ARGUMENTS = st.dictionaries(st.sampled_from(["a", "b", "edits", "self", "ctx", "args"]) | TEXT, JSON, max_size=4)


class Row(BaseModel):
    a: int
    b: list[str] = []


def row(given: Row) -> Row:
    return given


@function_tool
def typed(a: int, b: str | None = None) -> str:
    """Take typed arguments."""
    return f"{a} {b}"


TOOLS = to_llamaindex(
    [
        typed,
        model_tool(Row, row, name="rows", description="Take a model."),
        schema_tool(echo, name="anything", description="Take anything.", parameters={"type": "object"}),
    ],
    policy=Policy(mode="bypass"),
)


@given(arguments=ARGUMENTS)
def test_any_arguments_give_a_plain_output(arguments: dict[str, Any]) -> None:
    async def call() -> list[Any]:
        return [await tool.acall(**arguments) for tool in TOOLS]

    for output in asyncio.run(call()):
        assert output.content.strip()
        assert output.is_error is (not output.raw_output["ok"])
        assert output.content.startswith("Error (") or not output.is_error
        text = json.dumps([output.raw_output, output.raw_input], allow_nan=False)
        text.encode("utf-8")
        output.model_dump_json().encode("utf-8")


@given(text=TEXT | st.just("{"))
def test_any_argument_text_is_played_by_both_models(text: str) -> None:
    model = ScriptedModel([tool_call("typed", text)])
    [call] = model.get_tool_calls_from_response(model.chat([]))
    assert isinstance(call.tool_kwargs, dict)
    assert ScriptedReActModel([tool_call("typed", text)]).complete("x").text.endswith(text)
