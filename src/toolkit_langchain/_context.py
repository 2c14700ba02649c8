"""What LangChain and LangGraph know of a call, as the core's `ToolContext`."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config

from toolkit_core.context import Progress, ToolContext
from toolkit_langchain._notes import notes_for
from toolkit_langchain.ask import SCRATCHPAD, InterruptAsk, answerable

if TYPE_CHECKING:
    from toolkit_core.output_window import Window
    from toolkit_core.ports.catalog import Catalog
    from toolkit_core.ports.ledger import Ledger
    from toolkit_core.tool import Tool

_log = logging.getLogger("toolkit_langchain")

Session = str | Callable[[RunnableConfig], str | None] | None
"""A fixed session id, or a function of the run's config; None: the thread's id."""


@dataclass(frozen=True)
class Surroundings:
    """What the tools of one `to_langchain` share.

    Attributes:
        window: Bounds what the model reads; None turns it off.
        session: Whose calls they are.
        ledger: Where calls are recorded.
        catalog: Where deferred tools are looked up.
        recall: Whether the model can read the ledger.
    """

    window: Window | None
    session: Session = None
    ledger: Ledger | None = None
    catalog: Catalog | None = None
    recall: bool = False


def tool_context(
    tool: Tool[Any],
    around: Surroundings,
    config: RunnableConfig,
    *,
    call_id: str | None,
    approved_subject: str | None = None,
) -> ToolContext:
    """The context of one call. A port that the tool's own set was given stands before LangGraph's interrupt."""
    notes = notes_for(call_id)
    pausing = tool.surroundings.ask is None and answerable(config)
    return ToolContext(
        session_id=session_id(around.session, config),
        call_id=call_id,
        ask=InterruptAsk(tool.name, call_id or "") if pausing else None,
        progress=_progress_listener(tool.name, call_id),
        ledger=around.ledger or notes.ledger,
        catalog=around.catalog or notes.catalog,
        approved_subject=approved_subject or notes.approved_subject,
    )


def session_id(session: Session, config: RunnableConfig) -> str | None:
    """The session that was fixed, else the run's thread id, else None."""
    if isinstance(session, str):
        return session
    if session is not None:
        return session(config)
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)


def in_graph(config: RunnableConfig | None) -> bool:
    """Whether a task of a LangGraph run makes this call."""
    return any(SCRATCHPAD in (one or {}).get("configurable", {}) for one in (config, var_child_runnable_config.get()))


def _progress_listener(tool: str, call_id: str | None) -> Callable[[Progress], None] | None:
    """Sends progress to the graph's custom stream and as deltas of the tool's output; None outside a graph."""
    try:
        from langgraph.config import get_stream_writer

        writer = get_stream_writer()
    except (ImportError, RuntimeError, KeyError, AttributeError):
        # no langgraph here, or no graph runs: LangGraph tells these apart by whatever look-up fails first
        return None
    around = contextvars.copy_context()

    def listener(progress: Progress) -> None:
        event = {"type": "tool_progress", "tool": tool, "tool_call_id": call_id, **vars(progress)}
        writer(event)
        around.copy().run(_emit_delta, writer, event)

    return listener


def _emit_delta(writer: Any, event: dict[str, Any]) -> None:
    """A tool-output delta, through a runtime of our own: tools with a JSON Schema are handed none."""
    from langgraph.prebuilt import ToolRuntime

    runtime: Any = ToolRuntime(
        state=None, context=None, config=RunnableConfig(), stream_writer=writer, tool_call_id=None, store=None
    )
    runtime.emit_output_delta(event)
