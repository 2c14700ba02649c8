"""Processes: commands that go on between calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ProcessState:
    """A started process and what it wrote since the last look.

    Attributes:
        process_id: Its id (not the system's pid); no other session can use it.
        command: The command that it was started with.
        running: Whether it runs still.
        exit_code: Its exit status, once it ended by itself.
        signal: The signal that ended it.
        output: New output, stdout and stderr as they came; no character is cut while it runs.
        output_cut: Bytes of new output dropped, the oldest, because nobody read them in time.
        note: What else the model must know (that its keeper was killed, say); may be empty.
    """

    process_id: str
    command: str
    running: bool
    exit_code: int | None = None
    signal: int | None = None
    output: bytes = b""
    output_cut: int = 0
    note: str = ""


class Processes(Protocol):
    """Background processes of a session.

    Raises `ToolError`: `not_found` (no such id in this session), `unavailable`, `invalid_arguments`,
    `too_large` (too many at once), `io_error` (the system refused), `failed` (its input is closed or it has
    ended), `timed_out` (it does not read its input).
    """

    async def start(
        self,
        command: str,
        *,
        cwd: str = "",
        pty: bool = False,
        session: str = "default",
        traceparent: str | None = None,
    ) -> ProcessState:
        """Start a command and return at once, or within a moment with its first output."""
        ...

    async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
        """New output, waiting up to `wait_seconds` for some or for the end."""
        ...

    async def write(self, process_id: str, text: str, *, session: str = "default") -> ProcessState:
        """Write to its standard input. Control characters reach a terminal as keys: U+0003 is Ctrl-C.

        Without a terminal a lone U+0004 closes its input.
        """
        ...

    async def stop(self, process_id: str, *, session: str = "default") -> ProcessState:
        """End it and everything that it started; of an ended one, its last state."""
        ...

    async def command_of(self, process_id: str) -> str:
        """The command that a process of any session was started with; "" for an unknown id."""
        ...
