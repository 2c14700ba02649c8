"""Core tools as LlamaIndex tools: the verified shape, and nothing of any one tool."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from llama_index.core.tools import FunctionTool, ToolOutput
from llama_index.core.workflow import Context

from toolkit_core.context import ToolContext
from toolkit_core.errors import ErrorInfo, Suspended
from toolkit_core.limits import ANSWER_TIMEOUT_SECONDS
from toolkit_core.output_window import Window
from toolkit_core.ports.ledger import SupportsShown
from toolkit_core.result import ToolResult
from toolkit_core.tool import Tool
from toolkit_llamaindex._metadata import ToolkitMetadata, bound_signature, context_name, typed_signature
from toolkit_llamaindex._output import tool_output
from toolkit_llamaindex._run import CallSite, call_site
from toolkit_llamaindex.approvals import Decider, judge
from toolkit_llamaindex.ask import EventAsk
from toolkit_llamaindex.progress import progress_to_stream

if TYPE_CHECKING:
    import inspect

    from toolkit_core.ports.catalog import Catalog

__all__ = ["Surroundings", "ToolkitTool", "convert", "to_llamaindex"]

_log = logging.getLogger("toolkit_llamaindex")
_WINDOW: Final = Window()


@dataclass(frozen=True)
class Surroundings:
    """What all tools of one conversion share.

    Attributes:
        window: Bounds what the model reads.
        policy: Judges each call before it runs.
        bind_context: Whether agents hand over the workflow's Context.
        answer_timeout_seconds: How long a question or a request waits for a person; None: for ever.
        recall: Whether the agent can look up ledger entries.
        catalog: Makes the deferred tools' catalog of one call.
    """

    window: Window | None = _WINDOW
    policy: Decider | None = None
    bind_context: bool = True
    answer_timeout_seconds: float | None = ANSWER_TIMEOUT_SECONDS
    recall: bool = False
    catalog: Callable[[CallSite], Catalog | None] | None = None


class ToolkitTool(FunctionTool):
    """A core tool as LlamaIndex sees it. Built by `to_llamaindex`.

    `ToolOutput.is_error` says whether the call failed, `raw_output` is the envelope as plain JSON (ok, data,
    error), `exception` the failure as a `ToolError`.
    """

    def __init__(self, core: Tool[Any], around: Surroundings) -> None:
        self.core = core
        """The framework-free tool."""
        self._around = around
        name = context_name(core.parameters["properties"])
        metadata = ToolkitMetadata(core)
        if around.bind_context:
            super().__init__(async_fn=_named(self._text_bound(name), core, bound_signature(name)), metadata=metadata)
        else:
            signature = typed_signature(core)
            super().__init__(
                fn=_named(self._text_blocking(signature), core, signature),
                async_fn=_named(self._text_awaited(signature), core, signature),
                metadata=metadata,
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> ToolkitTool:
        """A tool of its own over the same core tool: ports hold locks and connections, which cannot be copied."""
        copy = ToolkitTool(self.core, self._around)
        copy.metadata.return_direct = self.metadata.return_direct
        return copy

    def __call__(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        """As `call`."""
        return self.call(*args, **kwargs)

    def call(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool and wait for it; works where an event loop runs, too. A Context is not used here."""
        from toolkit_core.host.bridge import run_blocking

        _, arguments = self._taken(args, kwargs)
        try:
            return run_blocking(self._output(None, arguments))
        except asyncio.CancelledError as e:
            return self._failed(e, arguments)

    async def acall(self, /, *args: Any, **kwargs: Any) -> ToolOutput:
        """Call the tool. No failure is raised; see `ToolOutput.is_error`.

        Raises:
            asyncio.CancelledError: The call was cancelled; what it had started has stopped.
            WaitingForEvent: The tool waits for a person; the workflow replays the step with the answer.
        """
        ctx, arguments = self._taken(args, kwargs)
        try:
            return await self._output(ctx, arguments)
        except Suspended as e:
            raise e.original from None
        except asyncio.CancelledError as e:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return self._failed(e, arguments)  # nobody asked for it: raised on, it would hang the workflow

    async def _output(self, ctx: Context[Any] | None, arguments: object) -> ToolOutput:
        shown = _mapping(arguments)
        try:
            result = await self._result(ctx, arguments, shown)
        except Exception as e:  # noqa: BLE001 - a policy or a store may run anybody's code; the agent's run must go on
            _log.exception("the call of %s failed outside of the tool", self.core.name)
            result = ToolResult.failure(_internal(e))
        around = self._around
        output = tool_output(result, name=self.core.name, arguments=shown, window=around.window, recall=around.recall)
        await self._record_shown(result, output)
        return output

    async def _record_shown(self, result: ToolResult[Any], output: ToolOutput) -> None:
        """Tell the ledger what the model reads, where that is not the whole."""
        ledger = self.core.surroundings.ledger
        if result.entry_id is None or not isinstance(ledger, SupportsShown) or output.content == result.text:
            return
        try:
            await ledger.shown(result.entry_id, output.content)
        except Exception:  # noqa: BLE001 - a ledger that fails never fails the call
            _log.warning("the ledger did not take what was shown of %s", result.entry_id, exc_info=True)

    async def _result(self, ctx: Context[Any] | None, arguments: object, shown: Mapping[str, Any]) -> ToolResult[Any]:
        site = await call_site(ctx, self.core.name, shown)
        if site.execution is None:
            return await self._judged(site, arguments)
        await site.execution.begin()
        result = await self._judged(site, arguments)
        site.execution.end()
        return result

    async def _judged(self, site: CallSite, arguments: object) -> ToolResult[Any]:
        approved: str | None = None
        if self._around.policy is not None:
            verdict = await judge(self.core, arguments, self._around.policy, site, self._around.answer_timeout_seconds)
            if verdict.instead is not None:
                return verdict.instead
            arguments, approved = verdict.arguments, verdict.subject
        return await self.core.call(arguments, self._context(site, approved))

    def _context(self, site: CallSite, approved_subject: str | None) -> ToolContext:
        around, ctx = self._around, site.ctx
        ask = progress = None
        if ctx is not None and site.in_step:
            ask = EventAsk(site, self.core.name, around.answer_timeout_seconds)
            progress = progress_to_stream(ctx, tool_name=self.core.name, tool_id=site.call_id or "")
        return ToolContext(
            session_id=site.session_id,
            call_id=site.call_id,
            ask=ask,
            progress=progress,
            catalog=None if around.catalog is None else around.catalog(site),
            approved_subject=approved_subject,
        )

    def _taken(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Context[Any] | None, object]:
        """The Context, if the agent gave one, and the arguments as the model sent them."""
        arguments = dict(kwargs)
        ctx: Context[Any] | None = None
        name = self.ctx_param_name
        if name is not None and isinstance(arguments.get(name), Context):
            ctx = cast("Context[Any]", arguments.pop(name))
        if not args:
            return ctx, arguments
        names = list(self.core.parameters["properties"])
        if len(args) == 1 and not arguments and (isinstance(args[0], Mapping) or len(names) != 1):
            return ctx, cast("object", args[0])
        return ctx, {**dict(zip(names, args, strict=False)), **arguments}

    def _failed(self, error: BaseException, arguments: object) -> ToolOutput:
        shown = _mapping(arguments)
        result: ToolResult[Any] = ToolResult.failure(_internal(error))
        return tool_output(result, name=self.core.name, arguments=shown, window=self._around.window)

    def _text_bound(self, name: str) -> Callable[..., Coroutine[Any, Any, str]]:
        async def text(**arguments: Any) -> str:
            return (await self.acall(**arguments)).content

        return text

    def _text_blocking(self, signature: inspect.Signature) -> Callable[..., str]:
        def text(*args: Any, **kwargs: Any) -> str:
            return self.call(**signature.bind_partial(*args, **kwargs).arguments).content

        return text

    def _text_awaited(self, signature: inspect.Signature) -> Callable[..., Coroutine[Any, Any, str]]:
        async def text(*args: Any, **kwargs: Any) -> str:
            return (await self.acall(**signature.bind_partial(*args, **kwargs).arguments)).content

        return text


def to_llamaindex(
    tools: Iterable[Tool[Any]] | Tool[Any],
    *,
    window: Window | None = _WINDOW,
    policy: Decider | None = None,
    bind_context: bool = True,
    answer_timeout_seconds: float | None = ANSWER_TIMEOUT_SECONDS,
) -> list[FunctionTool]:
    """Core tools as LlamaIndex tools, for `FunctionAgent`, `ReActAgent`, `AgentWorkflow` and everything else.

    Args:
        tools: A `ToolSet`, any other collection of tools, or one tool.
        window: Bounds what the model reads of a result; None hands over the whole text.
        policy: Judges each call before it runs; a call that it asks about waits for an `ApprovalResponseEvent`.
        bind_context: Take the workflow's Context: session, call id, questions, progress. False for
            `CodeActAgent`, which refuses tools that take one; its code calls the tools as plain functions that
            return the text.
        answer_timeout_seconds: How long a question or a request waits for a person, who then counts as having
            said no; None waits for ever.

    Raises:
        ValueError: Two tools have one name.
        TypeError: Something in it is no toolkit tool.
    """
    around = Surroundings(
        window=window, policy=policy, bind_context=bind_context, answer_timeout_seconds=answer_timeout_seconds
    )
    return list(convert(tools, around))


def convert(tools: Iterable[Tool[Any]] | Tool[Any], around: Surroundings) -> list[ToolkitTool]:
    """The tools with surroundings of the package's own making."""
    given: Iterable[object] = [tools] if isinstance(tools, Tool) else tools
    listed = [_checked(tool) for tool in given]
    seen: set[str] = set()
    for tool in listed:
        if tool.name in seen:
            raise ValueError(f"two tools are called {tool.name!r}, and LlamaIndex would silently keep one of them")
        seen.add(tool.name)
    if any(tool.kind == "recall" for tool in listed):
        around = replace(around, recall=True)
    return [ToolkitTool(tool, around) for tool in listed]


def _checked(tool: object) -> Tool[Any]:
    if isinstance(tool, Tool):
        return cast("Tool[Any]", tool)
    hint = "it is a LlamaIndex tool already" if isinstance(tool, FunctionTool) else "make one with function_tool(...)"
    raise TypeError(f"to_llamaindex takes tools of toolkit_core, not {type(tool).__name__}: {hint}")


def _mapping(arguments: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", arguments) if isinstance(arguments, Mapping) else {"input": arguments}


def _named(fn: Callable[..., Any], core: Tool[Any], signature: inspect.Signature) -> Callable[..., Any]:
    fn.__name__ = fn.__qualname__ = core.name
    fn.__doc__ = core.description
    fn.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]  (what inspect.signature reads)
    return fn


def _internal(error: BaseException) -> ErrorInfo:
    return ErrorInfo(
        "internal",
        f"the call failed inside ({type(error).__name__})",
        "This is a fault of the program, not of the arguments; try another way.",
        cause=error,
    )
