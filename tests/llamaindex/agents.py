"""Real agents, run to their end, and what was seen on the way."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.tools import ToolOutput
from llama_index.core.workflow import Context, Event, HumanResponseEvent
from workflows.errors import WorkflowCancelledByUser

from toolkit_llamaindex.testing import ScriptedModel, ScriptedReActModel, Turn

Kind = Literal["function", "react", "workflow"]
KINDS: Sequence[Kind] = ("function", "react", "workflow")

RUN_SECONDS = 60
"""No run of these tests waits for anything; longer is a hang."""


@dataclass
class Run:
    """One run: its answer, the tools' outputs, and all events of the stream."""

    text: str
    model: ScriptedModel | ScriptedReActModel
    outputs: list[ToolOutput] = field(default_factory=list[ToolOutput])
    events: list[Event] = field(default_factory=list[Event])

    @property
    def output(self) -> ToolOutput:
        """The only tool's output."""
        assert len(self.outputs) == 1
        return self.outputs[0]

    @property
    def last_messages(self) -> list[ChatMessage]:
        """What the model read in its last turn."""
        return self.model.calls[-1].messages


def agent_of(kind: Kind, tools: Any, turns: Sequence[Turn], **options: Any) -> tuple[Any, Any]:
    """An agent of one kind over a scripted model, and the model."""
    model = ScriptedReActModel(turns) if kind == "react" else ScriptedModel(turns)
    if kind == "react":
        return ReActAgent(tools=tools, llm=model, **options), model
    agent = FunctionAgent(tools=tools, llm=model, **options)
    return (AgentWorkflow(agents=[agent]) if kind == "workflow" else agent), model


async def run_agent(
    kind: Kind,
    tools: Any,
    turns: Sequence[Turn],
    *,
    respond: Callable[[Event], Event | Sequence[Event] | None] | None = None,
    ctx: Context[Any] | None = None,
    **options: Any,
) -> Run:
    """Run an agent to its end; `respond` answers events of the stream with events."""
    agent, model = agent_of(kind, tools, turns, **options)
    return await follow(agent.run(user_msg="go", ctx=ctx), model, respond)


async def follow(handler: Any, model: Any, respond: Callable[[Event], Any] | None = None) -> Run:
    """Follow a run to its end, within a minute."""
    run = Run("", model)

    async def work() -> None:
        async for event in handler.stream_events():
            run.events.append(event)
            if isinstance(event, ToolCallResult):
                run.outputs.append(event.tool_output)
            answers = respond(event) if respond is not None else None
            for answer in [answers] if isinstance(answers, Event) else answers or []:
                handler.ctx.send_event(answer)
        run.text = str(await handler)

    await asyncio.wait_for(work(), RUN_SECONDS)
    return run


def texts(messages: Sequence[ChatMessage]) -> str:
    """All that the messages say."""
    return "\n".join(message.content or "" for message in messages)


def response(answer: Any, **fields: Any) -> HumanResponseEvent:
    """A stock event with fields of one's own."""
    values: dict[str, Any] = {"response": answer, **fields}
    return HumanResponseEvent(**values)


def echo(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments themselves, for tools over a plain schema."""
    return arguments


def memory(model: Any) -> Any:
    """What a program restores by itself: a context does not serialise the agent's memory."""
    buffer: Any = ChatMemoryBuffer
    return buffer.from_defaults(llm=model, chat_history=[ChatMessage(role="user", content="go")])


async def serialised(handler: Any) -> str:
    """The context as text; the run itself is cancelled."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = json.dumps(handler.ctx.to_dict())
    await handler.cancel_run()
    with pytest.raises(WorkflowCancelledByUser):
        await handler
    return text
