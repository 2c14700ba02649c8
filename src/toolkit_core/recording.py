"""One call on its way into the ledger."""

from __future__ import annotations

import logging
import time
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast
from uuid import uuid4

from toolkit_core.errors import Suspended
from toolkit_core.limits import LEDGER_PARTIAL_CHARS
from toolkit_core.ports.ledger import LedgerEntry, Outcome
from toolkit_core.result import ToolResult
from toolkit_core.schema import encodable, plain_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from toolkit_core.context import Progress, ToolContext
    from toolkit_core.effects import Effects
    from toolkit_core.ports.ledger import Ledger

DataT = TypeVar("DataT")

_log = logging.getLogger("toolkit_core")
_parent: ContextVar[str] = ContextVar("toolkit_parent_entry", default="")


async def recorded(
    run: Callable[[ToolContext], Awaitable[ToolResult[DataT]]],
    *,
    tool: str,
    effects: Effects | None,
    arguments: object,
    context: ToolContext,
    ledger: Ledger,
) -> ToolResult[DataT]:
    """Run a call and record it whole: what it returned, that it was cancelled and what it had said so far."""
    recording = _Recording(tool, effects, arguments, context, ledger)
    parent = _parent.set(recording.entry_id)
    try:
        result = await run(replace(context, progress=recording.hear))
    except BaseException as e:
        await recording.store("suspended" if isinstance(e, Suspended) else "cancelled", recording.said())
        raise
    finally:
        _parent.reset(parent)
    stored = await recording.store("error" if result.is_error else "ok", result)
    return replace(result, entry_id=recording.entry_id) if stored else result


@dataclass
class _Recording:
    tool: str
    effects: Effects | None
    arguments: object
    context: ToolContext
    ledger: Ledger
    entry_id: str = field(default_factory=lambda: uuid4().hex[:16])
    parent_id: str = field(default_factory=_parent.get)
    started_at: float = field(default_factory=time.time)
    clock: float = field(default_factory=time.monotonic)
    heard: dict[str, str] = field(default_factory=dict[str, str])

    def hear(self, progress: Progress) -> None:
        """Keep the latest output: of a cancelled call it is all there is."""
        if progress.text:
            kept = self.heard.get(progress.kind, "") + progress.text
            self.heard[progress.kind] = kept[-LEDGER_PARTIAL_CHARS:]
        if self.context.progress is not None:
            self.context.progress(progress)

    def said(self) -> ToolResult[Any] | None:
        """The output so far as a result, None where there was none."""
        parts = [f"--- {kind} so far ---\n{encodable(text)}" for kind, text in self.heard.items()]
        return ToolResult.ok("\n".join(parts)) if parts else None

    async def store(self, outcome: Outcome, result: ToolResult[Any] | None) -> bool:
        try:
            return await self.ledger.record(self._entry(outcome, result))
        except Exception:  # noqa: BLE001 - a ledger that fails never fails the call
            _log.exception("the ledger did not record a call of %s", self.tool)
            return False

    def _entry(self, outcome: Outcome, result: ToolResult[Any] | None) -> LedgerEntry:
        return LedgerEntry(
            entry_id=self.entry_id,
            parent_id=self.parent_id,
            session_id=self.context.session,
            call_id=self.context.call_id or "",
            tool=self.tool,
            arguments=_plain_arguments(self.arguments),
            outcome=outcome,
            result=None if result is None else _plain_result(result),
            started_at=self.started_at,
            duration_seconds=time.monotonic() - self.clock,
            risk=self.effects.risk if self.effects is not None else "",
            traceparent=self.context.traceparent or "",
        )


def _plain_result(result: ToolResult[Any]) -> dict[str, Any]:
    try:
        return result.to_dict(include_images=True)
    except TypeError:  # data of a custom tool that has no JSON form; what the model read is kept
        return replace(result, data=None).to_dict(include_images=True)


def _plain_arguments(arguments: object) -> dict[str, Any]:
    try:
        plain = plain_json(arguments)
    except TypeError:
        return {"unrecordable": type(arguments).__name__}
    return cast("dict[str, Any]", plain) if isinstance(plain, dict) else {"arguments": plain}
