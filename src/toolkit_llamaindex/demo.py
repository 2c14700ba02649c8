"""Composition leaf: `toolkit demo` on a LlamaIndex agent."""

from __future__ import annotations

import asyncio
import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from llama_index.core.agent.workflow import AgentOutput, FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, MessageRole, ToolCallBlock

from toolkit_core.cli.demo_job import MAX_TURNS, Brain, DemoJob, DemoUnavailable, Step, ToolCall, Transcript
from toolkit_llamaindex.defaults import default_tools
from toolkit_llamaindex.testing import ScriptedModel, Turn, tool_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from llama_index.core.llms.llm import LLM


@dataclass(frozen=True)
class _Provider:
    """Where LlamaIndex keeps a provider's model, and what it needs."""

    module: str
    class_name: str
    package: str
    key: str = ""


_PROVIDERS: Final = {
    "anthropic": _Provider(
        "llama_index.llms.anthropic", "Anthropic", "llama-index-llms-anthropic", "ANTHROPIC_API_KEY"
    ),
    "google_genai": _Provider(
        "llama_index.llms.google_genai", "GoogleGenAI", "llama-index-llms-google-genai", "GOOGLE_API_KEY"
    ),
    "groq": _Provider("llama_index.llms.groq", "Groq", "llama-index-llms-groq", "GROQ_API_KEY"),
    "mistralai": _Provider("llama_index.llms.mistralai", "MistralAI", "llama-index-llms-mistralai", "MISTRAL_API_KEY"),
    "ollama": _Provider("llama_index.llms.ollama", "Ollama", "llama-index-llms-ollama"),
    "openai": _Provider("llama_index.llms.openai", "OpenAI", "llama-index-llms-openai", "OPENAI_API_KEY"),
}

_PROMPT: Final = "You fix bugs in a small project. Read before you edit, and run the tests to see whether they pass."


def run(job: DemoJob, say: Callable[[str], None]) -> None:
    """Do the demo's job with a `FunctionAgent`, and show the work.

    Raises:
        DemoUnavailable: The model cannot be had here; the message says what to install or set.
    """
    llm = _scripted(job) if job.model is None else _real(job.model)
    asyncio.run(_work(job, llm, Transcript(say)))


async def _work(job: DemoJob, llm: LLM, transcript: Transcript) -> None:
    agent: Any = FunctionAgent(tools=list(default_tools(job.workspace)), llm=llm, system_prompt=_PROMPT)
    handler = agent.run(user_msg=job.task, max_iterations=MAX_TURNS + 1)
    async for event in handler.stream_events():
        if isinstance(event, AgentOutput):
            _show_turn(event, transcript)
        elif isinstance(event, ToolCallResult):
            arguments = cast("dict[str, Any]", event.tool_kwargs)  # pyright: ignore[reportUnknownMemberType]  (bare dict)
            transcript.step(_step(event.tool_name, arguments, event.tool_output.content))
    await handler


def _show_turn(event: AgentOutput, transcript: Transcript) -> None:
    note = event.response.content or ""
    if not event.tool_calls:
        transcript.turn(note)
    for call in event.tool_calls:
        transcript.turn(ToolCall(call.tool_name, call.tool_kwargs, note))
        note = ""


def _scripted(job: DemoJob) -> ScriptedModel:
    brain = Brain(job)

    def turn(messages: list[ChatMessage]) -> Turn:
        planned = brain.next_turn(_steps(messages))
        if isinstance(planned, str):
            return planned
        return [planned.note, tool_call(planned.name, planned.arguments)]

    return ScriptedModel([turn] * MAX_TURNS)


def _steps(messages: Sequence[ChatMessage]) -> list[Step]:
    """The calls so far, each with what the model read of its result."""
    calls: dict[str, ToolCallBlock] = {}
    steps: list[Step] = []
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolCallBlock):
                calls[block.tool_call_id or ""] = block
        if message.role == MessageRole.TOOL:
            call = calls[str(message.additional_kwargs["tool_call_id"])]
            arguments = call.tool_kwargs if isinstance(call.tool_kwargs, dict) else {}
            steps.append(_step(call.tool_name, arguments, message.content or ""))
    return steps


def _step(name: str, arguments: dict[str, Any], text: str) -> Step:
    return Step(name, arguments, text, is_error=text.startswith("Error ("))


def _real(model: str) -> LLM:
    name, _, model_name = model.partition(":")
    provider = _PROVIDERS.get(name)
    if provider is None or not model_name:
        raise DemoUnavailable(f"give --model as provider:name; providers for LlamaIndex: {', '.join(_PROVIDERS)}")
    try:
        module = importlib.import_module(provider.module)
    except ImportError as e:
        raise DemoUnavailable(f'{name} needs the package {provider.package}: pip install "{provider.package}"') from e
    if provider.key and not os.environ.get(provider.key):
        raise DemoUnavailable(f"{name} needs a key: set {provider.key}")
    return getattr(module, provider.class_name)(model=model_name)
