"""`toolkit ledger`: list the calls of a ledger, or show one whole."""

from __future__ import annotations

import argparse
import json
import re
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from toolkit_core.cli.console import Style, complain
from toolkit_core.cli.console import say as say_raw
from toolkit_core.cli.reading_ledger import add_filters, chosen_calls, opened_ledger, said
from toolkit_core.errors import ToolError
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.host.sqlite import RecordedCall, SQLiteLedger

HELP = "list the calls of a ledger, or show one whole"

_CALLS_AT_ONCE = 500
"""Lines written together."""

_STEERS_A_TERMINAL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("ledger", metavar="LEDGER", help="the file that SQLiteLedger wrote")
    parser.add_argument("entry", nargs="?", metavar="ENTRY", help="show this call whole; the first characters do")
    parser.add_argument("--json", action="store_true", help="JSON: a line a call, or the whole call")
    parser.add_argument("--shown", action="store_true", help="with ENTRY: only what the model read, byte for byte")
    add_filters(parser)


def run(options: argparse.Namespace) -> int:
    """List or show."""
    try:
        with opened_ledger(options) as ledger:
            return _list(ledger, options) if options.entry is None else _show(ledger, options)
    except ToolError as e:
        complain(f"toolkit ledger: {said(e)}")
        return 1


def say(text: str, style: Style = "") -> None:
    """Write text exactly to a file or a pipe; to a terminal without what would steer it."""
    if sys.stdout.isatty():
        text = _STEERS_A_TERMINAL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)
    say_raw(text, style)


def _list(ledger: SQLiteLedger, options: argparse.Namespace) -> int:
    lines = list[str]()
    number = 0
    for number, call in enumerate(chosen_calls(ledger, options), 1):  # noqa: B007 - counted
        lines.append(json.dumps(_about(call), ensure_ascii=False) if options.json else _line(call))
        if len(lines) == _CALLS_AT_ONCE:
            say("\n".join(lines))
            lines.clear()
    if lines:
        say("\n".join(lines))
    if number == 0 and not options.json:
        filtered = any((options.session, options.tool, options.outcome))
        say("no call fits" if filtered else "the ledger holds no calls", "faint")
    return 0


def _line(call: RecordedCall) -> str:
    entry = call.entry
    outcome = call.code or entry.outcome
    dropped = "  (content dropped)" if call.dropped else ""
    return (
        f"{one_line_name(entry.entry_id):<16}  {moment(entry.started_at)}  {entry.duration_seconds:9.3f} s  "
        f"{one_line_name(outcome):<17}  {one_line_name(entry.tool)}  [{one_line_name(entry.session_id)}]{dropped}"
    )


def _show(ledger: SQLiteLedger, options: argparse.Namespace) -> int:
    ids = [options.entry] if ledger.call(options.entry) is not None else ledger.ids(options.entry)
    if len(ids) != 1:
        many = f"{len(ids)} entries begin with {options.entry!r}: {', '.join(ids)}"
        complain(f"toolkit ledger: {many if ids else f'there is no entry {options.entry!r}'}")
        return 1
    call = ledger.call(ids[0])
    if call is None:
        complain(f"toolkit ledger: there is no entry {ids[0]!r}")
        return 1
    if options.shown:
        say(_read_by_model(call))
    elif options.json:
        say(json.dumps(_whole(call), indent=2, ensure_ascii=False))
    else:
        _show_text(call)
    return 0


def _about(call: RecordedCall) -> dict[str, Any]:
    about = {key: value for key, value in vars(call.entry).items() if key not in ("arguments", "result")}
    return {**about, "code": call.code, "size_bytes": call.size_bytes, "dropped": call.dropped}


def _whole(call: RecordedCall) -> dict[str, Any]:
    return {**_about(call), "arguments": call.entry.arguments, "result": call.entry.result, "shown": call.shown}


def _show_text(call: RecordedCall) -> None:
    for key, value in _about(call).items():
        if value not in ("", None, False):
            told = moment(value) if key == "started_at" else one_line_name(str(value))
            say(f"{key:<17} {told}", "faint")
    if call.dropped:
        say("\nIts content was dropped to keep the ledger within its size.")
        return
    say("\narguments", "title")
    say(json.dumps(call.entry.arguments, indent=2, ensure_ascii=False))
    data = (call.entry.result or {}).get("data")
    if data is not None:
        say("\ndata", "title")
        say(json.dumps(data, indent=2, ensure_ascii=False))
    say("\ntext", "title")
    say(_text(call) if call.entry.result is not None else "(it ended without a result)")
    if call.shown is not None:
        say(f"\nThe model read {len(call.shown):,} characters of it; --shown shows them.", "faint")


def _text(call: RecordedCall) -> str:
    blocks: list[dict[str, Any]] = (call.entry.result or {}).get("content") or []
    return "\n".join(
        str(block.get("text", ""))
        if block.get("type") == "text"
        else f"[image {block.get('mime_type')}, {block.get('size_bytes')} bytes]"
        for block in blocks
    )


def _read_by_model(call: RecordedCall) -> str:
    return _text(call) if call.shown is None else call.shown


def moment(epoch: float) -> str:
    """A time as people write it, with its offset; a number where it is out of range."""
    try:
        return datetime.fromtimestamp(epoch).astimezone().isoformat(" ", "milliseconds")
    except (ValueError, OverflowError, OSError):
        return str(epoch)
