"""Deferred tools: an agent sees them only after it looked them up.

`FunctionAgent(tool_retriever=ToolRetriever(tools), llm=llm)`: the agent asks the retriever for its tools at every
step. Which tools a session has loaded is kept in the workflow's context, and so is serialised with it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from llama_index.core.objects import ObjectRetriever
from llama_index.core.tools import BaseTool

from toolkit_core.catalog import ToolCatalog
from toolkit_core.limits import ANSWER_TIMEOUT_SECONDS, LOADED_SESSIONS_KEPT
from toolkit_core.output_window import Window
from toolkit_core.tools import catalogued
from toolkit_llamaindex._private import context_now
from toolkit_llamaindex._run import CallSite, stored_session_id
from toolkit_llamaindex._tool import Surroundings, convert

if TYPE_CHECKING:
    from llama_index.core.schema import QueryBundle
    from llama_index.core.workflow import Context

    from toolkit_core.ports.catalog import Catalog, ToolSummary
    from toolkit_core.tool import Tool
    from toolkit_llamaindex.approvals import Decider

_log = logging.getLogger("toolkit_llamaindex")

_WINDOW: Final = Window()
_STORED: Final = "toolkit_loaded"
"""Where the context keeps the names of loaded tools; tool names have no dots, so each is a path of its own."""


class ToolRetriever(ObjectRetriever[BaseTool]):
    """The tools of a set for an agent: the resident ones, and the deferred ones that its session has loaded.

    A session is a workflow's `Context`, or all contexts with one "session_id" in their store. `tool_search` is
    added where the set has deferred tools and does not hold it. The options are those of `to_llamaindex`.

    Raises:
        ValueError: Two tools have one name, or all are deferred.
    """

    def __init__(
        self,
        tools: Iterable[Tool[Any]],
        *,
        window: Window | None = _WINDOW,
        policy: Decider | None = None,
        bind_context: bool = True,
        answer_timeout_seconds: float | None = ANSWER_TIMEOUT_SECONDS,
    ) -> None:
        given = list(tools)
        if given and all(tool.deferred for tool in given):
            raise ValueError("every tool is deferred, so that none could ever be looked up: keep one resident")
        listed, _ = catalogued(given)
        around = Surroundings(
            window=window,
            policy=policy,
            bind_context=bind_context,
            answer_timeout_seconds=answer_timeout_seconds,
            catalog=self._catalog,
        )
        converted = convert(listed, around)
        self._resident: list[BaseTool] = [tool for tool in converted if not tool.core.deferred]
        self._deferred: dict[str, BaseTool] = {tool.core.name: tool for tool in converted if tool.core.deferred}
        self.core_tools: Sequence[Tool[Any]] = tuple(listed)
        self._by_session: OrderedDict[str, set[str]] = OrderedDict()

    async def aretrieve(self, str_or_query_bundle: str | QueryBundle) -> list[BaseTool]:
        """The tools that the agent has now; the query is not looked at."""
        ctx = context_now()
        loaded = await self.loaded(ctx, await stored_session_id(ctx))
        return [*self._resident, *(tool for name, tool in self._deferred.items() if name in loaded)]

    def retrieve(self, str_or_query_bundle: str | QueryBundle) -> list[BaseTool]:
        """The resident tools: without a workflow there is no session that could have loaded others."""
        return list(self._resident)

    async def loaded(self, ctx: Context[Any] | None, session_id: str | None) -> frozenset[str]:
        """The names of the deferred tools that a session has loaded."""
        names = set(self._by_session.get(session_id or "", ()))
        if ctx is not None:
            names |= await _stored(ctx)
        return frozenset(names & self._deferred.keys())

    async def keep(self, ctx: Context[Any] | None, session_id: str | None, names: Sequence[str]) -> None:
        """Load tools for the rest of a session."""
        stored = ctx is not None and await _store(ctx, names)
        if session_id is None and stored:
            return
        key = session_id or ""
        self._by_session.setdefault(key, set()).update(names)
        self._by_session.move_to_end(key)
        while len(self._by_session) > LOADED_SESSIONS_KEPT:
            self._by_session.popitem(last=False)

    def _catalog(self, site: CallSite) -> Catalog:
        return _CallCatalog(self, site)


class _CallCatalog(ToolCatalog):
    """The catalog of one call: what it loads is kept for the call's session."""

    def __init__(self, retriever: ToolRetriever, site: CallSite) -> None:
        super().__init__(retriever.core_tools)
        self._retriever, self._site = retriever, site

    async def load(self, session: str, names: Sequence[str]) -> Sequence[ToolSummary]:
        """Load tools for the rest of the session. Raises `ToolError` not_found, then nothing is loaded."""
        found = await super().load(session, names)
        await self._retriever.keep(self._site.ctx, self._site.session_id, [tool.name for tool in found])
        return found


async def _stored(ctx: Context[Any]) -> set[str]:
    try:
        stored = await ctx.store.get(_STORED, default=None)
    except Exception:  # noqa: BLE001 - a typed state may refuse the name; the retriever's own memory stands in
        _log.debug("the workflow's store keeps no loaded tools", exc_info=True)
        return set()
    return set(cast("Mapping[str, Any]", stored)) if isinstance(stored, Mapping) else set()


async def _store(ctx: Context[Any], names: Sequence[str]) -> bool:
    try:
        if not await _stored(ctx):
            await ctx.store.set(_STORED, {})
        for name in names:
            await ctx.store.set(f"{_STORED}.{name}", value=True)
    except Exception:  # noqa: BLE001 - as above: a typed state may refuse the name
        _log.debug("the workflow's store keeps no loaded tools", exc_info=True)
        return False
    return True
