"""What is put before a command inside the sandbox: resource limits, and Landlock in strict mode."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from toolkit_core.host._native import landlock

_WATCHER = (
    # A shell says "Killed" and the like on its own standard error, which is the record here, and the command has not.
    "trap : HUP INT QUIT TERM USR1 USR2; exec 9>&2 2>&{0}; "
    '(exec 2>&9 {0}>&- 9>&-; exec "$@"); code=$?; set -- /proc/[0-9]*; echo "left $#" >&{0}; exit $code'
)
WATCHER_PROCESSES = 2
"""What is there without the command: the namespace's first process and the watching shell."""
LANDLOCK_PROGRAM = "/run/toolkit-landlock.py"
_STRICT_FOLDERS = ("/tmp", "/var/tmp", "/dev", "/proc")  # noqa: S108 - all private to the sandbox


@dataclass(frozen=True)
class SandboxLimits:
    """Limits that the kernel enforces on each process of a command (setrlimit(2)); None leaves the host's.

    Attributes:
        cpu_seconds: Processor time of each process; past it SIGXCPU, then SIGKILL.
        memory_bytes: Address space of each process (not of all together: that takes a control group).
        processes: Processes and threads of this user inside the sandbox. The kernel does not bind root by it.
        open_files: Descriptors of each process.
    """

    cpu_seconds: int | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"{field.name} must be a positive integer or None, not {value!r}")

    def unbound(self) -> tuple[str, ...]:
        """The given limits that the kernel will not enforce for this user."""
        return ("processes",) if self.processes is not None and os.geteuid() == 0 else ()


def _at_most(wanted: int, kind: int) -> int:
    """A limit can only be lowered."""
    hard = resource.getrlimit(kind)[1]
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def _limit_script(limits: SandboxLimits) -> str:
    """Shell text that sets the limits and becomes the rest; the process limit is -u in bash and -p in dash."""
    lines: list[str] = []
    if limits.cpu_seconds is not None:
        lines.append(f"ulimit -t {_at_most(limits.cpu_seconds, resource.RLIMIT_CPU)}")
    if limits.memory_bytes is not None:
        lines.append(f"ulimit -v {max(1, _at_most(limits.memory_bytes, resource.RLIMIT_AS) // 1024)}")
    if limits.open_files is not None:
        lines.append(f"ulimit -n {_at_most(limits.open_files, resource.RLIMIT_NOFILE)}")
    if limits.processes is not None:
        wanted = _at_most(limits.processes, resource.RLIMIT_NPROC)
        flag = 'if [ -n "$BASH_VERSION" ]; then ulimit -u {0}; else ulimit -p {0}; fi'
        lines.append(f"{{ {flag.format(wanted)}; }}")
    return " && ".join([*lines, 'exec "$@"'])


def watch_prefix(record_fd: int) -> tuple[str, ...]:
    """Words to put before a command so that a descriptor tells whether a signal ended it, and what it left running.

    bubblewrap tells an exit code of 137 and a death by SIGKILL alike, and ends what is left without counting.
    """
    return ("/bin/sh", "-c", _WATCHER.format(record_fd), "sh")


def limit_prefix(limits: SandboxLimits) -> tuple[str, ...]:
    """Words to put before a command so that it runs within the limits; a limit that cannot be set runs nothing."""
    if limits == SandboxLimits():
        return ()
    return ("/bin/sh", "-c", _limit_script(limits), "sh")


def landlock_prefix(writable: Sequence[str]) -> tuple[str, ...]:
    """Words to put before a command so that nothing outside can be opened for writing, FIFOs included."""
    folders = [*writable, *(folder for folder in _STRICT_FOLDERS if os.path.isdir(folder))]
    return (os.path.realpath(sys.executable), "-I", "-S", LANDLOCK_PROGRAM, *folders, "--")


def landlock_source() -> bytes:
    """The program that `landlock_prefix` starts, shown to the sandbox under /run."""
    return Path(landlock.__file__).read_bytes()
