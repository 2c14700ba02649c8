"""Scripted models: agents that run offline, turn by turn as the test says."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union, cast

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms import utils as llm_utils
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM, ToolSelection
from pydantic import Field, PrivateAttr

from toolkit_core.limits import STREAMED_PIECE_CHARS, STREAMED_PIECES

if TYPE_CHECKING:
    from llama_index.core.tools import BaseTool

__all__ = [
    "ModelCall",
    "ScriptExhaustedError",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReActModel",
    "Turn",
    "tool_call",
]


@dataclass(frozen=True)
class ScriptedCall:
    """One tool call of a scripted turn. Without an id the model numbers it: `call_1`, `call_2`, ...

    `arguments` may be text: what a model sends that writes broken JSON.
    """

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None


Turn = Union[  # noqa: UP007 - it refers to itself
    str,
    ScriptedCall,
    ChatMessage,
    BaseException,
    Sequence["str | ScriptedCall"],
    Callable[[list[ChatMessage]], "Turn"],
]
"""What a model does in one turn: say a text, call a tool, do several of these at once (a list), return a whole
message, fail with an exception, or compute any of these from the messages so far."""


def tool_call(name: str, arguments: Mapping[str, Any] | str | None = None, /, **named: Any) -> ScriptedCall:
    """A tool call for a scripted model: `tool_call("read_file", path="a.txt")`.

    Args:
        name: The tool's name.
        arguments: The arguments as one mapping, for names that are no Python keywords, or as raw text.
        named: The arguments by name.
    """
    if isinstance(arguments, str):
        return ScriptedCall(name, arguments)
    return ScriptedCall(name, {**(arguments or {}), **named})


class ScriptExhaustedError(RuntimeError):
    """The model was asked for more turns than its script has."""


@dataclass(frozen=True)
class ModelCall:
    """What the model was given in one turn: the messages, the tools in OpenAI's form, and the other options."""

    messages: list[ChatMessage]
    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def tool_names(self) -> list[str]:
        """The names of the tools that the model could call."""
        return [str(tool["function"]["name"]) for tool in self.tools]


class _Scripted(LLM):
    """Plays a script through every entry that an LLM has."""

    turns: list[Any] = Field(default_factory=list[Any])
    calls: list[ModelCall] = Field(default_factory=list[ModelCall], exclude=True, repr=False)
    _position: Iterator[int] = PrivateAttr(default_factory=itertools.count)
    _call_number: Iterator[int] = PrivateAttr(default_factory=lambda: itertools.count(1))

    @property
    def metadata(self) -> LLMMetadata:
        """A chat model's."""
        return LLMMetadata(is_chat_model=True, model_name="scripted")

    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The script's next turn."""
        return ChatResponse(message=self._next(messages, kwargs))

    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """The script's next turn in pieces of text, then its tool calls."""
        message = self._next(messages, kwargs)

        def pieces() -> Generator[ChatResponse, None, None]:
            yield from _pieces(message)

        return pieces()

    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """As `chat`."""
        return self.chat(messages, **kwargs)

    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """As `stream_chat`."""
        message = self._next(messages, kwargs)

        async def pieces() -> AsyncGenerator[ChatResponse, None]:
            for piece in _pieces(message):
                yield piece

        return pieces()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The next turn's text."""
        message = self._next([ChatMessage(role=MessageRole.USER, content=prompt)], kwargs)
        return CompletionResponse(text=message.content or "")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """As `complete`, in one piece."""
        response = self.complete(prompt, formatted, **kwargs)

        def pieces() -> Generator[CompletionResponse, None, None]:
            yield CompletionResponse(text=response.text, delta=response.text)

        return pieces()

    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """As `complete`."""
        return self.complete(prompt, formatted, **kwargs)

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        """As `stream_complete`."""
        response = self.complete(prompt, formatted, **kwargs)

        async def pieces() -> AsyncGenerator[CompletionResponse, None]:
            yield CompletionResponse(text=response.text, delta=response.text)

        return pieces()

    def _next(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> ChatMessage:
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
        if isinstance(turn, BaseException):
            raise turn
        return turn if isinstance(turn, ChatMessage) else self._message(_parts(turn))

    def _message(self, parts: list[str | ScriptedCall]) -> ChatMessage:
        raise NotImplementedError


class ScriptedModel(_Scripted, FunctionCallingLLM):
    """A function-calling model that plays a script: sync, async and streaming.

    `ScriptedModel([tool_call("read_file", path="a.txt"), "done"])` calls a tool, then says "done". What it was
    given is in `calls`.

    Raises:
        ScriptExhaustedError: At a turn past the end of the script.
    """

    def __init__(self, turns: Sequence[Turn] = (), **options: Any) -> None:
        super().__init__(turns=list(turns), **options)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex serialises it."""
        return "ScriptedModel"

    @property
    def metadata(self) -> LLMMetadata:
        """A function-calling chat model's."""
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name="scripted")

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """The tools converted as OpenAI's models get them."""
        message = ChatMessage(role=MessageRole.USER, content=user_msg) if isinstance(user_msg, str) else user_msg
        messages = [*(chat_history or []), *([message] if message is not None else [])]
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool() for tool in tools], **kwargs}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """The turn's tool calls. Arguments that are no JSON object become {}, as with the real providers."""
        blocks = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        if not blocks and error_on_no_tool_call:
            raise ValueError("the scripted turn calls no tool")
        return [
            ToolSelection(
                tool_id=block.tool_call_id or "",
                tool_name=block.tool_name,
                tool_kwargs=_object(block.tool_kwargs),
            )
            for block in blocks
        ]

    def _message(self, parts: list[str | ScriptedCall]) -> ChatMessage:
        text = "".join(part for part in parts if isinstance(part, str))
        calls = [
            ToolCallBlock(
                tool_call_id=f"call_{next(self._call_number)}" if part.id is None else part.id,
                tool_name=part.name,
                tool_kwargs=part.arguments if isinstance(part.arguments, str) else dict(part.arguments),
            )
            for part in parts
            if isinstance(part, ScriptedCall)
        ]
        blocks: list[Any] = [TextBlock(text=text)] if text or not calls else []
        return ChatMessage(role=MessageRole.ASSISTANT, blocks=[*blocks, *calls])


class ScriptedReActModel(_Scripted):
    """A model without function calling that plays a script in the form that `ReActAgent` reads.

    A call becomes `Thought:`, `Action:` and `Action Input:`, a text becomes `Answer:`; a text that starts with one
    of these words is taken as it is. One call a turn: ReAct has no more.
    """

    def __init__(self, turns: Sequence[Turn] = (), **options: Any) -> None:
        super().__init__(turns=list(turns), **options)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex serialises it."""
        return "ScriptedReActModel"

    def _message(self, parts: list[str | ScriptedCall]) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=_react(parts))


def _react(parts: list[str | ScriptedCall]) -> str:
    text = "".join(part for part in parts if isinstance(part, str))
    calls = [part for part in parts if isinstance(part, ScriptedCall)]
    if len(calls) > 1:
        raise TypeError("a ReAct turn holds one tool call")
    if calls:
        given = calls[0].arguments
        arguments = given if isinstance(given, str) else json.dumps(dict(given))
        return f"Thought: {text or 'I need a tool.'}\nAction: {calls[0].name}\nAction Input: {arguments}"
    if text.startswith(("Thought:", "Action:", "Answer:")):
        return text
    return f"Thought: I can answer without using any more tools.\nAnswer: {text}"


def _parts(turn: object) -> list[str | ScriptedCall]:
    parts: list[Any] = [turn] if isinstance(turn, str | ScriptedCall) else list(cast("Sequence[Any]", turn))
    if not all(isinstance(part, str | ScriptedCall) for part in parts):
        raise TypeError(f"a turn is text, a tool_call(...), a list of these, a message or a function, not {turn!r}")
    return parts


def _pieces(message: ChatMessage) -> Iterator[ChatResponse]:
    """The message as a provider streams it: what has come so far, and what is new; tool calls come last."""
    text = message.content or ""
    size = max(STREAMED_PIECE_CHARS, len(text) // STREAMED_PIECES)
    for start in range(0, len(text), size):
        so_far, new = text[: start + size], text[start : start + size]
        yield ChatResponse(message=ChatMessage(role=message.role, content=so_far), delta=new)
    yield ChatResponse(message=message, delta="")


def _object(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        parse = cast("Callable[[str], object]", llm_utils.parse_partial_json)  # pyright: ignore[reportUnknownMemberType]  (a bare Dict)
        try:
            arguments = parse(arguments)
        except ValueError:
            return {}
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
