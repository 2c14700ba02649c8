"""Processes: commands that go on between calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ProcessState:
    """A started process and what it wrote since the last look.

    Attributes:
        process_id: Its id in this session (not the system's pid).
        command: The command that it was started with.
        running: Whether it runs still.
        exit_code: Its exit status, once it ended by itself.
        signal: The signal that ended it.
        output: New output, stdout and stderr as they came.
        output_cut: Bytes of new output dropped because nobody read them in time.
    """

    process_id: str
    command: str
    running: bool
    exit_code: int | None = None
    signal: int | None = None
    output: bytes = b""
    output_cut: int = 0


class Processes(Protocol):
    """Background processes of a session.

    Raises `ToolError`: `not_found` (no such id in this session), `exhausted` never; `unavailable`,
    `invalid_arguments`, `too_large` (too many at once).
    """

    async def start(
        self, command: str, *, cwd: str = "", pty: bool = False, session: str = "default", traceparent: str | None = None
    ) -> ProcessState:
        """Start a command and return at once."""
        ...

    async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
        """New output, waiting up to `wait_seconds` for some or for the end."""
        ...

    async def write(self, process_id: str, text: str, *, session: str = "default") -> ProcessState:
        """Write to its standard input."""
        ...

    async def stop(self, process_id: str, *, session: str = "default") -> ProcessState:
        """End it and everything that it started."""
        ...
