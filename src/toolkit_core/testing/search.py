"""An in-memory `Search` for tests."""

from __future__ import annotations

from toolkit_core.tree_search import InMemorySearch

__all__ = ["InMemorySearch"]
