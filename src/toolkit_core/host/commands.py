"""Running commands on this machine."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command, checked_timeout
from toolkit_core.errors import ToolError
from toolkit_core.host.environment import CommandEnvironment, EnvironmentChoice
from toolkit_core.host.execution import Execution, OnOutput, execute, readable_copies
from toolkit_core.host.resolve import AnyPath, Roots
from toolkit_core.host.scratch import Scratch
from toolkit_core.host.shells import find_shell, shell_argv
from toolkit_core.host.supervised import Ending, Spec, StartError, Supervised, SupervisorLostError
from toolkit_core.host.supervisor import shared
from toolkit_core.limits import (
    CLEANUP_SECONDS,
    COMMAND_GRACE_SECONDS,
    COMMAND_OUTPUT_MAX_BYTES,
    COMMAND_TIMEOUT_SECONDS,
)
from toolkit_core.ports.commands import CommandResult
from toolkit_core.ports.sandbox import Invocation
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit_core.ports.sandbox import SupportsWrap

_log = logging.getLogger("toolkit_core")

START_AGAIN = "Nothing was started: run it again; if it stays so, tell the person who runs this program."
"""The next step where no supervisor could be had."""


class HostCommands:
    """`Commands` on this machine: bash where there is one, else sh; PowerShell on Windows.

    A command may leave its folder and touch whatever this user may; a sandbox (`wrap`) confines it. On Linux a
    supervisor process ends each command's whole tree, even when this process is killed; elsewhere the
    command's process group is ended, best effort.

    Args:
        cwd: The root: the default folder, and where `cwd` of each run must lie.
        env: "allowlist" (`limits.ENVIRONMENT_ALLOWED`), "inherit", or a mapping that is the whole environment.
            Trace context is always taken from the call, TMPDIR and caches point to a scratch folder of the
            session (a mapping may say otherwise).
        extra_roots: Further folders that `cwd` of a run may lie in.
        wrap: A sandbox that rewrites each invocation.
        max_output_bytes: Kept of each stream, half from its start and half from its end.
        grace_seconds: Between TERM and KILL.

    Raises:
        ValueError: The root is empty or missing, or `env` is impossible.

    Example:
        >>> result = await HostCommands(".").run("pytest -q", timeout_seconds=300)
        >>> result.exit_code
        0
    """

    def __init__(
        self,
        cwd: AnyPath,
        *,
        env: EnvironmentChoice = "allowlist",
        extra_roots: Sequence[AnyPath] = (),
        wrap: SupportsWrap | None = None,
        max_output_bytes: int = COMMAND_OUTPUT_MAX_BYTES,
        grace_seconds: float = COMMAND_GRACE_SECONDS,
    ) -> None:
        self._roots = Roots(cwd, extra_roots, hidden=getattr(wrap, "hidden", ()))
        self._environment = CommandEnvironment(env)
        self._wrap = wrap
        self._max_output_bytes = max_output_bytes
        self._grace_seconds = grace_seconds
        self._scratch = Scratch()
        self._running: set[Supervised] = set()

    @property
    def root(self) -> str:
        """The absolute real path of the root."""
        return self._roots.root

    @property
    def shell(self) -> str:
        """The shell that reads commands. Raises `ToolError` `unavailable` where there is none."""
        return find_shell()[0]

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = COMMAND_TIMEOUT_SECONDS,
        session: str = "default",
        traceparent: str | None = None,
        on_output: OnOutput | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> CommandResult:
        """Run a command to its end and the end of everything that it started.

        Args:
            command: For the shell, as it is.
            cwd: A folder inside the root, relative to it; "" for the root.
            timeout_seconds: Then TERM to the whole tree, 2 s, KILL. More than 600 is clamped, which the note says.
            session: Whose scratch folder it gets.
            traceparent: Its TRACEPARENT; a sandboxed run gets none.
            on_output: Called on the event loop with output as it comes.
            environment: Instead of the one that `env` describes, for this run.

        Raises:
            ToolError: As `Commands` says.
        """
        check_command(command)
        seconds, note = checked_timeout(timeout_seconds)
        folder = working_folder(self._roots, cwd)
        argv = shell_argv(*find_shell(), command)
        source = self._environment if environment is None else CommandEnvironment(environment)
        shared.use(self)
        started = time.monotonic()
        with ExitStack() as stack:
            scratch = scratch_folder(stack, self._scratch, session)
            trace = traceparent if self._wrap is None else None
            invocation = Invocation(argv, folder, source.make(traceparent=trace, scratch=scratch))
            if self._wrap is not None:
                invocation = await self._wrap.wrap(invocation, command)
            done = await self._carry_out(invocation, seconds, on_output)
        return _result(done, [note], time.monotonic() - started)

    async def aclose(self) -> None:
        """Kill what still runs, remove the scratch folders, and end the supervisor if nobody else uses it."""
        for command in list(self._running):
            command.kill()
        await finish(self._close_after_all())

    async def _close_after_all(self) -> None:
        until = time.monotonic() + CLEANUP_SECONDS / 2
        while self._running and time.monotonic() < until:  # noqa: ASYNC110 - they run on other loops, maybe
            await asyncio.sleep(0.005)
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._scratch.close()
        shared.leave(self)

    async def _carry_out(self, invocation: Invocation, seconds: float, on_output: OnOutput | None) -> _Done:
        """Execute, then let the sandbox clean up: once, on every path."""
        try:
            execution = await self._execute(invocation, seconds, on_output)
        except BaseException:
            await finish(clean_up_quietly(invocation))
            raise
        cleaned = _Cleaned()
        await finish(_clean_up(invocation, cleaned))
        if cleaned.refusal is not None and not execution.ending.timed_out:
            raise cleaned.refusal
        return _Done(replace(execution, ending=as_watched(execution.ending, invocation)), cleaned.note)

    async def _execute(self, invocation: Invocation, seconds: float, on_output: OnOutput | None) -> Execution:
        try:
            with readable_copies(invocation.descriptors) as copies:
                spec = Spec(
                    argv=invocation.argv,
                    cwd=invocation.cwd,
                    environment=invocation.environment,
                    descriptors={**copies, **invocation.inherited},
                    timeout_seconds=seconds,
                    grace_seconds=self._grace_seconds,
                    spare_leader=invocation.spare_leader,
                )
                return await execute(spec, max_bytes=self._max_output_bytes, on_output=on_output, running=self._running)
        except StartError as e:
            raise not_started(e, one_line_name(invocation.cwd)) from e
        except SupervisorLostError as e:
            if e.may_have_run:
                raise ToolError(f"The command was not run to its end: {e}.", code="killed") from e
            message = f"The command was not run: {e}."
            raise ToolError(message, code="unavailable", hint=START_AGAIN, retryable=True) from e
        except OSError as e:
            message = f"The command cannot be started: {e.strerror} ({errno.errorcode.get(e.errno or 0, '?')})."
            raise ToolError(message, code="io_error", hint="Too much may be running at once.", retryable=True) from e


@dataclass
class _Cleaned:
    """What the sandbox's clean-up said."""

    note: str = ""
    refusal: ToolError | None = None


@dataclass(frozen=True)
class _Done:
    execution: Execution
    note: str


async def _clean_up(invocation: Invocation, cleaned: _Cleaned) -> None:
    if invocation.after_exit is None:
        return
    try:
        cleaned.note = await invocation.after_exit()
    except ToolError as e:
        cleaned.refusal = e
    except Exception as e:  # noqa: BLE001 - the command has run: its result is told, and what went wrong after it
        _log.exception("a sandbox's clean-up failed")
        cleaned.note = f"the sandbox's clean-up failed: {e!r}"


def as_watched(ending: Ending, invocation: Invocation) -> Ending:
    """An ending as the sandbox saw it from inside: by a signal, and with how many processes left."""
    if invocation.watched is None or ending.exit_code is None or ending.timed_out:
        return ending
    seen = invocation.watched()
    if seen.signal is not None:
        ending = replace(ending, exit_code=None, signal=seen.signal)
    return replace(ending, survivors_killed=max(ending.survivors_killed, seen.survivors))


async def clean_up_quietly(invocation: Invocation) -> None:
    """After a failure or a cancellation, which says already that the command did not run to its end."""
    if invocation.after_exit is not None:
        with suppress(ToolError):
            await invocation.after_exit()


def scratch_folder(stack: ExitStack, scratch: Scratch, session: str) -> str:
    """The session's scratch folder, kept as long as the stack. Raises `ToolError` `io_error`."""
    try:
        return stack.enter_context(scratch.folder(session))
    except OSError as e:
        message = f"The command's scratch folder cannot be made: {e.strerror or e}."
        raise ToolError(message, code="io_error", hint="Set TMPDIR of this program to a folder with space.") from e


def working_folder(roots: Roots, cwd: str) -> str:
    """The real path of the folder that a command starts in.

    Raises:
        ToolError: `access_denied` (outside), `not_found` (gone), `invalid_arguments` (not a folder).
    """
    real = roots.resolve(cwd).real if cwd else roots.root
    shown = f"cwd {one_line_name(cwd)}" if cwd else f"The root folder {one_line_name(real)}"
    try:
        mode = os.stat(real).st_mode
    except OSError as e:
        raise _folder_refused(e.errno or 0, shown) from e
    if not stat.S_ISDIR(mode):
        raise ToolError(f"{shown} is not a folder.", code="invalid_arguments", hint="Name the folder to run in.")
    return real


def _folder_refused(number: int, shown: str) -> ToolError:
    if number in (errno.ENOENT, errno.ENOTDIR):
        return ToolError(f"{shown} does not exist (any more).", code="not_found", hint="Make it, or run elsewhere.")
    name = errno.errorcode.get(number, "?")
    return ToolError(f"{shown} cannot be entered: {os.strerror(number)} ({name}).", code="io_error")


def not_started(error: StartError, cwd: str) -> ToolError:
    """Why the system refused to start a command, as the error that a tool gives."""
    number = error.errno or 0
    if error.step == "chdir":
        return _folder_refused(number, f"The folder {cwd}")
    reason = f"{os.strerror(number)} ({errno.errorcode.get(number, '?')})"
    if number == errno.E2BIG:
        message = f"The command with its environment is too long: {reason}."
        return ToolError(message, code="invalid_arguments", hint="Write the script or its data to a file.")
    retryable = number in (errno.EAGAIN, errno.ENOMEM)
    return ToolError(f"The command cannot be started: {reason}.", code="io_error", retryable=retryable)


def _result(done: _Done, notes: list[str], duration_seconds: float) -> CommandResult:
    execution, ending = done.execution, done.execution.ending
    if ending.lost:
        raise ToolError(
            f"The command was ended early: {ending.lost}.",
            code="killed",
            hint="It may have killed the process that kept it. What it did until then stands.",
            detail=(execution.stdout.data + execution.stderr.data).decode("utf-8", "backslashreplace"),
        )
    if ending.left:
        notes.append(f"{ending.left} of its processes could not be killed (another user's, or stuck in the kernel)")
    if not execution.output_complete:
        notes.append("the output may be incomplete: a process outside of the command still holds its pipe")
    return CommandResult(
        exit_code=ending.exit_code,
        signal=ending.signal,
        stdout=execution.stdout.data,
        stderr=execution.stderr.data,
        stdout_cut=execution.stdout.cut,
        stderr_cut=execution.stderr.cut,
        timed_out=ending.timed_out,
        survivors_killed=ending.survivors_killed,
        duration_seconds=duration_seconds,
        note="\n".join(note for note in (*notes, done.note) if note),
        stdout_cut_at=execution.stdout.cut_at,
        stderr_cut_at=execution.stderr.cut_at,
    )
