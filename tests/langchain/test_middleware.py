"""The middleware: instructions, deferred tools, window, policy and record, on real agents."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, RemoveMessage, SystemMessage
from langchain_core.tools import ToolException
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import interrupt

from tests.langchain.agents import WAYS, Way, create_agent, final_text, run, tool_messages
from tests.langchain.ledgers import MemoryLedger
from toolkit_core.capability import Capability
from toolkit_core.context import ToolContext
from toolkit_core.factories import function_tool
from toolkit_core.output_window import Window
from toolkit_core.policy import Policy
from toolkit_core.ports.ledger import LedgerEntry
from toolkit_core.tool import ToolSet
from toolkit_langchain import AgentToolkit, ToolkitMiddleware, to_langchain
from toolkit_langchain.testing import ScriptedModel, tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}
EACH_WAY = pytest.mark.parametrize("way", WAYS)


def recall(start_line: int) -> Any:
    """A turn that recalls two lines of what the last result left out."""

    def turn(messages: list[Any]) -> Any:
        entry_id = messages[-1].content.split('"entry_id": "')[1].split('"')[0]
        return tool_call("recall", entry_id=entry_id, start_line=start_line, end_line=start_line + 1)

    return turn


def echo(text: str) -> str:
    """Say it back."""
    return text


def weather(city: str) -> str:
    """Tell the weather of a city."""
    return f"{city}: rain"


ECHO = function_tool(echo)
WEATHER = function_tool(weather, deferred=True)


def build(turns: Any, given: Any, tools: Any = (), **options: Any) -> tuple[Any, ScriptedModel]:
    graph_options = {key: options.pop(key) for key in ("checkpointer", "system_prompt") if key in options}
    before = options.pop("before", [])
    model = ScriptedModel(turns)
    middleware = [*before, ToolkitMiddleware(given, **options)]
    return create_agent(model, list(tools), middleware=middleware, **graph_options), model


@EACH_WAY
async def test_instructions_reach_the_system_prompt_anew_each_run(way: Way) -> None:
    texts = iter(["first text", "second text"])

    async def describe(context: ToolContext) -> str:
        return f"{next(texts)} of {context.session_id}"

    graph, model = build(["a", "b"], [Capability("x", ToolSet([ECHO]), describe)], system_prompt="Be kind.")
    await run(graph, way=way, config=CONFIG)
    await run(graph, way=way, config=CONFIG)
    assert [call.messages[0].content for call in model.calls] == [
        "Be kind.\n\nfirst text of t",
        "Be kind.\n\nsecond text of t",
    ]


async def test_instructions_join_a_prompt_of_blocks_and_stand_alone_without_one() -> None:
    async def describe(context: ToolContext) -> str:
        return "Use the tools."

    async def broken(context: ToolContext) -> str:
        raise OSError("gone")

    capabilities = [Capability("x", ToolSet([ECHO]), describe), Capability("y", ToolSet([]), broken)]
    prompt = SystemMessage([{"type": "text", "text": "Be kind."}])
    graph, model = build(["a"], capabilities, system_prompt=prompt)
    await run(graph)
    assert model.calls[0].messages[0].text == "Be kind.\n\nUse the tools."
    graph, model = build(["a"], capabilities)
    await run(graph)
    assert model.calls[0].messages[0].content == "Use the tools."


class Forgetful(AgentMiddleware[Any, Any, Any]):
    """Summarisation at its harshest: before each model call all messages are removed."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        kept = [AIMessage("What came before was summarised.")]
        return {"messages": [RemoveMessage("__remove_all__"), *kept]}


@EACH_WAY
async def test_a_deferred_tool_is_hidden_loaded_and_stays_through_summarisation(way: Way) -> None:
    turns = [tool_call("tool_search", query="city"), tool_call("weather", city="Bonn"), "ok", "again"]
    graph, model = build(turns, ToolSet([ECHO, WEATHER]), before=[Forgetful()], checkpointer=InMemorySaver())
    await run(graph, way=way, config=CONFIG)
    await run(graph, way=way, config=CONFIG)
    seen = [call.tool_names for call in model.calls]
    assert seen == [["echo", "tool_search"], *[["echo", "weather", "tool_search"]] * 3]
    await run(graph_of_another_thread := build(["x"], ToolSet([ECHO, WEATHER]))[0], way=way)
    assert graph_of_another_thread is not graph


async def test_what_one_thread_loaded_another_does_not_see() -> None:
    turns = [tool_call("tool_search", names=["weather"]), "ok", "other"]
    graph, model = build(turns, ToolSet([ECHO, WEATHER]), checkpointer=InMemorySaver())
    await run(graph, config=CONFIG)
    await run(graph, config={"configurable": {"thread_id": "other"}})
    assert [call.tool_names for call in model.calls][1:] == [
        ["echo", "weather", "tool_search"],
        ["echo", "tool_search"],
    ]


async def test_parallel_look_ups_both_count_and_a_hidden_tool_is_not_run() -> None:
    more = function_tool(echo, name="more", description="More of it.", deferred=True)
    turns = [
        [tool_call("weather", city="Bonn"), tool_call("tool_search", names=["nope"])],
        [tool_call("tool_search", names=["weather"]), tool_call("tool_search", query="more of")],
        [tool_call("weather", city="Bonn"), tool_call("more", text="x")],
        "ok",
    ]
    graph, _ = build(turns, ToolSet([ECHO, WEATHER, more]))
    messages = tool_messages(await run(graph))
    assert [m.status for m in messages] == ["error", "error", *["success"] * 4]
    assert (
        messages[0].content
        == "Error (unavailable): weather is not loaded\nLook it up first, so that you know its parameters."
    )
    assert messages[1].artifact["error"]["code"] == "not_found"
    assert [m.content for m in messages[4:]] == ["Bonn: rain", "x"]


async def test_300_tools_with_one_resident() -> None:
    many = [function_tool(echo, name=f"tool_{n}", description=f"Number {n}.", deferred=n > 0) for n in range(300)]
    turns = [tool_call("tool_search", names=["tool_299"]), tool_call("tool_299", text="hi"), "ok"]
    graph, model = build(turns, ToolSet(many))
    state = await run(graph)
    assert tool_messages(state)[-1].content == "hi"
    assert [len(call.tools) for call in model.calls] == [2, 3, 3]


def test_a_set_in_which_all_are_deferred_is_refused() -> None:
    with pytest.raises(ValueError, match="deferred"):
        ToolSet([WEATHER])


async def test_without_middleware_deferred_tools_are_simply_there() -> None:
    names = [tool.name for tool in to_langchain(ToolSet([ECHO, WEATHER]))]
    assert names == ["echo", "weather"]


# --- foreign tools ------------------------------------------------------------------------------------


@langchain_tool
def foreign(text: str) -> str:
    """A tool of somebody else."""
    if text == "value":
        raise ValueError("secret detail")
    if text == "tool":
        raise ToolException("words for the model")
    return text * 1000


@EACH_WAY
async def test_covers_all_keeps_a_foreign_failure_from_ending_the_run(way: Way) -> None:
    turns = [[tool_call("foreign", text="value"), tool_call("foreign", text="tool"), tool_call("foreign")], "ok"]
    with pytest.raises((ValueError, ToolException)):
        await run(build(turns, ToolSet([ECHO]), [foreign])[0], way=way)  # CONTROL
    state = await run(build(turns, ToolSet([ECHO]), [foreign], covers="all")[0], way=way)
    assert final_text(state) == "ok"
    [value, tool, arguments] = tool_messages(state)
    assert value.content.startswith("Error (internal): the tool failed inside (ValueError)")
    assert "secret" not in value.content
    assert tool.content == "Error (failed): words for the model"
    assert arguments.status == "error"


async def test_covers_all_windows_records_and_judges_foreign_tools() -> None:
    ledger = MemoryLedger()
    turns = [tool_call("foreign", text="x\n"), recall(400), "ok"]
    options: dict[str, Any] = {"window": Window(200, 100, 100), "ledger": ledger, "covers": "all"}
    graph, _ = build(turns, ToolSet([ECHO]), [foreign], **options)
    state = await run(graph, config=CONFIG)
    [cut, recalled] = tool_messages(state)
    assert len(cut.content) < 400
    assert "x\nx" in recalled.content
    first = ledger.entries[0]
    assert (first.tool, first.outcome, first.session_id) == ("foreign", "ok", "t")

    graph, _ = build([tool_call("foreign", text="x"), "ok"], ToolSet([ECHO]), [foreign], covers="all", policy=Policy())
    [refused] = tool_messages(await run(graph))
    assert refused.artifact["error"]["code"] == "denied"  # unclassified asks, and nobody can be asked
    graph, _ = build(
        [tool_call("foreign", text="x"), "ok"],
        ToolSet([ECHO]),
        [foreign],
        covers="all",
        policy=Policy(allow=["foreign"]),
    )
    assert tool_messages(await run(graph))[0].status == "success"


async def test_covers_own_leaves_foreign_tools_alone() -> None:
    graph, _ = build(
        [tool_call("foreign", text="x"), "ok"], ToolSet([ECHO]), [foreign], policy=Policy(deny=["foreign"])
    )
    assert tool_messages(await run(graph))[0].content == "x" * 1000


async def test_an_interrupt_in_a_foreign_tool_still_pauses() -> None:
    @langchain_tool
    def pausing() -> str:
        """Pause."""
        return str(interrupt("sure?"))

    graph, _ = build(
        [tool_call("pausing"), "ok"], ToolSet([ECHO]), [pausing], covers="all", checkpointer=InMemorySaver()
    )
    await run(graph, config=CONFIG)
    assert (await graph.aget_state(CONFIG)).interrupts[0].value == "sure?"


# --- record -------------------------------------------------------------------------------------------


async def test_with_a_ledger_bulk_becomes_the_entry_and_recall_returns_it() -> None:
    ledger = MemoryLedger()
    long = "\n".join(f"line {n}" for n in range(9_000))
    many = function_tool(lambda: long, name="many", description="Says much.")
    turns = [tool_call("many"), recall(5_000), "ok"]
    state = await run(build(turns, ToolSet([many]), ledger=ledger)[0], config=CONFIG)
    [first, second] = tool_messages(state)
    entry_id = ledger.entries[0].entry_id
    assert first.artifact["entry_id"] == first.artifact["data"] == entry_id
    assert first.artifact["content"] == [{"type": "text", "text": entry_id}]
    assert f'recall {{"entry_id": "{entry_id}"' in first.content
    assert ledger.texts == {entry_id: first.content}
    assert "line 4999\nline 5000" in second.content
    assert ledger.entries[0].result is not None
    assert ledger.entries[0].result["data"] == long


async def test_a_ledger_that_fails_never_fails_the_call() -> None:
    class Broken(MemoryLedger):
        async def record(self, entry: LedgerEntry) -> bool:
            raise OSError("disk full")

    turns = [[tool_call("echo", text="x"), tool_call("foreign", text="y")], "ok"]
    state = await run(build(turns, ToolSet([ECHO]), [foreign], ledger=Broken(), covers="all")[0])
    assert [m.status for m in tool_messages(state)] == ["success", "success"]


# --- calls that could not be parsed ----------------------------------------------------------------------


def broken_call(number: int) -> AIMessage:
    call: Any = {
        "type": "invalid_tool_call",
        "name": "echo",
        "args": "text, please",
        "id": f"b{number}",
        "error": "cut",
    }
    return AIMessage("", invalid_tool_calls=[call])


@EACH_WAY
async def test_a_call_that_could_not_be_parsed_is_answered_instead_of_ending_the_run(way: Way) -> None:
    control = await run(create_agent(ScriptedModel([broken_call(1), "never"]), to_langchain([ECHO])), way=way)
    assert final_text(control) == ""  # CONTROL: the run is over, and nothing was said
    state = await run(build([broken_call(1), tool_call("echo", text="x"), "ok"], ToolSet([ECHO]))[0], way=way)
    assert final_text(state) == "ok"
    assert tool_messages(state)[0].content.startswith("Error (invalid_arguments): ")


async def test_a_model_that_only_sends_broken_calls_is_let_go() -> None:
    graph, model = build([broken_call(n) for n in range(20)], ToolSet([ECHO]))
    await run(graph)
    assert len(model.calls) == 4


# --- building -----------------------------------------------------------------------------------------


def test_nonsense_is_refused_when_it_is_built() -> None:
    with pytest.raises(ValueError, match="covers"):
        ToolkitMiddleware(ToolSet([ECHO]), covers="everything")  # pyright: ignore[reportArgumentType]  (this is the test)
    with pytest.raises(ValueError, match="echo"):
        ToolkitMiddleware([Capability("a", ToolSet([ECHO])), Capability("b", ToolSet([ECHO]))])
    with pytest.raises(TypeError, match="capabilities"):
        ToolkitMiddleware([ECHO])  # pyright: ignore[reportArgumentType]  (this is the test)


async def test_the_toolkit_class_gives_tools_and_instructions() -> None:
    async def describe(context: ToolContext) -> str:
        return "Use the tools."

    toolkit = AgentToolkit([Capability("x", ToolSet([ECHO]), describe)])
    assert [tool.name for tool in toolkit.get_tools()] == ["echo"]
    assert await toolkit.instructions() == "Use the tools."


async def test_two_agents_share_one_set_without_sharing_sessions() -> None:
    def whose(ctx: ToolContext) -> str:
        """Say whose session."""
        return str(ctx.session_id)

    tools = ToolSet([function_tool(whose)])
    graphs = [build([tool_call("whose"), "ok"], tools)[0] for _ in range(2)]
    states = [await run(graph, config={"configurable": {"thread_id": str(n)}}) for n, graph in enumerate(graphs)]
    assert [tool_messages(state)[0].content for state in states] == ["0", "1"]


async def test_closing_stops_what_the_capabilities_left() -> None:
    closed: list[str] = []

    async def close() -> None:
        closed.append("closed")

    tools = ToolSet([ECHO], closers=[close])
    await ToolkitMiddleware(tools).aclose()
    await AgentToolkit(tools).aclose()
    assert closed == ["closed", "closed"]
