"""Tries the escapes as the user that runs it, and prints what became of each as JSON.

Usage: worker.py BASE [NAME...]; a program of its own, so that the tests can run it as another user.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from tests.core.host.bubblewrap.confined import PYTHON, confined
from tests.core.host.bubblewrap.escapes import ESCAPES, Escape
from tests.core.host.bubblewrap.scene import Scene
from toolkit_core.host.bubblewrap import BubblewrapSandbox

AT_ONCE = 4
LATE_WRITER_SECONDS = 1.2
HOST_ACTS_AFTER_SECONDS = 0.7


async def _unguarded(scene: Scene, command: str, seconds: float) -> str:
    process = await asyncio.create_subprocess_exec(
        "/bin/bash",
        "-c",
        command,
        cwd=scene.workspace,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    out, _ = await asyncio.wait_for(process.communicate(), seconds)
    return out.decode("utf-8", "replace")


async def attempt(escape: Escape, scene: Scene, *, guarded: bool, strict: bool = False) -> dict[str, Any]:
    """Run one attempt in its scene."""
    command = scene.substitute(escape.command, PYTHON)
    found: dict[str, Any] = {"note": "", "text": "", "approved": False}
    acting = asyncio.ensure_future(_act_as_host(scene))
    if guarded:
        sandbox = BubblewrapSandbox(scene.workspace, hidden=scene.hidden, strict=strict)
        found["approved"] = sandbox.auto_approves(command)
        ended = await confined(sandbox, command, timeout_seconds=escape.timeout_seconds)
        out, found["note"], found["text"] = ended.stdout, ended.note, ended.text[-2000:]
    else:
        out = await _unguarded(scene, command, escape.timeout_seconds)
    await acting
    if "by-bg" in escape.name:
        await asyncio.sleep(LATE_WRITER_SECONDS)
    reasons = scene.got_out()
    if "ESC" in out:
        reasons.append("it says so")
    return {**found, "out": reasons, "legitimate": "OKLEGIT" in out}


async def _act_as_host(scene: Scene) -> None:
    if any(name.startswith("host_") for name in scene.setup):
        await asyncio.sleep(HOST_ACTS_AFTER_SECONDS)
        scene.act_as_host()


async def _tried(escape: Escape, base: Path, number: int, gate: asyncio.Semaphore, mode: str) -> tuple[str, Any]:
    async with gate:
        scene = Scene(base / f"{number}{mode[0]}", setup=escape.setup, tag=f"{os.getpid()}{number}{ord(mode[0])}")
        try:
            found = await attempt(escape, scene, guarded=mode != "unguarded", strict=mode == "strict")
        finally:
            scene.close()
    return f"{escape.name}:{mode}", found


def _modes(escape: Escape) -> list[str]:
    modes = ["guarded", *(["unguarded"] if escape.unguarded else [])]
    return [*modes, "strict"] if escape.name == "fs-fifo-outside" or escape.expected == "allowed" else modes


def _leak_descriptors(base: Path) -> socket.socket:
    """Inheritable descriptors of the host, at the numbers that the attempts use."""
    base.mkdir(exist_ok=True)
    (base / "leak").mkdir()
    (base / "leak" / "f").write_text("orig")
    os.dup2(os.open(base / "leak" / "f", os.O_RDONLY), 50, inheritable=True)
    os.dup2(os.open(base / "leak", os.O_RDONLY), 51, inheritable=True)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    os.dup2(theirs.fileno(), 52, inheritable=True)
    return ours


async def main(base: Path, names: list[str]) -> dict[str, Any]:
    """All attempts, a few at once."""
    _leak_descriptors(base)
    gate = asyncio.Semaphore(AT_ONCE)
    work = [
        _tried(escape, base, number, gate, mode)
        for number, escape in enumerate(ESCAPES)
        if not names or escape.name in names
        for mode in _modes(escape)
    ]
    results = dict(await asyncio.gather(*work))
    results["leak"] = (base / "leak" / "f").read_text()
    return results


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1]), sys.argv[2:]))))
