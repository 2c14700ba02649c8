"""An envelope as LangChain's model and program get it: message content, and the artifact beside it."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING, Any, cast

from toolkit_core.errors import ErrorInfo
from toolkit_core.limits import ARTIFACT_LEDGER_CHARS, ARTIFACT_STRING_CHARS
from toolkit_core.output_window import bounded
from toolkit_core.ports.ledger import SupportsShown
from toolkit_core.result import ImageBlock, TextBlock, ToolResult

if TYPE_CHECKING:
    from toolkit_core.output_window import Window
    from toolkit_core.ports.ledger import Ledger

_log = logging.getLogger("toolkit_langchain")

Content = str | list[str | dict[Any, Any]]

NO_OUTPUT = "(no output)"
"""Some providers refuse a tool message that is empty."""


def message_content(result: ToolResult[Any], window: Window | None, *, recall: bool) -> Content:
    """What the model reads: one string, or standard content blocks where there are images.

    Args:
        result: The envelope.
        window: Bounds the text; None hands over all of it.
        recall: Whether the agent has a tool that reads the ledger, so that the cut can name the entry.
    """
    text = windowed(result.text, window, result.entry_id if recall else None) or NO_OUTPUT
    if not result.images:
        return text
    if text != result.text:
        return [_text(text), *(_image(image) for image in result.images)]
    return [_text(block.text) if isinstance(block, TextBlock) else _image(block) for block in _full(result)]


def windowed(text: str, window: Window | None, recall_id: str | None = None) -> str:
    """The text within the window, whole without one."""
    return text if window is None else window.apply(text, recall_id=recall_id)


def control_flow(result: ToolResult[Any]) -> BaseException | None:
    """LangGraph's control flow that a tool's own body let out, and that the core took for a failure.

    A body that calls `interrupt()` itself, or runs another agent whose tool does, pauses this graph.
    """
    cause = None if result.error is None else result.error.cause
    if cause is None:
        return None
    try:
        from langgraph.errors import GraphBubbleUp
    except ImportError:
        return None
    return cause if isinstance(cause, GraphBubbleUp) else None


async def note_shown(result: ToolResult[Any], window: Window | None, ledger: Ledger | None, *, recall: bool) -> None:
    """Let a ledger that keeps it know what the model read, where that is not the whole."""
    if result.entry_id is None or not isinstance(ledger, SupportsShown):
        return
    whole = result.text
    text = windowed(whole, window, result.entry_id if recall else None)
    if text == whole:
        return
    try:
        await ledger.shown(result.entry_id, text)
    except Exception:  # noqa: BLE001 - a ledger that fails never fails the call
        _log.exception("the ledger did not keep what was shown of %s", result.entry_id)


def presented(result: ToolResult[Any], name: str) -> tuple[ToolResult[Any], dict[str, Any]]:
    """The result and its artifact; a hard error where it has no JSON form and so could not be handed on.

    The artifact is the envelope as plain JSON for the program; it is checkpointed, so it stays of a sensible size.
    With a ledger entry each long string is replaced by the entry's id, which is under `entry_id` too. Without
    one a string past 1 Mi characters is cut in the middle, and the cut says so.
    """
    try:
        plain = result.to_dict()
    except Exception as e:  # noqa: BLE001 - a payload may run anybody's code; the agent's run must go on
        _log.exception("the result of %s has no JSON form", name)
        hint = "This is a fault of the tool, not of the arguments."
        info = ErrorInfo("invalid_result", f"the tool's result has no JSON form ({type(e).__name__})", hint, cause=e)
        result = ToolResult.failure(info)
        plain = result.to_dict()
    return result, _shortened(plain, result.entry_id)


def _shortened(plain: dict[str, Any], entry_id: str | None) -> dict[str, Any]:
    if entry_id is None:
        return cast("dict[str, Any]", _each_string(plain, _cut))

    def referred(text: str) -> str:
        return entry_id if len(text) > ARTIFACT_LEDGER_CHARS else text

    return {**cast("dict[str, Any]", _each_string(plain, referred)), "entry_id": entry_id}


def _cut(text: str) -> str:
    return bounded(text) if len(text) > ARTIFACT_STRING_CHARS else text


def _each_string(value: Any, change: Any) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _each_string(item, change) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_each_string(item, change) for item in cast("list[Any]", value)]
    return value


def _full(result: ToolResult[Any]) -> list[TextBlock | ImageBlock]:
    return [block for block in result.content if not isinstance(block, TextBlock) or block.text]


def _text(text: str) -> dict[Any, Any]:
    return {"type": "text", "text": text}


def _image(block: ImageBlock) -> dict[Any, Any]:
    encoded = base64.b64encode(block.data).decode("ascii")
    return {"type": "image", "base64": encoded, "mime_type": block.mime_type}
