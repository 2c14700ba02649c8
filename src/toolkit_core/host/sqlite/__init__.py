"""Stores in SQLite files: the ledger and the commitments."""

from toolkit_core.host.sqlite.ledger import SQLiteLedger

__all__ = ["SQLiteLedger"]
