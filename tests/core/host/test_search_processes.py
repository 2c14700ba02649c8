"""What a search starts has ended when the search has, however it ended; the event loop never waits for it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tests.support import require
from toolkit_core.errors import ToolError
from toolkit_core.host._native.child import Child
from toolkit_core.host.ripgrep import find_ripgrep
from toolkit_core.host.search import HostSearch
from toolkit_core.host.stoppable import Stop, StoppedError, in_thread
from toolkit_core.ports.search import GlobQuery, GrepQuery

HOSTILE = r"(?=(a+)+$)b"
"""Python alone takes it, and for a row of a's it never ends."""


def children() -> set[int]:
    """Direct children of this process, zombies too."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/children", encoding="ascii") as listing:
                found |= {int(word) for word in listing.read().split()}
        except FileNotFoundError:  # the thread ended meanwhile
            continue
    return found


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    require(sys.platform == "linux" and find_ripgrep(), "Linux's /proc and ripgrep")
    before, descriptors = children(), len(os.listdir("/proc/self/fd"))
    yield
    assert children() - before == set()
    assert len(os.listdir("/proc/self/fd")) <= descriptors


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    (tmp_path / "0.txt").write_text("b\n")
    (tmp_path / "r.txt").write_text("a" * 40 + "!\n")
    return tmp_path


def big(root: Path) -> Path:
    line = b"the quick brown fox jumps over the lazy dog and does not stop\n"
    for number in range(8):
        (root / f"big{number}").write_bytes(line * 400_000)
    return root


async def worst_gap(work: Awaitable[object]) -> float:
    """The longest that the event loop stood still while `work` ran."""
    worst = 0.0

    async def tick() -> None:
        nonlocal worst
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            worst = max(worst, time.monotonic() - before - 0.005)

    ticker = asyncio.create_task(tick())
    await asyncio.sleep(0)
    try:
        await work
    finally:
        ticker.cancel()
    return worst


def test_control_the_pattern_holds_python_for_long() -> None:
    before = time.monotonic()
    re.search(HOSTILE, "a" * 21 + "!")
    assert time.monotonic() - before > 0.02  # and doubles with each letter: 40 of them take days


async def test_a_hostile_pattern_ends_with_the_budget_and_shows_what_was_found(hostile: Path) -> None:
    search = HostSearch(hostile, budget_seconds=1.0)
    before = time.monotonic()
    found = await search.grep(GrepQuery(HOSTILE + "|b"))
    assert time.monotonic() - before < 8
    assert found.incomplete
    assert [(row.path, row.text) for row in found.rows] == [("0.txt", "b")]


async def test_the_event_loop_ticks_while_a_hostile_pattern_runs(hostile: Path) -> None:
    search = HostSearch(hostile, budget_seconds=1.0)
    assert await worst_gap(search.grep(GrepQuery(HOSTILE))) < 0.3


@pytest.mark.parametrize("pattern", [HOSTILE, "q.*u.*i.*z.*9"])
async def test_a_cancelled_search_has_stopped_when_the_cancellation_surfaces(tmp_path: Path, pattern: str) -> None:
    big(tmp_path)
    (tmp_path / "0.txt").write_text("a" * 40 + "!\n")
    search = HostSearch(tmp_path)
    await search.grep(GrepQuery("warm", path="0.txt"))
    took: list[float] = []
    for _ in range(5):
        task = asyncio.create_task(search.grep(GrepQuery(pattern)))
        await asyncio.sleep(0.06)
        if task.done():
            continue
        before = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        took.append(time.monotonic() - before)
        assert children() == set() or all(not _is_engine(pid) for pid in children())
    assert not took or median(took) < 0.5


def _is_engine(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            line = file.read()
    except OSError:
        return False
    return b"regex_worker" in line or b"--no-require-git" in line


async def test_a_search_cancelled_at_once_starts_nothing(tmp_path: Path) -> None:
    task = asyncio.create_task(HostSearch(tmp_path).grep(GrepQuery("x")))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_second_cancellation_does_not_leave_the_child_behind(tmp_path: Path) -> None:
    big(tmp_path)
    task = asyncio.create_task(HostSearch(tmp_path).grep(GrepQuery("q.*u.*i.*z.*9")))
    await asyncio.sleep(0.1)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_many_searches_at_once_do_not_wait_for_a_pool(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("hit\n")
    search = HostSearch(tmp_path)
    blocked = [asyncio.create_task(asyncio.to_thread(time.sleep, 0.5)) for _ in range(40)]
    before = time.monotonic()
    found = await asyncio.gather(*(search.grep(GrepQuery("hit")) for _ in range(8)))
    took = time.monotonic() - before
    await asyncio.gather(*blocked)
    assert all(len(each.rows) == 1 for each in found)
    assert took < 2.5  # the pool alone needs three rounds of half a second


async def test_a_search_at_its_limit_kills_the_engine(tmp_path: Path) -> None:
    big(tmp_path)
    found = await HostSearch(tmp_path).grep(GrepQuery("fox", limit=10))
    assert len(found.rows) == 10
    assert found.truncated


async def test_a_giant_file_takes_bounded_memory(tmp_path: Path) -> None:
    with (tmp_path / "one-line").open("wb") as file:
        for _ in range(60):
            file.write(b"fox " * 262_144)
    before = _peak_bytes()
    found = await HostSearch(tmp_path).grep(GrepQuery("fox"))
    assert len(found.rows[0].text) == 500
    assert _peak_bytes() - before < 30_000_000


def _peak_bytes() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


async def test_a_glob_is_stopped_too(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"d{number}").mkdir()
    for _ in range(5):
        task = asyncio.create_task(HostSearch(tmp_path).glob(GlobQuery("**/*")))
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    for thread in threading.enumerate():
        if thread.name.startswith("toolkit-glob"):
            thread.join(1)
            assert not thread.is_alive()


async def test_an_engine_that_fails_is_an_error_and_no_absence(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "rg"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\ncase "$*" in *--version*) echo "ripgrep 14";; *) kill -9 $$;; esac\n')
    program.chmod(0o755)
    with pytest.raises(ToolError) as caught:
        await HostSearch(tmp_path, ripgrep=str(program)).grep(GrepQuery("x"))
    assert caught.value.code == "io_error"


async def test_work_in_a_thread_raises_what_it_raised_and_stops_when_told() -> None:
    def fail(stop: Stop) -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await in_thread(fail, budget_seconds=1, name="test")
    ended: list[bool] = []

    def wait(stop: Stop) -> None:
        try:
            while True:
                stop.check()
                time.sleep(0.001)
        except StoppedError:
            ended.append(True)

    task = asyncio.create_task(in_thread(wait, budget_seconds=60, name="test"))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended == [True]


def test_a_child_that_closes_its_output_and_lingers_is_killed() -> None:
    with open(os.devnull, "rb") as nothing:
        argv = ["/bin/sh", "-c", "exec >&- 2>&-; sleep 60"]
        child = Child(argv, cwd="/", environment={"PATH": "/usr/bin:/bin"}, stdin=nothing.fileno())
        before = time.monotonic()
        child.stream(lambda block: True, deadline=time.monotonic() + 30, complaint_bytes=10)
    assert time.monotonic() - before < 10
    child.kill()  # afterwards it harms nobody


_SHORT = """
import asyncio, os, resource, sys
from toolkit_core.errors import ToolError
from toolkit_core.host.search import HostSearch
from toolkit_core.ports.search import GlobQuery, GrepQuery

async def main():
    search = HostSearch(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError:
        pass
    outcomes = set()
    for free in range(16):
        for work in (search.grep(GrepQuery("x")), search.grep(GrepQuery("(?=)x")), search.glob(GlobQuery("**/*"))):
            try:
                found = await work
                outcomes.add("found" if getattr(found, "rows", None) or getattr(found, "paths", None) else "absence")
            except ToolError as e:
                outcomes.add(e.code)
        if held:
            os.close(held.pop())
    print(sorted(outcomes))

asyncio.run(main())
"""


def test_short_of_descriptors_a_search_fails_and_never_claims_absence(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x\n")
    argv = [sys.executable, "-c", _SHORT, str(tmp_path)]
    run = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    assert "absence" not in run.stdout
    assert "found" in run.stdout
    assert "io_error" in run.stdout
