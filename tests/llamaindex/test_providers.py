"""Schemas as providers' own converters take them; no network."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import require
from toolkit_core import Tool, function_tool, schema_tool
from toolkit_llamaindex import default_tools, to_llamaindex

from .agents import echo

ODD = {
    "type": "object",
    "additionalProperties": {"type": "string"},
    "patternProperties": {"^x": {"type": "string"}},
    "properties": {
        "a": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 2, "examples": [2]},
        "b": {"type": "integer", "enum": [1, 2]},
        "c": {"oneOf": [{"type": "string", "const": "x"}, {"type": "integer", "exclusiveMaximum": 3}]},
        "d": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "object", "properties": {"pattern": {"type": "string"}}},
        },
        "e": True,
        "f": {"type": "string", "enum": ["x", "y"], "pattern": "^x", "default": "x"},
        "exclusiveMinimum": {"type": "string", "description": "A name, no keyword."},
    },
    "required": ["a"],
}


def every_tool(folder: Path) -> list[Any]:
    odd: Tool[Any] = schema_tool(echo, name="odd", description="Odd.\nSecond line.", parameters=ODD)
    none = function_tool(lambda: "x", name="none", description="Takes nothing.")
    return [*default_tools(str(folder), ask=True, processes=True), *to_llamaindex([odd, none])]


def test_googles_schema_type_takes_every_tool(tmp_path: Path) -> None:
    try:
        transformers: Any = importlib.import_module("google.genai._transformers")
        types: Any = importlib.import_module("google.genai.types")
    except ImportError:
        require(False, "google-genai is not installed")
        return
    for tool in every_tool(tmp_path):
        schema = transformers.t_schema(None, tool.metadata.fn_schema)
        assert sorted(schema.properties or {}) == sorted(tool.core.parameters["properties"])
    with pytest.raises(ValueError, match="exclusiveMinimum"):  # CONTROL: the whole schema is refused
        types.Schema.model_validate(schema_tool(echo, name="x", description="x", parameters=ODD).parameters)


def test_no_line_of_a_description_is_taken_for_a_signature(tmp_path: Path) -> None:
    [tool] = [tool for tool in every_tool(tmp_path) if tool.metadata.name == "odd"]
    description = tool.metadata.description
    assert str.split(description, "\n", maxsplit=1) == ["Odd.", "Second line."]  # CONTROL: what Google's class sends
    assert description.split("\n", maxsplit=1)[-1] == description == "Odd.\nSecond line."
    assert description.split() == ["Odd.", "Second", "line."]
    assert json.loads(json.dumps(description)) == description


@pytest.mark.parametrize(
    ("module", "name", "options"),
    [
        ("llama_index.llms.openai", "OpenAI", {"model": "gpt-4o-mini", "api_key": "x"}),
        ("llama_index.llms.openai", "OpenAIResponses", {"model": "gpt-4o-mini", "api_key": "x"}),
        ("llama_index.llms.anthropic", "Anthropic", {"model": "claude-sonnet-4-5", "api_key": "x"}),
        ("llama_index.llms.ollama", "Ollama", {"model": "x"}),
    ],
)
def test_a_providers_request_holds_the_schema_as_the_core_has_it(
    tmp_path: Path, module: str, name: str, options: dict[str, Any]
) -> None:
    try:
        provider = importlib.import_module(module)
    except ImportError:
        require(False, f"{module} is not installed")
        raise
    llm: Any = getattr(provider, name)(**options)
    tools = every_tool(tmp_path)
    sent = llm._prepare_chat_with_tools(tools, user_msg="hi")["tools"]
    assert len(sent) == len(tools)
    for tool, spec in zip(tools, sent, strict=True):
        function = spec.get("function", spec)
        core = tool.core
        schema = function.get("parameters", function.get("input_schema"))
        assert (function["name"], function["description"]) == (core.name, core.description)
        assert {**schema, "additionalProperties": core.parameters.get("additionalProperties")} == core.parameters
