"""Core tools as LangChain tools: the verified shape, and nothing of any one tool."""

from __future__ import annotations

import contextvars
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_type_hints

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig  # LangChain finds the parameter by this annotation
from langchain_core.tools import BaseTool
from pydantic import Field, PrivateAttr
from typing_extensions import override

from toolkit_core.errors import Suspended
from toolkit_core.limits import SHOWN_ARGUMENT_DEPTH, SHOWN_INTEGER_BITS
from toolkit_core.output_window import DEFAULT_WINDOW, Window
from toolkit_core.tool import Tool
from toolkit_langchain._context import Session, Surroundings, in_graph, tool_context
from toolkit_langchain._message import control_flow, message_content, note_shown, presented
from toolkit_langchain._notes import notes_for

if TYPE_CHECKING:
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.result import ToolResult
    from toolkit_langchain.approvals import ApprovalGate, RequestMemory

__all__ = ["ToolkitTool", "to_langchain"]

_NO_CONFIG: Final = RunnableConfig()


@dataclass(frozen=True)
class _Call:
    """One call under way: LangChain gives its id and its exact arguments to `run`, never to `_run`."""

    tool: BaseTool
    arguments: object
    id: str | None


_under_way: contextvars.ContextVar[_Call | None] = contextvars.ContextVar("toolkit_call", default=None)


class ToolkitTool(BaseTool):
    """A core tool as LangChain sees it. Built by `to_langchain`.

    An error of the tool is a `ToolMessage` with `status="error"`; `artifact` holds the envelope as plain JSON
    (`toolkit_core.ToolResult.from_dict` reads it), on success and failure alike. `metadata["effects"]` says what
    the tool may do, `metadata["risk"]` sums it up.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    core: Any = Field(exclude=True, repr=False)
    around: Any = Field(exclude=True, repr=False)
    _gate: ApprovalGate | None = PrivateAttr(default=None)

    @property
    def args(self) -> dict[str, Any]:
        """A copy of the arguments' schemas, by name."""
        return deepcopy(self._schema()["properties"])

    @property
    @override
    def tool_call_schema(self) -> dict[str, Any]:
        """A copy of the schema that models are given."""
        return {**deepcopy(self._schema()), "description": self.description}

    @override
    def get_input_jsonschema(self, config: RunnableConfig | None = None, **kwargs: Any) -> dict[str, Any]:
        """A copy of the schema: LangChain's own answer for a tool like this is a union that says nothing."""
        return deepcopy(self._schema())

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """Call the tool: with arguments, or with a `ToolCall` for a `ToolMessage`."""
        return super().invoke(_readable(_identified(input, config), self.name), config, **kwargs)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        """As `invoke`."""
        return await super().ainvoke(_readable(_identified(input, config), self.name), config, **kwargs)

    @override
    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        """LangChain's entry; keeps the call's id and exact arguments for `_run`."""
        with _calling(_Call(self, tool_input, kwargs.get("tool_call_id"))):
            return super().run(_shown(tool_input), *args, **kwargs)

    @override
    async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        """As `run`."""
        with _calling(_Call(self, tool_input, kwargs.get("tool_call_id"))):
            return await super().arun(_shown(tool_input), *args, **kwargs)

    @override
    def _run(self, /, *, lc_config_: RunnableConfig = _NO_CONFIG, **tool_args: Any) -> tuple[Any, Any]:
        from toolkit_core.host.bridge import run_blocking

        call = self._taken(tool_args)
        return run_blocking(self._answer(call, lc_config_))

    @override
    async def _arun(self, /, *, lc_config_: RunnableConfig = _NO_CONFIG, **tool_args: Any) -> tuple[Any, Any]:
        return await self._answer(self._taken(tool_args), lc_config_)

    def _taken(self, tool_args: dict[str, Any]) -> _Call:
        call = _under_way.get()
        _under_way.set(None)  # a tool that this one calls directly must not take it for its own
        return call if call is not None and call.tool is self else _Call(self, tool_args, None)

    @property
    def gate(self) -> ApprovalGate | None:
        """What holds its calls to a policy; None before `interrupt_on`."""
        return self._gate

    def bind_gate(self, gate: ApprovalGate) -> None:
        """Hold every later call to what a person approved and the policy allows."""
        self._gate = gate

    @property
    def approvals(self) -> RequestMemory | None:
        """What LangChain's own middleware put before a person of this tool's calls."""
        return None if self._gate is None else self._gate.memory

    async def _answer(self, call: _Call, config: RunnableConfig) -> tuple[Any, dict[str, Any]]:
        core, around = cast("Tool[Any]", self.core), cast("Surroundings", self.around)
        refusal, subject = await self._held(call, config)
        if refusal is not None:
            return self._output(*presented(refusal, self.name), around, call.id)
        try:
            context = tool_context(core, around, config, call_id=call.id, approved_subject=subject)
            result = await core.call(call.arguments, context)
        except Suspended as e:
            raise e.original from None
        if (pause := control_flow(result)) is not None:
            raise pause
        result, envelope = presented(result, self.name)
        await note_shown(result, around.window, context.ledger or core.surroundings.ledger, recall=around.recall)
        return self._output(result, envelope, around, call.id)

    async def _held(self, call: _Call, config: RunnableConfig) -> tuple[ToolResult[Any] | None, str | None]:
        if self._gate is None or call.id is None:
            return None, None
        thread = str(config.get("configurable", {}).get("thread_id", ""))
        approved = notes_for(call.id).approved
        return await self._gate.check(self.core, call.arguments, thread=thread, call_id=call.id, approved=approved)

    def _output(
        self, result: ToolResult[Any], envelope: dict[str, Any], around: Surroundings, call_id: str | None
    ) -> tuple[Any, dict[str, Any]]:
        content = message_content(result, around.window, recall=around.recall)
        if call_id is None:
            return content, envelope
        status: Literal["success", "error"] = "error" if result.is_error else "success"
        message = ToolMessage(content, artifact=envelope, status=status, tool_call_id=call_id, name=self.name)
        return message, envelope

    def _schema(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.args_schema)


for _entry in (ToolkitTool._run, ToolkitTool._arun):  # pyright: ignore[reportPrivateUsage]
    # LangChain reads their types at each call, and would compile annotations that are strings each time.
    _entry.__annotations__ = get_type_hints(_entry)


def to_langchain(
    tools: Iterable[Tool[Any]] | Tool[Any],
    *,
    window: Window | None = DEFAULT_WINDOW,
    session: Session = None,
    ledger: Ledger | None = None,
) -> list[BaseTool]:
    """Core tools as LangChain tools, for `create_agent`, `ToolNode`, `bind_tools` and everything else.

    Args:
        tools: A `ToolSet`, any other collection of tools, or one tool.
        window: Bounds what the model reads of a result; None hands over the whole text.
        session: Whose calls these are: an id, or a function of the run's config. By default the run's
            `thread_id`; without one all calls of the set are one session.
        ledger: Where calls are recorded.

    Raises:
        ValueError: Two tools have one name.
        TypeError: Something in it is no toolkit tool.
    """
    listed = [_checked(tool) for tool in ([tools] if isinstance(tools, Tool) else tools)]
    _refuse_duplicates(listed)
    recall = any(tool.kind == "recall" for tool in listed)
    around = Surroundings(window=window, session=session, ledger=ledger, recall=recall)
    return [_converted(tool, around) for tool in listed]


def _converted(tool: Tool[Any], around: Surroundings) -> BaseTool:
    effects = tool.effects
    return ToolkitTool(
        name=tool.name,
        description=tool.description,
        args_schema={"type": "object", "properties": {}, **tool.parameters},
        metadata={
            "effects": None if effects is None else asdict(effects),
            "risk": None if effects is None else effects.risk,
            "deferred": tool.deferred,
        },
        core=tool,
        around=around,
    )


def _checked(tool: object) -> Tool[Any]:
    if isinstance(tool, Tool):
        return cast("Tool[Any]", tool)
    hint = "it is a LangChain tool already" if isinstance(tool, BaseTool) else "make one with function_tool(...)"
    raise TypeError(f"to_langchain takes tools of toolkit_core, not {type(tool).__name__}: {hint}")


def _refuse_duplicates(tools: list[Tool[Any]]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise ValueError(f"two tools are called {tool.name!r}, and LangChain would silently keep one of them")
        seen.add(tool.name)


@contextmanager
def _calling(call: _Call) -> Generator[None]:
    token = _under_way.set(call)
    try:
        yield
    finally:
        _under_way.reset(token)


def _readable(given: object, name: str) -> Any:
    """What LangChain can take apart: it copies a call's `args` as a mapping, and needs a call to have an id.

    A mapping of arguments that happens to hold `type: "tool_call"` is made a call that carries it.
    """
    if not isinstance(given, Mapping):
        return given
    mapping = cast("Mapping[str, Any]", given)
    if mapping.get("type") != "tool_call":
        return mapping
    if "args" not in mapping or "id" not in mapping:
        return {"type": "tool_call", "name": name, "args": dict(mapping), "id": None}
    return mapping if isinstance(mapping["args"], Mapping) else {**mapping, "args": _Raw(mapping["args"])}


def _identified(given: object, config: RunnableConfig | None) -> Any:
    """A tool call without an id gets an empty one inside a graph: ToolNode takes nothing but a message for it."""
    if not isinstance(given, Mapping):
        return given
    call = cast("Mapping[str, Any]", given)
    nameless = call.get("type") == "tool_call" and "args" in call and call.get("id", "") is None
    return {**call, "id": ""} if nameless and in_graph(config) else call


class _Raw:
    """Arguments that are no mapping, carried through LangChain's `.copy()` to the core, which refuses them in words."""

    def __init__(self, value: object) -> None:
        self.value = value

    def copy(self) -> object:
        return self.value


def _shown(arguments: object) -> dict[str, Any]:
    """What callbacks and traces are shown: the arguments, or a note where showing them would raise."""
    if not isinstance(arguments, Mapping):
        return {"input": _short(arguments)}
    mapping = cast("Mapping[Any, Any]", arguments)
    if not all(isinstance(key, str) for key in mapping) or not _showable(mapping):
        return {"input": "(arguments that cannot be shown: too deep, too large a number, or no string for a name)"}
    return dict(mapping)


def _short(value: object) -> str:
    return value if isinstance(value, str) else f"({type(value).__name__})"


def _showable(value: object) -> bool:
    """Whether `str(value)` is sure to work: neither too deep nor with an integer past the conversion limit."""
    level: list[object] = [value]
    for _ in range(SHOWN_ARGUMENT_DEPTH):
        if not level:
            return True
        below: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                below.extend(cast("Mapping[Any, object]", item).values())
            elif isinstance(item, list | tuple):
                below.extend(cast("list[object]", item))
            elif isinstance(item, int) and item.bit_length() > SHOWN_INTEGER_BITS:
                return False
        level = below
    return False
