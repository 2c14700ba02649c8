"""Without a supervisor (macOS, Windows, a frozen program) a command's process group is kept, best effort."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.core.host.trees import Sleeper, descendants, open_descriptors
from toolkit_core.errors import ToolError
from toolkit_core.host import supervisor
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.processes import HostProcesses

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells")


@pytest.fixture(autouse=True)
def no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    supervisor.shared.end()  # that of earlier tests
    monkeypatch.setattr(supervisor, "supported", lambda: False)


async def test_runs_commands(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    result = await commands.run("pwd -P; echo err >&2; exit 3")
    assert (result.exit_code, result.stderr) == (3, b"err\n")
    assert result.stdout.decode().strip() == os.path.realpath(tmp_path)
    assert (await commands.run("kill -9 $$")).signal == signal.SIGKILL
    many = await asyncio.gather(*(commands.run(f"echo {n}") for n in range(20)))
    assert [each.stdout for each in many] == [b"%d\n" % n for n in range(20)]
    await commands.aclose()


async def test_ends_the_group_at_the_timeout_on_return_and_when_cancelled(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path)
    before, descriptors = descendants(), open_descriptors()
    sleeper = Sleeper()
    assert (await commands.run(f"{sleeper.command} & {sleeper.command}", timeout_seconds=0.5)).timed_out
    assert sleeper.gone()
    stubborn = await commands.run(f"trap '' TERM; {sleeper.command}", timeout_seconds=0.5)
    assert (stubborn.timed_out, stubborn.signal) == (True, signal.SIGKILL)
    assert sleeper.gone()
    left = await commands.run(f"{sleeper.command} & echo ok")
    assert (left.stdout, left.survivors_killed) == (b"ok\n", 1)
    assert sleeper.gone()
    running = asyncio.create_task(commands.run(sleeper.command))
    await sleeper.started()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sleeper.gone()
    await commands.aclose()
    until = time.monotonic() + 10
    while descendants() != before and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert descendants() == before
    assert open_descriptors() == descriptors


async def test_refuses_what_cannot_be_started(tmp_path: Path) -> None:
    commands = HostCommands(tmp_path, env={f"V{n}": "x" * 100_000 for n in range(60)})
    with pytest.raises(ToolError) as caught:
        await commands.run("true")
    assert caught.value.code == "invalid_arguments"
    await commands.aclose()


async def test_background_processes_work_too(tmp_path: Path) -> None:
    processes = HostProcesses(tmp_path)
    started = await processes.start("cat")
    assert (await processes.write(started.process_id, "hi\n")).output == b"hi\n"
    assert not (await processes.stop(started.process_id)).running
    await processes.aclose()


async def test_the_group_dies_with_its_owner(tmp_path: Path) -> None:
    sleeper = Sleeper()
    code = (
        "import asyncio, sys\n"
        "from toolkit_core.host import supervisor\n"
        "supervisor.supported = lambda: False\n"
        "from toolkit_core.host.commands import HostCommands\n"
        "asyncio.run(HostCommands('.').run(sys.argv[1]))\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, f"{sleeper.command} & {sleeper.command}"], cwd=tmp_path)
    await sleeper.started(2)
    owner.kill()
    owner.wait()
    assert sleeper.gone()
