"""The adapters' common table, on LangChain agents in each way of running."""

from __future__ import annotations

import asyncio
import base64
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from tests.adapters.scenarios import (
    NO_ENVELOPE,
    SCENARIOS,
    Approve,
    Edit,
    Outcome,
    Reject,
    Reply,
    Respond,
    Say,
    Scenario,
    Seen,
    check,
)  # fmt: skip
from tests.langchain.agents import WAYS, Way, create_agent, final_text, run, tool_messages
from toolkit_langchain import ToolkitMiddleware
from toolkit_langchain.testing import ScriptedModel, tool_call

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def build(scenario: Scenario) -> Any:
    turns: list[Any] = [
        turn if isinstance(turn, str) else [tool_call(call.name, call.arguments) for call in turn]
        for turn in scenario.turns
    ]
    middleware = ToolkitMiddleware(scenario.tools(), policy=scenario.policy, window=scenario.window)
    return create_agent(ScriptedModel(turns), middleware=[middleware], checkpointer=InMemorySaver())


def resume_value(reply: Reply) -> Any:
    match reply:
        case Say(text):
            return {"dismissed": True} if text is None else text
        case Approve():
            return {"type": "approve"}
        case Edit(arguments):
            return {"type": "edit", "args": dict(arguments)}
        case Reject(text):
            return {"type": "reject", "message": text}
        case Respond(text):
            return {"type": "respond", "message": text}


def seen(message: Any) -> Seen:
    content = message.content
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    envelope = message.artifact
    return Seen(
        text="\n".join(block["text"] for block in blocks if block["type"] == "text"),
        is_error=message.status == "error",
        code=envelope["error"]["code"] if envelope and envelope["error"] else None,
        data=envelope["data"] if envelope else NO_ENVELOPE,
        images=tuple(base64.b64decode(block["base64"]) for block in blocks if block["type"] == "image"),
    )


async def drive(scenario: Scenario, way: Way) -> Outcome:
    graph = build(scenario)
    if scenario.cancel:
        task = asyncio.create_task(run(graph, way="stream" if way == "stream" else "async", config=CONFIG))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return Outcome((), "", cancelled=True)
    state = await run(graph, way=way, config=CONFIG)
    replies, asked = list(scenario.answers), list[str]()
    while pauses := (await graph.aget_state(CONFIG)).interrupts:
        asked += [str(pause.value) for pause in pauses]
        answers = {pause.id: resume_value(replies.pop(0)) for pause in pauses}
        state = await run(graph, Command(resume=answers), way=way, config=CONFIG)
    return Outcome(tuple(map(seen, tool_messages(state))), final_text(state), tuple(asked))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.id)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
async def test_scenario(scenario: Scenario, way: Way) -> None:
    check(scenario, await drive(scenario, way))
