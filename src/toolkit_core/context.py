"""What a call is told about its surroundings, and how it reports progress."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.limits import PROGRESS_INTERVAL_SECONDS, PROGRESS_TEXT_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit_core.ports.ask import Ask
    from toolkit_core.ports.catalog import Catalog
    from toolkit_core.ports.ledger import Ledger

_log = logging.getLogger("toolkit_core")


@dataclass(frozen=True)
class Progress:
    """How far a call has come.

    Attributes:
        kind: What the numbers or the text are: "stdout", "stderr", "bytes", "files", "lines", ...
        text: New output since the last report of this kind; may be empty.
        done: Units finished.
        total: Units in all, where known.
    """

    kind: str
    text: str = ""
    done: float | None = None
    total: float | None = None


@dataclass(frozen=True)
class ToolContext:
    """What surrounds one call. Every field may be absent: a tool works without any of them.

    Attributes:
        session_id: Whose call this is; what a session has read, loaded or started is kept under it.
            Absent, the identity of the tool's set stands in.
        call_id: The framework's id of this call.
        traceparent: W3C trace context (https://www.w3.org/TR/trace-context/) for child processes.
        ask: Who answers questions.
        progress: Who hears of progress; called from the event loop, at most 10 times a second.
        ledger: Where the call is recorded.
        catalog: Where deferred tools are looked up.
        trace_content: Whether spans carry arguments and results.
        approved_subject: The subject that a person or a policy approved; a call whose subject has
            become another is refused.
    """

    session_id: str | None = None
    call_id: str | None = None
    traceparent: str | None = None
    ask: Ask | None = None
    progress: Callable[[Progress], None] | None = None
    ledger: Ledger | None = None
    catalog: Catalog | None = None
    approved_subject: str | None = None
    trace_content: bool = False

    @property
    def session(self) -> str:
        """The session's id, "default" where there is none."""
        return self.session_id or "default"

    def report(self, kind: str, text: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Tell of progress; nothing happens where nobody listens."""
        if self.progress is not None:
            self.progress(Progress(kind, text, done, total))

    def within(self, surroundings: ToolContext) -> ToolContext:
        """The same context, what it lacks taken from the set that the tool stands in."""
        return ToolContext(  # written out: `replace` takes several times as long, and each call comes by
            session_id=self.session_id or surroundings.session_id,
            call_id=self.call_id,
            traceparent=self.traceparent,
            ask=self.ask or surroundings.ask,
            progress=self.progress,
            ledger=self.ledger or surroundings.ledger,
            catalog=self.catalog or surroundings.catalog,
            approved_subject=self.approved_subject,
            trace_content=self.trace_content or surroundings.trace_content,
        )


NO_CONTEXT = ToolContext()


class ProgressThrottle:
    """Passes progress on at most ten times a second; texts that wait are joined, numbers are the newest.

    What a listener raises is logged, once as an error.
    """

    def __init__(self, listener: Callable[[Progress], None]) -> None:
        self._listener, self._failed = listener, False
        self._waiting: dict[str, Progress] = {}
        self._next = 0.0

    def __call__(self, progress: Progress) -> None:
        """Report now, or keep for the next report."""
        before = self._waiting.get(progress.kind)
        if before is not None and before.text:
            progress = replace(progress, text=(before.text + progress.text)[-PROGRESS_TEXT_CHARS:])
        self._waiting[progress.kind] = progress
        if time.monotonic() >= self._next:
            self.flush()

    def flush(self) -> None:
        """Report what still waits, one report a kind."""
        waiting, self._waiting = self._waiting, {}
        self._next = time.monotonic() + PROGRESS_INTERVAL_SECONDS * max(1, len(waiting))
        for progress in waiting.values():
            self._tell(progress)

    def _tell(self, progress: Progress) -> None:
        try:
            self._listener(progress)
        except Exception:  # noqa: BLE001 - a listener's fault must not fail the tool's work
            level = logging.DEBUG if self._failed else logging.ERROR
            self._failed = True
            _log.log(level, "a progress listener failed", exc_info=True)
