"""Progress on the workflow's event stream."""

from __future__ import annotations

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
    """A listener for `ToolContext.progress` that writes events to the stream of the run."""

    def write(progress: Progress) -> None:
        ctx.write_event_to_stream(
            ToolProgressEvent(
                tool_name=tool_name,
                tool_id=tool_id,
                kind=progress.kind,
                text=progress.text,
                done=progress.done,
                total=progress.total,
            )
        )

    return write
