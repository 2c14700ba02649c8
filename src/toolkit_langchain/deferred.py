"""Deferred tools: registered with the agent, hidden from the model until they were looked up.

What was loaded is kept in the agent's state, not in its messages, so that it outlives a summarisation that
removes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from langchain_core.messages import ToolMessage

from toolkit_core.errors import ToolError
from toolkit_core.ports.catalog import ToolSummary
from toolkit_langchain._tool import ToolkitTool

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from toolkit_core.tool import Tool

__all__ = ["DeferredCatalog", "is_deferred", "loaded_names", "union_of_names", "visible"]

LOADED_KEY = "toolkit_loaded_tools"
"""The state key under which a thread's loaded tools are kept."""


def core_of(tool: object) -> Tool[Any] | None:
    """The core tool behind a converted one, None for anything else."""
    return cast("Tool[Any]", tool.core) if isinstance(tool, ToolkitTool) else None


def is_deferred(tool: object) -> bool:
    """Whether a model sees the tool only after it was looked up."""
    core = core_of(tool)
    return core is not None and core.deferred


def visible(tools: Iterable[Any], loaded: Iterable[str]) -> list[Any]:
    """The tools that the model is shown: resident ones, and deferred ones that were loaded."""
    known = set(loaded)
    return [tool for tool in tools if not is_deferred(tool) or tool.name in known]


def union_of_names(before: Sequence[str] | None, more: Sequence[str] | None) -> list[str]:
    """Reducer of the loaded names: parallel look-ups both count."""
    return list(dict.fromkeys([*(before or ()), *(more or ())]))


def loaded_names(message: object) -> list[str]:
    """What a look-up loaded, read from its result."""
    envelope = message.artifact if isinstance(message, ToolMessage) else None
    if not isinstance(envelope, Mapping):
        return []
    data = cast("Mapping[str, Any]", envelope).get("data")
    rows: list[Any] = cast("Mapping[str, Any]", data).get("loaded", []) if isinstance(data, Mapping) else []
    return [str(row["name"]) for row in rows]


@dataclass(frozen=True)
class DeferredCatalog:
    """The deferred tools of one agent. Loading is what the middleware makes of the look-up's result."""

    tools: Sequence[BaseTool]
    unavailable_sources: Sequence[str] = ()

    async def deferred(self, session: str) -> Sequence[ToolSummary]:
        """All of them, loaded ones included."""
        return [
            ToolSummary(core.name, core.description, core.parameters)
            for core in map(core_of, self.tools)
            if core is not None and core.deferred
        ]

    async def load(self, session: str, names: Sequence[str]) -> Sequence[ToolSummary]:
        """The summaries of the named tools. Raises `ToolError` `not_found`, then nothing is loaded."""
        known = {summary.name: summary for summary in await self.deferred(session)}
        if unknown := [name for name in names if name not in known]:
            raise ToolError(f"no deferred tool is called {', '.join(unknown)}", code="not_found")
        return [known[name] for name in names]
