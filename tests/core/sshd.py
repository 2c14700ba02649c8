"""A real sshd on loopback, unprivileged, and a proxy that cuts its connections."""

from __future__ import annotations

import asyncio
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import require
from toolkit_core.host.ssh import SSHSandbox

_PROGRAM = shutil.which("sshd") or "/usr/sbin/sshd"

_CONFIG = """\
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/pid
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PermitRootLogin yes
PermitUserRC no
MaxStartups 100
PrintMotd no
LogLevel VERBOSE
Subsystem sftp internal-sftp
"""


@dataclass(frozen=True)
class Server:
    """A running server: where it listens, who may log in, and a folder of that user."""

    port: int
    user: str
    folder: Path
    workspace: Path
    uid: int
    process: subprocess.Popen[bytes]

    def sandbox(self, root: str | Path | None = None, **options: Any) -> SSHSandbox:
        """A client of it."""
        given: dict[str, Any] = {
            "port": self.port,
            "username": self.user,
            "known_hosts": str(self.folder / "known_hosts"),
            "client_keys": [str(self.folder / "client_key")],
        }
        return SSHSandbox("127.0.0.1", root=str(root or self.workspace), **{**given, **options})

    def new_folder(self, name: str) -> str:
        """An empty folder of the user."""
        folder = self.workspace / f"{name.replace('/', '_')}-{secrets.token_hex(4)}"
        folder.mkdir()
        os.chown(folder, self.uid, -1)
        return str(folder)

    def known_hosts_for(self, port: int) -> bytes:
        """The right key, said of another port."""
        key = (self.folder / "host_key.pub").read_text()
        return f"[127.0.0.1]:{port} {key}".encode()


@contextmanager
def running_sshd() -> Generator[Server]:
    """Start one; skips where there is no sshd.

    Its folder is not pytest's: every pytest that starts closes those to other users.
    """
    with (
        tempfile.TemporaryDirectory(prefix="toolkit-sshd-", ignore_cleanup_errors=True) as made,
        _running_in(Path(made).resolve()) as server,
    ):
        yield server


@contextmanager
def _running_in(folder: Path) -> Generator[Server]:
    require(os.path.exists(_PROGRAM), "sshd is not installed (apt-get install openssh-server)")
    require(shutil.which("ssh-keygen"), "ssh-keygen is not installed (apt-get install openssh-client)")
    folder.chmod(0o755)
    port = _free_port()
    for name in ("host_key", "client_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized_keys").write_bytes((folder / "client_key.pub").read_bytes())
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {(folder / 'host_key.pub').read_text()}")
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    workspace = folder / "workspace"
    workspace.mkdir()
    user, uid, argv = _unprivileged(folder, workspace)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*argv, _PROGRAM, "-D", "-e", "-f", str(folder / "config")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_it_listens(port, process, folder / "log")
        yield Server(port, user, folder, workspace, uid, process)
    finally:
        process.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        if process.poll() is None:
            process.kill()
            process.wait()


def _unprivileged(folder: Path, workspace: Path) -> tuple[str, int, list[str]]:
    """The user to log in as, and the words before sshd.

    As root: a user of the server's own, whom only its mount namespace knows, so that nobody else's processes are
    in the way and none of ours in theirs.
    """
    if os.geteuid() != 0:
        return getpass.getuser(), os.geteuid(), []
    uid = 61_000 + os.getpid() % 4_000
    passwd = Path("/etc/passwd").read_text() + f"toolkit-ssh:x:{uid}:{uid}:toolkit:{workspace}:/bin/sh\n"
    (folder / "passwd").write_text(passwd)
    (folder / "shadow").write_text("toolkit-ssh:np:20000:0:99999:7:::\n")
    for path in (workspace, *folder.iterdir()):
        os.chown(path, uid, uid)
    drop = f"exec setpriv --reuid {uid} --regid {uid} --clear-groups"
    script = f'mount --bind {folder}/passwd /etc/passwd && mount --bind {folder}/shadow /etc/shadow && {drop} "$@"'
    argv = ["unshare", "-m", "sh", "-c", script, "sh"]
    probe = subprocess.run([*argv, "true"], check=False, capture_output=True)
    require(probe.returncode == 0, f"root cannot give sshd a mount namespace here: {probe.stderr[-200:]!r}")
    return "toolkit-ssh", uid, argv


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_until_it_listens(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 30
    while time.monotonic() < until and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"sshd does not listen: {log.read_text()}")


def processes_with(text: str) -> list[int]:
    """Processes of this machine whose command line holds the text, keepers (who hold every command) apart."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                if text.encode() in line and b"TOOLKIT_RUN=" not in line:
                    found.append(int(entry.name))
    return found


async def gone(text: str, within_seconds: float = 20.0) -> bool:
    """Whether no such process is left, waited for."""
    until = time.monotonic() + within_seconds
    while processes_with(text):
        if time.monotonic() > until:
            return False
        await asyncio.sleep(0.05)
    return True


@dataclass
class CuttingProxy:
    """Passes bytes on to a server until it is told to cut.

    Attributes:
        cut_after_bytes: Cuts a connection after so many bytes from the server; None: never by itself.
        silent: Swallows all bytes from the server, as a dead network does.
    """

    target: int
    cut_after_bytes: int | None = None
    silent: bool = False
    port: int = 0
    connections: int = 0
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> CuttingProxy:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def cut(self) -> None:
        """Cut every connection now."""
        for writer in list(self._writers):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        there, back = await asyncio.open_connection("127.0.0.1", self.target)
        self._writers |= {writer, back}
        up = asyncio.create_task(self._pump(reader, back, None))
        try:
            await self._pump(there, writer, self.cut_after_bytes)
        finally:
            up.cancel()
            for each in (writer, back):
                self._writers.discard(each)
                each.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: int | None) -> None:
        passed = 0
        with suppress(ConnectionError):
            while block := await reader.read(16_384):
                if limit is not None and passed + len(block) > limit:
                    return
                passed += len(block)
                if not (self.silent and limit is None and writer in self._writers):
                    writer.write(block)
                    await writer.drain()
