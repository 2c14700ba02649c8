"""`toolkit tools`: which tools there are, and what a model is told of one."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from toolkit_core.cli.assembling import add_options, assemble
from toolkit_core.cli.console import complain, say

if TYPE_CHECKING:
    from toolkit_core.tool import Tool

HELP = "list the tools, or show one as a model sees it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="show this tool's description and parameters")
    parser.add_argument("--json", action="store_true", help="name, description, parameters and effects as JSON")
    add_options(parser)


def run(options: argparse.Namespace) -> int:
    """List or show."""
    tools = assemble(options)
    name: str | None = options.name
    if name is not None and name not in tools:
        complain(f"no tool {name!r}; there are {', '.join(tools.names)}")
        return 2
    chosen = list(tools) if name is None else [tools[name]]
    if options.json:
        say(json.dumps([_described(tool) for tool in chosen], indent=2, ensure_ascii=False))
    elif name is not None:
        _show(chosen[0])
    else:
        _list(chosen)
    return 0


def _list(tools: list[Tool[Any]]) -> None:
    width = max(len(tool.name) for tool in tools)
    for tool in tools:
        risk = tool.effects.risk if tool.effects is not None else "unclassified"
        say(f"{tool.name:<{width}}  {risk:<8}  {_first_sentence(tool.description)}")


def _show(tool: Tool[Any]) -> None:
    say(tool.name, "title")
    say(tool.description)
    say()
    say(json.dumps(tool.parameters, indent=2, ensure_ascii=False))


def _described(tool: Tool[Any]) -> dict[str, Any]:
    effects = None if tool.effects is None else vars(tool.effects)
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters, "effects": effects}


def _first_sentence(text: str) -> str:
    line = text.splitlines()[0]
    return line.split(". ", 1)[0].rstrip(".")
