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
        peers: Other libraries' ways.
        memory_target_mb: The most by which ours may grow the process, where that is promised.
        unit: Of the value: "x" for a ratio.
        rounds: How often each way runs, in turns.
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


@dataclass(frozen=True)
class Measured:
    """A row's outcome. Ratios are of the fastest runs: other work on the machine can only add."""

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
            "unit": self.unit,
            "peer_ratio": self.peer_ratio,
            "best_peer": self.best_peer,
            "median_ms": self.median_ms,
            "memory_mb": self.memory_mb,
            "target": self.target,
            "met": self.met,
            "note": self.note,
        }
