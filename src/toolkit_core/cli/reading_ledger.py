"""What `ledger` and `report` share: the ledger that a command line names, and which of its calls."""

from __future__ import annotations

import argparse
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.errors import ToolError
    from toolkit_core.host.sqlite import RecordedCall, SQLiteLedger


def add_filters(parser: argparse.ArgumentParser) -> None:
    """The options that choose calls."""
    parser.add_argument("--session", metavar="S", help="only calls of this session")
    parser.add_argument("--tool", metavar="T", help="only calls of this tool")
    parser.add_argument("--outcome", metavar="O", help="ok, error, cancelled, suspended, or an error's code")


@contextmanager
def opened_ledger(options: argparse.Namespace) -> Generator[SQLiteLedger]:
    """The ledger, only to be read; closed at the end."""
    from toolkit_core.host.bridge import run_blocking
    from toolkit_core.host.sqlite import SQLiteLedger

    ledger = SQLiteLedger(options.ledger, read_only=True)
    try:
        yield ledger
    finally:
        run_blocking(ledger.aclose())


def said(error: ToolError) -> str:
    """Message and hint on one line, without what would steer a terminal."""
    return one_line_name(f"{error.message}. {error.hint}" if error.hint else error.message)


def chosen_calls(ledger: SQLiteLedger, options: argparse.Namespace) -> Iterator[RecordedCall]:
    """The calls that the options choose, without their content. Raises `ToolError`."""
    for call in ledger.calls(session=options.session):
        if options.tool is not None and call.entry.tool != options.tool:
            continue
        if options.outcome is None or options.outcome in (call.entry.outcome, call.code):
            yield call
