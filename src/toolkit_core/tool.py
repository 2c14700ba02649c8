"""A tool, the one call that never raises for a failure, and sets of tools."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, Self, cast, overload

from toolkit_core.cleanup import run_within
from toolkit_core.context import NO_CONTEXT, ProgressThrottle, ToolContext
from toolkit_core.display import inert, set_bundle, tool_bundle
from toolkit_core.effects import Claims, Effects
from toolkit_core.errors import ErrorInfo, Suspended, ToolError
from toolkit_core.limits import CHECKED_TEXT_CHARS, DESCRIPTION_MAX_CHARS, NAME_PATTERN
from toolkit_core.recording import recorded
from toolkit_core.result import DataT, TextBlock, ToolResult
from toolkit_core.schema import encodable, plain_json
from toolkit_core.telemetry import call_span, is_traced

_log = logging.getLogger("toolkit_core")

Siblings = Mapping[str, str]
"""The set a tool stands in: kind of each built-in tool -> the name it has there."""

Judge = Callable[[Any], Awaitable[Any]]


class Payload(Protocol):
    """Checks a declared payload; returns it or raises `ToolError` with code invalid_result."""

    def __call__(self, data: Any, /) -> Any: ...  # noqa: D102 - the class says it


@dataclass(frozen=True)
class Work:
    """What stands behind a tool; built by a factory, never by hand.

    Attributes:
        kind: The canonical name: a renamed grep is a grep still.
        schema: The self-contained JSON Schema.
        parse: Arguments, and the tool's name for messages, to what `run` takes; raises invalid_arguments.
        run: The body. Its result becomes the envelope.
        payload: The check of a declared payload, None where nothing is declared.
        describe: The default description in a set; None where it was given verbatim.
        subject: The string a rule matches; None where the tool names none.
        writes: Absolute paths that the call writes; None: none are known.
        claims: What the call holds; None: derived from the effects.
        timeout_seconds: The body's own limit; None where the body keeps its time itself.
    """

    kind: str
    schema: Mapping[str, Any]
    parse: Callable[[object, str], Any]
    run: Callable[[Any, ToolContext], Awaitable[object]]
    payload: Payload | None = None
    describe: Callable[[Siblings], str] | None = None
    subject: Judge | None = None
    writes: Judge | None = None
    claims: Judge | None = None
    timeout_seconds: float | None = None


class _Unconverted:
    """Frameworks take any callable for a tool and read its signature; this one must be converted first.

    A TypeError, since LangChain looks with `hasattr`, which would hide an AttributeError with its sentence.
    """

    def __get__(self, tool: Tool[Any] | None, owner: type) -> Any:
        if tool is None:
            raise AttributeError("__signature__")  # the class keeps its own
        raise TypeError(
            f"the tool {tool.name!r} is framework-free: convert it with toolkit_langchain.to_langchain(tools) "
            "or toolkit_llamaindex.to_llamaindex(tools)"
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Tool(Generic[DataT]):
    """One tool: what a model is told of it, and `call`.

    Attributes:
        name: Matches `[a-zA-Z0-9_-]{1,64}`.
        description: 1 to 1024 characters for the model.
        effects: What it may do; None is unclassified.
        aliases: Other names under which rules and sets know it.
        deferred: Not shown to a model before it was looked up.
        surroundings: What a call's context falls back to: the set's identity, ledger, ask port, catalog.
    """

    name: str
    description: str
    effects: Effects | None
    work: Work = field(repr=False)
    aliases: tuple[str, ...] = ()
    deferred: bool = False
    surroundings: ToolContext = field(default=NO_CONTEXT, repr=False)

    def __post_init__(self) -> None:
        for name in (self.name, *self.aliases):
            if not re.fullmatch(NAME_PATTERN, name):
                raise ValueError(f"{name!r} is no tool name: it must match {NAME_PATTERN}")
        if not 1 <= len(self.description) <= DESCRIPTION_MAX_CHARS:
            raise ValueError(
                f"the description of {self.name} has {len(self.description)} characters; "
                f"give description= with 1 to {DESCRIPTION_MAX_CHARS}"
            )

    @property
    def parameters(self) -> dict[str, Any]:
        """A fresh copy of the self-contained JSON Schema of the arguments."""
        return _copy_json(self.work.schema)

    @property
    def kind(self) -> str:
        """The canonical name of a built-in, whatever it was renamed to."""
        return self.work.kind

    @property
    def has_subject(self) -> bool:
        """Whether a rule with a pattern can be evaluated for it."""
        return self.work.subject is not None

    @property
    def __name__(self) -> str:
        """The tool's name: frameworks ask a callable for it before they ask for its signature."""
        return self.name

    __signature__: ClassVar[Any] = _Unconverted()

    async def __call__(self, /, **arguments: Any) -> ToolResult[DataT]:
        """`await tool(path="a.txt")`: the same as `call` for a person."""
        return await self.call(arguments)

    async def call(self, arguments: object, context: ToolContext = NO_CONTEXT) -> ToolResult[DataT]:
        """Run the tool; every failure is an envelope.

        Args:
            arguments: The object that the model sent (a JSON text of one is read too).
            context: What surrounds the call.

        Raises:
            asyncio.CancelledError: The call was cancelled; what it had started has stopped.
            Suspended: A port unwound the call, and the framework will replay it.
            KeyboardInterrupt: As ever.
        """
        if self.surroundings is not NO_CONTEXT:
            context = context.within(self.surroundings)
        if not is_traced():
            return await self._observed(arguments, context)
        with call_span(self.name, self.effects, arguments, context) as span:
            result = await self._observed(arguments, span.context)
            span.ended(result)
            return result

    async def _observed(self, arguments: object, context: ToolContext) -> ToolResult[DataT]:
        """The call with its progress throttled and, where there is a ledger, recorded."""
        throttle = ProgressThrottle(context.progress) if context.progress is not None else None
        if throttle is not None:
            context = replace(context, progress=throttle)
        try:
            if context.ledger is None:
                return await self._enveloped(arguments, context)
            return await recorded(
                partial(self._enveloped, arguments),
                tool=self.name,
                effects=self.effects,
                arguments=arguments,
                context=context,
                ledger=context.ledger,
            )
        finally:
            if throttle is not None:
                throttle.flush()

    async def _enveloped(self, arguments: object, context: ToolContext) -> ToolResult[DataT]:
        task = _current_task()
        before = task.cancelling() if task is not None else 0
        try:
            result = await _in_utf8(self._envelope(await self._run(arguments, context)))
        except ToolError as e:
            result = self._failed(e)
        except BaseException as e:
            if _must_pass(e, task):
                raise
            if (interrupt := _interrupt_in(e)) is not None:
                raise interrupt from None
            _log.exception("the tool %s failed inside", self.name)
            result = ToolResult.failure(_no_thread(e) if _wants_thread(e) else _internal(e))
        if task is not None and task.cancelling() > before:
            raise asyncio.CancelledError  # the body swallowed a requested cancellation
        return result

    async def _run(self, arguments: object, context: ToolContext) -> object:
        work = self.work
        parsed = work.parse(arguments, self.name)
        if context.approved_subject is not None:
            await self._check_approved(parsed, context.approved_subject)
        if work.timeout_seconds is None:
            return await work.run(parsed, context)
        seconds = work.timeout_seconds
        try:
            outcome = await run_within(_guarded(work.run(parsed, context)), seconds)
        except TimeoutError as e:
            raise ToolError(
                f"{self.name} did not finish within {seconds:g} s",
                code="timed_out",
                hint="Ask for less in one call.",
                retryable=True,
            ) from e
        if isinstance(outcome, TimeoutError):
            raise outcome
        return outcome

    async def _check_approved(self, parsed: Any, approved: str) -> None:
        now = await self.work.subject(parsed) if self.work.subject is not None else ""
        if now != approved:
            raise ToolError(
                f"{approved!r} was approved, and the call would now act on {now!r}",
                code="denied",
                hint="Something changed since the approval; make the call again so that it is judged anew.",
            )

    def _envelope(self, value: object) -> ToolResult[Any]:
        if not isinstance(value, ToolResult):
            return _domain_result(value, self.work.payload)
        result = cast("ToolResult[Any]", value)
        if self.work.payload is not None and result.error is None:
            result = replace(result, data=self.work.payload(result.data))
        return result

    def _failed(self, error: ToolError) -> ToolResult[Any]:
        info = error.info
        info = replace(info, message=encodable(info.message), hint=encodable(info.hint))
        return ToolResult.failure(info, detail=encodable(error.detail), data=error.data)

    async def subject(self, arguments: object) -> str:
        """The string that a rule matches, "" where the tool names none. Raises `ToolError` for bad arguments."""
        parsed = self.work.parse(arguments, self.name)
        return await self.work.subject(parsed) if self.work.subject is not None else ""

    async def writes(self, arguments: object) -> tuple[str, ...]:
        """The absolute paths that the call would write. Raises `ToolError` for bad arguments."""
        parsed = self.work.parse(arguments, self.name)
        return await self.work.writes(parsed) if self.work.writes is not None else ()

    async def claims(self, arguments: object) -> Claims:
        """What the call holds while it runs; see `conflicts`. Raises `ToolError` for bad arguments."""
        parsed = self.work.parse(arguments, self.name)
        if self.work.claims is not None:
            return await self.work.claims(parsed)
        if self.work.writes is not None:
            return Claims(paths=await self.work.writes(parsed))
        read_only = self.effects is not None and self.effects.risk == "inspect"
        return Claims(read_only=read_only, exclusive=not read_only)

    def in_set(self, siblings: Siblings, surroundings: ToolContext) -> Self:
        """The same tool as a set holds it: its description hints at the tools that are there."""
        describe = self.work.describe
        description = self.description if describe is None else describe(siblings)
        return replace(self, surroundings=surroundings, description=description)

    @property
    def _shown(self) -> dict[str, Any]:
        risk = self.effects.risk if self.effects is not None else None
        return {"name": self.name, "description": self.description, "parameters": self.parameters, "risk": risk}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return tool_bundle(self._shown)

    def __repr__(self) -> str:
        return f"<Tool {self.name}: {inert(self.description.partition(chr(10))[0][:80])}>"


class ToolSet(Sequence["Tool[Any]"]):
    """Tools that are used together: by position, by name or by alias.

    Each tool's description is made for the set it stands in. `aclose()`, or leaving `async with`, stops what
    sessions left running.

    Raises:
        ValueError: Two tools have one name, or all are deferred.
    """

    _numbers = itertools.count(1)

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        *,
        closers: Iterable[Callable[[], Awaitable[None]]] = (),
        surroundings: ToolContext = NO_CONTEXT,
    ) -> None:
        listed = tuple(tools)
        seen: set[str] = set()
        for tool in listed:
            if tool.name in seen:
                raise ValueError(f"two tools are called {tool.name!r}: rename one (name= or .prefixed())")
            seen.add(tool.name)
        if listed and all(tool.deferred for tool in listed):
            raise ValueError(
                "every tool of the set is deferred, so that none could ever be looked up: keep one resident"
            )
        if surroundings.session_id is None:
            surroundings = replace(surroundings, session_id=f"set-{next(self._numbers)}")
        self._surroundings = surroundings
        siblings = {tool.kind: tool.name for tool in listed}
        self._tools = tuple(tool.in_set(siblings, surroundings) for tool in listed)
        self._closers = tuple(dict.fromkeys(closers))

    @overload
    def __getitem__(self, key: int | str) -> Tool[Any]: ...
    @overload
    def __getitem__(self, key: slice) -> ToolSet: ...
    def __getitem__(self, key: int | str | slice) -> Tool[Any] | ToolSet:
        """By position, name or alias; a slice is a set."""
        if isinstance(key, slice):
            return self._derived(self._tools[key])
        if isinstance(key, int):
            return self._tools[key]
        for tool in self._tools:
            if tool.name == key:
                return tool
        for tool in self._tools:
            if key in tool.aliases:
                return tool
        raise KeyError(f"no tool {key!r} in the set; it holds {', '.join(self.names)}")

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool[Any]]:
        return iter(self._tools)

    def __contains__(self, value: object) -> bool:
        """Whether the tool, or one of that name or alias, is in the set."""
        return any(value is t or value == t.name or value in t.aliases for t in self._tools)

    def __add__(self, other: Iterable[Tool[Any]]) -> ToolSet:
        if not isinstance(other, ToolSet):
            return ToolSet([*self._tools, *other], closers=self._closers, surroundings=self._surroundings)
        together = replace(self._surroundings, session_id=None).within(replace(other._surroundings, session_id=None))
        return ToolSet([*self._tools, *other], closers=(*self._closers, *other._closers), surroundings=together)

    @property
    def identity(self) -> str:
        """The session that a call belongs to whose context names none."""
        return self._surroundings.session

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(tool.name for tool in self._tools)

    def only(self, *names: str) -> ToolSet:
        """The named tools, in the set's order. Raises KeyError for a name that is not there."""
        kept = {self[name].name for name in names}
        return self._derived(tool for tool in self._tools if tool.name in kept)

    def without(self, *names: str) -> ToolSet:
        """All but the named tools. Raises KeyError for a name that is not there."""
        gone = {self[name].name for name in names}
        return self._derived(tool for tool in self._tools if tool.name not in gone)

    def prefixed(self, prefix: str) -> ToolSet:
        """Every name with a prefix, so that two sets can stand together."""
        return self._derived(
            replace(tool, name=prefix + tool.name, aliases=tuple(prefix + alias for alias in tool.aliases))
            for tool in self._tools
        )

    def _derived(self, tools: Iterable[Tool[Any]]) -> ToolSet:
        return ToolSet(tools, closers=self._closers, surroundings=self._surroundings)

    async def aclose(self) -> None:
        """Stop what sessions left: processes, scratch folders, workers. May be called twice."""
        for closer in self._closers:
            try:
                await closer()
            except Exception:  # noqa: BLE001 - one closer must not keep the others from closing
                _log.exception("closing a part of the tool set failed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return set_bundle([tool._shown for tool in self._tools])  # pyright: ignore[reportPrivateUsage]  (same module)

    def __repr__(self) -> str:
        return f"<ToolSet {', '.join(self.names)}>"


async def _in_utf8(result: ToolResult[DataT]) -> ToolResult[DataT]:
    """The result, each text of which has a UTF-8 form."""
    texts = [block.text for block in result.content if isinstance(block, TextBlock)]
    if all([await _has_utf8(text) for text in texts]):
        return result
    blocks = tuple(TextBlock(encodable(b.text)) if isinstance(b, TextBlock) else b for b in result.content)
    return replace(result, content=blocks)


async def _has_utf8(text: str) -> bool:
    """Looked at in steps: encoding megabytes at once would stop the event loop."""
    if text.isascii():
        return True
    for at in range(0, len(text), CHECKED_TEXT_CHARS):
        part = text[at : at + CHECKED_TEXT_CHARS]
        if encodable(part) is not part:
            return False
        if at + CHECKED_TEXT_CHARS < len(text):
            await asyncio.sleep(0)
    return True


def _domain_result(value: object, payload: Payload | None) -> ToolResult[Any]:
    """What a custom function returned: data whatever its shape, and the text that shows it."""
    if isinstance(value, Iterator):  # showing it would use it up
        value = list(cast("Iterator[object]", value))
    data = value if payload is None else payload(value)
    if isinstance(data, str):
        return ToolResult.ok(data, data)
    if data is None:
        return ToolResult.ok("(returned nothing)")
    try:
        return ToolResult.ok(_json_text(plain_json(data)), data)
    except TypeError as e:
        raise ToolError(
            f"the tool returned something that has no JSON form: {e}",
            code="invalid_result",
            hint="This is a fault of the tool, not of the arguments; another call will fare the same.",
        ) from e


def _json_text(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False)


def _wants_thread(e: BaseException) -> bool:
    """Whether the system refused a further thread, for which Python has no class of error (threading.Thread.start)."""
    return isinstance(e, RuntimeError) and str(e) == "can't start new thread"


def _no_thread(e: BaseException) -> ErrorInfo:
    message = "The system has no further thread for this process; nothing was begun."
    return ErrorInfo("io_error", message, "Make fewer calls at once, or try again later.", retryable=True, cause=e)


def _internal(e: BaseException) -> ErrorInfo:
    return ErrorInfo(
        "internal",
        f"the tool failed inside ({type(e).__name__})",
        "This is a fault of the tool, not of the arguments; try another way.",
        cause=e,
    )


def _interrupt_in(e: BaseException) -> BaseException | None:
    """What must pass, out of the groups that a task group wraps it in: adapters and frameworks know it bare."""
    if isinstance(e, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", e).exceptions
        return next((found for part in parts if (found := _interrupt_in(part)) is not None), None)
    return e if isinstance(e, KeyboardInterrupt | Suspended) else None


def _must_pass(e: BaseException, task: asyncio.Task[Any] | None) -> bool:
    """A requested cancellation, and the end of a coroutine that is closed from outside."""
    if isinstance(e, asyncio.CancelledError):
        return task is not None and task.cancelling() > 0
    return isinstance(e, GeneratorExit) and _current_task() is not task


def _current_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs: the coroutine is being closed
        return None


async def _guarded(work: Awaitable[object]) -> object:
    """A body's own TimeoutError as a value, so that it is told apart from the tool's time running out."""
    try:
        return await work
    except TimeoutError as e:
        return e


def _copy_json(value: Any) -> Any:
    """Several times faster than deepcopy, for what is plain JSON."""
    if isinstance(value, Mapping):
        return {k: _copy_json(v) for k, v in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_copy_json(v) for v in cast("list[Any]", value)]
    return value
