"""`toolkit call NAME key=value ...`: one call, as a model would make it."""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolkit_core.cli.assembling import add_options, assemble
from toolkit_core.cli.console import complain, say

if TYPE_CHECKING:
    from toolkit_core.result import ToolResult
    from toolkit_core.tool import Tool, ToolSet

HELP = "call one tool; exit code 1 when the result is an error"

_PAIR = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", metavar="NAME", help="the tool")
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="key=value",
        help="an argument; JSON where the parameter is no string; @FILE for a file's text, @- for standard input; "
        "a JSON object or @FILE alone gives all arguments",
    )
    parser.add_argument("--json", action="store_true", help="the whole result as JSON: content, data and error")
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """Call it and show what the model would read."""
    tools = assemble(options)
    name: str = options.name
    if name not in tools:
        complain(f"no tool {name!r}; there are {', '.join(tools.names)}")
        return 2
    tool = tools[name]
    try:
        arguments = read_arguments(options.arguments, tool.parameters)
    except (OSError, ValueError) as e:
        complain(f"toolkit call: {e}")
        return 2
    result = asyncio.run(_call(tools, tool, arguments))
    say(result.to_json() if options.json else _shown(result))
    return 1 if result.is_error else 0


async def _call(tools: ToolSet, tool: Tool[Any], arguments: dict[str, Any]) -> ToolResult[Any]:
    async with tools:
        return await tool.call(arguments)


def read_arguments(words: list[str], parameters: dict[str, Any]) -> dict[str, Any]:
    """The arguments that the words of a command line say.

    Raises:
        ValueError: A word is neither `key=value` nor a JSON object.
        OSError: A file behind `@` cannot be read.
    """
    arguments: dict[str, Any] = {}
    properties = cast("dict[str, dict[str, Any]]", parameters.get("properties", {}))
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is None:
            arguments.update(_object(_text(word)))
            continue
        declared = properties.get(pair[1], {"type": "string"})
        arguments[pair[1]] = _value(_text(pair[2]), declared)
    return arguments


def _text(word: str) -> str:
    if word == "@-":
        return sys.stdin.read()
    return Path(word[1:]).read_bytes().decode("utf-8") if word.startswith("@") else word


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"{text[:80]!r} is neither key=value nor a JSON object")
    return cast("dict[str, Any]", value)


def _value(text: str, declared: dict[str, Any]) -> Any:
    """A string stays as it was typed; anything else is JSON where it parses, and the tool judges it."""
    if declared.get("type") == "string":
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(result: ToolResult[Any]) -> str:
    images = [f"[image {image.mime_type}, {len(image.data)} bytes]" for image in result.images]
    return "\n".join([result.text, *images])
