"""LangChain's part of `toolkit demo`: an ordinary `create_agent` over the default tools, shown as it works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain import agents
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from pydantic import SecretStr

from toolkit_core.cli.demo_job import MAX_TURNS, Brain, DemoJob, DemoUnavailable, Step, ToolCall, Transcript
from toolkit_langchain.defaults import default_tools
from toolkit_langchain.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["run"]

_NODES_A_TURN = 2
"""LangGraph counts the model's step and the tools' step apart."""


def run(job: DemoJob, say: Callable[[str], None]) -> None:
    """Do the job with an agent, and show each turn and each result through `say`.

    Raises:
        DemoUnavailable: The named model's package or key is missing.
    """
    model = _scripted(job) if job.model is None else _named(job.model)
    agent = cast("Any", agents).create_agent(model, default_tools(job.workspace))
    config = {"recursion_limit": MAX_TURNS * _NODES_A_TURN + 2}
    transcript, pending = Transcript(say), dict[str, ToolCall]()
    try:
        for update in agent.stream({"messages": [("user", job.task)]}, config, stream_mode="updates"):
            for part in update.values():
                for message in part["messages"]:
                    _show(message, transcript, pending)
    except Exception as e:
        if job.model is None:
            raise
        raise DemoUnavailable(f"the model {job.model} failed: {_first_line(e)}") from e


def _show(message: BaseMessage, transcript: Transcript, pending: dict[str, ToolCall]) -> None:
    if isinstance(message, AIMessage):
        note = message.text
        for call in message.tool_calls:
            pending[call["id"] or ""] = ToolCall(call["name"], call["args"], note)
            transcript.turn(pending[call["id"] or ""])
            note = ""
        if not message.tool_calls:
            transcript.turn(message.text)
    elif isinstance(message, ToolMessage):
        transcript.step(_step(message, pending[message.tool_call_id]))


def _step(message: ToolMessage, call: ToolCall) -> Step:
    return Step(call.name, call.arguments, str(message.text), message.status == "error")


def _scripted(job: DemoJob) -> BaseChatModel:
    """A model whose every turn is the brain's, computed from what the tools answered."""
    brain = Brain(job)

    def turn(messages: Sequence[BaseMessage]) -> Any:
        following = brain.next_turn(_steps(messages))
        if isinstance(following, str):
            return following
        return [following.note, tool_call(following.name, following.arguments)]

    return ScriptedModel([turn] * MAX_TURNS)


def _steps(messages: Sequence[BaseMessage]) -> list[Step]:
    calls: dict[str, ToolCall] = {}
    steps: list[Step] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {call["id"] or "": ToolCall(call["name"], call["args"]) for call in message.tool_calls}
        elif isinstance(message, ToolMessage):
            steps.append(_step(message, calls[message.tool_call_id]))
    return steps


def _named(name: str) -> BaseChatModel:
    """A real model; what is missing for it is said in words."""
    from langchain.chat_models import init_chat_model

    try:
        model = init_chat_model(name)
    except ImportError as e:
        raise DemoUnavailable(f"the model {name} needs a package: {e}") from e
    except Exception as e:
        raise DemoUnavailable(f"the model {name} cannot be used: {_first_line(e)}") from e
    missing = [variable for field, variable in model.lc_secrets.items() if _is_empty(getattr(model, field, None))]
    if missing:
        raise DemoUnavailable(f"the model {name} needs a key: set {' or '.join(missing)}")
    return model


def _is_empty(secret: object) -> bool:
    value = secret.get_secret_value() if isinstance(secret, SecretStr) else secret
    return isinstance(value, str) and not value


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return " ".join(lines[:3]) or type(error).__name__
