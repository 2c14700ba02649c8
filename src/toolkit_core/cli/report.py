"""`toolkit report`: a ledger as one HTML page."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit_core.cli.console import complain, say
from toolkit_core.cli.reading_ledger import add_filters, chosen_calls, opened_ledger, said
from toolkit_core.errors import ErrorInfo, ToolError
from toolkit_core.limits import REPORT_CALLS
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from toolkit_core.host.sqlite import RecordedCall, SQLiteLedger

HELP = "draw a ledger as one HTML page that needs no network"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("ledger", metavar="LEDGER", help="the file that SQLiteLedger wrote")
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="the page (default: report.html)")
    add_filters(parser)


def run(options: argparse.Namespace) -> int:
    """Write the page, whole or not at all."""
    with opened_ledger(options) as ledger:
        return _draw(ledger, options)


def _draw(ledger: SQLiteLedger, options: argparse.Namespace) -> int:
    from toolkit_core.report import render

    target = Path(options.output)
    count = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        for call in _whole(ledger, options):
            count += 1
            yield _plain(call)

    try:
        if target.exists() and Path(ledger.path).exists() and target.samefile(ledger.path):
            complain("toolkit report: the page would replace the ledger; name another FILE with -o")
            return 2
        _write(target, render(counted(), source=options.ledger))
    except ToolError as e:
        complain(f"toolkit report: {said(e)}")
        return 1
    except OSError as e:
        complain(f"toolkit report: {target} cannot be written: {e.strerror or e}")
        return 1
    told = f"{target}: {count:,} calls" + (f", the first {REPORT_CALLS:,} on the page" if count > REPORT_CALLS else "")
    if _is_stream(target):
        complain(told)
    else:
        say(f"{told}, {target.stat().st_size:,} bytes")
    return 0


def _whole(ledger: SQLiteLedger, options: argparse.Namespace) -> Iterator[RecordedCall]:
    for call in chosen_calls(ledger, options):
        try:
            yield ledger.call(call.entry.entry_id) or call
        except ToolError as e:  # one damaged call must not hide the others
            info = ErrorInfo("io_error", f"What was recorded of this call cannot be read: {e.message}")
            yield replace(call, entry=replace(call.entry, result=ToolResult.failure(info).to_dict()))


def _plain(call: RecordedCall) -> dict[str, Any]:
    """The call as `render` takes it."""
    about = {name: getattr(call, name) for name in ("code", "size_bytes", "dropped", "shown")}
    return {**vars(call.entry), **about}


def _is_stream(target: Path) -> bool:
    """A device or a pipe, which cannot be replaced."""
    return target.exists() and not target.is_file() and not target.is_dir()


def _write(target: Path, pieces: Iterator[str]) -> None:
    """Through a file beside it, so that a failure leaves an older page as it was; only its owner may read it."""
    if _is_stream(target):
        with target.open("w", encoding="utf-8", newline="") as stream:
            stream.writelines(pieces)
        return
    target = Path(os.path.realpath(target))
    descriptor, name = tempfile.mkstemp(prefix=".report-", suffix=".html", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as page:
            page.writelines(pieces)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
