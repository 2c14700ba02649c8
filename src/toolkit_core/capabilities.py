"""Composition leaf: capabilities over this machine, one by one or from a plain mapping."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, cast

from toolkit_core.capability import Capability
from toolkit_core.host.assembly import (
    Parts,
    Place,
    absolute,
    file_parts,
    process_parts,
    search_parts,
    shell_parts,
    web_parts,
)
from toolkit_core.host.files import HostFiles
from toolkit_core.host.search_providers import brave, duckduckgo, searxng, tavily
from toolkit_core.limits import Limits
from toolkit_core.schema import problems_of_jsonschema
from toolkit_core.tool import ToolSet
from toolkit_core.tools import memory_instructions, memory_read_tool, memory_write_tool

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.host.egress import Egress
    from toolkit_core.host.environment import EnvironmentChoice
    from toolkit_core.host.resolve import AnyPath, Outside
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.web_search import WebSearchProvider


def files(
    cwd: AnyPath,
    *,
    require_read: bool = True,
    extra_roots: Sequence[AnyPath] = (),
    outside: Outside = "refuse",
    editor: Editor | None = None,
    sandbox: SandboxClient | None = None,
    limits: Limits | None = None,
) -> Capability:
    """read_file, write_file, edit_file, glob and grep below a folder; options as for `default_tools`."""
    place = Place.of(cwd, extra_roots=extra_roots, outside=outside, sandbox=sandbox, limits=limits)
    text = f"The workspace is {place.cwd}. Paths are relative to it."
    return _capability("files", file_parts(place, require_read=require_read, editor=editor), text)


def shell(
    cwd: AnyPath,
    *,
    env: EnvironmentChoice = "allowlist",
    sandbox: SandboxClient | None = None,
    limits: Limits | None = None,
) -> Capability:
    """Commands in a folder, each to its end; options as for `default_tools`, `env` as for `HostCommands`."""
    place = Place.of(cwd, sandbox=sandbox, limits=limits)
    return _capability("shell", shell_parts(place, env=env), f"Commands start in {place.cwd}.")


def web(
    *, search: Sequence[WebSearchProvider] = (), egress: Egress | None = None, limits: Limits | None = None
) -> Capability:
    """web_fetch, and web_search where there are providers; `egress` is who may be reached."""
    return _capability("web", web_parts(limits or Limits(), egress=egress) + search_parts(search), "")


def memory(memory_dir: AnyPath) -> Capability:
    """memory_read and memory_write over one folder, which is made where it is missing.

    The instructions hold the first 200 lines of its MEMORY.md, read anew each run.
    """
    if not os.fspath(memory_dir):
        raise ValueError("memory_dir is empty: name the folder that memory is kept in")
    folder = absolute(memory_dir)
    os.makedirs(folder, exist_ok=True)
    kept = HostFiles(folder)

    async def describe(context: ToolContext) -> str:
        return await memory_instructions(kept)

    return Capability("memory", ToolSet([memory_read_tool(kept), memory_write_tool(kept)]), describe)


def processes(
    cwd: AnyPath, *, env: EnvironmentChoice = "allowlist", sandbox: SandboxClient | None = None
) -> Capability:
    """Commands that go on between calls; all are stopped when the set is closed or this process ends."""
    place = Place.of(cwd, sandbox=sandbox)
    return _capability("processes", process_parts(place, env=env), f"Processes start in {place.cwd}.")


def _capability(capability_id: str, parts: Parts, text: str) -> Capability:
    async def describe(context: ToolContext) -> str:
        return text

    return Capability(capability_id, ToolSet(parts.tools, closers=parts.closers), describe)


_SWITCH: Final = {"type": "boolean"}
_KEYED: Final = {
    "type": "object",
    "properties": {"api_key": {"type": "string", "minLength": 1}},
    "required": ["api_key"],
    "additionalProperties": False,
}
_SEARCH: Final = {
    "type": "object",
    "description": "Providers of web_search, asked in the order in which they stand here.",
    "properties": {
        "brave": _KEYED,
        "tavily": _KEYED,
        "duckduckgo": _SWITCH,
        "searxng": {
            "type": "object",
            "properties": {"url": {"type": "string", "minLength": 1}},
            "required": ["url"],
            "additionalProperties": False,
        },
    },
    "additionalProperties": False,
}

TOOLS_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "description": "Which capabilities an agent has; what is absent is on.",
    "properties": {
        "files": {
            "anyOf": [
                _SWITCH,
                {
                    "type": "object",
                    "properties": {"require_read": {"type": "boolean", "default": True}},
                    "additionalProperties": False,
                },
            ]
        },
        "shell": _SWITCH,
        "web": {
            "anyOf": [
                _SWITCH,
                {"type": "object", "properties": {"search": _SEARCH}, "additionalProperties": False},
            ]
        },
        "memory": _SWITCH,
    },
    "additionalProperties": False,
}
"""The JSON Schema of the mapping that `standard_capabilities` takes."""


def standard_capabilities(
    config: Mapping[str, Any], *, cwd: AnyPath, memory_dir: AnyPath | None = None
) -> list[Capability]:
    """Files, shell, web and memory, in this order, as a plain mapping says; reads no file.

    Args:
        config: See `TOOLS_SCHEMA`. What is absent is on.
        cwd: The workspace.
        memory_dir: Without it there is no memory.

    Raises:
        ValueError: Unknown keys or wrong types, all of them named.

    Example:
        >>> standard_capabilities({"shell": False, "web": {"search": {"duckduckgo": True}}}, cwd=".")
    """
    _check(config)
    wanted: list[Capability] = []
    how = config.get("files", True)
    if how is not False:
        options = _options(how)
        wanted.append(files(cwd, require_read=options.get("require_read", True)))
    if config.get("shell", True):
        wanted.append(shell(cwd))
    how = config.get("web", True)
    if how is not False:
        options = _options(how)
        wanted.append(web(search=_providers(options.get("search", {}))))
    if config.get("memory", True) and memory_dir is not None:
        wanted.append(memory(memory_dir))
    return wanted


def _options(how: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", how) if isinstance(how, Mapping) else dict[str, Any]()


def _check(config: object) -> None:
    import jsonschema

    validator = jsonschema.Draft202012Validator(deepcopy(TOOLS_SCHEMA))
    problems = problems_of_jsonschema(cast("Any", validator).iter_errors(_plain(config)))
    if problems:
        said = "; ".join(f"{path or 'the configuration'} {what}" for path, what in problems)
        raise ValueError(f"the tools cannot be configured so: {said}; see TOOLS_SCHEMA for what there is")


def _plain(value: object) -> object:
    """Any mapping as the dict that jsonschema takes for an object."""
    if not isinstance(value, Mapping):
        return value
    return {key: _plain(item) for key, item in cast("Mapping[Any, object]", value).items()}


def _providers(search: Mapping[str, Any]) -> list[WebSearchProvider]:
    providers: list[WebSearchProvider] = []
    for name, options in search.items():
        if name == "duckduckgo":
            if options:
                providers.append(duckduckgo())
        elif name == "searxng":
            providers.append(searxng(options["url"]))
        else:
            providers.append({"brave": brave, "tavily": tavily}[name](options["api_key"]))
    return providers
