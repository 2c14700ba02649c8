"""A ledger as one HTML page."""
