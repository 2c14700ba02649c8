"""The toolkit's tools for LangChain agents.

Two lines to an agent::

    from toolkit_langchain import default_tools
    agent = create_agent(model, tools=default_tools("."))

Every public name is lazy (PEP 562): importing the package imports neither LangChain nor anything that
touches this machine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit_langchain._tool import ToolkitTool, to_langchain
    from toolkit_langchain.approvals import interrupt_on
    from toolkit_langchain.deepagents import DeepAgentsBackend
    from toolkit_langchain.defaults import default_tools
    from toolkit_langchain.middleware import ToolkitMiddleware
    from toolkit_langchain.toolkit import AgentToolkit

__all__ = [
    "AgentToolkit",
    "DeepAgentsBackend",
    "ToolkitMiddleware",
    "ToolkitTool",
    "default_tools",
    "interrupt_on",
    "to_langchain",
]

_HOMES = {
    "AgentToolkit": "toolkit",
    "DeepAgentsBackend": "deepagents",
    "ToolkitMiddleware": "middleware",
    "ToolkitTool": "_tool",
    "default_tools": "defaults",
    "interrupt_on": "approvals",
    "to_langchain": "_tool",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
