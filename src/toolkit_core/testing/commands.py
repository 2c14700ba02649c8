"""In-memory `Commands` and `Processes` that answer as a test wrote down, and keep what they were asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.errors import ToolError
from toolkit_core.ports.commands import CommandResult
from toolkit_core.ports.processes import ProcessState

if TYPE_CHECKING:
    from toolkit_core.ports.commands import StreamName

Outcome = CommandResult | str | Exception
"""What a command does: a result, its standard output (exit code 0), or what `run` raises."""

_NOT_FOUND = CommandResult(127, None, b"", b"command not found\n")


@dataclass(frozen=True)
class CommandCall:
    """One call as `ScriptedCommands` was asked."""

    command: str
    cwd: str
    timeout_seconds: float
    session: str
    traceparent: str | None


class ScriptedCommands:
    """`Commands` without a machine.

    Args:
        script: Command -> what it does, or a function that says so; an unknown command exits with 127.
        shell: The shell that it pretends to have.

    Example:
        >>> commands = ScriptedCommands({"pytest -q": CommandResult(1, None, b"1 failed", b"")})
        >>> commands.calls
        []
    """

    def __init__(
        self, script: Mapping[str, Outcome] | Callable[[CommandCall], Outcome], *, shell: str = "bash"
    ) -> None:
        self.calls: list[CommandCall] = []
        self._script = script
        self._shell = shell

    @property
    def shell(self) -> str:
        """The shell that it pretends to have."""
        return self._shell

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
        """What the script says."""
        call = CommandCall(command, cwd, timeout_seconds, session, traceparent)
        self.calls.append(call)
        outcome = self._script(call) if callable(self._script) else self._script.get(command, _NOT_FOUND)
        if isinstance(outcome, Exception):
            raise outcome
        result = CommandResult(0, None, outcome.encode(), b"") if isinstance(outcome, str) else outcome
        if on_output is not None:
            if result.stdout:
                on_output("stdout", result.stdout)
            if result.stderr:
                on_output("stderr", result.stderr)
        return result


class ScriptedProcesses:
    r"""`Processes` without a machine: each started command writes its outputs one after another, then ends with 0.

    Args:
        script: Command -> the outputs that the start and the reads after it return, in turn.

    Example:
        >>> processes = ScriptedProcesses({"serve": ["listening\n", "GET /\n"]})
    """

    def __init__(self, script: Mapping[str, Sequence[str]]) -> None:
        self.written: list[tuple[str, str]] = []
        self._script = script
        self._numbers = itertools.count(1)
        self._states: dict[str, tuple[str, ProcessState]] = {}
        self._outputs: dict[str, list[str]] = {}

    async def start(
        self,
        command: str,
        *,
        cwd: str = "",
        pty: bool = False,
        session: str = "default",
        traceparent: str | None = None,
    ) -> ProcessState:
        """Start a command of the script; an unknown one ends at once with 127."""
        process_id = f"p{next(self._numbers)}"
        known = command in self._script
        state = ProcessState(process_id, command, known, None if known else 127)
        self._states[process_id] = session, state
        self._outputs[process_id] = list(self._script.get(command, ()))
        return replace(state, output=self._next(process_id))

    async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
        """Its next output; it has ended when there is none left."""
        state = self._find(process_id, session)
        output = self._next(process_id)
        if state.running and not output:
            state = self._set(session, replace(state, running=False, exit_code=0))
        return replace(state, output=output)

    async def write(self, process_id: str, text: str, *, session: str = "default") -> ProcessState:
        """Note the text; returns its next output."""
        state = self._find(process_id, session)
        if not state.running:
            raise ToolError(f"{process_id} has ended; it reads no input.", code="failed")
        self.written.append((process_id, text))
        return replace(state, output=self._next(process_id))

    async def stop(self, process_id: str, *, session: str = "default") -> ProcessState:
        """End it by signal 15."""
        state = self._find(process_id, session)
        if state.running:
            state = self._set(session, replace(state, running=False, signal=15))
        return replace(state, output=self._next(process_id))

    async def command_of(self, process_id: str) -> str:
        """The command that it was started with; "" for an unknown id."""
        return self._states[process_id][1].command if process_id in self._states else ""

    def _find(self, process_id: str, session: str) -> ProcessState:
        owner, state = self._states.get(process_id, ("", None))
        if state is None or owner != session:
            raise ToolError(f"There is no process {process_id!r}.", code="not_found")
        return state

    def _set(self, session: str, state: ProcessState) -> ProcessState:
        self._states[state.process_id] = session, state
        return state

    def _next(self, process_id: str) -> bytes:
        outputs = self._outputs[process_id]
        return outputs.pop(0).encode() if outputs else b""
