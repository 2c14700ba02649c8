"""An in-memory `Catalog`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit_core.ports.catalog import ToolSummary


class InMemoryCatalog:
    """A catalog of summaries alone, for tests without tools; over tools at hand use `ToolCatalog`.

    Args:
        summaries: The deferred tools.
        unavailable_sources: Sources that pretend not to answer.

    Attributes:
        loaded: Names that were loaded, by session, in order.
    """

    def __init__(self, summaries: Iterable[ToolSummary], *, unavailable_sources: Sequence[str] = ()) -> None:
        self._summaries = {summary.name: summary for summary in summaries}
        self._unavailable = tuple(unavailable_sources)
        self.loaded: dict[str, list[str]] = {}

    @property
    def unavailable_sources(self) -> Sequence[str]:
        """Sources of tools that could not be asked."""
        return self._unavailable

    async def deferred(self, session: str) -> Sequence[ToolSummary]:
        """All summaries, in the order in which they were given."""
        return list(self._summaries.values())

    async def load(self, session: str, names: Sequence[str]) -> Sequence[ToolSummary]:
        """Load by name. Raises `ToolError` `not_found`, then nothing is loaded."""
        unknown = [name for name in names if name not in self._summaries]
        if unknown:
            raise ToolError(f"no tool is called {', '.join(map(repr, unknown))}; nothing was loaded", code="not_found")
        kept = self.loaded.setdefault(session, [])
        kept.extend(name for name in dict.fromkeys(names) if name not in kept)
        return [self._summaries[name] for name in dict.fromkeys(names)]
