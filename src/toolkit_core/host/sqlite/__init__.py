"""Stores in SQLite files: the ledger and the commitments."""

from toolkit_core.host.sqlite.commitments import SQLiteCommitments
from toolkit_core.host.sqlite.ledger import RecordedCall, SQLiteLedger

__all__ = ["RecordedCall", "SQLiteCommitments", "SQLiteLedger"]
