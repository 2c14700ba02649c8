"""Background processes on this machine."""

from __future__ import annotations

import asyncio
import errno
import itertools
import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from toolkit_core.cleanup import finish
from toolkit_core.command_checks import check_command
from toolkit_core.errors import ToolError
from toolkit_core.host.background import BackgroundProcess, Streams
from toolkit_core.host.commands import START_AGAIN, clean_up_quietly, not_started, scratch_folder, working_folder
from toolkit_core.host.environment import CommandEnvironment, EnvironmentChoice
from toolkit_core.host.execution import readable_copies
from toolkit_core.host.launch import start
from toolkit_core.host.loop_thread import LoopThread
from toolkit_core.host.resolve import AnyPath, Roots
from toolkit_core.host.scratch import Scratch
from toolkit_core.host.shells import find_shell, shell_argv
from toolkit_core.host.supervised import Spec, StartError, Supervised, SupervisorLostError
from toolkit_core.host.supervisor import shared
from toolkit_core.limits import (
    COMMAND_GRACE_SECONDS,
    PROCESS_SETTLE_SECONDS,
    PROCESS_WRITE_MAX_BYTES,
    PROCESSES_ENDED_KEPT,
    PROCESSES_MAX,
)
from toolkit_core.ports.sandbox import Invocation
from toolkit_core.text import first_surrogate, one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.processes import ProcessState
    from toolkit_core.ports.sandbox import SupportsWrap


class HostProcesses:
    """`Processes` on this machine: commands that go on between calls, and end with this object or process.

    They live on a loop of their own, so that calls may come from any event loop, one after another or at once.

    Args:
        cwd: The root, as for `HostCommands`.
        env: As for `HostCommands`.
        extra_roots: Further folders that `cwd` of a start may lie in.
        wrap: A sandbox that rewrites each invocation.
        max_processes: Running at once in one session.
        grace_seconds: Between TERM and KILL.

    Raises:
        ValueError: The root is empty or missing, or `env` is impossible.
    """

    def __init__(
        self,
        cwd: AnyPath,
        *,
        env: EnvironmentChoice = "allowlist",
        extra_roots: Sequence[AnyPath] = (),
        wrap: SupportsWrap | None = None,
        max_processes: int = PROCESSES_MAX,
        grace_seconds: float = COMMAND_GRACE_SECONDS,
    ) -> None:
        self._roots = Roots(cwd, extra_roots, hidden=getattr(wrap, "hidden", ()))
        self._environment = CommandEnvironment(env)
        self._wrap = wrap
        self._max_processes = max_processes
        self._grace_seconds = grace_seconds
        self._scratch = Scratch()
        self._thread = LoopThread("toolkit-processes")
        self._numbers = itertools.count(1)
        self._processes: dict[str, BackgroundProcess] = {}
        self._keeping: set[asyncio.Task[None]] = set()
        self._starting: dict[str, int] = {}

    async def start(
        self,
        command: str,
        *,
        cwd: str = "",
        pty: bool = False,
        session: str = "default",
        traceparent: str | None = None,
    ) -> ProcessState:
        """Start a command; returns within a moment, with its first output if it wrote some.

        Raises:
            ToolError: As `Processes` says.
        """
        check_command(command)
        folder = working_folder(self._roots, cwd)
        argv = shell_argv(*find_shell(), command)
        trace = traceparent if self._wrap is None else None

        begun: list[BackgroundProcess] = []

        async def begin() -> ProcessState:
            self._make_room(session)
            self._starting[session] = self._starting.get(session, 0) + 1
            try:
                process = await self._start(Invocation(argv, folder, {}), command, trace, session, pty=pty)
                begun.append(process)
            finally:
                self._starting[session] -= 1
            await process.wait_for_news(PROCESS_SETTLE_SECONDS)
            return process.state()

        async def end() -> None:
            for process in begun:
                process.kill()
                await process.gone()
                self._processes.pop(process.process_id, None)

        shared.use(self)
        try:
            return await self._thread.run(begin())
        except asyncio.CancelledError:  # nobody knows its id
            await finish(self._thread.run(end()))
            raise

    async def read(self, process_id: str, *, wait_seconds: float = 0.0, session: str = "default") -> ProcessState:
        """New output, waiting up to `wait_seconds` for some or for the end."""
        if math.isnan(wait_seconds) or wait_seconds < 0:
            message = f"wait_seconds is {wait_seconds}; it must be 0 or more."
            raise ToolError(message, code="invalid_arguments")
        process = self._find(process_id, session)

        async def look() -> ProcessState:
            await process.wait_for_news(wait_seconds)
            return process.state()

        return await self._thread.run(look())

    async def write(self, process_id: str, text: str, *, session: str = "default") -> ProcessState:
        """Write to its standard input, then wait a moment for an answer."""
        _check_input(text)
        process = self._find(process_id, session)

        async def write() -> ProcessState:
            await process.write(text)
            await process.wait_for_news(PROCESS_SETTLE_SECONDS)
            return process.state()

        return await self._thread.run(write())

    async def stop(self, process_id: str, *, session: str = "default") -> ProcessState:
        """End it and everything that it started."""
        process = self._find(process_id, session)

        async def stop() -> ProcessState:
            await process.stop()
            return process.state()

        return await self._thread.run(stop())

    async def command_of(self, process_id: str) -> str:
        """The command that a process of any session was started with; "" for an unknown id."""
        process = self._processes.get(process_id)
        return "" if process is None else process.command

    async def aclose(self) -> None:
        """Kill all processes, remove the scratch folders, and end the supervisor if nobody else uses it."""
        await finish(self._aclose())

    async def _aclose(self) -> None:
        async def end_all() -> None:
            for process in self._processes.values():
                process.kill()
            for process in self._processes.values():
                await process.gone()

        if self._processes:
            await self._thread.run(end_all())
            self._processes.clear()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._thread.stop()
        self._scratch.close()
        shared.leave(self)

    def _find(self, process_id: str, session: str) -> BackgroundProcess:
        process = self._processes.get(process_id)
        if process is not None and process.session == session:
            return process
        known = [p.process_id for p in self._processes.values() if p.session == session]
        hint = f"Known ids: {', '.join(known)}." if known else "No process was started in this session."
        raise ToolError(f"There is no process {process_id!r}.", code="not_found", hint=hint)

    def _make_room(self, session: str) -> None:
        mine = [p for p in self._processes.values() if p.session == session]
        running = [p for p in mine if p.running]
        starting = self._starting.get(session, 0)
        if len(running) + starting >= self._max_processes:
            shown = [f"{p.process_id} ({one_line_name(p.command[:40])})" for p in running]
            shown += [f"{starting} that are just starting"] * bool(starting)
            message = (
                f"{len(running) + starting} processes run already, as many as one session may have: {', '.join(shown)}."
            )
            raise ToolError(message, code="too_large", hint="Stop one first.")
        ended = [p for p in mine if not p.running]
        for process in ended[: max(0, len(ended) - PROCESSES_ENDED_KEPT + 1)]:
            del self._processes[process.process_id]

    async def _start(
        self, invocation: Invocation, command: str, trace: str | None, session: str, *, pty: bool
    ) -> BackgroundProcess:
        with ExitStack() as stack:
            scratch = scratch_folder(stack, self._scratch, session)
            environment = self._environment.make(traceparent=trace, scratch=scratch)
            if pty:
                environment.setdefault("TERM", "dumb")
            invocation = Invocation(invocation.argv, invocation.cwd, environment)
            if self._wrap is not None:
                invocation = await self._wrap.wrap(invocation, command)
            try:
                streams, kept = await self._launch(invocation, pty=pty)
            except BaseException:
                if invocation.after_exit is not None:
                    await finish(clean_up_quietly(invocation))
                raise
            name = f"p{next(self._numbers)}"
            process = BackgroundProcess(name, session, command, streams, kept, grace_seconds=self._grace_seconds)
            self._processes[process.process_id] = process
            task = asyncio.ensure_future(process.keep(stack.pop_all(), invocation))
            self._keeping.add(task)
            task.add_done_callback(self._keeping.discard)
        return process

    async def _launch(self, invocation: Invocation, *, pty: bool) -> tuple[Streams, Supervised]:
        try:
            streams = Streams(pty=pty)
        except OSError as e:
            raise _refused(e) from e
        try:
            with readable_copies(invocation.descriptors) as copies:
                spec = Spec(
                    argv=invocation.argv,
                    cwd=invocation.cwd,
                    environment=invocation.environment,
                    descriptors={**streams.theirs, **copies, **invocation.inherited},
                    grace_seconds=self._grace_seconds,
                    terminal=pty,
                    tell_start=True,
                    spare_leader=invocation.spare_leader,
                )
                kept = await start(spec)
        except BaseException as e:
            streams.close_all()
            if isinstance(e, StartError):
                raise not_started(e, one_line_name(invocation.cwd)) from e
            if isinstance(e, SupervisorLostError):
                message = f"The process was not started: {e}."
                raise ToolError(message, code="unavailable", hint=START_AGAIN, retryable=True) from e
            if isinstance(e, OSError):
                raise _refused(e) from e
            raise
        streams.close_theirs()
        return streams, kept


def _refused(error: OSError) -> ToolError:
    reason = f"{error.strerror} ({errno.errorcode.get(error.errno or 0, '?')})"
    return ToolError(f"The process cannot be started: {reason}.", code="io_error", retryable=True)


def _check_input(text: str) -> None:
    place = first_surrogate(text)
    if place is not None:
        message = f"The text has a lone surrogate U+{ord(text[place]):04X} at index {place}; no byte stands for it."
        raise ToolError(message, code="invalid_arguments")
    size = len(text.encode())
    if not size or size > PROCESS_WRITE_MAX_BYTES:
        message = f"The text has {size:,} bytes; one write takes 1 to {PROCESS_WRITE_MAX_BYTES:,}."
        raise ToolError(message, code="invalid_arguments", hint="Write more in several calls, or through a file.")
