"""Tools of other makers under the middleware: judged, windowed, recorded, and kept from ending the run."""

from __future__ import annotations

import logging
import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import Command

from toolkit_core.errors import ErrorInfo
from toolkit_core.factories import schema_tool
from toolkit_core.limits import DESCRIPTION_MAX_CHARS
from toolkit_core.ports.ledger import Ledger, LedgerEntry
from toolkit_core.result import ToolResult
from toolkit_langchain.approvals import shown_arguments

if TYPE_CHECKING:
    from toolkit_core.output_window import Window
    from toolkit_core.tool import Tool

_log = logging.getLogger("toolkit_langchain")


def facade(tool: BaseTool) -> Tool[Any]:
    """A foreign tool as a policy sees it: its name, no effects (unclassified) and no subject."""
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", tool.name)[:64] or "tool"
    description = (tool.description or tool.name or "A tool.")[:DESCRIPTION_MAX_CHARS]
    made = schema_tool(
        _never_called, name=name, description=description, parameters={"type": "object", "properties": {}}
    )
    return made if name == tool.name else replace(made, aliases=())


async def _never_called(arguments: dict[str, Any]) -> None:
    return None


def failure_message(error: Exception, *, name: str, call_id: str) -> ToolMessage:
    """What the model reads of an exception: a ToolException's own words, of any other its type alone."""
    if isinstance(error, ToolException):
        info = ErrorInfo("failed", str(error) or "the tool failed")
    else:
        _log.error("the tool %s failed", name, exc_info=error)
        hint = "This is a fault of the tool, not of the arguments; try another way."
        info = ErrorInfo("internal", f"the tool failed inside ({type(error).__name__})", hint)
    result = ToolResult[Any].failure(info)
    return ToolMessage(result.text, artifact=result.to_dict(), status="error", name=name, tool_call_id=call_id)


def in_window(answer: Any, window: Window | None, recall_id: str | None = None) -> Any:
    """The answer with its messages' texts within the window; Commands and others pass as they are."""
    if window is None:
        return answer
    if isinstance(answer, ToolMessage):
        return answer.model_copy(update={"content": _content_in_window(answer.content, window, recall_id)})
    if isinstance(answer, Command):
        answer = cast("Any", answer)
        update = answer.update
        messages = cast("dict[str, Any]", update).get("messages") if isinstance(update, dict) else None
        if isinstance(messages, list):
            cut = [in_window(message, window, recall_id) for message in cast("list[Any]", messages)]
            return replace(answer, update={**cast("dict[str, Any]", update), "messages": cut})
    return answer


def _content_in_window(content: Any, window: Window, recall_id: str | None) -> Any:
    if isinstance(content, str):
        return window.apply(content, recall_id=recall_id)
    return [_block_in_window(block, window, recall_id) for block in content]


def _block_in_window(block: Any, window: Window, recall_id: str | None) -> Any:
    if isinstance(block, str):
        return window.apply(block, recall_id=recall_id)
    if isinstance(block.get("text"), str):
        return {**block, "text": window.apply(block["text"], recall_id=recall_id)}
    return block


async def record(
    ledger: Ledger, request: Any, answer: Any, *, session: str, started: tuple[float, float]
) -> str | None:
    """Record a call that the core does not see; returns the entry's id. A ledger that fails never fails the call."""
    messages: list[Any] = [answer] if isinstance(answer, ToolMessage) else []
    text = "\n".join(str(message.text) for message in messages)
    failed = any(message.status == "error" for message in messages)
    result = ToolResult[Any].failure(ErrorInfo("failed", text)) if failed else ToolResult[Any].ok(text)
    entry = LedgerEntry(
        entry_id=uuid4().hex[:16],
        session_id=session,
        call_id=request.tool_call["id"] or "",
        tool=request.tool_call["name"],
        arguments=shown_arguments(request.tool_call["args"]),
        outcome="error" if failed else "ok",
        result=result.to_dict(),
        started_at=started[0],
        duration_seconds=time.monotonic() - started[1],
    )
    try:
        return entry.entry_id if await ledger.record(entry) else None
    except Exception:  # noqa: BLE001 - a ledger that fails never fails the call
        _log.exception("the ledger did not record a call of %s", entry.tool)
        return None


def clock() -> tuple[float, float]:
    """Wall time since the epoch and a monotonic time, both in seconds."""
    return time.time(), time.monotonic()
