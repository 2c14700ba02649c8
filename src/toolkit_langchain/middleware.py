"""The toolkit as one piece of middleware: tools, instructions, deferred tools, window, policy and record."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain.agents.middleware.types import ModelRequest, ModelResponse, PrivateStateAttr, ToolCallRequest
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp, is_invalid_resume
from langgraph.types import Command

from toolkit_core.context import ToolContext
from toolkit_core.errors import ErrorInfo
from toolkit_core.output_window import DEFAULT_WINDOW, Window
from toolkit_core.result import ToolResult
from toolkit_langchain import _foreign
from toolkit_langchain._blocking import blocking
from toolkit_langchain._context import Session, session_id
from toolkit_langchain._judging import CallUnderJudgement, settle
from toolkit_langchain._message import message_content, presented
from toolkit_langchain._notes import CallNotes, noting
from toolkit_langchain._tool import ToolkitTool, to_langchain
from toolkit_langchain.approvals import Decider, RequestMemory, judge, turn_of
from toolkit_langchain.deferred import DeferredCatalog, core_of, is_deferred, loaded_names, union_of_names, visible
from toolkit_langchain.toolkit import as_capabilities

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime

    from toolkit_core.capability import Capability
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.tool import Tool, ToolSet

__all__ = ["ToolkitMiddleware", "ToolkitState"]

_log = logging.getLogger("toolkit_langchain")

MAX_UNREADABLE_TURNS = 3
"""A model that sends three unreadable tool calls in a row will send a fourth."""

Answer = ToolMessage | Command[Any]


def _newest(before: dict[str, str] | None, more: dict[str, str] | None) -> dict[str, str]:
    return dict(more or {})


class ToolkitState(AgentState[Any]):
    """What the middleware keeps in the agent's state; no part of the agent's input or output.

    The reducer comes last: LangGraph looks nowhere else.

    Attributes:
        toolkit_loaded_tools: Deferred tools that were looked up in this thread.
        toolkit_instructions: The capabilities' instructions, as they were when the run began.
        toolkit_judged: Call id to how the call was judged, of the newest turn.
    """

    toolkit_loaded_tools: NotRequired[Annotated[list[str], PrivateStateAttr, union_of_names]]
    toolkit_instructions: NotRequired[Annotated[str, PrivateStateAttr]]
    toolkit_judged: NotRequired[Annotated[dict[str, str], PrivateStateAttr, _newest]]


@dataclass(frozen=True)
class _Plan:
    """What to do with one call: run it under these notes, or answer in its stead."""

    request: ToolCallRequest
    notes: CallNotes
    instead: ToolMessage | None = None


class ToolkitMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent the toolkit: `create_agent(model, middleware=[ToolkitMiddleware(".")])`.

    It registers the capabilities' tools, puts their instructions into the system prompt anew each run, hides
    deferred tools until they are looked up (and keeps them loaded through summarisation), lets a policy judge
    each call, records calls, bounds what the model reads, and tells the model of tool calls that could not be
    parsed, which otherwise end the run.

    Args:
        capabilities: Capabilities, or a tool set, or the folder that the standard capabilities work in.
        policy: Judges each call. Where it asks, the run pauses with an approval request (see `approvals`); without
            a checkpointer nobody can be asked, and the call is refused.
        window: Bounds what the model reads of a result; None turns it off.
        ledger: Where calls are recorded.
        covers: "own": the toolkit's tools. "all": policy, window and record for every tool of the agent, and an
            exception in one of them becomes an error that the model reads.
        session: As for `to_langchain`.

    Raises:
        ValueError: Two tools have one name, or the folder is missing.
    """

    state_schema: type[ToolkitState] = ToolkitState

    def __init__(
        self,
        capabilities: str | os.PathLike[str] | Sequence[Capability] | ToolSet,
        *,
        policy: Decider | None = None,
        window: Window | None = DEFAULT_WINDOW,
        ledger: Ledger | None = None,
        covers: Literal["own", "all"] = "own",
        session: Session = None,
    ) -> None:
        super().__init__()
        if covers not in ("own", "all"):
            raise ValueError(f'covers is "own" or "all", not {covers!r}')
        self.capabilities: tuple[Capability, ...] = as_capabilities(capabilities)
        self._policy, self._window, self._ledger, self._all = policy, window, ledger, covers == "all"
        self._session = session
        core = [tool for capability in self.capabilities for tool in capability.tools]
        self.tools: Sequence[BaseTool] = to_langchain(
            [*core, *_needed(core, ledger)], window=window, session=session, ledger=ledger
        )
        self._facades: dict[str, Tool[Any]] = {}
        self._shown_requests = RequestMemory()

    async def aclose(self) -> None:
        """Stop what the sessions' calls left running: background processes, scratch folders."""
        for capability in self.capabilities:
            await capability.tools.aclose()

    # --- instructions ---------------------------------------------------------------------------------

    def before_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Read the instructions anew for this run."""
        return {"toolkit_instructions": blocking(self._instructions(self._session_now()))}

    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """As `before_agent`."""
        return {"toolkit_instructions": await self._instructions(self._session_now())}

    async def _instructions(self, session: str | None) -> str:
        texts: list[str] = []
        for capability in self.capabilities:
            try:
                texts.append(await capability.instructions(ToolContext(session_id=session)))
            except Exception:  # noqa: BLE001 - anybody's code; an agent without one part's text still works
                _log.exception("the instructions of the capability %s could not be read", capability.id)
        return "\n\n".join(text for text in texts if text.strip())

    def _session_now(self) -> str | None:
        return session_id(self._session, get_config())

    # --- the model's turn -----------------------------------------------------------------------------

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Show the model the resident and the loaded tools, and the instructions."""
        return handler(self._shown(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        return await handler(self._shown(request))

    def _shown(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        state = cast("Mapping[str, Any]", request.state)
        tools = visible(request.tools, state.get("toolkit_loaded_tools") or ())
        system = _with_instructions(request.system_message, state.get("toolkit_instructions") or "")
        return request.override(tools=tools, system_message=system)

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Note what the calls were judged to act on; answer calls that could not be parsed."""
        return {**blocking(self._judged(state)), **_unreadable(state)} or None

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """As `after_model`."""
        return {**await self._judged(state), **_unreadable(state)} or None

    async def _judged(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Kept in a checkpoint before anybody is asked, so that an answer in another process is held to it."""
        last = state["messages"][-1] if state["messages"] else None
        if self._policy is None or not isinstance(last, AIMessage) or not last.tool_calls:
            return {}
        own = {tool.name: tool for tool in self.tools}
        judged: dict[str, str] = {}
        for call in last.tool_calls:
            core = core_of(own.get(call["name"]))
            if core is not None and call["id"]:
                found = await judge(core, call["args"], self._policy)
                judged[call["id"]] = f"{found.action}:{found.digest}"
        return {"toolkit_judged": judged}

    # --- one tool call --------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answer]) -> Answer:
        """Judge the call, run it, and hand on what it answered."""
        plan = blocking(self._plan(request))
        if plan.instead is not None:
            return plan.instead
        started = _foreign.clock()
        try:
            with noting(plan.notes):
                answer = handler(plan.request)
        except Exception as e:  # noqa: BLE001 - sorted in _caught: all but a foreign tool's failure is raised again
            answer = self._caught(e, plan.request)
        return blocking(self._handed_on(plan.request, answer, started))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answer]]
    ) -> Answer:
        """As `wrap_tool_call`."""
        plan = await self._plan(request)
        if plan.instead is not None:
            return plan.instead
        started = _foreign.clock()
        try:
            with noting(plan.notes):
                answer = await handler(plan.request)
        except Exception as e:  # noqa: BLE001 - sorted in _caught: all but a foreign tool's failure is raised again
            answer = self._caught(e, plan.request)
        return await self._handed_on(plan.request, answer, started)

    async def _plan(self, request: ToolCallRequest) -> _Plan:
        notes = CallNotes(request.tool_call["id"] or "", ledger=self._ledger, catalog=self._catalog(request))
        core = self._covered(request)
        if core is None:
            return _Plan(request, notes)
        state = cast("Mapping[str, Any]", request.state)
        if is_deferred(request.tool) and core.name not in (state.get("toolkit_loaded_tools") or ()):
            return _Plan(request, notes, await self._instead(request, _not_loaded(core)))
        if self._policy is None:
            return _Plan(request, notes)
        settled = await settle(self._call(core, request, state), self._policy)
        if settled.instead is not None:
            return _Plan(request, notes, await self._instead(request, settled.instead))
        if settled.arguments is not request.tool_call["args"]:
            request = request.override(tool_call={**request.tool_call, "args": settled.arguments})
        return _Plan(request, replace(notes, approved_subject=settled.subject, approved=settled.approved))

    def _call(self, core: Tool[Any], request: ToolCallRequest, state: Mapping[str, Any]) -> CallUnderJudgement:
        call_id = request.tool_call["id"] or ""
        notes = cast("Mapping[str, str]", state.get("toolkit_judged") or {})
        return CallUnderJudgement(
            tool=core,
            arguments=request.tool_call["args"],
            call_id=call_id,
            config=_runtime(request).config,
            turn=turn_of(state),
            note=notes.get(call_id, ""),
            shown=self._shown_requests,
            elsewhere=request.tool.approvals if isinstance(request.tool, ToolkitTool) else None,
        )

    def _covered(self, request: ToolCallRequest) -> Tool[Any] | None:
        """The tool to judge; None for one that the middleware leaves alone, and for one that does not exist."""
        core = core_of(request.tool)
        if core is not None or request.tool is None or not self._all:
            return core
        return self._facades.setdefault(request.tool.name, _foreign.facade(request.tool))

    def _catalog(self, request: ToolCallRequest) -> DeferredCatalog:
        known = {tool.name: tool for tool in (*self.tools, *_runtime(request).tools)}
        return DeferredCatalog(list(known.values()))

    async def _instead(self, request: ToolCallRequest, result: ToolResult[Any]) -> ToolMessage:
        """The message of a call that did not run; it is recorded like one that did."""
        message = _message(request, result, self._window)
        if self._ledger is not None:
            await self._recorded(request, message, _foreign.clock())
        return message

    def _caught(self, error: Exception, request: ToolCallRequest) -> ToolMessage:
        ours = core_of(request.tool) is not None
        if ours or not self._all or isinstance(error, GraphBubbleUp) or is_invalid_resume(error):
            raise error
        return _foreign.failure_message(error, name=request.tool_call["name"], call_id=request.tool_call["id"] or "")

    async def _handed_on(self, request: ToolCallRequest, answer: Answer, started: tuple[float, float]) -> Answer:
        core = core_of(request.tool)
        if core is not None:
            names = loaded_names(answer) if core.kind == "tool_search" else []
            return Command(update={"messages": [answer], "toolkit_loaded_tools": names}) if names else answer
        if not self._all:
            return answer
        entry_id = None if self._ledger is None else await self._recorded(request, answer, started)
        return _foreign.in_window(answer, self._window, entry_id)

    async def _recorded(self, request: ToolCallRequest, answer: Answer, started: tuple[float, float]) -> str | None:
        if self._ledger is None:
            return None
        session = session_id(self._session, _runtime(request).config) or "default"
        return await _foreign.record(self._ledger, request, answer, session=session, started=started)


def _runtime(request: ToolCallRequest) -> Any:
    """LangGraph's type of it is incomplete."""
    return cast("Any", request).runtime


def _needed(tools: Sequence[Tool[Any]], ledger: Ledger | None) -> list[Tool[Any]]:
    """The tools that the others call for: a look-up for deferred ones, recall for a ledger."""
    kinds = {tool.kind for tool in tools}
    needed: list[Tool[Any]] = []
    if any(tool.deferred for tool in tools) and "tool_search" not in kinds:
        from toolkit_core.tools import tool_search_tool

        needed.append(tool_search_tool())
    if ledger is not None and "recall" not in kinds:
        from toolkit_core.tools import recall_tool

        needed.append(recall_tool(ledger))
    return needed


def _with_instructions(system: SystemMessage | None, instructions: str) -> SystemMessage | None:
    if not instructions:
        return system
    if system is None:
        return SystemMessage(instructions)
    if isinstance(system.content, str):
        return SystemMessage(f"{system.content}\n\n{instructions}")
    return SystemMessage(content=[*system.content, {"type": "text", "text": f"\n\n{instructions}"}])


def _not_loaded(tool: Tool[Any]) -> ToolResult[Any]:
    hint = "Look it up first, so that you know its parameters."
    return ToolResult.failure(ErrorInfo("unavailable", f"{tool.name} is not loaded", hint))


def _message(request: ToolCallRequest, result: ToolResult[Any], window: Window | None) -> ToolMessage:
    result, envelope = presented(result, request.tool_call["name"])
    return ToolMessage(
        message_content(result, window, recall=False),
        artifact=envelope,
        status="error" if result.is_error else "success",
        name=request.tool_call["name"],
        tool_call_id=request.tool_call["id"] or "",
    )


def _unreadable(state: Mapping[str, Any]) -> dict[str, Any]:
    """Answers to calls whose arguments could not be parsed, where they are all that the model sent.

    LangChain answers them only if the run goes on, and alone they end it.
    """
    answered = [message for message in state["messages"] if isinstance(message, AIMessage)]
    last = answered[-1] if answered else None
    if last is None or last.tool_calls or not last.invalid_tool_calls:
        return {}
    newest = answered[-MAX_UNREADABLE_TURNS - 1 :]
    if len(newest) > MAX_UNREADABLE_TURNS and all(m.invalid_tool_calls and not m.tool_calls for m in newest):
        return {}
    messages = [_unreadable_message(call) for call in last.invalid_tool_calls]
    return {"messages": messages, "jump_to": "model"} if messages else {}


def _unreadable_message(call: Mapping[str, Any]) -> ToolMessage:
    name = str(call.get("name") or "unknown")
    hint = "Send them again as one JSON object; shorter ones, if they were cut off."
    result = ToolResult[Any].failure(
        ErrorInfo("invalid_arguments", f"the arguments for {name} are no complete JSON", hint)
    )
    return ToolMessage(
        result.text, artifact=result.to_dict(), status="error", name=name, tool_call_id=str(call.get("id") or "")
    )
