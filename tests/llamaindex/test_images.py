"""Images, long output and envelopes on real agents."""

from __future__ import annotations

import base64
import json
import warnings
from typing import Any

from llama_index.core.base.llms.types import ImageBlock, TextBlock
from llama_index.core.workflow import Context

from toolkit_core import ImageBlock as CoreImage
from toolkit_core import TextBlock as CoreText
from toolkit_core import ToolResult, function_tool
from toolkit_core.output_window import Window
from toolkit_llamaindex import to_llamaindex
from toolkit_llamaindex.testing import tool_call

from .agents import agent_of, follow, run_agent

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@function_tool
def picture() -> ToolResult[Any]:
    """Show a picture."""
    blocks = (CoreText("before"), CoreImage("image/png", PNG), CoreText("after"))
    return ToolResult(blocks, {"path": "a.png"})


@function_tool
def only_a_picture() -> ToolResult[Any]:
    """Show a picture."""
    return ToolResult((CoreImage("image/png", PNG),))


@function_tool
def long(lines: int) -> str:
    """Return many lines."""
    return "\n".join(f"line {n}" for n in range(1, lines + 1))


@function_tool
def giant() -> str:
    """Return 100 MB."""
    return "x" * 100_000_000


async def test_an_image_is_a_block_after_one_text() -> None:
    run = await run_agent("function", to_llamaindex([picture]), [tool_call("picture"), "done"])
    text, image = run.output.blocks
    assert isinstance(text, TextBlock)
    assert text.text == "before\nafter"
    assert isinstance(image, ImageBlock)
    assert (image.image_mimetype, image.resolve_image().read()) == ("image/png", PNG)
    [message] = [m for m in run.last_messages if m.role == "tool"]
    assert message.blocks == run.output.blocks
    assert run.output.raw_output == {"ok": True, "data": {"path": "a.png"}, "error": None}


async def test_an_image_without_text_stands_alone() -> None:
    run = await run_agent("function", to_llamaindex(only_a_picture), [tool_call("only_a_picture"), "done"])
    assert [block.block_type for block in run.output.blocks] == ["image"]


async def test_react_reads_the_text_beside_an_image() -> None:
    run = await run_agent("react", to_llamaindex(picture), [tool_call("picture"), "done"])
    assert "before\nafter" in (run.last_messages[-1].content or "")


async def test_long_output_is_windowed_for_the_model_and_whole_for_the_program() -> None:
    run = await run_agent("function", to_llamaindex(long), [tool_call("long", lines=10_000), "done"])
    assert len(run.output.content) < 31_000
    assert run.output.content.startswith("line 1\n")
    assert run.output.content.endswith("line 10000")
    assert "omitted" in run.output.content
    assert run.output.raw_output["data"].count("\n") == 9_999


async def test_the_window_can_be_narrowed_and_turned_off() -> None:
    whole = await run_agent("function", to_llamaindex(long, window=None), [tool_call("long", lines=10_000), "done"])
    assert whole.output.content.count("\n") == 9_999
    window = Window(limit_chars=100, head_chars=40, tail_chars=40)
    narrow = await run_agent("function", to_llamaindex(long, window=window), [tool_call("long", lines=100), "done"])
    assert len(narrow.output.content) < 200


async def test_a_hundred_megabytes_reach_neither_model_nor_context_whole() -> None:
    agent, model = agent_of("function", to_llamaindex(giant), [tool_call("giant"), "done"])
    ctx: Context[Any] = Context(agent)
    run = await follow(agent.run(user_msg="go", ctx=ctx), model)
    assert len(run.output.content) < 31_000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert len(json.dumps(ctx.to_dict())) < 200_000
