"""Framework-free tools for agents: read, edit, search, run, fetch, ask.

Every public name is loaded when it is first used (PEP 562), so that importing the package stays cheap and
neutral: a name that needs this machine loads the host, any other does not.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolkit_core.capabilities import TOOLS_SCHEMA, files, memory, processes, shell, standard_capabilities, web
    from toolkit_core.capability import Capability
    from toolkit_core.catalog import ToolCatalog
    from toolkit_core.context import NO_CONTEXT, Progress, ToolContext
    from toolkit_core.defaults import default_tools
    from toolkit_core.effects import Claims, Effects, conflicts
    from toolkit_core.errors import CODES, HARD_CODES, ErrorCode, ErrorInfo, Suspended, ToolError
    from toolkit_core.factories import Arguments, function_tool, model_tool, port_tool, schema_tool
    from toolkit_core.host.browser import ChromiumBrowser
    from toolkit_core.host.bubblewrap import BubblewrapSandbox, SandboxLimits
    from toolkit_core.host.commands import HostCommands
    from toolkit_core.host.docker import DockerSandbox
    from toolkit_core.host.documents import PdfDocuments
    from toolkit_core.host.egress import Egress
    from toolkit_core.host.files import HostFiles
    from toolkit_core.host.processes import HostProcesses
    from toolkit_core.host.resolve import resolve_within
    from toolkit_core.host.search import HostSearch
    from toolkit_core.host.search_providers import brave, duckduckgo, searxng, tavily
    from toolkit_core.host.sqlite import SQLiteCommitments, SQLiteLedger
    from toolkit_core.host.ssh import SSHSandbox
    from toolkit_core.host.web import HostWeb
    from toolkit_core.limits import Limits
    from toolkit_core.output_window import Window, bounded, window
    from toolkit_core.policy import Decision, Policy
    from toolkit_core.ports.ask import Answer, Ask, Option, Question
    from toolkit_core.ports.catalog import Catalog, ToolSummary
    from toolkit_core.ports.commands import CommandResult, Commands
    from toolkit_core.ports.commitments import Commitment, CommitmentStore
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.files import Files, Resolved
    from toolkit_core.ports.ledger import Ledger, LedgerEntry
    from toolkit_core.ports.processes import Processes, ProcessState
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.search import Search
    from toolkit_core.result import ImageBlock, TextBlock, ToolResult
    from toolkit_core.sandboxes.client_commands import ClientCommands
    from toolkit_core.sandboxes.client_files import ClientFiles
    from toolkit_core.sandboxes.client_processes import ClientProcesses
    from toolkit_core.sandboxes.client_search import ClientSearch
    from toolkit_core.sandboxes.e2b import E2BSandbox
    from toolkit_core.sandboxes.in_memory import InMemorySandbox
    from toolkit_core.sandboxes.kubernetes import KubernetesSandbox
    from toolkit_core.tool import Tool, ToolSet
    from toolkit_core.tools import (
        ReadRecord,
        ask_user_question_tool,
        bash_tool,
        browse_tool,
        catalogued,
        commitments_tool,
        edit_file_tool,
        glob_tool,
        grep_tool,
        memory_instructions,
        memory_read_tool,
        memory_write_tool,
        process_read_tool,
        process_start_tool,
        process_stop_tool,
        process_write_tool,
        read_file_tool,
        recall_tool,
        shell_tool,
        tool_search_tool,
        web_fetch_tool,
        web_search_tool,
        with_editor,
        write_file_tool,
    )
    from toolkit_core.trust_inputs import TRUST_INPUTS, trust_input
    from toolkit_core.workspace import (
        AzureMount,
        DirEntry,
        EntryStatus,
        FileEntry,
        GCSMount,
        GitRepo,
        LocalDir,
        LocalFile,
        ManifestResult,
        R2Mount,
        S3Mount,
        WorkspaceManifest,
        apply_manifest,
    )

_NAMES: Final = {
    "capabilities": "TOOLS_SCHEMA files memory processes shell standard_capabilities web",
    "capability": "Capability",
    "catalog": "ToolCatalog",
    "context": "NO_CONTEXT Progress ToolContext",
    "defaults": "default_tools",
    "effects": "Claims Effects conflicts",
    "errors": "CODES ErrorCode ErrorInfo HARD_CODES Suspended ToolError",
    "factories": "Arguments function_tool model_tool port_tool schema_tool",
    "host.browser": "ChromiumBrowser",
    "host.bubblewrap": "BubblewrapSandbox SandboxLimits",
    "host.commands": "HostCommands",
    "host.docker": "DockerSandbox",
    "host.documents": "PdfDocuments",
    "host.egress": "Egress",
    "host.files": "HostFiles",
    "host.processes": "HostProcesses",
    "host.resolve": "resolve_within",
    "host.search": "HostSearch",
    "host.search_providers": "brave duckduckgo searxng tavily",
    "host.sqlite": "SQLiteCommitments SQLiteLedger",
    "host.ssh": "SSHSandbox",
    "host.web": "HostWeb",
    "limits": "Limits",
    "output_window": "Window bounded window",
    "policy": "Decision Policy",
    "ports.ask": "Answer Ask Option Question",
    "ports.catalog": "Catalog ToolSummary",
    "ports.commands": "CommandResult Commands",
    "ports.commitments": "Commitment CommitmentStore",
    "ports.editor": "Editor",
    "ports.files": "Files Resolved",
    "ports.ledger": "Ledger LedgerEntry",
    "ports.processes": "ProcessState Processes",
    "ports.sandbox": "SandboxClient",
    "ports.search": "Search",
    "result": "ImageBlock TextBlock ToolResult",
    "sandboxes.client_commands": "ClientCommands",
    "sandboxes.client_files": "ClientFiles",
    "sandboxes.client_processes": "ClientProcesses",
    "sandboxes.client_search": "ClientSearch",
    "sandboxes.e2b": "E2BSandbox",
    "sandboxes.in_memory": "InMemorySandbox",
    "sandboxes.kubernetes": "KubernetesSandbox",
    "tool": "Tool ToolSet",
    "tools": (
        "ReadRecord ask_user_question_tool bash_tool browse_tool catalogued commitments_tool "
        "edit_file_tool glob_tool grep_tool memory_instructions memory_read_tool memory_write_tool "
        "process_read_tool process_start_tool process_stop_tool process_write_tool read_file_tool "
        "recall_tool shell_tool tool_search_tool web_fetch_tool web_search_tool with_editor "
        "write_file_tool"
    ),
    "trust_inputs": "TRUST_INPUTS trust_input",
    "workspace": (
        "AzureMount DirEntry EntryStatus FileEntry GCSMount GitRepo "
        "LocalDir LocalFile ManifestResult R2Mount S3Mount WorkspaceManifest apply_manifest"
    ),
}
_POSIX_MODULES: Final = frozenset({"fcntl", "pwd", "resource", "termios"})
_HOME: Final = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CODES",
    "HARD_CODES",
    "NO_CONTEXT",
    "TOOLS_SCHEMA",
    "TRUST_INPUTS",
    "Answer",
    "Arguments",
    "Ask",
    "AzureMount",
    "BubblewrapSandbox",
    "Capability",
    "Catalog",
    "ChromiumBrowser",
    "Claims",
    "ClientCommands",
    "ClientFiles",
    "ClientProcesses",
    "ClientSearch",
    "CommandResult",
    "Commands",
    "Commitment",
    "CommitmentStore",
    "Decision",
    "DirEntry",
    "DockerSandbox",
    "E2BSandbox",
    "Editor",
    "Effects",
    "Egress",
    "EntryStatus",
    "ErrorCode",
    "ErrorInfo",
    "FileEntry",
    "Files",
    "GCSMount",
    "GitRepo",
    "HostCommands",
    "HostFiles",
    "HostProcesses",
    "HostSearch",
    "HostWeb",
    "ImageBlock",
    "InMemorySandbox",
    "KubernetesSandbox",
    "Ledger",
    "LedgerEntry",
    "Limits",
    "LocalDir",
    "LocalFile",
    "ManifestResult",
    "Option",
    "PdfDocuments",
    "Policy",
    "ProcessState",
    "Processes",
    "Progress",
    "Question",
    "R2Mount",
    "ReadRecord",
    "Resolved",
    "S3Mount",
    "SQLiteCommitments",
    "SQLiteLedger",
    "SSHSandbox",
    "SandboxClient",
    "SandboxLimits",
    "Search",
    "Suspended",
    "TextBlock",
    "Tool",
    "ToolCatalog",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "ToolSet",
    "ToolSummary",
    "Window",
    "WorkspaceManifest",
    "apply_manifest",
    "ask_user_question_tool",
    "bash_tool",
    "bounded",
    "brave",
    "browse_tool",
    "catalogued",
    "commitments_tool",
    "conflicts",
    "default_tools",
    "duckduckgo",
    "edit_file_tool",
    "files",
    "function_tool",
    "glob_tool",
    "grep_tool",
    "memory",
    "memory_instructions",
    "memory_read_tool",
    "memory_write_tool",
    "model_tool",
    "port_tool",
    "process_read_tool",
    "process_start_tool",
    "process_stop_tool",
    "process_write_tool",
    "processes",
    "read_file_tool",
    "recall_tool",
    "resolve_within",
    "schema_tool",
    "searxng",
    "shell",
    "shell_tool",
    "standard_capabilities",
    "tavily",
    "tool_search_tool",
    "trust_input",
    "web",
    "web_fetch_tool",
    "web_search_tool",
    "window",
    "with_editor",
    "write_file_tool",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its home."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"toolkit_core has no public name {name!r}")
    try:
        value = getattr(import_module(f"toolkit_core.{home}"), name)
    except ModuleNotFoundError as e:
        if e.name not in _POSIX_MODULES:
            raise
        raise ImportError(
            f"toolkit_core.{name} works on the machine itself, which needs Linux or macOS: on Windows use WSL, or "
            "tools over a sandbox client"
        ) from e
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
