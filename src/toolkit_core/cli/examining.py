"""The checks behind `toolkit doctor`: each looks at one thing and says how to get it.

They look where the tools themselves look. The host is imported in the checks, so that other subcommands start
without it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Literal

from toolkit_core.errors import ToolError
from toolkit_core.limits import DOCTOR_PROBE_SECONDS

State = Literal["ok", "lacking", "broken"]

_BASE, _SANDBOXES = "Base", "Sandboxes"

_EXTRAS = (
    # distribution, extra, what it is for
    ("langchain-core", "langchain", "LangChain tools"),
    ("langchain", "langchain-agents", "LangChain agents and middleware"),
    ("deepagents", "deepagents", "Deep Agents"),
    ("llama-index-core", "llamaindex", "LlamaIndex tools and agents"),
    ("pypdf", "documents", "PDF files as text"),
    ("asyncssh", "ssh", "a sandbox over SSH"),
    ("opentelemetry-api", "otel", "a span for each call"),
    ("rich", "cli", "a prettier command line"),
)


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        group: The heading it stands under.
        name: What was looked for.
        state: "ok"; "lacking", where something optional is not there; "broken", where the default tools suffer.
        detail: A version, a path, or what happens without it.
        advice: How to get it; empty where nothing is to be done.
    """

    group: str
    name: str
    state: State
    detail: str
    advice: str = ""


def examine() -> list[Finding]:
    """All findings, in the order they are shown."""
    base = [_python(), _toolkit(), _ripgrep(), _shell(), _owner_death(), _git()]
    return [*base, *_bubblewrap(), _docker(), _browser(), *_extras()]


def _python() -> Finding:
    name = f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    return Finding(_BASE, "python", "ok", name)


def _toolkit() -> Finding:
    return Finding(_BASE, "toolkit-core", "ok", _installed("toolkit-core") or "not installed as a distribution")


def _ripgrep() -> Finding:
    from toolkit_core.host.ripgrep import find_ripgrep

    path = find_ripgrep()
    version = path and _first_line([path, "--version"])
    if version:
        return Finding(_BASE, "ripgrep", "ok", f"{version} ({path})")
    advice = "pip install ripgrep, or your system's package ripgrep"
    return Finding(_BASE, "ripgrep", "lacking", "grep uses Python's re without it, which is slower", advice)


def _shell() -> Finding:
    from toolkit_core.host.shells import find_shell

    try:
        name, path = find_shell()
    except ToolError as e:
        return Finding(_BASE, "shell", "broken", e.message)
    return Finding(_BASE, "shell", "ok", f"{name} ({path})")


def _owner_death() -> Finding:
    """Whether a command's process tree ends with its owner, whatever kills that."""
    if sys.platform != "linux":
        return Finding(_BASE, "process trees", "lacking", "may outlive a program that is killed: best effort here")
    if _has_pidfd():
        return Finding(_BASE, "process trees", "ok", f"end with their owner (Linux {platform.release()})")
    detail = f"Linux {platform.release()} has no pidfd"
    return Finding(_BASE, "process trees", "lacking", detail, "Linux 5.3 or newer")


def _has_pidfd() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError:
        return False
    return True


def _git() -> Finding:
    version = shutil.which("git") and _first_line(["git", "--version"])
    if version:
        return Finding(_BASE, "git", "ok", version)
    return Finding(_BASE, "git", "lacking", "git entries of a workspace need it", _system_package("git"))


def _bubblewrap() -> Iterator[Finding]:
    """Bubblewrap, and Landlock, which its strict mode needs: both as the sandbox itself looks for them."""
    if sys.platform != "linux":
        yield Finding(_SANDBOXES, "bubblewrap", "lacking", "Linux only; on this system use Docker or a remote sandbox")
        return
    from toolkit_core.host.bubblewrap.probing import probe

    found = probe()
    if found.available:
        yield Finding(_SANDBOXES, "bubblewrap", "ok", f"{_first_line([found.program, '--version'])}, starts")
    else:
        yield Finding(_SANDBOXES, "bubblewrap", "lacking", found.reason, found.fix)
    state: State = "ok" if found.landlock_abi else "lacking"
    yield Finding(_SANDBOXES, "landlock", state, f"version {found.landlock_abi}" if found.landlock_abi else "not there")


def _docker() -> Finding:
    version = shutil.which("docker") and _first_line(["docker", "--version"])
    if version:
        return Finding(_SANDBOXES, "docker", "ok", f"{version} (the daemon was not asked)")
    return Finding(_SANDBOXES, "docker", "lacking", "DockerSandbox needs the docker command")


def _browser() -> Finding:
    from toolkit_core.host.browser_process import find_browser

    try:
        return Finding("Browser", "chromium", "ok", find_browser())
    except ToolError as e:
        return Finding("Browser", "chromium", "lacking", e.message, f"{_system_package('chromium')}; {e.hint}")


def _extras() -> Iterator[Finding]:
    for distribution, extra, purpose in _EXTRAS:
        version = _installed(distribution)
        if version:
            yield Finding("Extras", distribution, "ok", f"{version} ({purpose})")
        else:
            yield Finding("Extras", distribution, "lacking", purpose, install_command(extra))


def install_command(extra: str) -> str:
    """The command that installs an extra; quoted, since zsh reads square brackets as a pattern."""
    return f"pip install 'toolkit-core[{extra}]'"


def _system_package(name: str) -> str:
    if sys.platform == "darwin":
        return f"brew install {name}"
    for manager, command in (
        ("apt-get", "apt-get install"),
        ("dnf", "dnf install"),
        ("pacman", "pacman -S"),
        ("apk", "apk add"),
    ):
        if shutil.which(manager):
            return f"{command} {name}"
    return f"install {name}"


def _installed(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _first_line(argv: list[str]) -> str | None:
    """The first line that a program prints; None where it does not start or fails."""
    try:
        done = subprocess.run(  # noqa: S603 - fixed words, and a program found on the person's own path
            argv, capture_output=True, text=True, errors="replace", timeout=DOCTOR_PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None
