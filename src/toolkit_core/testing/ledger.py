"""An in-memory `Ledger`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError

if TYPE_CHECKING:
    from toolkit_core.ports.ledger import LedgerEntry


class InMemoryLedger:
    """A ledger that is a list. It keeps what models read too, and never forgets; nothing is redacted.

    Attributes:
        entries: What was recorded, in order.
        shown_texts: What a model read, by entry id.
        is_full: Set it to let recording fail, as on a full disk.
        failures: How often that happened.

    Example:
        >>> ledger = InMemoryLedger()
        >>> tools = default_tools(".", ledger=ledger)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.shown_texts: dict[str, str] = {}
        self.is_full = False
        self.failures: int = 0

    async def record(self, entry: LedgerEntry) -> bool:
        """Keep an entry; False while the ledger is full."""
        if self.is_full:
            self.failures += 1
            return False
        self.entries.append(entry)
        return True

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        """An entry of the same session. Raises `ToolError` `not_found`."""
        for entry in self.entries:
            if entry.entry_id == entry_id and entry.session_id == session:
                return entry
        raise ToolError(f"this session has no recorded call {entry_id!r}", code="not_found")

    async def shown(self, entry_id: str, text: str) -> None:
        """Keep what a model read."""
        self.shown_texts[entry_id] = text
