"""Real agents with scripted models, run in every way that LangGraph runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal, cast

from langchain import agents as langchain_agents
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph import graph as langgraph_graph
from langgraph.prebuilt import ToolNode, tools_condition

from toolkit_langchain.testing import ScriptedModel, Turn

# their types are incomplete, and the tests' own say all that matters here
create_agent: Any = cast("Any", langchain_agents).create_agent
StateGraph: Any = cast("Any", langgraph_graph).StateGraph

Way = Literal["sync", "async", "stream"]
WAYS: tuple[Way, ...] = ("sync", "async", "stream")


def agent(tools: Sequence[BaseTool], turns: Sequence[Turn], **options: Any) -> Any:
    """`create_agent` over a scripted model."""
    return create_agent(ScriptedModel(turns), list(tools), **options)


def graph_with_tool_node(tools: Sequence[BaseTool], turns: Sequence[Turn], **options: Any) -> Any:
    """The loop that people build by hand: a model node and a ToolNode, with ToolNode's default settings."""
    model = ScriptedModel(turns).bind_tools(list(tools))

    def call_model(state: langgraph_graph.MessagesState) -> dict[str, list[BaseMessage]]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(langgraph_graph.MessagesState)
    graph.add_node("model", call_model)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(langgraph_graph.START, "model")
    graph.add_conditional_edges("model", tools_condition, {"tools": "tools", langgraph_graph.END: langgraph_graph.END})
    graph.add_edge("tools", "model")
    return graph.compile(**options)


async def run(graph: Any, given: Any = "go", way: Way = "async", config: Any = None) -> dict[str, Any]:
    """The final state of one run."""
    state = {"messages": [{"role": "user", "content": given}]} if isinstance(given, str) else given
    if way == "sync":
        return await asyncio.to_thread(graph.invoke, state, config)
    if way == "async":
        return await graph.ainvoke(state, config)
    last: dict[str, Any] = {}
    async for mode, event in graph.astream(state, config, stream_mode=["values", "messages"]):
        last = event if mode == "values" else last
    return last


def tool_messages(state: dict[str, Any]) -> list[Any]:
    """What the tools answered, in order: `ToolMessage`s."""
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def final_text(state: dict[str, Any]) -> str:
    """The last thing that the model said."""
    last = state["messages"][-1]
    assert isinstance(last, AIMessage), f"the run did not end with the model's answer: {last!r}"
    return str(last.content)
