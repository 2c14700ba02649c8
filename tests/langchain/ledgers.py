"""A ledger for tests."""

from __future__ import annotations

from toolkit_core.errors import ToolError
from toolkit_core.ports.ledger import LedgerEntry


class MemoryLedger:
    """A ledger in a list, which knows what was shown."""

    def __init__(self) -> None:
        self.entries: list[LedgerEntry] = []
        self.texts: dict[str, str] = {}

    async def record(self, entry: LedgerEntry) -> bool:
        self.entries.append(entry)
        return True

    async def shown(self, entry_id: str, text: str) -> None:
        self.texts[entry_id] = text

    async def read(self, entry_id: str, *, session: str) -> LedgerEntry:
        for entry in self.entries:
            if (entry.entry_id, entry.session_id) == (entry_id, session):
                return entry
        raise ToolError("no such entry", code="not_found")
