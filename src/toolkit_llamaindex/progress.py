"""Progress on the workflow's event stream."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from typing import TYPE_CHECKING, Any

from llama_index.core.workflow import Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.core.workflow import Context

    from toolkit_core.context import Progress


class ToolProgressEvent(Event):
    """What a running tool reports, at most ten times a second.

    `async for event in handler.stream_events()` yields it beside LlamaIndex's own events.

    Attributes:
        tool_name: The tool that runs.
        tool_id: The call's id, as in `ToolCall`; "" where the agent gave none.
        kind: What the text or the numbers are: "stdout", "bytes", "files", ...
        text: New output since the last event of this kind.
        done: Units finished.
        total: Units in all, where known.
    """

    tool_name: str
    tool_id: str = ""
    kind: str
    text: str = ""
    done: float | None = None
    total: float | None = None


def progress_to_stream(ctx: Context[Any], *, tool_name: str, tool_id: str) -> Callable[[Progress], None]:
    """A listener for `ToolContext.progress` that writes events to the stream of the run.

    Made in the step's task; may be called from the worker thread of a synchronous tool.
    """
    loop, home, variables = asyncio.get_running_loop(), threading.get_ident(), contextvars.copy_context()

    def write(progress: Progress) -> None:
        event = ToolProgressEvent(
            tool_name=tool_name,
            tool_id=tool_id,
            kind=progress.kind,
            text=progress.text,
            done=progress.done,
            total=progress.total,
        )
        if threading.get_ident() == home:
            ctx.write_event_to_stream(event)
        else:
            loop.call_soon_threadsafe(ctx.write_event_to_stream, event, context=variables)

    return write
