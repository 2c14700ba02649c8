"""Drives the adapters' common table through LlamaIndex agents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ImageBlock
from workflows.errors import WorkflowCancelledByUser

from tests.adapters.scenarios import (
    NO_ENVELOPE,
    Approve,
    Call,
    Edit,
    Outcome,
    Reject,
    Reply,
    Respond,
    Say,
    Scenario,
    Seen,
)
from toolkit_llamaindex import ApprovalRequestEvent, QuestionEvent, ToolRetriever, to_llamaindex
from toolkit_llamaindex.testing import ScriptedModel, Turn, tool_call

RUN_SECONDS = 60
CANCEL_AFTER_SECONDS = 0.3


async def drive(scenario: Scenario, *, workflow: bool = False, streaming: bool = True) -> Outcome:
    """Run one row with a FunctionAgent, alone or in an AgentWorkflow."""
    agent: Any = _agent(scenario, streaming)
    agent = AgentWorkflow(agents=[agent]) if workflow else agent
    handler = agent.run(user_msg="go")
    if scenario.cancel:
        return await _cancelled(handler)
    return await asyncio.wait_for(_followed(handler, iter(scenario.answers)), RUN_SECONDS)


def _agent(scenario: Scenario, streaming: bool) -> FunctionAgent:
    tools = scenario.tools()
    model = ScriptedModel([_turn(turn) for turn in scenario.turns])
    options: dict[str, Any] = {"policy": scenario.policy, "window": scenario.window}
    if any(tool.deferred for tool in tools):
        return FunctionAgent(tool_retriever=ToolRetriever(tools, **options), llm=model, streaming=streaming)
    return FunctionAgent(tools=[*to_llamaindex(tools, **options)], llm=model, streaming=streaming)


def _turn(turn: list[Call] | str) -> Turn:
    return turn if isinstance(turn, str) else [tool_call(call.name, call.arguments) for call in turn]


async def _followed(handler: Any, answers: Iterator[Reply]) -> Outcome:
    results: dict[str, Seen] = {}
    asked: list[str] = []
    async for event in handler.stream_events():
        if isinstance(event, ToolCallResult):
            results[event.tool_id] = _seen(event)
        elif isinstance(event, ApprovalRequestEvent | QuestionEvent):
            asked.append(event.prefix)
            handler.ctx.send_event(_answer(event, next(answers)))
    final = str(await handler)
    in_order = sorted(results, key=lambda call_id: int(call_id.removeprefix("call_")))
    return Outcome(tuple(results[call_id] for call_id in in_order), final, tuple(asked))


async def _cancelled(handler: Any) -> Outcome:
    await asyncio.sleep(CANCEL_AFTER_SECONDS)
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await asyncio.wait_for(handler, RUN_SECONDS)
    return Outcome((), "", cancelled=True)


def _seen(event: ToolCallResult) -> Seen:
    output = event.tool_output
    images = tuple(block.resolve_image().read() for block in output.blocks if isinstance(block, ImageBlock))
    envelope: Any = output.raw_output
    if envelope is None:
        return Seen(output.content, output.is_error, None, NO_ENVELOPE, images)
    error = envelope["error"]
    return Seen(output.content, output.is_error, None if error is None else error["code"], envelope["data"], images)


def _answer(event: ApprovalRequestEvent | QuestionEvent, reply: Reply) -> Any:
    if isinstance(event, QuestionEvent):
        assert isinstance(reply, Say)
        return event.dismiss() if reply.text is None else event.answer(reply.text)
    match reply:
        case Approve():
            return event.approve()
        case Edit(arguments):
            return event.edit(arguments)
        case Reject(text):
            return event.reject(text)
        case Respond(text):
            return event.respond(text)
        case Say():
            raise AssertionError("an approval is no question")
