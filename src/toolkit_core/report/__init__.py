"""A ledger as one HTML page."""

from toolkit_core.report.page import render

__all__ = ["render"]
