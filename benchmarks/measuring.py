"""Measuring a row: each way in turns, so that a busy moment of the machine meets all of them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from benchmarks.row import Measured, PeerWork, Row, Work

SLOW_SECONDS = 5.0
"""A way that takes longer runs three times at most."""

MEASURED_SECONDS = 1.0
"""What is quick runs more often, up to this long in all."""

MOST_ROUNDS = 100


async def seconds(work: Work) -> float:
    """How long it takes."""
    before = time.perf_counter()
    made = work()
    if inspect.isawaitable(made):
        await made
    return time.perf_counter() - before


async def measure(row: Row, *, quick: bool) -> Measured:
    """Run a row."""
    rounds = min(row.rounds, 3) if quick else row.rounds
    if row.limit is None:
        return await _measure_value(row, rounds)
    once = await seconds(row.limit)
    with Peak() as peak:
        once += await seconds(row.ours)
    most_rounds = rounds if quick else max(rounds, min(MOST_ROUNDS, int(MEASURED_SECONDS / once)))
    limit: list[float] = []
    ours: list[float] = []
    floor: list[float] = []
    ways = [(row.limit, limit), (row.ours, ours), *([(row.floor, floor)] if row.floor is not None else [])]
    peers: dict[str, list[float]] = {}
    notes: list[str] = []
    waiting = dict(row.peers)
    for turn in range(most_rounds):
        for way, times in ways:
            await asyncio.sleep(row.pause_seconds)
            times.append(await seconds(way))
        for name in list(waiting) if turn < rounds else ():
            if not _run_peer(name, waiting[name], peers, notes) or (turn >= 2 and peers[name][-1] > SLOW_SECONDS):
                del waiting[name]
        if turn >= 2 and limit[-1] + ours[-1] > SLOW_SECONDS:
            break
    best = min(peers, key=lambda name: median(peers[name]), default="")
    return Measured(
        row.name,
        row.target,
        "x",
        _ratio(ours, limit),
        1000 * median(ours),
        best,
        median(ours) / median(peers[best]) if best else None,
        peak.grown_mb,
        row.memory_target_mb,
        "; ".join(notes),
        _ratio(floor, limit) if floor else None,
    )


def _ratio(times: list[float], others: list[float]) -> float:
    """Of pairs of runs, one right after the other: a busy moment meets both."""
    return median(mine / other for mine, other in zip(times, others, strict=True))


def _run_peer(name: str, work: PeerWork, peers: dict[str, list[float]], notes: list[str]) -> bool:
    try:
        peers.setdefault(name, []).append(work())
    except RuntimeError as e:
        if not peers[name]:
            del peers[name]
        notes.append(f"{name}: {e}")
        return False
    return True


async def _measure_value(row: Row, rounds: int) -> Measured:
    """The median of several values."""
    values: list[float] = []
    for _ in range(rounds):
        made = row.ours()
        values.append(await made if inspect.isawaitable(made) else made)
    return Measured(row.name, row.target, row.unit, median(values))


class Peak:
    """By how much this process grows at most; Linux only (proc(5), clear_refs)."""

    grown_mb: float | None = None

    def __enter__(self) -> Peak:
        try:
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            self._before = None
        else:
            self._before = self._high_water_kib()
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._before is not None:
            self.grown_mb = (self._high_water_kib() - self._before) / 1024

    @staticmethod
    def _high_water_kib() -> int:
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1])


async def gap_ms(work: Callable[[], Awaitable[object]]) -> float:
    """The longest time that the event loop did not come round while work went on."""
    worst = 0.0

    async def watch() -> None:
        nonlocal worst
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            worst = max(worst, time.perf_counter() - before - 0.001)

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0.01)
    worst = 0.0
    made = await work()
    await asyncio.sleep(0.01)  # the work's last step counts, too
    watching.cancel()
    del made  # only now: to let go of a hundred thousand rows is the caller's own doing
    return 1000 * worst
