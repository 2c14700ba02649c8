"""Ledger: the record of every call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

Outcome = Literal["ok", "error", "cancelled", "suspended"]


@dataclass(frozen=True)
class LedgerEntry:
    """One finished call, whole.

    Attributes:
        entry_id: Unique; made when the call starts.
        parent_id: The entry of the call within which this one was made, "" for none.
        session_id: Whose call.
        call_id: The framework's id, where there was one.
        tool: The tool's name.
        arguments: As the model sent them.
        outcome: How it ended.
        result: The envelope as `ToolResult.to_dict(include_images=True)` gives it. Of a cancelled call the
            output so far, None where there was none.
        started_at: Seconds since the epoch.
        duration_seconds: Wall time.
        risk: The tool's risk, "" for an unclassified tool.
        traceparent: W3C trace context of the call.
    """

    entry_id: str
    session_id: str
    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: Outcome
    result: Mapping[str, Any] | None
    started_at: float
    duration_seconds: float
    risk: str = ""
    traceparent: str = ""
    parent_id: str = ""


class Ledger(Protocol):
    """Where calls are recorded. A ledger that fails never fails the call."""

    async def record(self, entry: LedgerEntry) -> bool:
        """Store an entry; False where it could not be stored (said once, and counted, by the ledger)."""
        ...

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        """An entry of the same session. Raises `ToolError` `not_found`, `io_error`."""
        ...


@runtime_checkable
class SupportsShown(Protocol):
    """A ledger that also keeps what a model read of a result, where that was not the whole."""

    async def shown(self, entry_id: str, text: str) -> None:
        """Keep the text that an adapter handed over."""
        ...
