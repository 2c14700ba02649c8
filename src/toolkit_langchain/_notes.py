"""What the middleware tells the tool that it is about to run, through LangGraph's layers in between."""

from __future__ import annotations

import contextvars
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit_core.ports.catalog import Catalog
    from toolkit_core.ports.ledger import Ledger


@dataclass(frozen=True)
class CallNotes:
    """Notes about one call.

    Attributes:
        call_id: Which call; notes about another are nobody's.
        approved_subject: What a policy or a person approved the call to act on.
        approved: Whether a person approved it, here or in LangChain's own middleware.
        ledger: Where to record it, where the tool was given no ledger.
        catalog: Where it looks up deferred tools.
    """

    call_id: str | None
    approved_subject: str | None = None
    approved: bool = False
    ledger: Ledger | None = None
    catalog: Catalog | None = None


_NONE = CallNotes(None)
_current: contextvars.ContextVar[CallNotes] = contextvars.ContextVar("toolkit_call_notes", default=_NONE)


def notes_for(call_id: str | None) -> CallNotes:
    """The notes about this call, empty ones where there are none."""
    notes = _current.get()
    return notes if call_id is not None and notes.call_id == call_id else _NONE


@contextmanager
def noting(notes: CallNotes) -> Generator[None]:
    """Notes that hold while the call runs."""
    token = _current.set(notes)
    try:
        yield
    finally:
        _current.reset(token)
