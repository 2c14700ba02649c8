"""Commands: what shell needs of a machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

StreamName = Literal["stdout", "stderr"]


@dataclass(frozen=True)
class CommandResult:
    """How one command ended.

    Attributes:
        exit_code: The shell's exit status; None where a signal ended it or it was killed at its timeout.
        signal: The number of the signal that ended the shell, else None.
        stdout: Kept output, at most the cap: head and tail where more came. Bytes as they came.
        stderr: The same for standard error.
        stdout_cut: How many bytes of stdout were dropped between head and tail; 0 when it is whole.
        stderr_cut: The same for standard error.
        timed_out: The timeout ended it.
        survivors_killed: Processes it had left running, killed on return.
        duration_seconds: Wall time.
        note: What else the model must know (a quarantined file, say); may be empty.
        stdout_cut_at: Where in `stdout` the dropped bytes were, an offset in bytes.
        stderr_cut_at: The same for standard error.
    """

    exit_code: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    stdout_cut: int = 0
    stderr_cut: int = 0
    timed_out: bool = False
    survivors_killed: int = 0
    duration_seconds: float = 0.0
    note: str = ""
    stdout_cut_at: int = 0
    stderr_cut_at: int = 0


class Commands(Protocol):
    """Running one command in a shell, to its end.

    Raises `ToolError`, nothing started: `invalid_arguments` (empty, NUL, a lone surrogate, too long, cwd is a
    file, an impossible timeout), `access_denied` (cwd outside the root), `not_found` (cwd is gone),
    `unavailable` (no shell, no sandbox), `io_error` (the system refused to start it); and `killed`, when
    whoever kept the command was killed. Cancelled, it kills and reaps the whole tree first.
    """

    @property
    def shell(self) -> str:
        """The shell that reads commands: "bash", "sh" or "powershell"."""
        ...

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = 120.0,
        session: str = "default",
        traceparent: str | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command; `cwd` is relative to the root and must lie in it.

        `on_output` is called on the event loop with what came; pieces of a flood may be left out.
        """
        ...
