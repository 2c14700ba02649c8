"""Framework-free tools for agents: read, edit, search, run, fetch, ask.

Every public name is loaded when it is first used (PEP 562), so that importing the package stays cheap and
neutral: a name that needs this machine loads the host, any other does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolkit_core.capability import Capability
    from toolkit_core.context import NO_CONTEXT, Progress, ToolContext
    from toolkit_core.defaults import default_tools
    from toolkit_core.effects import Claims, Effects, conflicts
    from toolkit_core.errors import CODES, HARD_CODES, ErrorCode, ErrorInfo, Suspended, ToolError
    from toolkit_core.factories import Arguments, function_tool, model_tool, port_tool, schema_tool
    from toolkit_core.ports.ask import Answer, Ask, Option, Question
    from toolkit_core.ports.files import Files, Resolved
    from toolkit_core.ports.ledger import Ledger, LedgerEntry
    from toolkit_core.result import ImageBlock, TextBlock, ToolResult
    from toolkit_core.tool import Tool, ToolSet

_NAMES: Final = {
    "capability": "Capability",
    "context": "NO_CONTEXT Progress ToolContext",
    "defaults": "default_tools",
    "effects": "Claims Effects conflicts",
    "errors": "CODES HARD_CODES ErrorCode ErrorInfo Suspended ToolError",
    "factories": "Arguments function_tool model_tool port_tool schema_tool",
    "ports.ask": "Answer Ask Option Question",
    "ports.files": "Files Resolved",
    "ports.ledger": "Ledger LedgerEntry",
    "result": "ImageBlock TextBlock ToolResult",
    "tool": "Tool ToolSet",
}
_HOME: Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [  # noqa: RUF022 - in the order of the modules above
    "Capability",
    "NO_CONTEXT",
    "Progress",
    "ToolContext",
    "default_tools",
    "Claims",
    "Effects",
    "conflicts",
    "CODES",
    "HARD_CODES",
    "ErrorCode",
    "ErrorInfo",
    "Suspended",
    "ToolError",
    "Arguments",
    "function_tool",
    "model_tool",
    "port_tool",
    "schema_tool",
    "Answer",
    "Ask",
    "Option",
    "Question",
    "Files",
    "Resolved",
    "Ledger",
    "LedgerEntry",
    "ImageBlock",
    "TextBlock",
    "ToolResult",
    "Tool",
    "ToolSet",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"toolkit_core has no public name {name!r}")
    value = getattr(import_module(f"toolkit_core.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
