"""What LlamaIndex shows a model of a tool: metadata whose schema is the core's own, and signatures for agents."""

from __future__ import annotations

import inspect
import keyword
from typing import TYPE_CHECKING, Any, SupportsIndex, cast

from llama_index.core.tools.types import ToolMetadata
from llama_index.core.workflow import Context
from pydantic import BaseModel, ConfigDict

from toolkit_llamaindex._portable import portable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit_core.tool import Tool

CONTEXT_NAMES = ("ctx", "context", "workflow_context", "run_context", "agent_context")
"""Names of the keyword that carries the workflow's Context; the first that no parameter has is taken."""

_PYTHON_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


class WholeText(str):
    """A description that stays whole.

    `llama-index-llms-google-genai` takes the first of several lines for the signature that LlamaIndex's own tools
    put there, and drops it.
    """

    __slots__ = ()

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """One piece for a single split into lines; else as every string."""
        if sep == "\n" and maxsplit == 1:
            return [str(self)]
        return super().split(sep, maxsplit)


class SchemaModel(BaseModel):
    """A model without fields whose JSON Schema is the tool's.

    It has no fields, so that no parameter name can clash with pydantic's own (`schema`, `model_config`, `copy`).
    Nothing validates with it: the core does that.
    """

    model_config = ConfigDict(extra="allow")


class ToolkitMetadata(ToolMetadata):
    """Name, description and schema exactly as the core has them, a fresh copy each time.

    The stock class drops all keys of a schema but four, and some providers change the copy they are given.
    """

    def __init__(self, tool: Tool[Any]) -> None:
        super().__init__(description=WholeText(tool.description), name=tool.name, fn_schema=schema_model(tool))
        self._tool = tool

    def get_parameters_dict(self) -> dict[str, Any]:
        """A fresh copy of the tool's JSON Schema."""
        return self._tool.parameters


def schema_model(tool: Tool[Any]) -> type[SchemaModel]:
    """The class that stands for the schema where LlamaIndex wants a pydantic model: with Google's models."""

    def model_json_schema(cls: type[BaseModel], *args: Any, **kwargs: Any) -> dict[str, Any]:
        return portable(tool.parameters)

    body = {
        "__doc__": tool.description,
        "__module__": __name__,
        "model_json_schema": classmethod(model_json_schema),
    }
    return cast("type[SchemaModel]", type(tool.name, (SchemaModel,), body))


def context_name(properties: Iterable[str]) -> str:
    """A name for the Context keyword that no parameter of the tool has, and that is not private."""
    taken = set(properties)
    free = (name for name in CONTEXT_NAMES if name not in taken)
    numbered = (f"ctx{n}" for n in range(2, len(taken) + 3))
    return next(free, None) or next(name for name in numbered if name not in taken)


def bound_signature(name: str) -> inspect.Signature:
    """Any keywords, and the Context: agents look for a parameter with the real class as its annotation."""
    return inspect.Signature(
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Context),
            inspect.Parameter("arguments", inspect.Parameter.VAR_KEYWORD, annotation=Any),
        ],
        return_annotation=str,
    )


def typed_signature(tool: Tool[Any]) -> inspect.Signature:
    """The tool's parameters by name and type, for agents that write code (CodeActAgent prints it to the model).

    A parameter whose name is no Python identifier cannot be written in a call and is left out.
    """
    schema = tool.parameters
    required = set(schema.get("required", ()))
    properties: dict[str, Any] = schema["properties"]
    named = [name for name in properties if name.isidentifier() and not keyword.iskeyword(name)]
    named.sort(key=lambda name: name not in required)
    parameters = [_parameter(name, properties[name], required=name in required) for name in named]
    return inspect.Signature(parameters, return_annotation=str)


def _parameter(name: str, schema: Any, *, required: bool) -> inspect.Parameter:
    described = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    default = inspect.Parameter.empty if required else described.get("default")
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=default,
        annotation=_PYTHON_TYPES.get(str(described.get("type")), Any),
    )
