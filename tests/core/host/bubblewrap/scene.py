"""A workspace, a host around it, and whether something got from one to the other.

Runs in the worker process too, as another user and without pytest: standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

from toolkit_core.trust_inputs import TRUST_INPUTS

GIT_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"


class Scene:
    """Folders `ws` (the workspace), `out`, `hid` and a file `hidfile` in one base, with listeners of the host."""

    def __init__(self, base: Path, *, setup: tuple[str, ...] = (), tag: str = "0") -> None:
        self.base = base
        self.tag = tag
        self.setup = setup
        self.workspace = base / "ws"
        self.outside = base / "out"
        self.hidden_folder = base / "hid"
        self.hidden_file = base / "hidfile"
        self.hidden = [self.hidden_folder, self.hidden_file]
        self._closing = contextlib.ExitStack()
        self._reasons: list[str] = []
        self._make_files()
        self._listen()
        for name in setup:
            getattr(self, f"_set_{name}")()
        self._before = self._trust()
        self._base_names = sorted(os.listdir(base))

    def _make_files(self) -> None:
        for folder in (self.workspace, self.outside, self.hidden_folder):
            folder.mkdir(parents=True)
        (self.outside / "f").write_text("orig")
        os.mkfifo(self.outside / "fifo")
        (self.hidden_folder / "key").write_text("TOPSECRET")
        self.hidden_file.write_text("TOPSECRET")
        git = self.workspace / ".git"
        for name in ("hooks", "objects", "refs"):
            (git / name).mkdir(parents=True)
        (git / "HEAD").write_text("ref: refs/heads/main\n")
        (git / "config").write_text(GIT_CONFIG)
        (self.workspace / ".mcp.json").write_text("{}")
        (self.workspace / ".claude").mkdir()
        (self.workspace / ".claude" / "settings.json").write_text("{}")

    def _set_link_d(self) -> None:
        (self.workspace / "d").symlink_to(self.outside)

    def _set_node(self) -> None:
        with contextlib.suppress(PermissionError):  # only root makes devices
            os.mknod(self.workspace / "blk", 0o666 | 0o060000, os.makedev(254, 0))

    def _set_nested(self) -> None:
        (self.workspace / "sub" / "hooks").mkdir(parents=True)
        (self.workspace / "sub" / "hooks" / "pre-commit").write_text("#!/bin/sh\n")
        (self.workspace / ".git" / "config").write_text(GIT_CONFIG + "\thooksPath = sub/hooks\n")

    def _set_alias(self) -> None:
        os.link(self.workspace / ".mcp.json", self.workspace / "alias")

    def _set_gitfile(self) -> None:
        (self.workspace / ".git").rename(self.workspace / "gd")
        (self.workspace / ".git").write_text("gitdir: gd\n")

    def _set_hidden_alias(self) -> None:
        os.link(self.hidden_folder / "key", self.workspace / "hk")

    def _set_hidden_inside(self) -> None:
        (self.workspace / "a").mkdir()
        (self.workspace / "a" / "key").write_text("TOPSECRET")
        self.hidden.append(self.workspace / "a" / "key")

    def _set_victim(self) -> None:
        self.victim = subprocess.Popen(["sleep", "600"], start_new_session=True)
        self._closing.callback(self._end_victim)

    def _end_victim(self) -> None:
        self.victim.kill()
        self.victim.wait()

    def _set_host_replaces_mcp(self) -> None:
        pass

    _set_host_replaces_git_config = _set_host_replaces_hidden_file = _set_host_replaces_mcp

    def act_as_host(self) -> None:
        """What a program of the host does while the command runs: replace a file by renaming over it."""
        targets = {
            "host_replaces_mcp": (self.workspace / ".mcp.json", "{}"),
            "host_replaces_git_config": (self.workspace / ".git" / "config", GIT_CONFIG),
            "host_replaces_hidden_file": (self.hidden_file, "TOPSECRET"),
        }
        for name in self.setup:
            if name in targets:
                path, text = targets[name]
                new = path.with_name(path.name + ".new")
                new.write_text(text)
                new.rename(path)

    def _listen(self) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._listeners = [self._tcp]
        for kind, address in (
            (socket.SOCK_STREAM, str(self.outside / "s.sock")),
            (socket.SOCK_DGRAM, str(self.outside / "d.sock")),
            (socket.SOCK_STREAM, str(self.workspace / "in.sock")),
            (socket.SOCK_DGRAM, str(self.workspace / "ind.sock")),
            (socket.SOCK_DGRAM, f"\0rs-d-{self.tag}"),
            (socket.SOCK_STREAM, f"\0rs-s-{self.tag}"),
        ):
            listener = socket.socket(socket.AF_UNIX, kind)
            listener.bind(address)
            if kind == socket.SOCK_STREAM:
                listener.listen()
            self._listeners.append(listener)
        self._fifo = os.open(self.outside / "fifo", os.O_RDONLY | os.O_NONBLOCK)
        self._closing.callback(os.close, self._fifo)
        for listener in self._listeners:
            self._closing.callback(listener.close)

    def substitute(self, text: str, python: str) -> str:
        """The text with this scene's names in it."""
        victim = str(self.victim.pid) if "victim" in self.setup else "0"
        for name, value in {
            "W": str(self.workspace),
            "O": str(self.outside),
            "B": str(self.base),
            "H": str(self.hidden_folder),
            "PORT": str(self.port),
            "PY": python,
            "TAG": self.tag,
            "U": self.tag,
            "N": self.tag,
            "HOSTPID": victim,
        }.items():
            text = text.replace("{" + name + "}", value)
        return text

    def _trust(self) -> dict[str, str]:
        roots = [*TRUST_INPUTS, "gd"]
        if "nested" in self.setup:
            roots.append("sub/hooks")
        return dict(pair for name in roots for pair in _content(self.workspace / name))

    def got_out(self) -> list[str]:
        """What of the host was touched; empty when nothing was."""
        reasons: list[str] = []
        if (self.outside / "f").read_text() != "orig" or sorted(os.listdir(self.outside)) != [
            "d.sock",
            "f",
            "fifo",
            "s.sock",
        ]:
            reasons.append("a file outside changed")
        if select.select([*self._listeners, self._fifo], [], [], 0)[0]:
            reasons.append("a listener of the host was reached")
        if self._trust() != self._before:
            reasons.append("a trust input changed")
        if sorted(os.listdir(self.base)) != self._base_names:
            reasons.append("the folder around the workspace changed")
        if "victim" in self.setup and self.victim.poll() is not None:
            reasons.append("a process of the host was killed")
        if any(True for _ in self._left_running()):
            reasons.append("a process outlived the command")
        return reasons

    def _left_running(self) -> Iterator[int]:
        """Processes whose folder is the workspace, or that sleep for this scene's own number of seconds."""
        for entry in os.listdir("/proc"):
            if not entry.isdecimal() or int(entry) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                if os.readlink(f"/proc/{entry}/cwd").startswith(str(self.workspace)) or (
                    words[0] == b"sleep" and words[1] in {b"7731" + self.tag.encode(), b"7732" + self.tag.encode()}
                ):
                    yield int(entry)

    def close(self) -> None:
        """End what the unguarded attempt left."""
        for pid in self._left_running():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._closing.close()


def _content(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_symlink():
        yield str(path), f"link {os.readlink(path)}"
    elif path.is_dir():
        yield str(path), "folder"
        for child in sorted(path.iterdir()):
            yield from _content(child)
    elif path.is_file():
        yield str(path), f"file {path.read_text(errors='replace')}"
    elif os.path.lexists(path):
        yield str(path), "other"
