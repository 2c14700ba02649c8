"""A function's signature as a pydantic model, and what its docstring says."""

from __future__ import annotations

import builtins
import inspect
import typing
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.fields import FieldInfo

from toolkit_core.context import ToolContext

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=())


@dataclass(frozen=True)
class Documentation:
    """What a docstring says: the text for the model, and a line for each parameter."""

    summary: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def documentation(fn: object) -> Documentation:
    """Read a docstring in Google, NumPy or reST style."""
    text = inspect.getdoc(fn) if isinstance(fn, type) or callable(fn) else None
    if not text:
        return Documentation()
    from docstring_parser import parse  # loaded when a docstring is read, not by importing the core

    parsed = parse(text)
    parts = [part for part in (parsed.short_description, parsed.long_description) if part]
    lines = {p.arg_name: " ".join((p.description or "").split()) for p in parsed.params}
    return Documentation("\n\n".join(parts), {name: line for name, line in lines.items() if line})


@dataclass(frozen=True)
class Signature:
    """How a function is called with validated arguments.

    The model's fields have generated names and the parameters' names as aliases, since pydantic gives some
    names (`schema`, `json`, `model_config`, `_x`) a meaning of its own.
    """

    model: type[BaseModel]
    fields: Mapping[str, str]
    positional_only: tuple[str, ...]
    context_names: tuple[str, ...]

    @classmethod
    def of(cls, fn: Callable[..., Any], tool: str) -> Signature:
        """Read a function's signature.

        Raises:
            ValueError: It has a parameter that no JSON object can fill, or a hint that cannot be resolved.
        """
        described = documentation(fn).parameters
        hints = _hints(fn, tool)
        fields: dict[str, str] = {}
        definitions: dict[str, Any] = {}
        positional: list[str] = []
        contexts: list[str] = []
        for parameter in inspect.signature(fn).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ValueError(
                    f"{tool} takes *{parameter.name}, which no schema can describe: name the parameters, "
                    "or use model_tool or schema_tool"
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(parameter.name)
            hint = hints.get(parameter.name, Any)
            if _is_context(hint):
                contexts.append(parameter.name)
                continue
            generated = f"p{len(fields)}"
            fields[generated] = parameter.name
            definitions[generated] = (hint, _field(parameter, described.get(parameter.name)))
        model = create_model(f"{tool}_arguments", __config__=_CONFIG, **definitions)
        return cls(model, fields, tuple(positional), tuple(contexts))

    def bind(self, parsed: BaseModel, context: ToolContext) -> tuple[list[Any], dict[str, Any]]:
        """Positional and named arguments for the function."""
        named: dict[str, Any] = {name: getattr(parsed, generated) for generated, name in self.fields.items()}
        named.update(dict.fromkeys(self.context_names, context))
        return [named.pop(name) for name in self.positional_only], named


def _field(parameter: inspect.Parameter, description: str | None) -> FieldInfo:
    default = ... if parameter.default is parameter.empty else parameter.default
    if isinstance(default, FieldInfo):
        declared = copy(default)
        declared.alias = declared.validation_alias = declared.serialization_alias = parameter.name
        return declared
    # a description of None would hide Annotated's own
    described: dict[str, Any] = {} if description is None else {"description": description}
    return typing.cast("FieldInfo", Field(default, alias=parameter.name, **described))


def _is_context(hint: Any) -> bool:
    return hint is ToolContext or ToolContext in typing.get_args(hint)


def _hints(fn: Callable[..., Any], tool: str) -> dict[str, Any]:
    """Hints with strings resolved, names of an enclosing function included where they can still be seen."""
    target = fn if inspect.isroutine(fn) or isinstance(fn, type) else type(fn).__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except (NameError, TypeError):
        pass
    scope: dict[str, Any] = {**vars(builtins), **vars(typing), "ToolContext": ToolContext}
    scope |= getattr(target, "__globals__", {})
    if inspect.isfunction(target):
        scope |= inspect.getclosurevars(target).nonlocals
    return {name: _resolve(hint, scope, tool, name) for name, hint in getattr(target, "__annotations__", {}).items()}


def _resolve(hint: Any, scope: dict[str, Any], tool: str, name: str) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, scope)  # noqa: S307 - the programmer's own annotation, as typing.get_type_hints does
    except Exception as e:
        if name == "return":
            return Any
        raise ValueError(f"the hint {hint!r} of {tool}'s parameter {name} cannot be resolved: {e}") from e
