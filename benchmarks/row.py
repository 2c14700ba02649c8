"""A row of the table, before and after it is measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Work = Callable[[], Any]
"""Something to time: plain, or returning an awaitable."""

PeerWork = Callable[[], float]
"""A peer's work in a process of its own; the seconds that it says it took."""


@dataclass(frozen=True)
class Row:
    """One comparison.

    Attributes:
        name: What is done.
        target: The most that the ratio to the limit (or, without a limit, the value) may be.
        ours: Our work; without a limit it returns the value itself.
        limit: The bare machine's way.
        floor: The bare machine's way under what no tool can do without, such as a worker thread: its own ratio to
            the limit shows what of a missed target is out of reach.
        peers: Other libraries' ways.
        memory_target_mb: The most by which ours may grow the process, where that is promised.
        unit: Of the value: "x" for a ratio.
        rounds: How often each way runs, in turns; more often where all of them together stay below `MEASURED_SECONDS`.
        pause_seconds: Between two runs; an agent's calls are not back to back.
    """

    name: str
    target: float
    ours: Work
    limit: Work | None = None
    peers: Mapping[str, PeerWork] = field(default_factory=dict[str, PeerWork])
    memory_target_mb: float | None = None
    unit: str = "x"
    rounds: int = 9
    pause_seconds: float = 0.0
    floor: Work | None = None


@dataclass(frozen=True)
class Measured:
    """A row's outcome.

    Attributes:
        name: Of the row.
        target: Of the row.
        unit: Of the value.
        value: The ratio to the limit, the median of those of all pairs of runs; without a limit the value itself.
        median_ms: Of our runs.
        floor: The ratio of the row's floor to the limit, made as `value`.
        best_peer: The fastest peer.
        peer_ratio: Of our median to its median.
        memory_mb: By how much ours grew the process at most.
        memory_target_mb: Of the row.
        note: What went wrong with peers.
    """

    name: str
    target: float
    unit: str
    value: float
    median_ms: float | None = None
    best_peer: str = ""
    peer_ratio: float | None = None
    memory_mb: float | None = None
    memory_target_mb: float | None = None
    note: str = ""
    floor: float | None = None

    @property
    def met(self) -> bool:
        """Whether every target of the row is met."""
        fits = self.memory_target_mb is None or self.memory_mb is None or self.memory_mb <= self.memory_target_mb
        return fits and self.value <= self.target

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "name": self.name,
            "ratio": self.value,
            "floor": self.floor,
            "unit": self.unit,
            "peer_ratio": self.peer_ratio,
            "best_peer": self.best_peer,
            "median_ms": self.median_ms,
            "memory_mb": self.memory_mb,
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }
