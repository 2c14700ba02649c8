"""The tools of the adapters' common table."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from typing import Any

from toolkit_core.context import ToolContext
from toolkit_core.effects import Effects
from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.factories import Arguments, function_tool, port_tool
from toolkit_core.ports.ask import Option, Question
from toolkit_core.result import ImageBlock, ToolResult
from toolkit_core.tool import Tool, ToolSet
from toolkit_core.tools import ask_user_question_tool, catalogued

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)

STOPPED: list[str] = []
"""Ids of rows whose work was stopped by a cancellation."""


def echo(text: str, times: int = 1) -> str:
    """Say it back.

    Args:
        text: What to say.
        times: How often.
    """
    return "\n".join([text] * times)


def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return {"sum": a + b}


def fail(code: ErrorCode, retryable: bool = False) -> str:
    """Fail with a code.

    Args:
        code: The code.
        retryable: Whether to say that it may work later.
    """
    raise ToolError(f"failed with {code}", code=code, hint="Do it another way.", retryable=retryable, data={"half": 1})


def look() -> ToolResult[Any]:
    """Look at a picture."""
    return ToolResult.ok("a picture", {"kind": "image"}, images=(ImageBlock("image/png", PNG),))


def break_down(how: str) -> Any:
    """Break down.

    Args:
        how: In which way.
    """
    if how == "exit":
        raise SystemExit(2)
    if how == "cancel":
        raise asyncio.CancelledError("stray")
    if how == "object":
        return object()
    raise ValueError("a secret")


async def wait_long(row: str) -> str:
    """Wait for a minute.

    Args:
        row: The row's id.
    """
    try:
        await asyncio.sleep(60)
    finally:
        STOPPED.append(row)
    return "waited"


async def who(ctx: ToolContext) -> str:
    """Say whether the call knows its id."""
    return f"id={bool(ctx.call_id)}"


async def confirm(what: str, ctx: ToolContext) -> str:
    """Ask before doing.

    Args:
        what: What to do.
    """
    if ctx.ask is None:
        return "nobody can be asked"
    answer = await ctx.ask(Question(f"confirm-{what}", f"Do {what}?", options=(Option("yes"), Option("no"))))
    return f"{what}: {answer if isinstance(answer, str) else 'dismissed' if answer is None else answer.values[0]}"


def hidden(city: str) -> str:
    """Tell the weather of a city.

    Args:
        city: Which city.
    """
    return f"{city}: rain"


class SendArguments(Arguments):
    """What send takes."""

    to: str
    text: str = ""


def send_tool() -> Tool[Any]:
    """A tool that needs approval, with a subject and writes."""

    async def send(arguments: SendArguments, context: ToolContext) -> ToolResult[Any]:
        return ToolResult.ok(f"sent {arguments.text!r} to {arguments.to}", {"to": arguments.to})

    async def subject(arguments: SendArguments) -> str:
        return arguments.to

    async def writes(arguments: SendArguments) -> tuple[str, ...]:
        return (f"/post/{arguments.to}",)

    return port_tool(
        SendArguments,
        send,
        kind="send",
        describe=lambda siblings: "Send a text to somebody.",
        payload=dict[str, Any],
        effects=Effects(writes=True, destructive=True),
        subject=subject,
        writes=writes,
        argument_aliases={"recipient": "to"},
    )


def make_tools() -> ToolSet:
    """The tools of most rows, made anew."""
    reads = Effects(reads=True)
    functions: list[Callable[..., Any]] = [echo, add, fail, look, break_down, wait_long, who, confirm]
    return ToolSet([*(function_tool(fn, effects=reads) for fn in functions), send_tool(), ask_user_question_tool()])


def make_deferred() -> ToolSet:
    """One resident and one deferred tool."""
    resident, deferred = function_tool(echo), function_tool(hidden, name="weather", deferred=True)
    return ToolSet(catalogued([resident, deferred])[0])


def make_all() -> ToolSet:
    """300 tools, one of which is looked up."""
    many = [
        function_tool(echo, name=f"tool_{n}", description=f"Number {n} of many.", deferred=n > 0) for n in range(300)
    ]
    return ToolSet(catalogued(many)[0])
