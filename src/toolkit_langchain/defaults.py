"""Composition leaf: the core's default tools, converted."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from toolkit_core.defaults import default_tools as core_default_tools
from toolkit_core.output_window import DEFAULT_WINDOW, Window
from toolkit_langchain._tool import to_langchain

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from toolkit_core.host.resolve import AnyPath, Outside
    from toolkit_core.limits import Limits
    from toolkit_core.ports.ask import Ask
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.web_search import WebSearchProvider
    from toolkit_langchain._context import Session

__all__ = ["default_tools"]


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
    window: Window | None = DEFAULT_WINDOW,
    session: Session = None,
) -> list[BaseTool]:
    """`to_langchain(toolkit_core.default_tools(cwd, ...))`: the tools that most agents want.

    Args:
        cwd: The folder that the tools work in; `~` is expanded.
        only: See `toolkit_core.default_tools`, as for all options but the last two.
        without: As there.
        read_only: As there.
        sandbox: As there.
        editor: As there.
        search: As there.
        ask: As there; True asks over `interrupt()`.
        processes: As there. Keep the core's set and close it where background processes must not outlive you.
        ledger: As there.
        limits: As there.
        require_read: As there.
        extra_roots: As there.
        outside: As there.
        window: Bounds what the model reads of a result; None hands over the whole text.
        session: Whose calls these are; by default the run's `thread_id`.

    Raises:
        ValueError: An empty or missing root, an unknown name, or processes in a read-only set.
    """
    tools = core_default_tools(
        cwd,
        only=only,
        without=without,
        read_only=read_only,
        sandbox=sandbox,
        editor=editor,
        search=search,
        ask=ask,
        processes=processes,
        ledger=ledger,
        limits=limits,
        require_read=require_read,
        extra_roots=extra_roots,
        outside=outside,
    )
    return to_langchain(tools, window=window, session=session)
