"""Making tools: from a function, a pydantic model, a JSON Schema, and the built-in ones over a port."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast, overload

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from toolkit_core.errors import ToolError
from toolkit_core.schema import (
    invalid_arguments,
    problems_of_jsonschema,
    problems_of_pydantic,
    read_leniently,
    self_contained,
    unpacked,
)
from toolkit_core.signature import Signature, documentation
from toolkit_core.tool import Payload, Siblings, Tool, Work
from toolkit_core.worker_threads import begin_in_thread

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.effects import Claims, Effects
    from toolkit_core.result import ToolResult

_log = logging.getLogger("toolkit_core")

P = ParamSpec("P")
T = TypeVar("T")
ArgsT = TypeVar("ArgsT", bound=BaseModel)
DataT = TypeVar("DataT")


class Arguments(BaseModel):
    """The base of a built-in tool's arguments: strict, closed, frozen."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


def port_tool(
    arguments: type[ArgsT],
    run: Callable[[ArgsT, ToolContext], Awaitable[ToolResult[DataT]]],
    *,
    kind: str,
    describe: Callable[[Siblings], str],
    payload: type[DataT],
    effects: Effects,
    aliases: Sequence[str] = (),
    argument_aliases: Mapping[str, str] | None = None,
    rearrange: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    subject: Callable[[ArgsT], Awaitable[str]] | None = None,
    writes: Callable[[ArgsT], Awaitable[tuple[str, ...]]] | None = None,
    claims: Callable[[ArgsT], Awaitable[Claims]] | None = None,
    name: str | None = None,
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[DataT]:
    """A built-in tool: a model of its arguments and a body over its port.

    Args:
        arguments: The model that validates, and whose schema is advertised.
        run: The body; raises `ToolError` for a failure.
        kind: The canonical name; `name` renames it, a set still knows what it is.
        describe: The default description, from the set that the tool stands in.
        payload: The type of the data, checked on success.
        effects: What the tool may do.
        aliases: Other names of the tool.
        argument_aliases: Names that models use -> the parameter's name; never advertised.
        rearrange: Brings another arrangement that models use into the declared one.
        subject: The string that a rule matches.
        writes: Absolute paths that the call writes.
        claims: What the call holds.
        name: Another name.
        description: Used verbatim instead of the default.
        siblings: The kinds of the other tools to hint at; None: the set decides.
    """
    schema = self_contained(arguments.model_json_schema(), additional_properties=False)
    shown = name or kind
    text = description
    if text is None:
        text = describe({} if siblings is None else {other: other for other in siblings})
    return Tool(
        name=shown,
        description=text,
        effects=effects,
        aliases=tuple(alias for alias in (*aliases, kind) if alias != shown and (alias != kind or aliases)),
        work=Work(
            kind=kind,
            schema=schema,
            parse=_ModelParser(arguments, schema, argument_aliases or {}, rearrange),
            run=cast("Callable[[Any, ToolContext], Awaitable[object]]", run),
            payload=_declared(payload),
            describe=describe if description is None and siblings is None else None,
            subject=subject,
            writes=writes,
            claims=claims,
        ),
    )


class _ModelParser:
    """Arguments to an instance of the model, all problems reported together."""

    def __init__(
        self,
        model: type[BaseModel],
        schema: Mapping[str, Any],
        aliases: Mapping[str, str],
        rearrange: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self._model, self._schema = model, schema
        self._aliases, self._rearrange = aliases, rearrange

    def __call__(self, arguments: object, tool: str) -> BaseModel:
        if self._rearrange is not None:
            arguments = unpacked(arguments, self._schema)
            if isinstance(arguments, dict):
                arguments = self._rearrange(cast("dict[str, Any]", arguments))
        reading = read_leniently(arguments, self._schema, self._aliases)
        problems = list(reading.problems)
        if reading.value is not None:
            try:
                parsed = self._model.model_validate(reading.value)
                if not problems:
                    return parsed
            except ValidationError as e:
                known = {path for path, _ in problems}
                problems += [problem for problem in problems_of_pydantic(e) if problem[0] not in known]
        raise invalid_arguments(tool, problems, self._schema)


def _declared(declaration: Any) -> Payload:
    adapter: TypeAdapter[Any] = TypeAdapter(declaration)

    def check(data: Any) -> Any:
        try:
            return adapter.validate_python(data)
        except ValidationError as e:
            problems = "; ".join(f"{path or 'result'}: {what}" for path, what in problems_of_pydantic(e)[:10])
            raise ToolError(
                f"the tool's result does not have the shape that it declares: {problems}",
                code="invalid_result",
                hint="This is a fault of the tool, not of the arguments.",
            ) from e

    return check


@overload
def function_tool(
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | None = None,
    returns: Any = None,
    timeout_seconds: float | None = None,
    deferred: bool = False,
) -> Tool[Any]: ...
@overload
def function_tool(
    fn: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | None = None,
    returns: Any = None,
    timeout_seconds: float | None = None,
    deferred: bool = False,
) -> Callable[[Callable[..., Any]], Tool[Any]]: ...
def function_tool(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | None = None,
    returns: Any = None,
    timeout_seconds: float | None = None,
    deferred: bool = False,
) -> Tool[Any] | Callable[[Callable[..., Any]], Tool[Any]]:
    """A tool from a function: schema from its hints, texts from its docstring (Google, NumPy or reST).

    A parameter annotated `ToolContext` is handed the call's context and hidden from the model. A sync function
    runs in a worker thread; it cannot be stopped, so after a timeout or a cancellation its late result is
    dropped and logged. Works as a decorator, bare or with options.

    Args:
        fn: The function, sync or async.
        name: The tool's name; the function's by default.
        description: For the model; the docstring's by default.
        effects: What it may do; None leaves it unclassified, and policies ask.
        returns: The declared type of the result; what does not fit is `invalid_result`.
        timeout_seconds: After it the call is `timed_out`.
        deferred: Shown to a model only after it was looked up.

    Raises:
        ValueError: No description, a bad name, or a signature that a model cannot fill.

    Example:
        >>> @function_tool
        ... def add(a: int, b: int) -> int:
        ...     "Add two numbers."
        ...     return a + b
    """
    if fn is None:
        return partial(
            function_tool,
            name=name,
            description=description,
            effects=effects,
            returns=returns,
            timeout_seconds=timeout_seconds,
            deferred=deferred,
        )
    shown = _name_of(fn) if name is None else name
    signature = Signature.of(fn, shown)
    schema = self_contained(signature.model.model_json_schema(by_alias=True), additional_properties=False)
    parse = _ModelParser(signature.model, schema, {})
    body = _body(fn, shown)

    async def run(parsed: Any, context: ToolContext) -> object:
        positional, named = signature.bind(parsed, context)
        return await body(*positional, **named)

    return Tool(
        name=shown,
        description=description if description is not None else documentation(fn).summary,
        effects=effects,
        deferred=deferred,
        work=Work(
            kind=shown,
            schema=schema,
            parse=parse,
            run=run,
            payload=None if returns is None else _declared(returns),
            timeout_seconds=_limit(timeout_seconds),
        ),
    )


def model_tool(
    model: type[ArgsT],
    fn: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    effects: Effects | None = None,
    returns: Any = None,
    timeout_seconds: float | None = None,
    deferred: bool = False,
) -> Tool[Any]:
    """A tool whose arguments are a pydantic model: `fn(arguments)` or `fn(arguments, context)`.

    A model with `extra="allow"` accepts unknown root parameters; every other one refuses them.
    The options are those of `function_tool`.
    """
    shown = _name_of(fn) if name is None else name
    open_root = model.model_config.get("extra") == "allow"
    raw = {**model.model_json_schema(by_alias=True), "additionalProperties": open_root}
    schema = self_contained(raw, additional_properties=False)
    return Tool(
        name=shown,
        description=description
        if description is not None
        else documentation(fn).summary or documentation(model).summary,
        effects=effects,
        deferred=deferred,
        work=Work(
            kind=shown,
            schema=schema,
            parse=_ModelParser(model, schema, {}),
            run=_with_context(fn, shown),
            payload=None if returns is None else _declared(returns),
            timeout_seconds=_limit(timeout_seconds),
        ),
    )


def schema_tool(
    fn: Callable[..., Any],
    *,
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    effects: Effects | None = None,
    returns: Any = None,
    timeout_seconds: float | None = None,
    deferred: bool = False,
) -> Tool[Any]:
    """A tool whose arguments are a plain JSON Schema: `fn(arguments: dict)` or `fn(arguments, context)`.

    References are inlined. The arguments are validated by the package jsonschema, loaded at the first call.

    Raises:
        ValueError: The schema is recursive, refers elsewhere, or its root is not one object.
    """
    schema = self_contained(parameters)
    return Tool(
        name=name,
        description=description,
        effects=effects,
        deferred=deferred,
        work=Work(
            kind=name,
            schema=schema,
            parse=_SchemaParser(schema),
            run=_with_context(fn, name),
            payload=None if returns is None else _declared(returns),
            timeout_seconds=_limit(timeout_seconds),
        ),
    )


class _SchemaParser:
    """Arguments to a dict, checked against a JSON Schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._validator: Any = None

    def __call__(self, arguments: object, tool: str) -> dict[str, Any]:
        reading = read_leniently(arguments, self._schema, {})
        problems = list(reading.problems)
        if reading.value is not None:
            known = {path for path, _ in problems}
            found = problems_of_jsonschema(self._validate(reading.value))
            problems += [problem for problem in found if problem[0] not in known]
        if problems:
            raise invalid_arguments(tool, problems, self._schema)
        return cast("dict[str, Any]", reading.value)

    def _validate(self, value: Any) -> list[Any]:
        if self._validator is None:
            self._validator = _jsonschema_validator(self._schema)
        try:
            return list(self._validator.iter_errors(value))
        except RecursionError as e:
            raise ToolError("the arguments are nested too deeply to be checked", code="invalid_arguments") from e


def _jsonschema_validator(schema: Mapping[str, Any]) -> Any:
    try:
        import jsonschema
    except ImportError as e:
        raise ToolError(
            "this tool's arguments cannot be checked: the package jsonschema is missing",
            code="unavailable",
            hint="Install it: pip install jsonschema",
        ) from e
    return jsonschema.Draft202012Validator(dict(schema))


def _with_context(fn: Callable[..., Any], name: str) -> Callable[[Any, ToolContext], Awaitable[object]]:
    """`fn(arguments)` or `fn(arguments, context)`, whichever it takes."""
    body = _body(fn, name)
    takes_context = len(inspect.signature(fn).parameters) > 1

    async def run(parsed: Any, context: ToolContext) -> object:
        return await (body(parsed, context) if takes_context else body(parsed))

    return run


def _body(fn: Callable[..., Any], name: str) -> Callable[..., Awaitable[object]]:
    """The function as a coroutine function; a sync one goes to a worker thread."""
    if inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None)):  # noqa: B004 - the coroutine function itself is wanted
        return fn

    async def run(*positional: Any, **named: Any) -> object:
        value = await _in_thread(partial(fn, *positional, **named), name)
        return await value if inspect.isawaitable(value) else value

    return run


async def _in_thread(work: Callable[[], object], name: str) -> object:
    """Run in a worker thread; the outcome travels as a value.

    An asyncio future cannot carry StopIteration (it would never be resolved), and a thread whose call is gone
    has nobody to tell.
    """
    abandoned: list[bool] = []

    def carry() -> tuple[object, BaseException | None]:
        try:
            outcome: tuple[object, BaseException | None] = (work(), None)
        except BaseException as e:  # noqa: BLE001 - raised again by the awaiting side below
            outcome = (None, e)
        if abandoned:
            _log.warning("the tool %s ended after its call had ended; its result is dropped", name)
        return outcome

    try:
        value, error = await begin_in_thread(carry)
    except asyncio.CancelledError:
        abandoned.append(True)
        raise
    if isinstance(error, StopIteration):
        raise RuntimeError("the function raised StopIteration") from error
    if error is not None:
        raise error
    return value


def _name_of(fn: Callable[..., Any]) -> str:
    return getattr(fn, "__name__", type(fn).__name__)


def _limit(timeout_seconds: float | None) -> float | None:
    if timeout_seconds is not None and not 0 < timeout_seconds < float("inf"):
        raise ValueError(f"timeout_seconds must be a positive number of seconds, not {timeout_seconds!r}")
    return timeout_seconds
