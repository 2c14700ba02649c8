"""The scripted models themselves."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole

from toolkit_core import function_tool
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, ScriptedReActModel, ScriptExhaustedError, Turn, tool_call

from .agents import KINDS, Kind, run_agent


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


USER = [ChatMessage(role=MessageRole.USER, content="hi")]


async def test_all_entries_play_the_script() -> None:
    model = ScriptedModel(["one", "two words here, a longer text", "three", "four", "five", "six", "seven", "eight"])
    assert model.chat(USER).message.content == "one"
    pieces = list(model.stream_chat(USER))
    assert "".join(piece.delta or "" for piece in pieces) == "two words here, a longer text"
    assert len(pieces) > 2
    assert (await model.achat(USER)).message.content == "three"
    streamed = [piece async for piece in await model.astream_chat(USER)]
    assert streamed[-1].message.content == "four"
    assert model.complete("hi").text == "five"
    assert next(model.stream_complete("hi")).text == "six"
    assert (await model.acomplete("hi")).text == "seven"
    assert [piece.text async for piece in await model.astream_complete("hi")] == ["eight"]
    with pytest.raises(ScriptExhaustedError, match="8 turns"):
        model.chat(USER)
    assert len(model.calls) == 9


async def test_it_records_what_it_was_given() -> None:
    model = ScriptedModel([["I add.", tool_call("add", a=1, b=2)]])
    response = await model.achat_with_tools(to_llamaindex(add), user_msg="hi")
    [call] = model.calls
    assert call.tool_names == ["add"]
    assert call.tools[0]["function"]["parameters"] == add.parameters
    assert [message.content for message in call.messages] == ["hi"]
    [selected] = model.get_tool_calls_from_response(response)
    assert (selected.tool_id, selected.tool_name, selected.tool_kwargs) == ("call_1", "add", {"a": 1, "b": 2})
    with pytest.raises(ValueError, match="no tool"):
        model.get_tool_calls_from_response(ScriptedModel(["x"]).chat(USER))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_turn_is_computed_from_the_messages_so_far(kind: Kind) -> None:
    def answer(messages: list[ChatMessage]) -> Turn:
        return f"the tool said {(messages[-1].content or '').removeprefix('Observation: ')}"

    run = await run_agent(kind, to_llamaindex(add), [tool_call("add", a=1, b=2), answer])
    assert run.text == "the tool said 3"


async def test_predict_and_call_works_without_an_agent() -> None:
    model = ScriptedModel([tool_call("add", a=1, b=2)])
    response = await model.apredict_and_call(to_llamaindex(add), user_msg="hi")
    assert response.response == "3"


async def test_a_turn_can_fail_or_be_nonsense() -> None:
    with pytest.raises(ConnectionError):
        ScriptedModel([ConnectionError("gone")]).chat(USER)
    nonsense: Any = [3]
    with pytest.raises(TypeError, match="a turn is text"):
        ScriptedModel([nonsense]).chat(USER)
    with pytest.raises(TypeError, match="one tool call"):
        ScriptedReActModel([[tool_call("a"), tool_call("b")]]).chat(USER)
