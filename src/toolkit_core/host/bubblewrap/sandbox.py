"""A sandbox around this machine's own commands: bubblewrap, a system call filter, and a quarantine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from toolkit_core.cleanup import finish
from toolkit_core.errors import ToolError
from toolkit_core.host._native import landlock
from toolkit_core.host.bubblewrap.arguments import ARGUMENTS_FD, RECORD_FD, STATUS_FD, Layout, build, outermost, within
from toolkit_core.host.bubblewrap.confine import (
    LANDLOCK_PROGRAM,
    SandboxLimits,
    landlock_prefix,
    landlock_source,
    limit_prefix,
    watch_prefix,
)
from toolkit_core.host.bubblewrap.confined_run import ConfinedRun, begin_all, end_all
from toolkit_core.host.bubblewrap.probing import Probe, find_program, machine_filter, probe
from toolkit_core.host.bubblewrap.runs import Record, Run, forget_gone, state_folder
from toolkit_core.host.bubblewrap.shared_files import SharedFiles
from toolkit_core.host.bubblewrap.trust import git_folders, plain, survey
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.environment import CommandEnvironment
from toolkit_core.ports.sandbox import Filesystem, Invocation
from toolkit_core.text import one_line_name

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult, StreamName

_TRACE_VARIABLES = frozenset({"TRACEPARENT", "TRACESTATE"})
_PRIVATE_TEMP = "/tmp"  # noqa: S108 - private to the sandbox
_LANDLOCK_ABI = landlock.NEEDED_ABI
_NOT_RUN = "the sandbox could not start, so the command was not run"


@dataclass(frozen=True)
class _Prepared:
    """What was found and begun before a command starts."""

    program: str
    records: tuple[Record, ...]
    runs: tuple[Run, ...]
    layout: Layout
    contents: Mapping[int, bytes]


class BubblewrapSandbox:
    """Confines commands on this machine with bubblewrap; the filesystem is the host's.

    A command writes only in the workspace, in `writable` and in private temporary folders. Trust inputs at the
    root (`toolkit_core.trust_inputs.TRUST_INPUTS`) are read-only where they exist, and are moved to a quarantine
    outside the workspace where a command created one. THREAT_MODEL.md lists what is promised and what is not.

    Args:
        cwd: The workspace, an existing folder other than `/`.
        network: Whether commands have the host's network. Unix sockets stay closed either way.
        hidden: Files and folders that no command can read, whatever else is set. Name folders where you can:
            a file that the host replaces while a command runs is bare again.
        writable: More folders that stay writable; they must exist.
        limits: What the kernel shall limit; see `SandboxLimits`.
        strict: Also refuse FIFOs outside of the writable folders (Landlock, Linux 5.19; some 25 ms a command).

    Raises:
        ValueError: A folder is missing or is `/`, or the workspace lies in a hidden path.

    Example:
        >>> sandbox = BubblewrapSandbox(".", hidden=["~/.ssh"])
        >>> (await sandbox.run("pytest -q")).exit_code
        0
    """

    def __init__(
        self,
        cwd: str | os.PathLike[str],
        *,
        network: bool = False,
        hidden: Sequence[str | os.PathLike[str]] = (),
        writable: Sequence[str | os.PathLike[str]] = (),
        limits: SandboxLimits | None = None,
        strict: bool = False,
    ) -> None:
        self._root = _existing_folder(cwd, os.getcwd(), "cwd")
        more = [_existing_folder(path, self._root, "writable") for path in writable]
        self._writable = tuple(dict.fromkeys([self._root, *more]))
        self._hidden = tuple(dict.fromkeys(_real(path, self._root) for path in hidden))
        for path in self._hidden:
            if within(self._root, path):
                raise ValueError(f"the workspace {self._root} lies in the hidden path {path}")
        self._network = network
        self._limits = limits or SandboxLimits()
        self._strict = strict
        self._program: str | None = None
        self._tidied = False
        self._commands: HostCommands | None = None

    @property
    def filesystem(self) -> Filesystem:
        """Shared: its files are the host's."""
        return "shared"

    @property
    def root(self) -> str:
        """The workspace, absolute and real."""
        return self._root

    @property
    def hidden(self) -> tuple[str, ...]:
        """The hidden paths, absolute and real; file tools beside this sandbox refuse them too."""
        return self._hidden

    def auto_approves(self, command: str) -> bool:
        """Whether the confinement alone is reason enough to run a command without asking.

        False while a trust input is a link or has several hard links: the mounts do not hold those; false for
        what is no command, and where there is no sandbox to run it in.
        """
        if not command.strip() or "\0" in command or find_program(self._writable) is None or machine_filter() is None:
            return False
        surveys = [survey(root) for root in self._writable if os.path.isdir(root)]
        return all(not one.links and plain(one.present) for one in surveys)

    def probe(self) -> Probe:
        """Whether commands can be confined as they would be, and if not, why and what to do. Blocks."""
        layout = self._layout(self._root, [survey(root).present for root in self._writable])
        found = probe(layout, not_in=self._writable, prefix=self._prefix())
        if found.available and self._strict and found.landlock_abi < _LANDLOCK_ABI:
            reason = f"strict needs Landlock version {_LANDLOCK_ABI}, the kernel offers {found.landlock_abi}"
            return replace(
                found, available=False, reason=reason, fix="Use Linux 5.19 or later with lsm=landlock, or strict=False."
            )
        return found

    async def wrap(self, invocation: Invocation, command: str) -> Invocation:
        """The invocation that runs the same program confined.

        Its `after_exit` must be awaited, once, whether it was started or not.

        Raises:
            ToolError: `unavailable`: bubblewrap is missing or cannot start, or there is no place outside the
                workspace for what must be kept of it.
        """
        prepared = await self._prepared(invocation.cwd)
        try:
            confined = ConfinedRun(prepared.records, prepared.runs, self._diagnosis(prepared.layout))
        except OSError as e:
            end_all(prepared.records, prepared.runs)
            hint = "Make fewer calls at once, or try again."
            raise ToolError(f"{_NOT_RUN}: {e.strerror}", code="io_error", hint=hint, retryable=True) from e
        except BaseException:
            end_all(prepared.records, prepared.runs)
            raise
        return Invocation(
            argv=(
                prepared.program,
                "--args",
                str(ARGUMENTS_FD),
                "--",
                *watch_prefix(RECORD_FD),
                *self._prefix(),
                *invocation.argv,
            ),
            cwd="/",
            environment=_environment(invocation.environment),
            descriptors=prepared.contents,
            inherited={STATUS_FD: confined.status_descriptor, RECORD_FD: confined.notes_descriptor},
            spare_leader=True,
            after_exit=confined.after_exit,
            watched=confined.watched,
        )

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = 120.0,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command confined, with the timeout, the output caps and the kill of `HostCommands`.

        Raises what `Commands.run` does. `environment` is added to the allowlisted one.
        """
        more = None if environment is None else {**CommandEnvironment("allowlist").make(), **environment}
        return await self._host_commands().run(
            command, cwd=cwd, timeout_seconds=timeout_seconds, on_output=on_output, environment=more
        )

    async def read_bytes(self, path: str) -> bytes:
        """A whole file of the workspace or of `writable`. Raises what `Files.read` does; `access_denied` for hidden."""
        return await SharedFiles(self._writable, self._hidden).read(path)

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Replace a whole file there. Raises what `Files.replace` does; `access_denied` for hidden and trust inputs."""
        await SharedFiles(self._writable, self._hidden).write(path, content)

    async def aclose(self) -> None:
        """End what `run` left to end, and give its scratch folder back."""
        if self._commands is not None:
            await self._commands.aclose()

    def _host_commands(self) -> HostCommands:
        if self._commands is None:
            self._commands = HostCommands(self._root, wrap=self)
        return self._commands

    async def _prepared(self, cwd: str) -> _Prepared:
        """Prepare in a thread; cancelled meanwhile, what was begun is ended again."""
        work = asyncio.ensure_future(asyncio.to_thread(self._prepare, cwd))
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:

            async def undo() -> None:
                prepared = await work
                await asyncio.to_thread(end_all, prepared.records, prepared.runs)

            await finish(undo())
            raise

    def _prepare(self, cwd: str) -> _Prepared:
        """Find the program, record the runs and lay out the mounts. Blocks."""
        program = self._ready()
        state = self._state()
        if not self._tidied:
            forget_gone(state)
            self._tidied = True
        records = [Record(state, root) for root in self._writable]
        try:
            runs = begin_all(records)
        except OSError as e:
            raise ToolError(
                f"{_NOT_RUN}: its record cannot be kept ({e.strerror})",
                code="unavailable",
                hint="Free disk space, or set XDG_STATE_HOME to a folder of yours that can be written.",
            ) from e
        try:
            layout = self._layout(os.path.realpath(cwd), [run.survey.present for run in runs], state)
            _, contents = build(layout, filter_program=machine_filter() or b"")
        except BaseException:
            end_all(records, runs)
            raise
        return _Prepared(program, tuple(records), tuple(runs), layout, contents)

    def _ready(self) -> str:
        """The program, after one real start; a failure is not remembered, since it may be mended meanwhile."""
        if self._program is None:
            found = self.probe()
            if not found.available:
                raise found.error()
            self._program = found.program
        return self._program

    def _diagnosis(self, layout: Layout) -> Callable[[], ToolError]:
        def diagnose() -> ToolError:
            self._program = None
            found = probe(layout, not_in=self._writable, prefix=self._prefix())
            if not found.available:
                return found.error()
            return replace(
                found,
                reason="bubblewrap ended before the command began, though it starts now",
                fix="Try it again; if it stays so, run `toolkit doctor`.",
            ).error()

        return diagnose

    def _prefix(self) -> tuple[str, ...]:
        return (*limit_prefix(self._limits), *(landlock_prefix(self._writable) if self._strict else ()))

    def _state(self) -> str:
        """The folder of records, once every writable folder was seen to be still itself."""
        for root in self._writable:
            if not os.path.isdir(root) or os.path.realpath(root) != root:
                # A link in its place would make whatever it leads to writable.
                raise ToolError(
                    f"{_NOT_RUN}: the folder {one_line_name(root)} is gone or has become a link",
                    code="unavailable",
                    hint="Put the folder back, or make a sandbox of the new one.",
                )
        state = state_folder(self._writable)
        if state is None:
            raise ToolError(
                f"{_NOT_RUN}: there is no private folder outside of the writable ones",
                code="unavailable",
                hint="Set XDG_STATE_HOME to a folder of yours outside of the workspace, closed to others.",
            )
        return state

    def _layout(self, where: str, present: Sequence[Mapping[str, object]], state: str | None = None) -> Layout:
        return Layout(
            writable=self._writable,
            working_directory=where,
            read_only=(*(path for paths in present for path in paths), *self._linked_git()),
            # The records too: whoever reads a lock's file can hold the lock.
            hidden=tuple(outermost([*self._hidden_now(), *([state] if state is not None else [])])),
            network=self._network,
            extra_files=((LANDLOCK_PROGRAM, landlock_source()),) if self._strict else (),
        )

    def _linked_git(self) -> list[str]:
        """Git folders that a root's `.git` names and that lie in another writable folder."""
        named = [path for root in self._writable for path in git_folders(root)]
        return [
            path
            for path in named
            if path not in self._writable
            and any(within(path, root) for root in self._writable)
            and os.path.exists(path)
        ]

    def _hidden_now(self) -> list[str]:
        """Hidden paths that exist, links followed again: they may have come, or become links, since."""
        found: list[str] = []
        for path in self._hidden:
            if not os.path.lexists(path):
                continue
            real = os.path.realpath(path)
            # A link that a command may have made must not decide what disappears.
            made_inside = real != path and any(within(path, root) for root in self._writable)
            if not made_inside and os.path.lexists(real) and not within(self._root, real):
                found.append(real)
        return found


def _real(path: str | os.PathLike[str], base: str) -> str:
    text = os.fspath(path)
    if not text or "\0" in text:
        raise ValueError("a path of the sandbox is empty or holds a NUL")
    return os.path.realpath(os.path.join(base, os.path.expanduser(text)))


def _existing_folder(path: str | os.PathLike[str], base: str, what: str) -> str:
    real = _real(path, base)
    if not os.path.isdir(real):
        raise ValueError(f"{what}: there is no folder {real}")
    if real == "/":
        raise ValueError(f"{what}: / would make the whole machine writable")
    return real


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    """No trace context, and temporary files in the private /tmp instead of a folder that is not visible inside."""
    scratch = given.get("TMPDIR", "")
    made = {name: value for name, value in given.items() if name not in _TRACE_VARIABLES}
    if scratch:
        for name, value in made.items():
            if within(value, scratch):
                made[name] = _PRIVATE_TEMP + value[len(scratch.rstrip("/")) :]
    made["TMPDIR"] = _PRIVATE_TEMP
    return made
