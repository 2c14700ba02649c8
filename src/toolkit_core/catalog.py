"""The catalog of a set's deferred tools: what can be looked up, and what a session has loaded."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from toolkit_core.errors import ToolError
from toolkit_core.limits import CATALOG_SESSIONS, NAMES_SHOWN, NAMES_SHOWN_CHARS
from toolkit_core.ports.catalog import ToolSummary

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit_core.tool import Tool


class ToolCatalog:
    """Implements `Catalog` over tools that are at hand; what a session loaded stays loaded for it.

    Args:
        tools: The tools of a set; the deferred ones can be looked up.
        unavailable_sources: Sources of further tools that could not be asked.
    """

    def __init__(self, tools: Iterable[Tool[Any]], *, unavailable_sources: Sequence[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._loaded: OrderedDict[str, set[str]] = OrderedDict()
        self._unavailable = tuple(unavailable_sources)

    @property
    def unavailable_sources(self) -> Sequence[str]:
        """Sources of tools that could not be asked."""
        return self._unavailable

    def visible(self, session: str) -> frozenset[str]:
        """Names of the tools that a model of this session is shown: resident and loaded ones."""
        loaded = self._loaded.get(session, set())
        return frozenset(name for name, tool in self._tools.items() if not tool.deferred or name in loaded)

    def loaded(self, session: str) -> frozenset[str]:
        """Names of the deferred tools that this session loaded."""
        return frozenset(self._loaded.get(session, ()))

    async def deferred(self, session: str) -> Sequence[ToolSummary]:
        """All tools that may be loaded, loaded ones included, in the set's order."""
        return [_summary(tool) for tool in self._tools.values() if tool.deferred]

    async def load(self, session: str, names: Sequence[str]) -> Sequence[ToolSummary]:
        """Load tools for the rest of the session; resident ones are named as they are.

        Raises:
            ToolError: `not_found`, and nothing is loaded.
        """
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            named = ", ".join(repr(name[:NAMES_SHOWN_CHARS]) for name in unknown[:NAMES_SHOWN])
            more = f" and {len(unknown) - NAMES_SHOWN} more" if len(unknown) > NAMES_SHOWN else ""
            raise ToolError(
                f"no tool is called {named}{more}; nothing was loaded",
                code="not_found",
                hint="Search with query to see what there is.",
            )
        found = [self._tools[name] for name in dict.fromkeys(names)]
        kept = self._loaded.setdefault(session, set())
        kept.update(tool.name for tool in found if tool.deferred)
        self._loaded.move_to_end(session)
        while len(self._loaded) > CATALOG_SESSIONS:
            self._loaded.popitem(last=False)
        return [_summary(tool) for tool in found]

    def restore(self, session: str, names: Iterable[str]) -> None:
        """Mark as loaded what an adapter's own store remembers; unknown names are left out."""
        known = {name for name in names if name in self._tools and self._tools[name].deferred}
        if known:
            self._loaded.setdefault(session, set()).update(known)


def _summary(tool: Tool[Any]) -> ToolSummary:
    return ToolSummary(tool.name, tool.description, tool.parameters)
