"""500 commands, 50 at once (a tenth by default, the whole with SOAK=1): nothing is left of them."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import tempfile
import time
from pathlib import Path

import pytest

from tests.core.host.trees import Sleeper, descendants, open_descriptors
from tests.support import soak
from toolkit_core.host.commands import HostCommands
from toolkit_core.host.supervisor import shared

COUNT, AT_ONCE = soak(500), 50
FLOOD_BYTES = soak(200_000_000)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


async def one(commands: HostCommands, number: int, limit: asyncio.Semaphore, sleepers: list[Sleeper]) -> str:
    sleeper = Sleeper()
    sleepers.append(sleeper)
    tail = (
        f"setsid {sleeper.command} & {sleeper.command} & {sleeper.command}",
        f"(trap '' TERM; setsid {sleeper.command} &) ; yes flood | head -c {FLOOD_BYTES}",
        f"for i in 1 2 3; do (setsid {sleeper.command} &) ; done; echo forked",
        "echo quick; exit 3",
    )[number % 4]
    async with limit:
        if number % 3 == 0:
            running = asyncio.create_task(commands.run(f"{tail}; sleep 60", session=f"s{number % 7}"))
            await asyncio.sleep(random.random() * 0.5)
            running.cancel()
            outcome = (await asyncio.gather(running, return_exceptions=True))[0]
            assert isinstance(outcome, asyncio.CancelledError) or number % 4 == 3, outcome
            return "cancelled"
        if number % 3 == 1:
            result = await commands.run(f"{tail}; sleep 60", timeout_seconds=0.5, session=f"s{number % 7}")
            assert result.timed_out or number % 4 == 3
            return "timed out"
        result = await commands.run(tail, timeout_seconds=5, session=f"s{number % 7}")
        assert result.timed_out == (number % 4 == 0) or number % 4 == 1
        return "ended"


async def test_after_many_commands_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    commands = HostCommands(tmp_path)
    await asyncio.gather(*(commands.run("yes | head -c 5000000") for _ in range(8)))
    await commands.aclose()
    shared.end()  # other tests of this process may have left theirs
    gc.collect()
    before = descendants(), open_descriptors(), resident_bytes()
    limit, sleepers = asyncio.Semaphore(AT_ONCE), list[Sleeper]()
    outcomes = await asyncio.gather(*(one(commands, number, limit, sleepers) for number in range(COUNT)))
    assert set(outcomes) == {"cancelled", "timed out", "ended"}
    assert not [pid for sleeper in sleepers for pid in sleeper.pids()]
    await commands.aclose()
    gc.collect()
    until = time.monotonic() + 10
    while (descendants(), open_descriptors()) != before[:2] and time.monotonic() < until:
        await asyncio.sleep(0.05)
    assert descendants() == before[0]
    assert open_descriptors() == before[1]
    assert list(temporary.iterdir()) == []
    assert resident_bytes() - before[2] < 50 * 1024**2
