"""Composition leaf: the core's default tools, converted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from toolkit_core import defaults as core_defaults
from toolkit_core.limits import ANSWER_TIMEOUT_SECONDS
from toolkit_core.output_window import Window
from toolkit_llamaindex._tool import to_llamaindex

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from llama_index.core.tools import FunctionTool

    from toolkit_core.host.resolve import AnyPath, Outside
    from toolkit_core.limits import Limits
    from toolkit_core.ports.ask import Ask
    from toolkit_core.ports.editor import Editor
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.ports.sandbox import SandboxClient
    from toolkit_core.ports.web_search import WebSearchProvider
    from toolkit_llamaindex.approvals import Decider

_WINDOW: Final = Window()


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
    window: Window | None = _WINDOW,
    policy: Decider | None = None,
    bind_context: bool = True,
    answer_timeout_seconds: float | None = ANSWER_TIMEOUT_SECONDS,
) -> list[FunctionTool]:
    """The tools that most agents want, for LlamaIndex: `FunctionAgent(tools=default_tools("."), llm=llm)`.

    The options are those of `toolkit_core.default_tools`, then those of `to_llamaindex`. To close what sessions
    left running (`processes=True`), keep the core's set and convert it: `to_llamaindex(tools)`, `tools.aclose()`.

    Raises:
        ValueError: As the core's function.
    """
    tools = core_defaults.default_tools(
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
    return to_llamaindex(
        tools,
        window=window,
        policy=policy,
        bind_context=bind_context,
        answer_timeout_seconds=answer_timeout_seconds,
    )
