"""The toolkit as LangChain's own kind of collection."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import PrivateAttr

from toolkit_core.capability import Capability
from toolkit_core.context import NO_CONTEXT, ToolContext
from toolkit_core.output_window import DEFAULT_WINDOW, Window
from toolkit_core.tool import ToolSet
from toolkit_langchain._tool import to_langchain

if TYPE_CHECKING:
    from toolkit_langchain._context import Session

__all__ = ["AgentToolkit"]


class AgentToolkit(BaseToolkit):
    """The tools of capabilities, of a tool set, or of the standard capabilities in a folder.

    `create_agent(model, AgentToolkit(".").get_tools())`; `await toolkit.instructions()` is the text that belongs
    into the system prompt. Deferred tools are all shown: hiding them takes a `ToolkitMiddleware`.
    """

    _tools: list[BaseTool] = PrivateAttr(default_factory=list[BaseTool])
    _capabilities: tuple[Capability, ...] = PrivateAttr(default=())

    def __init__(
        self,
        capabilities: str | os.PathLike[str] | Sequence[Capability] | ToolSet,
        *,
        window: Window | None = DEFAULT_WINDOW,
        session: Session = None,
    ) -> None:
        super().__init__()
        self._capabilities = as_capabilities(capabilities)
        core = [tool for capability in self._capabilities for tool in capability.tools]
        self._tools = to_langchain(core, window=window, session=session)

    def get_tools(self) -> list[BaseTool]:
        """The tools, the same objects each time."""
        return list(self._tools)

    async def instructions(self, context: ToolContext = NO_CONTEXT) -> str:
        """The capabilities' instructions as things stand now, in their order."""
        texts = [await capability.instructions(context) for capability in self._capabilities]
        return "\n\n".join(text for text in texts if text.strip())

    async def aclose(self) -> None:
        """Stop what the sessions' calls left running: background processes, scratch folders."""
        for capability in self._capabilities:
            await capability.tools.aclose()


def as_capabilities(given: Any) -> tuple[Capability, ...]:
    """Capabilities from what a composition is made of: themselves, a tool set, or a folder.

    Raises:
        TypeError: It is none of these.
    """
    if isinstance(given, ToolSet):
        return (Capability("tools", given),)
    if isinstance(given, str | os.PathLike):
        from toolkit_core.capabilities import standard_capabilities

        return tuple(standard_capabilities({}, cwd=cast("str", os.fspath(given))))
    capabilities = tuple(given)
    for capability in capabilities:
        if not isinstance(capability, Capability):
            raise TypeError(f"expected capabilities, a tool set or a folder, not {capability!r}")
    return capabilities
