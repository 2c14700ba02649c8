"""Sandbox clients: one machine behind three methods, each further ability a one-method protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from toolkit_core.ports.commands import CommandResult, StreamName
    from toolkit_core.ports.files import Entry
    from toolkit_core.ports.processes import Processes
    from toolkit_core.ports.search import Search

Filesystem = Literal["shared", "separate"]


@runtime_checkable
class SandboxClient(Protocol):
    """A place where commands run and files lie.

    With a shared filesystem the host's file tools stay on the host; with a separate one every file tool
    goes through the client. Each method raises `ToolError`; `unavailable` when the plane is gone. A client whose
    commands no POSIX shell runs says so by an attribute `posix_shell` that is False.
    """

    @property
    def filesystem(self) -> Filesystem:
        """Whether its files are the host's."""
        ...

    async def run(
        self,
        command: str,
        *,
        cwd: str = "",
        timeout_seconds: float = 120.0,
        environment: Mapping[str, str] | None = None,
        on_output: Callable[[StreamName, bytes], None] | None = None,
    ) -> CommandResult:
        """Run a command to its end in a shell, its standard input empty.

        `cwd` is an absolute folder of the plane, or relative to where the plane starts commands. At the timeout
        the command is ended and the result says `timed_out`, or its note says that it may still run. Cancelled,
        the command is ended before the cancellation passes, as far as the plane can. A missing or impossible
        exit status is an error, never 0.

        Raises:
            ToolError: `not_found` (cwd is gone), `unavailable` (the plane is gone), `invalid_arguments`.
        """
        ...

    async def read_bytes(self, path: str) -> bytes:
        """A whole file, exactly its bytes. Raises `not_found`, `is_a_directory`, `too_large`, `io_error`."""
        ...

    async def write_bytes(self, path: str, content: bytes) -> None:
        """Write a whole file, its folders made. It need not be atomic: `ClientFiles` makes it so."""
        ...


@runtime_checkable
class SupportsList(Protocol):
    """Listing a folder without a command."""

    async def list_directory(self, path: str) -> Sequence[Entry]:
        """All entries of a folder."""
        ...


@runtime_checkable
class SupportsMakeFolder(Protocol):
    """Making a folder without a command."""

    async def make_folder(self, path: str) -> bool:
        """Make it, and the folders above it; False where it was there."""
        ...


@runtime_checkable
class SupportsRemove(Protocol):
    """Removing a file or a folder with what is in it."""

    async def remove(self, path: str) -> None:
        """Remove it. Raises `not_found`."""
        ...


@runtime_checkable
class SupportsKill(Protocol):
    """Ending what a command left running."""

    async def kill(self, process_id: str) -> bool:
        """Kill by the plane's own process id; False where there was none."""
        ...


@runtime_checkable
class SupportsSearch(Protocol):
    """Searching inside the plane."""

    def search(self, cwd: str) -> Search:
        """A `Search` whose relative paths start at an absolute folder of the plane."""
        ...


@runtime_checkable
class SupportsProcesses(Protocol):
    """Commands that go on between calls, inside the plane."""

    def processes(self, cwd: str) -> Processes:
        """A `Processes` whose relative folders start at an absolute folder of the plane."""
        ...


PathKind = Literal["file", "directory", "other", "missing", "unknown"]


@dataclass(frozen=True)
class PathStatus:
    """What a path of the plane is, its links followed.

    Attributes:
        real: The path without links; of a missing one the nearest existing ancestor is real.
        kind: What is there; "unknown" where the plane cannot be asked (it has no POSIX shell).
        size_bytes: Of a file.
        mode: Permission bits.
        identity: Two equal ones that are not empty mean that nobody has touched the file in between, as far as
            the plane can tell.
        trouble: Why the path could not be looked at, in the system's words; "" where it could.
        readable: Whether the plane's user may read it.
    """

    real: str
    kind: PathKind
    size_bytes: int = 0
    mode: int = 0o644
    identity: str = ""
    trouble: str = ""
    readable: bool = True


@runtime_checkable
class SupportsStat(Protocol):
    """Looking at a path without a command; a client without it needs a POSIX shell."""

    async def stat(self, path: str) -> PathStatus:
        """What is at an absolute path."""
        ...


@runtime_checkable
class SupportsReplace(Protocol):
    """Replacing a file atomically without a command; a client without it needs a POSIX shell."""

    async def replace_bytes(self, path: str, content: bytes, *, expected: PathStatus) -> PathStatus:
        """Put a file in place of what `stat` has seen there. Raises `stale_file` where that has changed."""
        ...


@runtime_checkable
class SupportsReadRange(Protocol):
    """Reading a part of a file, so that a large one is never held whole."""

    async def read_range(self, path: str, offset: int, size: int) -> bytes:
        """At most `size` bytes from `offset`, fewer only at the end of the file."""
        ...


@runtime_checkable
class SupportsSnapshot(Protocol):
    """Keeping and restoring a state."""

    async def snapshot(self) -> str:
        """Keep the present state; returns its id."""
        ...

    async def restore(self, snapshot_id: str) -> None:
        """Go back to a kept state. While it runs, and after it failed, every operation is refused."""
        ...


@dataclass(frozen=True)
class Watched:
    """How a command ended as seen beside it: by which signal, and how many processes it left to be ended."""

    signal: int | None = None
    survivors: int = 0


@dataclass(frozen=True)
class Invocation:
    """A program to start: argument vector, folder, whole environment, descriptors to hand over.

    Attributes:
        argv: Program and arguments; `argv[0]` is an absolute path where a wrapper set it.
        cwd: Folder to start in, absolute.
        environment: The whole environment, nothing is added.
        descriptors: Descriptor number in the child to the bytes it reads there from offset 0 (a sealed memfd, say).
        inherited: Descriptor number in the child to an open descriptor of this process. The starter passes a
            duplicate and leaves the original alone: whoever opened it closes it, in `after_exit`.
        spare_leader: The first process is the confinement, not the command: a polite signal (TERM) goes to its
            descendants alone, since its own death would take them at once; KILL goes to all.
        after_exit: Awaited exactly once on every path (ended, timed out, cancelled, never started), after the
            first process is gone and reaped. Returns a note for the model ("" for none). It raises `ToolError`
            (`unavailable`) when the confinement never started the command: the starter then raises that
            in place of a result, unless it ended the process itself (timeout, cancellation).
        watched: Asked after `after_exit`: what the first process's own exit status does not tell.
    """

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]
    descriptors: Mapping[int, bytes] = field(default_factory=dict[int, bytes])
    inherited: Mapping[int, int] = field(default_factory=dict[int, int])
    spare_leader: bool = False
    after_exit: Callable[[], Awaitable[str]] | None = None
    watched: Callable[[], Watched] | None = None


@runtime_checkable
class SupportsWrap(Protocol):
    """Confining a host command: the shell keeps its own timeout, caps and kill."""

    async def wrap(self, invocation: Invocation, command: str) -> Invocation:
        """The invocation to start instead. Raises `unavailable` where the sandbox cannot start.

        Once it has returned, its `after_exit` must be awaited, whether the program was started or not.
        """
        ...


@runtime_checkable
class SupportsMount(Protocol):
    """Mounting object storage natively."""

    async def mount(self, entry: Mapping[str, object], target: str) -> None:
        """Mount it at an absolute path."""
        ...
