"""The toolkit's tools for LlamaIndex agents.

Two lines to an agent::

    from toolkit_llamaindex import default_tools
    agent = FunctionAgent(tools=default_tools("."), llm=llm)

Every public name is lazy (PEP 562): importing the package imports neither LlamaIndex nor anything that
touches this machine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit_llamaindex._tool import ToolkitTool, to_llamaindex
    from toolkit_llamaindex.approvals import ApprovalRequestEvent, ApprovalResponseEvent
    from toolkit_llamaindex.ask import QuestionEvent
    from toolkit_llamaindex.defaults import default_tools
    from toolkit_llamaindex.deferred import ToolRetriever
    from toolkit_llamaindex.progress import ToolProgressEvent
    from toolkit_llamaindex.spec import AgentToolSpec

__all__ = [
    "AgentToolSpec",
    "ApprovalRequestEvent",
    "ApprovalResponseEvent",
    "QuestionEvent",
    "ToolProgressEvent",
    "ToolRetriever",
    "ToolkitTool",
    "default_tools",
    "to_llamaindex",
]

_HOMES = {
    "AgentToolSpec": "spec",
    "ApprovalRequestEvent": "approvals",
    "ApprovalResponseEvent": "approvals",
    "QuestionEvent": "ask",
    "ToolProgressEvent": "progress",
    "ToolRetriever": "deferred",
    "ToolkitTool": "_tool",
    "default_tools": "defaults",
    "to_llamaindex": "_tool",
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
