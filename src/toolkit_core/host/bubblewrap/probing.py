"""Whether bubblewrap works here, and if not, why and what mends it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from toolkit_core.errors import ToolError
from toolkit_core.host._native import landlock
from toolkit_core.host._native.sandbox import memfd, run_to_end
from toolkit_core.host.bubblewrap.arguments import ARGUMENTS_FD, STATUS_FD, Layout, build, within
from toolkit_core.host.bubblewrap.seccomp import ARCHITECTURES, filter_program
from toolkit_core.limits import SANDBOX_PROBE_SECONDS

_INSTALL = (
    "Install it: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap` or `apk add bubblewrap`."
)
_APPARMOR = (
    "AppArmor forbids unprivileged user namespaces (Ubuntu 23.10 and later). Give bwrap a profile: write "
    "/etc/apparmor.d/bwrap with `abi <abi/4.0>, include <tunables/global> profile bwrap /usr/bin/bwrap "
    "flags=(unconfined) { userns, }`, then `sudo systemctl reload apparmor`; or, for the whole machine, "
    "`sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`."
)
_CONTAINER = (
    "If this is a container, its runtime forbids namespaces: start it with `--security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined --security-opt systempaths=unconfined`, or run the tools on the host."
)
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
_NAMESPACE_WORDS = ("namespace", "uid map", "gid map", "RTM_NEWADDR", "loopback", "clone", "unshare", "setgroups")


@dataclass(frozen=True)
class Probe:
    """What was found out about bubblewrap on this machine.

    Attributes:
        available: Whether a command can be confined.
        program: The absolute path of bwrap, where one was found.
        reason: Why not; empty when it is available.
        fix: What to do about it.
        landlock_abi: The kernel's Landlock version, 0 for none; `strict` needs 2.
    """

    available: bool
    program: str = ""
    reason: str = ""
    fix: str = ""
    landlock_abi: int = 0

    def error(self) -> ToolError:
        """The refusal that a command gets."""
        return ToolError(
            f"the sandbox could not start, so the command was not run: {self.reason}",
            code="unavailable",
            hint=self.fix,
        )


def find_program(not_in: Sequence[str] = ()) -> str | None:
    """The first bwrap on PATH; one that a confined command could have written is passed over."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        found = shutil.which("bwrap", path=folder)
        if found is not None and not any(within(os.path.realpath(found), root) for root in not_in):
            return found
    return None


def machine_filter() -> bytes | None:
    """The system call filter for this machine, or None."""
    return filter_program(platform.machine())


def _setting(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _namespace_fix() -> str:
    if _setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
        return _APPARMOR
    if _setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
        return "Allow user namespaces: `sudo sysctl kernel.unprivileged_userns_clone=1`."
    if _setting("/proc/sys/user/max_user_namespaces") == "0":
        return "Allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`."
    return f"The kernel refuses user namespaces to this user. {_CONTAINER} On Ubuntu 23.10 and later: {_APPARMOR}"


def diagnose(stderr: str) -> tuple[str, str]:
    """What bubblewrap's complaint means: the reason, and what to do."""
    said = " ".join(stderr.split())[:500] or "it said nothing"
    if "nknown option" in stderr:
        return f"bubblewrap is too old ({said})", "Version 0.8.0 or later is needed. " + _INSTALL
    if "SECCOMP" in stderr:
        return f"the kernel has no system call filters ({said})", "Use a kernel built with CONFIG_SECCOMP_FILTER."
    if "mount proc" in stderr:
        return f"a fresh /proc cannot be mounted ({said})", _CONTAINER
    if any(word in stderr for word in _NAMESPACE_WORDS):
        return f"namespaces cannot be created ({said})", _namespace_fix()
    if "execvp" in stderr:
        return f"the shell cannot be started inside ({said})", "Its program must not lie in a hidden or private folder."
    return f"bubblewrap failed ({said})", "Run `toolkit doctor`, and `bwrap --ro-bind / / true` by hand."


def try_layout(program: str, layout: Layout, prefix: Sequence[str] = ()) -> str | None:
    """Start `true` as a command is started; None when that worked, else what bubblewrap said. Blocks.

    Raises OSError where the program cannot even be started.
    """
    _, contents = build(layout, filter_program=machine_filter() or b"")
    opened: dict[int, int] = {}
    try:
        for number, content in contents.items():
            opened[number] = memfd(content)
        opened[STATUS_FD] = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        argv = [program, "--args", str(ARGUMENTS_FD), "--", *prefix, "/bin/sh", "-c", "exit 0"]
        status, said = run_to_end(argv, _ENVIRONMENT, opened, within_seconds=SANDBOX_PROBE_SECONDS)
    finally:
        for descriptor in opened.values():
            os.close(descriptor)
    if status == 0:
        return None
    text = said.decode("utf-8", "backslashreplace")
    return text if status is not None else f"no answer within {SANDBOX_PROBE_SECONDS:g} s; {text}"


def _platform_problem() -> tuple[str, str] | None:
    if not sys.platform.startswith("linux"):
        return f"bubblewrap needs Linux, this is {sys.platform}", "Use a container or a remote sandbox instead."
    if machine_filter() is None:
        known = ", ".join(ARCHITECTURES)
        return f"there is no system call filter for {platform.machine()}, only for {known}", "Use a remote sandbox."
    return None


def probe(layout: Layout | None = None, *, not_in: Sequence[str] = (), prefix: Sequence[str] = ()) -> Probe:
    """Look for bubblewrap and start `true` once with the full recipe. Blocks for some 50 ms.

    Args:
        layout: What to try; by default nothing writable.
        not_in: Folders whose bwrap is not trusted.
        prefix: Words that run before the command.
    """
    problem = _platform_problem()
    if problem is not None:
        return Probe(False, "", *problem)
    version = landlock.abi()
    program = find_program(not_in)
    if program is None:
        return Probe(False, "", "bubblewrap (bwrap) is not on PATH", _INSTALL, version)
    try:
        said = try_layout(program, layout or Layout(writable=(), working_directory="/"), prefix)
    except OSError as e:
        return Probe(False, program, f"{program} cannot be started ({e.strerror})", _INSTALL, version)
    if said is None:
        return Probe(True, program, landlock_abi=version)
    return Probe(False, program, *diagnose(said), landlock_abi=version)
