"""shell: one command, from its start to its last process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pydantic import Field, create_model
from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.errors import ErrorCode, ToolError
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.limits import COMMAND_TIMEOUT_MAX_SECONDS, COMMAND_TIMEOUT_SECONDS, TEXT_BLOCK_CHARS
from toolkit_core.result import ToolResult
from toolkit_core.tools._command_text import LiveText, cut_note, joined_streams, signal_name, stream_text

if TYPE_CHECKING:
    from toolkit_core.context import ToolContext
    from toolkit_core.ports.commands import CommandResult, Commands, StreamName
    from toolkit_core.tool import Siblings, Tool

COMMAND_EFFECTS: Final = Effects(reads=True, writes=True, destructive=True, network=True, executes=True)
COMMAND_ALIASES: Final = {"cmd": "command", "working_directory": "cwd", "workdir": "cwd", "timeout": "timeout_seconds"}
"""Names that models were trained on; accepted, never advertised."""

_SHELL_SIGNAL_BASE: Final = 128  # a shell's own exit status for a child that a signal ended (POSIX sh, 2.8.2)


class ShellArguments(Arguments):
    """The arguments of shell."""

    command: str = Field(min_length=1, description="Command line for the shell, taken as it is.")
    timeout_seconds: float = Field(
        default=COMMAND_TIMEOUT_SECONDS,
        gt=0,
        description=f"When to end it; more than {COMMAND_TIMEOUT_MAX_SECONDS:g} is clamped.",
    )
    cwd: str = Field(default="", description="Folder to run in, inside the root; empty for the root.")


class ShellData(TypedDict):
    """The payload of shell."""

    exit_code: int | None
    signal: int | None
    stdout: str
    stderr: str
    stdout_cut: int
    stderr_cut: int
    timed_out: bool
    survivors_killed: int
    duration_seconds: float


def shell_tool(
    commands: Commands,
    *,
    name: str = "shell",
    description: str | None = None,
    siblings: Collection[str] | None = None,
    nonzero_is_error: bool = False,
    default_timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
    max_timeout_seconds: float = COMMAND_TIMEOUT_MAX_SECONDS,
) -> Tool[ShellData]:
    """The tool shell over a `Commands` port.

    Args:
        commands: Where commands run.
        name: Another name; "shell" and "bash" are each other's alias.
        description: Used verbatim.
        siblings: Kinds of the other tools to hint at; None: the set decides.
        nonzero_is_error: An exit code other than 0 is the error `failed` instead of data.
        default_timeout_seconds: Where a call names no timeout.
        max_timeout_seconds: More is clamped, and the text says so.

    Raises:
        TypeError: No port.
        ValueError: Timeouts that are not positive, or the default above the maximum.

    Error codes: timed_out and killed (with the output so far and the payload), failed (with
    `nonzero_is_error`), invalid_arguments, access_denied, not_found, unavailable, io_error.
    """
    if commands is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers err)
        raise TypeError("shell_tool needs a Commands port, such as HostCommands(cwd)")
    if not 0 < default_timeout_seconds <= max_timeout_seconds:
        raise ValueError("timeouts must be positive, and the default at most the maximum")

    async def run(args: ShellArguments, context: ToolContext) -> ToolResult[ShellData]:
        seconds = min(args.timeout_seconds, max_timeout_seconds)
        result = await commands.run(
            args.command,
            cwd=args.cwd,
            timeout_seconds=seconds,
            session=context.session,
            traceparent=context.traceparent,
            on_output=_reporter(context) if context.progress is not None else None,
        )
        clamped = f"timeout_seconds was clamped from {args.timeout_seconds:g} to {seconds:g}"
        report = await _Report.of(result, clamped if seconds < args.timeout_seconds else "")
        return report.outcome(seconds, nonzero_is_error=nonzero_is_error)

    async def subject(args: ShellArguments) -> str:
        return args.command

    return port_tool(
        _arguments(default_timeout_seconds, max_timeout_seconds),
        run,
        kind="shell",
        describe=_describe(default_timeout_seconds, max_timeout_seconds),
        payload=ShellData,
        effects=COMMAND_EFFECTS,
        aliases=("bash",),
        argument_aliases=COMMAND_ALIASES,
        subject=subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def bash_tool(
    commands: Commands,
    *,
    description: str | None = None,
    siblings: Collection[str] | None = None,
    nonzero_is_error: bool = False,
    default_timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
    max_timeout_seconds: float = COMMAND_TIMEOUT_MAX_SECONDS,
) -> Tool[ShellData]:
    """`shell_tool` under the name "bash"."""
    return shell_tool(
        commands,
        name="bash",
        description=description,
        siblings=siblings,
        nonzero_is_error=nonzero_is_error,
        default_timeout_seconds=default_timeout_seconds,
        max_timeout_seconds=max_timeout_seconds,
    )


def _arguments(default_seconds: float, max_seconds: float) -> type[ShellArguments]:
    if (default_seconds, max_seconds) == (COMMAND_TIMEOUT_SECONDS, COMMAND_TIMEOUT_MAX_SECONDS):
        return ShellArguments
    text = f"When to end it; more than {max_seconds:g} is clamped."
    field = (float, Field(default=default_seconds, gt=0, description=text))
    return create_model("ShellArguments", __base__=ShellArguments, timeout_seconds=field)


def _describe(default_seconds: float, max_seconds: float) -> Callable[[Siblings], str]:
    def describe(siblings: Siblings) -> str:
        text = (
            "Runs one command line in a new shell (bash where there is one, else sh; PowerShell on Windows) and "
            "returns its exit code, standard output and standard error. Each call starts in the root folder, or in "
            "`cwd`; no folder, variable or function is kept for the next call. Standard input is empty. After "
            f"`timeout_seconds` ({default_seconds:g} by default, at most {max_seconds:g}) the command is ended with "
            "everything that it started. What it leaves running in the background is ended when it returns."
        )
        hints = [f"{what} with {siblings[kind]}" for kind, what in _HINTS.items() if kind in siblings]
        return text if not hints else f"{text} Better done with other tools: {'; '.join(hints)}."

    return describe


_HINTS: Final = {
    "read_file": "reading files",
    "edit_file": "changing them",
    "glob": "finding files by name",
    "grep": "searching their contents",
    "process_start": "programs that go on running",
}


def _reporter(context: ToolContext) -> Callable[[StreamName, bytes], None]:
    texts: dict[str, LiveText] = {"stdout": LiveText(), "stderr": LiveText()}

    def report(stream: StreamName, chunk: bytes) -> None:
        text = texts[stream].feed(chunk)
        if text:
            context.report(stream, text)

    return report


@dataclass(frozen=True)
class _Report:
    """A result as text and as data."""

    result: CommandResult
    notes: tuple[str, ...]
    stdout: str
    stderr: str

    @classmethod
    async def of(cls, result: CommandResult, clamped: str) -> _Report:
        if len(result.stdout) + len(result.stderr) > TEXT_BLOCK_CHARS:
            stdout, stderr = await asyncio.to_thread(_streams, result)
        else:
            stdout, stderr = _streams(result)
        notes = (
            clamped,
            f"background survivors killed: {result.survivors_killed}" if result.survivors_killed else "",
            cut_note(result.stdout, result.stdout_cut, "stdout"),
            cut_note(result.stderr, result.stderr_cut, "stderr"),
            result.note,
        )
        return cls(result, tuple(note for note in notes if note), stdout, stderr)

    def outcome(self, seconds: float, *, nonzero_is_error: bool) -> ToolResult[ShellData]:
        result, code = self.result, self.result.exit_code
        if result.timed_out:
            message = f"The command did not end within {seconds:g} s and was ended with everything it had started."
            raise self._error("timed_out", message, "Give it more time, or less to do in one call.")
        if code is None:
            how = f"by {signal_name(result.signal)}" if result.signal is not None else "from outside"
            raise self._error("killed", f"The command was ended {how}.", "Its output so far stands below.")
        if code != 0 and nonzero_is_error:
            raise self._error("failed", f"exit code: {code}", "")
        return ToolResult.ok(self._text(f"exit code: {code}", *self._signal_hint(code)), self._data())

    def _signal_hint(self, code: int) -> tuple[str, ...]:
        number = code - _SHELL_SIGNAL_BASE
        if not 0 < number <= 64:
            return ()
        return (f"a shell's exit code of {code} usually means that {signal_name(number)} ended a program",)

    def _error(self, code: ErrorCode, message: str, hint: str) -> ToolError:
        return ToolError(message, code=code, hint=hint, detail=self._text(), data=self._data())

    def _text(self, *first: str) -> str:
        return "\n".join((*first, *self.notes, joined_streams(self.stdout, self.stderr)))

    def _data(self) -> ShellData:
        result = self.result
        return ShellData(
            exit_code=result.exit_code,
            signal=result.signal,
            stdout=self.stdout,
            stderr=self.stderr,
            stdout_cut=result.stdout_cut,
            stderr_cut=result.stderr_cut,
            timed_out=result.timed_out,
            survivors_killed=result.survivors_killed,
            duration_seconds=round(result.duration_seconds, 3),
        )


def _streams(result: CommandResult) -> tuple[str, str]:
    return (
        stream_text(result.stdout, result.stdout_cut, result.stdout_cut_at, "stdout"),
        stream_text(result.stderr, result.stderr_cut, result.stderr_cut_at, "stderr"),
    )
