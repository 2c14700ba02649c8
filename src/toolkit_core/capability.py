"""A capability: tools and the instructions that belong to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from toolkit_core.context import NO_CONTEXT, ToolContext

if TYPE_CHECKING:
    from toolkit_core.tool import ToolSet


async def _no_instructions(context: ToolContext) -> str:
    return ""


@dataclass(frozen=True)
class Capability:
    """What an agent can do, as one unit of composition.

    Attributes:
        id: Short and stable: "files", "shell", "web", "memory", ...
        tools: Its tools.
        describe: Makes the text for the system prompt; read anew each run.
    """

    id: str
    tools: ToolSet
    describe: Callable[[ToolContext], Awaitable[str]] = field(default=_no_instructions, repr=False)

    async def instructions(self, context: ToolContext = NO_CONTEXT) -> str:
        """The text for the system prompt as things stand now; "" where there is nothing to say."""
        return await self.describe(context)
