"""The checks behind `toolkit doctor`: each looks at one thing and says how to get it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from toolkit_core.limits import DOCTOR_PROBE_SECONDS

State = Literal["ok", "lacking", "broken"]

_SANDBOXES = "Sandboxes"

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")

_MAC_BROWSERS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)

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
    return Finding("Base", "python", "ok", name)


def _toolkit() -> Finding:
    return Finding("Base", "toolkit-core", "ok", _installed("toolkit-core") or "not installed as a distribution")


def _ripgrep() -> Finding:
    beside = Path(sys.executable).with_name("rg.exe" if sys.platform == "win32" else "rg")
    path = str(beside) if beside.exists() else shutil.which("rg")
    version = path and _first_line([path, "--version"])
    if version:
        return Finding("Base", "ripgrep", "ok", f"{version} ({path})")
    advice = "pip install ripgrep, or your system's package ripgrep"
    return Finding("Base", "ripgrep", "broken", "grep answers `unavailable` without it", advice)


def _shell() -> Finding:
    names = ("pwsh", "powershell") if sys.platform == "win32" else ("bash", "sh")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        return Finding("Base", "shell", "broken", f"none of {', '.join(names)} found: shell is `unavailable`")
    note = "" if Path(path).stem == names[0] else f" (no {names[0]}: commands are read by {Path(path).stem})"
    return Finding("Base", "shell", "ok", path + note)


def _git() -> Finding:
    version = shutil.which("git") and _first_line(["git", "--version"])
    if version:
        return Finding("Base", "git", "ok", version)
    return Finding("Base", "git", "lacking", "git entries of a workspace need it", _system_package("git"))


def _bubblewrap() -> Iterator[Finding]:
    """Bubblewrap, and Landlock, which its strict mode needs: both as the sandbox itself looks for them."""
    if sys.platform != "linux":
        yield Finding(_SANDBOXES, "bubblewrap", "lacking", "Linux only; on this system use Docker or a remote sandbox")
        return
    from toolkit_core.host.bubblewrap.probe import probe

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
    chosen = os.environ.get("TOOLKIT_BROWSER")
    candidates = [chosen] if chosen else [*_BROWSERS, *_MAC_BROWSERS]
    path = next((found for name in candidates if (found := shutil.which(name))), None)
    if path:
        return Finding("Browser", "chromium", "ok", path)
    detail = f"TOOLKIT_BROWSER={chosen} is no program" if chosen else "browse answers `unavailable` without it"
    return Finding("Browser", "chromium", "lacking", detail, f"{_system_package('chromium')}, or set TOOLKIT_BROWSER")


def _owner_death() -> Finding:
    """Whether a command's process tree ends with its owner, whatever kills that."""
    group, name = "Base", "process trees"
    if sys.platform != "linux":
        return Finding(group, name, "lacking", "what a command left running may outlive a killed program: best effort")
    if _tries(lambda: os.close(os.pidfd_open(os.getpid()))):
        return Finding(group, name, "ok", f"end with their owner (Linux {platform.release()})")
    return Finding(group, name, "lacking", f"Linux {platform.release()} has no pidfd", "Linux 5.3 or newer")


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


def _tries(action: Callable[[], object]) -> bool:
    try:
        action()
    except OSError:
        return False
    return True
