from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

from tests.neutral.calls import World, every_call, payload
from toolkit_core import Policy, Suspended, ToolContext, ToolError, ToolResult, function_tool, schema_tool, window
from toolkit_core.context import Progress
from toolkit_core.sandboxes.in_memory import InMemorySandbox

IN_PYODIDE = sys.platform == "emscripten"


async def test_every_built_in_works_over_ports_in_memory() -> None:
    called = [each async for each in every_call()]

    assert [(each.tool, each.result.text) for each in called if each.result.is_error] == []
    assert {tool.name for tool in World().tools} == {each.tool for each in called}


async def test_what_a_call_leaves_behind_can_be_collected() -> None:
    async for _ in every_call():
        gc.collect()  # in WebAssembly a wrong clear function in an extension ends the whole interpreter


async def test_results_survive_as_json_and_show_themselves() -> None:
    async for each in every_call():
        again = ToolResult.from_dict(each.result.to_dict(include_images=True))
        assert again.text == each.result.text
        bundle = each.result._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]  (IPython's protocol)
        assert set(bundle) == {"text/plain", "text/html", "text/markdown"}


async def test_an_edit_keeps_the_line_endings() -> None:
    world = World()
    await world.call("read_file", path="a.py")
    edited = await world.call("edit_file", path="a.py", edits=[{"old_text": "one = 1\ntwo", "new_text": "x = 1\ntwo"}])

    assert payload(edited)["replacements"] == 1
    assert world.files.contents["a.py"] == b"x = 1\r\ntwo = 2\r\n"


async def test_failures_are_envelopes() -> None:
    world = World()
    for tool, arguments, code in [
        ("read_file", {"path": "missing"}, "not_found"),
        ("read_file", {"path": "../out"}, "access_denied"),
        ("read_file", {"paht": "a.py"}, "invalid_arguments"),
        ("edit_file", {"path": "a.py", "edits": [{"old_text": "one", "new_text": "1"}]}, "not_read"),
        ("grep", {"pattern": "("}, "invalid_arguments"),
        ("web_fetch", {"url": "https://elsewhere.test/"}, "network_error"),
    ]:
        result = (await world.call(tool, **arguments)).result
        assert result.error is not None
        assert result.error.code == code, result.text


async def test_a_bug_inside_a_tool_is_internal_and_a_suspension_passes() -> None:
    @function_tool
    async def broken() -> str:
        """Fails."""
        raise ZeroDivisionError

    @function_tool
    async def waits() -> str:
        """Waits for a replay."""
        raise Suspended(RuntimeError("later"))

    result = await broken()
    assert result.error is not None
    assert result.error.code == "internal"
    with pytest.raises(Suspended):
        await waits()


async def test_a_time_limit_ends_an_async_tool() -> None:
    import asyncio

    @function_tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Sleeps."""
        await asyncio.sleep(60)

    result = await slow()
    assert result.error is not None
    assert result.error.code == "timed_out"


async def test_progress_reaches_the_listener() -> None:
    heard: list[Progress] = []

    @function_tool
    async def counts(context: ToolContext) -> None:
        """Counts."""
        for n in range(3):
            context.report("n", done=n, total=2)

    await counts.call({}, ToolContext(progress=heard.append))

    assert heard[-1].done == 2


async def test_a_policy_judges_without_a_machine() -> None:
    world = World()
    policy = Policy(allow=["shell(echo *)"], deny=["read_file(**/*.txt)"])

    decisions = [
        (await policy.decide(world.tools[tool], arguments)).action
        for tool, arguments in [
            ("shell", {"command": "echo a"}),
            ("shell", {"command": "echo a; rm b"}),
            ("read_file", {"path": "b/../b/c.txt"}),
            ("read_file", {"path": "a.py"}),
        ]
    ]

    assert decisions == ["allow", "ask", "deny", "allow"]


def test_a_long_text_is_cut_to_a_window() -> None:
    text = "".join(f"{n}\n" for n in range(100_000))

    assert len(window(text)) < 31_000
    assert "omitted" in window(text)


async def test_the_sandbox_in_memory_works() -> None:
    sandbox = InMemorySandbox({"a.txt": "one"})

    assert await sandbox.read_bytes("a.txt") == b"one"


async def test_a_schema_tool_validates_or_says_what_is_missing() -> None:
    parameters = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    def double(arguments: dict[str, Any]) -> int:
        return arguments["n"] * 2

    tool = schema_tool(double, name="double", description="Twice.", parameters=parameters)

    result = await tool(n=4)

    if IN_PYODIDE:
        assert result.data == 8 or "jsonschema" in result.text
    else:
        assert result.data == 8


def test_a_tool_error_keeps_its_code() -> None:
    with pytest.raises(ToolError, match="no"):
        ToolResult.failure(ToolError("no", code="not_found").info).raise_for_error()
