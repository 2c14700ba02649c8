"""Finding Chromium, starting it over a profile of its own, and ending it with all that it started.

Sources: the comments of chromium's `*_switches.cc`; posix_spawn(3). Measured: without `<-loopback>` requests to
loopback go round the proxy.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from toolkit_core.errors import ToolError
from toolkit_core.host._native.browser_kill import end_browser
from toolkit_core.host.devtools import DevTools
from toolkit_core.limits import BROWSE_STDERR_CHARS, CLEANUP_SECONDS

_NAMES: Final = (
    "google-chrome",
    "google-chrome-stable",
    "chromium",
    "chromium-browser",
    "chrome-headless-shell",
    "microsoft-edge",
    "brave-browser",
)
_MAC_APPS: Final = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")

_PREFIX: Final = "toolkit-browser-"
_PROFILE_MAX_BYTES: Final = 60
_READ_FD, _WRITE_FD = 3, 4
_FREE_FDS: Final = 10
"""Our ends are moved above the numbers that the child's copies take."""

_FLAGS: Final = (
    "--headless",
    "--remote-debugging-pipe",
    "--proxy-bypass-list=<-loopback>",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--dns-prefetch-disable",
    "--disable-back-forward-cache",  # a page that is kept there holds the virtual clock of the next
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-client-side-phishing-detection",
    "--disable-sync",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--metrics-recording-only",
    "--no-pings",
    "--no-first-run",
    "--no-default-browser-check",
    "--password-store=basic",
    "--use-mock-keychain",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--js-flags=--max-old-space-size=512",  # MiB: a script that fills memory ends its page, not the machine
    "--hide-scrollbars",
    "--deny-permission-prompts",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication,"
    "CertificateTransparencyComponentUpdater,InterestFeedContentSuggestions",
)


def find_browser(environment: Mapping[str, str] = os.environ) -> str:
    """The browser's path: TOOLKIT_BROWSER (a path or a name), else the first known name on PATH.

    Raises:
        ToolError: `unavailable`, with everything that was looked for.
    """
    chosen = environment.get("TOOLKIT_BROWSER", "")
    if chosen:
        found = shutil.which(chosen, path=environment.get("PATH"))
        if found is None:
            raise ToolError(
                f"no browser: TOOLKIT_BROWSER names {chosen!r}, which is no program here", code="unavailable"
            )
        return found
    looked_for = list(_NAMES)
    if sys.platform == "darwin":
        looked_for += [f"/Applications/{app}.app/Contents/MacOS/{app}" for app in _MAC_APPS]
    for name in looked_for:
        found = shutil.which(name, path=environment.get("PATH"))
        if found is not None:
            return found
    raise ToolError(
        f"no browser: looked for {', '.join(looked_for)} on PATH",
        code="unavailable",
        hint="Install Chromium, or let TOOLKIT_BROWSER name one.",
    )


class _Kept(asyncio.Protocol):
    """Reads a stream to its end and keeps a bounded part of it."""

    def __init__(self, max_bytes: int, *, tail: bool, heard: Callable[[], None] = lambda: None) -> None:
        self.data: bytearray = bytearray()
        self._max, self._tail, self._heard = max_bytes, tail, heard

    def data_received(self, data: bytes) -> None:
        """Keep the first or the last bytes."""
        if self._tail:
            self.data += data
            del self.data[: -self._max]
        elif len(self.data) < self._max:
            self.data += data[: self._max - len(self.data)]
            self._heard()


class BrowserProcess:
    """A started browser: `attach` opens its pipes, `close` ends it, whatever state it is in."""

    def __init__(
        self, pid: int, profile: str, pipes: _Pipes, *, heard: Callable[[], None], stdout_max_bytes: int
    ) -> None:
        self.devtools: DevTools = DevTools()
        self.stdout: _Kept = _Kept(stdout_max_bytes, tail=False, heard=heard)
        self._stderr = _Kept(BROWSE_STDERR_CHARS, tail=True)
        self._pid, self._profile, self._pipes = pid, profile, pipes
        self._streams: list[asyncio.BaseTransport] = []

    @property
    def complaint(self) -> str:
        """The end of what it wrote to standard error."""
        return self._stderr.data.decode("utf-8", "replace").strip()

    async def attach(self) -> None:
        """Open the DevTools client and read what the browser writes."""
        loop = asyncio.get_running_loop()
        await self.devtools.open(self._pipes.take("events"), self._pipes.take("commands"))
        for name, kept in (("stdout", self.stdout), ("stderr", self._stderr)):
            stream = os.fdopen(self._pipes.take(name), "rb", 0)
            self._streams.append((await loop.connect_read_pipe(lambda kept=kept: kept, stream))[0])

    async def close(self) -> None:
        """Kill the process tree, remove the profile, close the pipes."""
        try:
            self.devtools.close()
            for stream in self._streams:
                stream.close()
            self._pipes.close()
        finally:
            await end_browser(self._pid, self._profile, within_seconds=CLEANUP_SECONDS / 2)
            await asyncio.to_thread(_remove, self._profile)


def start_browser(
    executable: str, *, proxy_port: int, no_sandbox: bool, stdout_max_bytes: int, heard: Callable[[], None]
) -> BrowserProcess:
    """Start a browser over a new profile; the caller closes it. Starting takes a millisecond: nothing is awaited.

    Args:
        executable: Its path.
        proxy_port: Where its proxy listens on loopback.
        no_sandbox: Run without Chromium's own sandbox, which root cannot have.
        stdout_max_bytes: How much of its standard output is kept.
        heard: Called when something came on standard output.

    Raises:
        ToolError: `unavailable` (the system refuses to start it).
    """
    profile = _new_profile()
    arguments = [
        executable,
        *_FLAGS,
        *(["--no-sandbox"] if no_sandbox else []),
        f"--user-data-dir={profile}",
        f"--proxy-server=http://127.0.0.1:{proxy_port}",
        "about:blank",
    ]
    pipes = _Pipes()
    try:
        pid = os.posix_spawn(executable, arguments, _environment(profile), file_actions=pipes.actions(), setpgroup=0)
    except OSError as e:
        pipes.close()
        _remove(profile)
        raise ToolError(f"{executable} cannot be started: {e.strerror}", code="unavailable") from e
    finally:
        pipes.close_theirs()
    return BrowserProcess(pid, profile, pipes, heard=heard, stdout_max_bytes=stdout_max_bytes)


class _Pipes:
    """Four pipes: DevTools both ways, standard output and error."""

    def __init__(self) -> None:
        commands, events, stdout, stderr = _pipe(), _pipe(), _pipe(), _pipe()
        self._ours = {"commands": commands[1], "events": events[0], "stdout": stdout[0], "stderr": stderr[0]}
        self._theirs = {1: stdout[1], 2: stderr[1], _READ_FD: commands[0], _WRITE_FD: events[1]}

    def actions(self) -> list[tuple[int, int, str, int, int] | tuple[int, int, int]]:
        """What the child does with its descriptors before it runs."""
        copies = [(os.POSIX_SPAWN_DUP2, ours, theirs) for theirs, ours in self._theirs.items()]
        return [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), *copies]

    def take(self, name: str) -> int:
        """One of our ends; the taker closes it."""
        return self._ours.pop(name)

    def close_theirs(self) -> None:
        """Close the child's ends here."""
        for descriptor in self._theirs.values():
            os.close(descriptor)
        self._theirs = {}

    def close(self) -> None:
        """Close what nobody took."""
        for descriptor in self._ours.values():
            os.close(descriptor)
        self._ours = {}


def _pipe() -> tuple[int, int]:
    import fcntl  # not on Windows, where no browser is started

    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _FREE_FDS) for end in ends]
    for end in ends:
        os.close(end)
    return moved[0], moved[1]


def _environment(profile: str) -> dict[str, str]:
    """Nothing of ours but the search path and the language; everything that is written goes to the profile."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "FONTCONFIG_PATH") if name in os.environ}
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"), profile)
    return {"LANG": "C.UTF-8", **kept, **folders, "DBUS_SESSION_BUS_ADDRESS": "disabled:"}


def _new_profile() -> str:
    """A new folder, short enough for the sockets that the browser makes below it (unix(7): 108 bytes)."""
    profile = tempfile.mkdtemp(prefix=_PREFIX)
    if len(os.fsencode(profile)) > _PROFILE_MAX_BYTES and os.access("/tmp", os.W_OK):  # noqa: S108 - by mkdtemp
        Path(profile).rmdir()
        profile = tempfile.mkdtemp(prefix=_PREFIX, dir="/tmp")
    return profile


def _remove(profile: str) -> None:
    """Twice: a process that was just killed may have made a file meanwhile."""
    for _ in range(2):
        shutil.rmtree(profile, ignore_errors=True)
        if not Path(profile).exists():
            return
