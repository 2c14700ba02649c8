"""A scripted chat model: agents that run offline, turn by turn as the test says."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call as _lc_tool_call
from langchain_core.messages.tool import tool_call_chunk as _lc_tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field, PrivateAttr

if TYPE_CHECKING:
    from langchain_core.callbacks import CallbackManagerForLLMRun
    from langchain_core.runnables import Runnable

__all__ = ["ModelCall", "ScriptExhaustedError", "ScriptedCall", "ScriptedModel", "Turn", "tool_call"]


@dataclass(frozen=True)
class ScriptedCall:
    """One tool call of a scripted turn. Without an id the model numbers it: `call_1`, `call_2`, ..."""

    name: str
    arguments: Mapping[str, Any]
    id: str | None = None


Part = str | ScriptedCall
Turn = Part | AIMessage | BaseException | Sequence[Part] | Callable[[list[BaseMessage]], Any]
"""What a model does in one turn: say a text, call a tool, do several of these at once (a list), return a whole
message, fail with an exception, or compute any of these from the messages so far."""


def tool_call(name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> ScriptedCall:
    """A tool call for `ScriptedModel`: `tool_call("read_file", path="a.txt")`.

    Args:
        name: The tool's name.
        arguments: The arguments as one mapping, for names that are no Python keywords.
        named: The arguments by name.
    """
    return ScriptedCall(name, {**(arguments or {}), **named})


class ScriptExhaustedError(RuntimeError):
    """The model was asked for more turns than its script has."""


@dataclass(frozen=True)
class ModelCall:
    """What the model was given in one turn: the messages, the tools in OpenAI's form, and the other options."""

    messages: list[BaseMessage]
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that the model could call."""
        return [str(tool.get("function", tool).get("name", "")) for tool in self.tools]


class ScriptedModel(BaseChatModel):
    """A chat model that plays a script: sync, async and streaming, with tools bound or not.

    `ScriptedModel([tool_call("read_file", path="a.txt"), "done"])` calls a tool, then says "done". What it was
    given is in `calls`. Agents share the script's position with every binding of the same model.

    Raises:
        ScriptExhaustedError: At a turn past the end of the script.
    """

    turns: list[Any] = Field(default_factory=list[Any])
    calls: list[ModelCall] = Field(default_factory=list[ModelCall], exclude=True, repr=False)
    _position: itertools.count[int] = PrivateAttr(default_factory=itertools.count)
    _call_number: itertools.count[int] = PrivateAttr(default_factory=lambda: itertools.count(1))

    def __init__(self, turns: Sequence[Turn] = (), **options: Any) -> None:
        fields: dict[str, Any] = {**options, "turns": list(turns)}
        super().__init__(**fields)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(
        self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """The same model with tools, converted as OpenAI's models get them."""
        options = kwargs if tool_choice is None else {**kwargs, "tool_choice": tool_choice}
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **options)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for message in _pieces(self._next(messages, kwargs)):
            chunk = ChatGenerationChunk(message=message)
            if run_manager is not None:
                run_manager.on_llm_new_token(str(message.content), chunk=chunk)
            yield chunk

    def _next(self, messages: list[BaseMessage], options: Mapping[str, Any]) -> AIMessage:
        rest = {key: value for key, value in options.items() if key != "tools"}
        self.calls.append(ModelCall(list(messages), list(options.get("tools") or []), rest))
        position = next(self._position)
        if position >= len(self.turns):
            raise ScriptExhaustedError(
                f"the script has {len(self.turns)} turns, and the model was asked for turn {position + 1}: "
                "add turns, or a last one that is plain text, which ends an agent's run"
            )
        turn = self.turns[position]
        while callable(turn) and not isinstance(turn, BaseException):
            turn = turn(list(messages))
        return self._message(turn)

    def _message(self, turn: Any) -> AIMessage:
        if isinstance(turn, BaseException):
            raise turn
        if isinstance(turn, AIMessage):
            return turn
        parts: list[Any] = [turn] if isinstance(turn, str | ScriptedCall) else list(turn)
        text = "".join(part for part in parts if isinstance(part, str))
        calls = [part for part in parts if isinstance(part, ScriptedCall)]
        if len(calls) + sum(isinstance(part, str) for part in parts) != len(parts):
            raise TypeError(f"a turn is text, a tool_call(...), a list of these, a message or a function, not {turn!r}")
        return AIMessage(content=text, tool_calls=[self._lc_call(call) for call in calls])

    def _lc_call(self, call: ScriptedCall) -> Any:
        number = next(self._call_number)
        return _lc_tool_call(name=call.name, args=dict(call.arguments), id=call.id or f"call_{number}")


def _pieces(message: AIMessage) -> Iterator[AIMessageChunk]:
    """The message as a provider streams it: words, then each tool call's arguments in two halves."""
    if isinstance(message.content, str):
        for word in _words(message.content):
            yield AIMessageChunk(content=word)
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    for index, (name, text, call_id) in enumerate(calls):
        half = len(text) // 2
        first = _lc_tool_call_chunk(name=name, args=text[:half], id=call_id, index=index)
        rest = _lc_tool_call_chunk(name=None, args=text[half:], id=None, index=index)
        yield AIMessageChunk(content="", tool_call_chunks=[first])
        yield AIMessageChunk(content="", tool_call_chunks=[rest])
    yield AIMessageChunk(
        content="" if isinstance(message.content, str) else message.content,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )


def _words(text: str) -> Iterator[str]:
    start = 0
    while start < len(text):
        end = text.find(" ", start)
        end = len(text) if end < 0 else end + 1
        yield text[start:end]
        start = end
