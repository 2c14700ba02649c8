"""A call never raises for a failure; what must pass, passes."""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from toolkit_core import (
    Arguments,
    Claims,
    Effects,
    ErrorInfo,
    ImageBlock,
    Progress,
    Suspended,
    TextBlock,
    Tool,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSet,
    function_tool,
    port_tool,
)


class Reading(BaseModel):
    """A declared result."""

    value: int


class Weird(BaseException):
    """Neither an Exception nor one of those that pass."""


def raiser(error: BaseException, *, timeout_seconds: float | None = None) -> Tool[Any]:
    @function_tool(name="raiser", timeout_seconds=timeout_seconds)
    async def body() -> str:
        """Raise."""
        raise error

    return body


def sync_raiser(error: BaseException) -> Tool[Any]:
    @function_tool(name="raiser")
    def body() -> str:
        """Raise."""
        raise error

    return body


@pytest.mark.parametrize(
    "error",
    [
        ValueError("secret"),
        KeyError("secret"),
        SystemExit("secret"),
        Weird("secret"),
        RecursionError("secret"),
        MemoryError("secret"),
        ExceptionGroup("secret", [ValueError("secret")]),
        BaseExceptionGroup("secret", [SystemExit("secret")]),
        asyncio.CancelledError("secret"),
        TimeoutError("secret"),
        StopAsyncIteration("secret"),
        GeneratorExit("secret"),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("make", [raiser, sync_raiser])
async def test_whatever_a_body_raises_is_internal_and_shows_only_its_type(
    make: Any, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    result = await make(error).call({})

    assert result.error is not None
    assert result.error.code == "internal"
    assert result.error.cause is not None
    assert "secret" not in result.text
    assert type(error).__name__ in result.text or isinstance(error, StopAsyncIteration)
    assert "Traceback" in caplog.text


async def test_a_sync_function_that_raises_stop_iteration_does_not_hang() -> None:
    result = await asyncio.wait_for(sync_raiser(StopIteration("x")).call({}), 5)
    assert result.is_error


async def test_a_function_says_that_it_failed() -> None:
    result = await raiser(ToolError("no seat", code="unavailable", hint="try monday", retryable=True)).call({})
    assert result.text == "Error (unavailable): no seat\ntry monday"
    assert result.error is not None
    assert result.error.retryable


@pytest.mark.parametrize("error", [KeyboardInterrupt(), Suspended(ValueError("later"))], ids=["ctrl-c", "suspended"])
async def test_what_must_pass_passes(error: BaseException) -> None:
    with pytest.raises(type(error)):
        await raiser(error).call({})
    nested = BaseExceptionGroup("tasks", [ValueError("x"), BaseExceptionGroup("more", [error])])
    with pytest.raises(type(error)):
        await raiser(nested).call({})


async def test_a_requested_cancellation_passes_after_the_body_cleaned_up() -> None:
    steps: list[str] = []

    @function_tool
    async def slow() -> str:
        """Wait."""
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            steps.append("cleaned")
        return ""

    task = asyncio.ensure_future(slow.call({}))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert steps == ["cleaned"]
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await slow.call({})


async def test_a_timeout_is_an_envelope_and_a_bodys_own_timeout_is_not_mistaken_for_it() -> None:
    @function_tool(timeout_seconds=0.02)
    async def slow() -> str:
        """Wait."""
        await asyncio.sleep(60)
        return ""

    result = await slow.call({})
    assert result.error is not None
    assert result.error.code == "timed_out"
    assert "0.02 s" in result.text


def stubborn(*, seconds: float, timeout_seconds: float | None = None) -> Tool[Any]:
    """A tool that swallows cancellations, as retry loops do."""

    @function_tool(timeout_seconds=timeout_seconds)
    async def loop() -> str:
        """Loop."""
        end = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < end:
            try:
                await asyncio.sleep(0.05)
            except BaseException:  # noqa: BLE001 - the fault under test
                continue
        return "late"

    return loop


async def test_a_swallowed_cancellation_is_no_success() -> None:
    task = asyncio.ensure_future(stubborn(seconds=0.3).call({}))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    result = await stubborn(seconds=0.3, timeout_seconds=0.1).call({})
    assert result.error is not None
    assert result.error.code == "timed_out"


async def test_a_body_that_never_stops_is_left_after_a_bounded_clean_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolkit_core.cleanup.STOP_SECONDS", 0.2)
    tool = stubborn(seconds=3, timeout_seconds=0.1)
    result = await asyncio.wait_for(tool.call({}), 2)
    assert result.error is not None
    assert result.error.code == "timed_out"
    task = asyncio.ensure_future(stubborn(seconds=3, timeout_seconds=60).call({}))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 2)
    assert "was left" in caplog.text
    await asyncio.sleep(3.2)


async def test_a_body_with_a_time_limit_may_raise_whatever_another_may() -> None:
    for error, code in ((TimeoutError("own"), "internal"), (SystemExit(1), "internal"), (ToolError("no"), "failed")):
        result: Any = await raiser(error, timeout_seconds=5).call({})
        assert result.error.code == code

    @function_tool(timeout_seconds=5)
    async def suspended() -> str:
        """Suspend."""
        raise Suspended(ValueError("later"))

    with pytest.raises(Suspended):
        await suspended.call({})


async def test_a_late_result_of_a_sync_function_is_dropped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    import threading

    release = threading.Event()

    @function_tool(timeout_seconds=0.02)
    def slow() -> str:
        """Wait."""
        release.wait(10)
        return "late"

    with caplog.at_level(logging.WARNING, "toolkit_core"):
        result = await slow.call({})
        release.set()
        for _ in range(200):
            if "dropped" in caplog.text:
                break
            await asyncio.sleep(0.01)
    assert result.is_error
    assert "dropped" in caplog.text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"success": False}, '{"success": false}'),
        ([1, "é"], '[1, "é"]'),
        (Reading(value=3), '{"value": 3}'),
        (None, "(returned nothing)"),
        (2**70, '"' + str(2**70) + '"'),
        ("lone \udcff", "lone \\udcff"),
    ],
)
async def test_what_an_undeclared_function_returns_is_data_whatever_its_shape(value: Any, text: str) -> None:
    @function_tool
    async def give() -> Any:
        """Give."""
        return value

    result = await give.call({})
    assert not result.is_error
    assert result.text == text
    assert result.data == value


async def test_a_returned_generator_is_data_and_text_both() -> None:
    @function_tool
    async def count() -> Any:
        """Count."""
        return (i for i in range(3))

    result = await count.call({})
    assert (result.text, result.data) == ("[0, 1, 2]", [0, 1, 2])


@pytest.mark.parametrize("value", [object(), {"a": object()}, {1, object()}])
async def test_what_cannot_be_serialised_is_an_invalid_result(value: Any) -> None:
    @function_tool
    async def give() -> Any:
        """Give."""
        return value

    result = await give.call({})
    assert result.error is not None
    assert result.error.code == "invalid_result"
    assert result.data is None


async def test_a_declared_result_that_does_not_fit_is_never_success() -> None:
    @function_tool(returns=Reading)
    async def read(value: Any) -> Any:
        """Read."""
        return {"value": value}

    assert (await read(value=4)).data == Reading(value=4)
    bad = await read(value="x")
    assert bad.error is not None
    assert bad.error.code == "invalid_result"
    assert "value" in bad.text


async def test_a_body_may_return_a_result_with_images() -> None:
    @function_tool
    async def look() -> Any:
        """Look."""
        return ToolResult.ok("a dot\ud800", {"n": 1}, images=(ImageBlock("image/png", b"\x89PNG"),))

    result = await look.call({})
    assert result.content == (TextBlock("a dot\\ud800"), ImageBlock("image/png", b"\x89PNG"))
    assert result.data == {"n": 1}


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"path": value}
    return value


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["path", "n", "z"]), inner, max_size=3),
    max_leaves=8,
)


@function_tool
async def probe(path: str, n: int = 1, items: list[dict[str, str]] | None = None) -> str:
    """Probe."""
    return f"{path} {n} {items}"


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "",
        "nope",
        "[1]",
        5,
        [],
        {},
        {"path": None},
        {"path": 5},
        {"path": "a", "n": None, "items": None, "other": None},
        {"path": "a", "n": float("nan")},
        {"path": "a", "n": 1.5},
        {"path": "a", "n": "9" * 5000},
        {"path": "a\ud800"},
        {"path": "a", "\ud800": 1},
        {"path": "a", "items": deep(1000)},
        deep(1000),
        {"path": "x" * 1_000_000, "n": "x" * 1_000_000},
        {f"k{i}": i for i in range(10_000)},
        {1: 2, ("a",): 3},
        "{" * 100_000,
        b"bytes",
    ],
    ids=range(22),
)
async def test_any_arguments_give_an_envelope_that_encodes(arguments: Any) -> None:
    result = await probe.call(arguments)

    assert result.is_error or arguments == {"path": "a", "n": None, "items": None}
    assert len(result.text) < 20_000
    result.to_json().encode("utf-8")


@settings(max_examples=200)
@given(ANY_JSON)
def test_arbitrary_json_gives_an_envelope(arguments: Any) -> None:
    result = asyncio.run(probe.call(arguments))
    result.to_json().encode("utf-8")


async def test_progress_comes_at_most_ten_times_a_second_and_loses_no_text() -> None:
    heard: list[Progress] = []

    @function_tool
    async def talk(ctx: ToolContext) -> str:
        """Talk."""
        for i in range(1000):
            ctx.report("stdout", f"{i},")
        return "done"

    await talk.call({}, ToolContext(progress=heard.append))
    assert len(heard) <= 12
    assert "".join(p.text for p in heard) == "".join(f"{i}," for i in range(1000))


async def test_a_failing_progress_listener_is_logged_once_and_still_hears(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[Progress] = []

    def listener(progress: Progress) -> None:
        heard.append(progress)
        raise ValueError("broken")

    @function_tool
    async def talk(ctx: ToolContext) -> str:
        """Talk."""
        ctx.report("files", done=1, total=2)
        ctx.report("files", done=2, total=2)
        return "done"

    assert (await talk.call({}, ToolContext(progress=listener))).text == "done"
    assert [progress.done for progress in heard] == [1, 2]
    assert caplog.text.count("a progress listener failed") == 1


async def test_names_and_descriptions_are_checked_when_a_tool_is_built() -> None:
    async def fine() -> None:
        """Fine."""

    for name in ("service.do it", "x" * 65, "", "ä"):
        with pytest.raises(ValueError, match="is no tool name"):
            function_tool(fine, name=name)
    with pytest.raises(ValueError, match="1025"):
        function_tool(fine, description="x" * 1025)

    async def silent() -> None: ...

    with pytest.raises(ValueError, match="description="):
        function_tool(silent)


async def test_parameters_are_a_fresh_copy_each_time() -> None:
    before = copy.deepcopy(probe.parameters)
    probe.parameters["properties"]["path"]["type"] = "ruined"
    assert probe.parameters == before


def named(name: str, *, deferred: bool = False) -> Tool[Any]:
    async def body(ctx: ToolContext) -> str:
        return ctx.session

    return function_tool(body, name=name, description=f"Does {name}.", deferred=deferred)


async def test_a_set_is_a_sequence_with_names() -> None:
    tools = ToolSet([named("a"), named("b"), named("c")])

    assert [t.name for t in tools] == ["a", "b", "c"]
    assert tools["b"].name == tools[1].name == "b"
    assert tools[1:].names == ("b", "c")
    assert tools.only("c", "a").names == ("a", "c")
    assert tools.without("a").names == ("b", "c")
    assert tools.prefixed("repo_").names == ("repo_a", "repo_b", "repo_c")
    assert "repo_a takes no parameters" in (await tools.prefixed("repo_")["repo_a"].call({"z": 1})).text
    assert (tools + ToolSet([named("d")])).names == ("a", "b", "c", "d")
    assert "a" in tools
    with pytest.raises(KeyError, match="it holds a, b, c"):
        _ = tools["z"]
    with pytest.raises(KeyError):
        tools.only("z")
    with pytest.raises(ValueError, match="two tools are called 'a'"):
        _ = tools + ToolSet([named("a")])
    with pytest.raises(ValueError, match="every tool of the set is deferred"):
        ToolSet([named("a", deferred=True)])


async def test_a_sets_identity_is_the_session_of_calls_that_name_none() -> None:
    one, two = ToolSet([named("a")]), ToolSet([named("a")])

    assert (await one["a"]()).text == one.identity
    assert one.identity != two.identity
    assert (await one.only("a")["a"]()).text == one.identity
    assert (await one["a"].call({}, ToolContext(session_id="s"))).text == "s"


async def test_closing_a_set_runs_every_closer_though_one_fails() -> None:
    closed: list[str] = []

    async def good() -> None:
        closed.append("good")

    async def bad() -> None:
        raise OSError("stuck")

    async with ToolSet([named("a")], closers=[bad, good]).only("a") + ToolSet([named("b")]):
        pass
    assert closed == ["good"]


async def test_subject_writes_and_claims_of_a_plain_tool() -> None:
    inspecting = function_tool(probe.work.run, name="p", description="P.", effects=Effects(reads=True))  # pyright: ignore[reportArgumentType]  (any callable)
    assert await probe.subject({"path": "a"}) == ""
    assert await probe.writes({"path": "a"}) == ()
    assert (await probe.claims({"path": "a"})).exclusive
    assert inspecting.effects is not None
    assert inspecting.effects.risk == "inspect"
    with pytest.raises(ToolError) as caught:
        await probe.subject({})
    assert caught.value.code == "invalid_arguments"


async def test_an_unconverted_tool_names_its_converter() -> None:
    with pytest.raises(TypeError, match=r"toolkit_langchain\.to_langchain"):
        inspect.signature(probe)


async def test_a_timeout_of_the_bodys_own_is_not_the_tools() -> None:
    async def body() -> str:
        raise TimeoutError("of a peer")

    tool = function_tool(body, name="asks", description="Asks.", timeout_seconds=60)
    result = await tool()
    assert result.error is not None
    assert result.error.code != "timed_out"


def test_the_schema_that_a_caller_gets_is_a_copy_in_every_depth() -> None:
    async def body(mode: Literal["a", "b"]) -> str:
        return mode

    tool = function_tool(body, name="chooses", description="Chooses.")
    tool.parameters["properties"]["mode"]["enum"].append("c")
    tool.parameters["required"].clear()
    assert tool.parameters["properties"]["mode"]["enum"] == ["a", "b"]
    assert tool.parameters["required"] == ["mode"]


def test_a_tool_shows_its_name_and_first_line() -> None:
    async def body() -> str:
        return ""

    tool = function_tool(body, name="shown", description="First line.\nSecond line.")
    assert repr(tool) == "<Tool shown: First line.>"
    assert tool.deferred is False


def test_a_set_holds_tools_by_name_by_alias_and_by_identity_alone() -> None:
    async def body() -> str:
        return ""

    one, other = (function_tool(body, name=name, description="Does.") for name in ("one", "other"))
    tools = ToolSet([one])
    assert "one" in tools
    assert "other" not in tools
    assert tools[0] in tools
    assert other not in tools
    more = [other]
    assert [tool.name for tool in tools + more] == ["one", "other"]
    assert [tool.name for tool in tools + ToolSet([other])] == ["one", "other"]


async def test_a_call_that_another_task_closes_ends_without_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    @function_tool
    async def waits() -> str:
        """Waits."""
        await asyncio.get_running_loop().create_future()
        return "never"

    call = waits.call({})
    call.send(None)

    async def close() -> None:
        call.close()

    await asyncio.create_task(close())
    assert not caplog.records


@pytest.mark.parametrize("at", [0, 1_048_575, 1_048_576, 2_500_000])
async def test_a_lone_surrogate_is_escaped_wherever_it_is_in_megabytes_of_text(at: int) -> None:
    whole = "é" * 2_600_000

    @function_tool
    async def spoilt() -> ToolResult[None]:
        """Spoilt."""
        return ToolResult.ok(f"{whole[:at]}\udcff{whole[at:]}")

    @function_tool
    async def fine() -> ToolResult[None]:
        """Fine."""
        return ToolResult.ok(whole)

    assert (await spoilt()).text == f"{whole[:at]}\\udcff{whole[at:]}"
    assert (await fine()).text == whole


def test_a_description_of_one_character_is_one() -> None:
    assert function_tool(lambda: "", name="f", description="x").description == "x"


class _Place(Arguments):
    path: str


def _writer(**options: Any) -> Tool[Any]:
    async def run(args: _Place, context: ToolContext) -> ToolResult[dict[str, Any]]:
        return ToolResult.ok("done", {})

    async def written(args: _Place) -> tuple[str, ...]:
        return (f"/w/{args.path}",)

    return port_tool(
        _Place,
        run,
        kind="put",
        describe=lambda _: "Puts.",
        payload=dict[str, Any],
        effects=Effects(writes=True),
        writes=written,
        **options,
    )


async def test_a_tool_that_says_what_it_writes_claims_just_that() -> None:
    claims = await _writer().claims({"path": "a"})
    assert (claims.paths, claims.read_only, claims.exclusive) == (("/w/a",), False, False)


async def test_a_set_finds_tools_by_alias_and_says_what_it_holds(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> None:
        raise OSError("it does not close")

    tools = ToolSet([_writer(aliases=("store",), name="save")], closers=[fails])
    assert tools["put"] is tools["store"] is tools["save"] is tools[0]
    assert repr(tools) == "<ToolSet save>"
    await tools.aclose()
    assert "closing a part of the tool set failed" in caplog.text


async def test_a_tool_with_a_time_limit_returns_what_its_body_returned() -> None:
    @function_tool(timeout_seconds=5)
    async def quick() -> str:
        """Quick."""
        return "in time"

    assert (await quick()).text == "in time"


async def test_a_result_made_by_the_body_is_held_to_the_declared_payload_where_it_is_no_error() -> None:
    @function_tool(returns=Reading)
    async def reading(kind: str) -> Any:
        """Reads."""
        if kind == "error":
            return ToolResult.failure(ErrorInfo("not_found", "there is none", "Look elsewhere."), data={"no": 1})
        return ToolResult.ok("read", {"value": 1} if kind == "good" else {"no": 1})

    assert (await reading(kind="good")).error is None
    bad, error = await reading(kind="bad"), await reading(kind="error")
    assert bad.error is not None
    assert bad.error.code == "invalid_result"
    assert error.error is not None
    assert error.error.code == "not_found"


async def test_claims_that_a_tool_names_stand_before_what_it_writes() -> None:
    async def claims(args: _Place) -> Claims:
        return Claims(paths=("/elsewhere",), exclusive=True)

    assert await _writer(claims=claims).claims({"path": "a"}) == Claims(paths=("/elsewhere",), exclusive=True)


async def test_a_refused_thread_is_an_error_to_try_again_and_another_runtime_error_is_a_fault() -> None:
    @function_tool
    async def fails(text: str) -> str:
        """Fails."""
        raise RuntimeError(text)

    refused, other = await fails(text="can't start new thread"), await fails(text="something else")
    assert refused.error is not None
    assert (refused.error.code, refused.error.retryable) == ("io_error", True)
    assert "thread" in refused.error.message
    assert refused.error.hint
    assert other.error is not None
    assert other.error.code == "internal"


def test_images_of_a_result_are_its_image_blocks() -> None:
    image = ImageBlock("image/png", b"x")
    assert ToolResult.ok("text", images=(image,)).images == (image,)
    assert ToolResult.ok("text").images == ()
