"""Composition leaf: the tools that most agents want, over this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from toolkit_core.context import ToolContext
from toolkit_core.host.assembly import (
    Parts,
    Place,
    file_parts,
    process_parts,
    search_parts,
    shell_parts,
    web_parts,
)
from toolkit_core.tool import ToolSet
from toolkit_core.tools import ask_user_question_tool, recall_tool

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from toolkit_core.host.resolve import AnyPath, Outside
    from toolkit_core.limits import Limits
    from toolkit_core.ports.ask import Ask
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.web_search import WebSearchProvider

_READ_ONLY = ("read_file", "glob", "grep", "web_fetch")


def default_tools(
    cwd: AnyPath,
    *,
    only: Collection[str] = (),
    without: Collection[str] = (),
    read_only: bool = False,
    sandbox: SandboxClient | None = None,
    editor: Editor | None = None,
    search: Sequence[WebSearchProvider] = (),
    ask: Ask | Literal[True] | None = None,
    processes: bool = False,
    ledger: Ledger | None = None,
    limits: Limits | None = None,
    require_read: bool = True,
    extra_roots: Sequence[AnyPath] = (),
    outside: Outside = "refuse",
) -> ToolSet:
    """read_file, write_file, edit_file, glob, grep, shell, web_fetch, then what was given.

    Fresh tools each time, the same ones in the same order for the same options; no key, nothing deferred, no
    registry. Nothing is read or started here: a tool touches the machine when it is called.

    Args:
        cwd: The root that paths are relative to and stay inside of; `~` is expanded.
        only: Names of the tools to keep.
        without: Names of the tools to leave out.
        read_only: Keeps read_file, glob, grep and web_fetch.
        sandbox: Where commands run; with a separate filesystem every file tool goes through it.
        editor: Unsaved text that read_file, write_file and edit_file see before the disk.
        search: Providers of web_search, asked in order.
        ask: Who answers ask_user_question; True: the framework or the call's context.
        processes: Adds process_start, process_read, process_write and process_stop.
        ledger: Records every call, and adds recall.
        limits: Other numbers.
        require_read: An existing file is changed only by a session that has read it as it is now.
        extra_roots: Further folders that paths may lie in.
        outside: "policy" lets paths outside the roots through, for a program that judges them.

    Raises:
        ValueError: An empty or missing root, an unknown name, or processes in a read-only set or in a sandbox that
            can keep none.

    Example:
        >>> tools = default_tools(".", without=["shell"])
        >>> await tools["grep"](pattern="def main")
    """
    if read_only and processes:
        raise ValueError("processes run commands, and a read-only set runs none: leave one of the two out")
    place = Place.of(cwd, extra_roots=extra_roots, outside=outside, sandbox=sandbox, limits=limits)
    parts = file_parts(place, require_read=require_read, editor=editor) + shell_parts(place) + web_parts(place.limits)
    if read_only:
        parts = Parts(tuple(tool for tool in parts.tools if tool.kind in _READ_ONLY))
    parts += search_parts(search)
    if ask is not None:
        parts += Parts((ask_user_question_tool(),))
    if processes:
        parts += process_parts(place)
    if ledger is not None:
        parts += Parts((recall_tool(ledger),))
    surroundings = ToolContext(ask=None if ask is True else ask, ledger=ledger)
    return _chosen(ToolSet(parts.tools, closers=parts.closers, surroundings=surroundings), only, without)


def _chosen(tools: ToolSet, only: Collection[str], without: Collection[str]) -> ToolSet:
    for option, names in (("only", only), ("without", without)):
        if isinstance(names, str):
            raise TypeError(f"{option} is a list of names, not the string {names!r}")
        for name in names:
            if name not in tools:
                raise ValueError(f"{option} names {name!r}, and the set holds {', '.join(tools.names)}")
    tools = tools.only(*only) if only else tools
    return tools.without(*without) if without else tools
