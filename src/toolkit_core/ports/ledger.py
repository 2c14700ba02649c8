"""Ledger: the record of every call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Outcome = Literal["ok", "error", "cancelled", "suspended"]


@dataclass(frozen=True)
class LedgerEntry:
    """One finished call, whole.

    Attributes:
        session_id: Whose call.
        call_id: The framework's id, where there was one.
        tool: The tool's name.
        arguments: As the model sent them.
        outcome: How it ended.
        result: The envelope as `ToolResult.to_dict(include_images=True)` gives it; None where the call
            was cancelled or suspended before it had one.
        started_at: Seconds since the epoch.
        duration_seconds: Wall time.
        risk: The tool's risk, "" for an unclassified tool.
        traceparent: W3C trace context of the call.
    """

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


class Ledger(Protocol):
    """Where calls are recorded. A ledger that fails never fails the call."""

    async def record(self, entry: LedgerEntry) -> str:
        """Store an entry; returns its id."""
        ...

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        """An entry of the same session. Raises `ToolError` `not_found`."""
        ...
