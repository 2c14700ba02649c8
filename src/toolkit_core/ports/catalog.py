"""Catalog: deferred tools that can be looked up and loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ToolSummary:
    """What tool_search sees of a tool. `parameters` is its JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])


class Catalog(Protocol):
    """The deferred tools of a session."""

    @property
    def unavailable_sources(self) -> Sequence[str]:
        """Sources of tools that could not be asked."""
        ...

    async def deferred(self, session: str) -> Sequence[ToolSummary]:
        """All tools that may be loaded, loaded ones included."""
        ...

    async def load(self, session: str, names: Sequence[str]) -> Sequence[ToolSummary]:
        """Load tools for the rest of the session. Raises `ToolError` `not_found`, then nothing is loaded."""
        ...
