"""Commitments: what an agent has promised, and the evidence on which the runtime closes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

Phase = Literal["proposed", "active", "suspended", "blocked", "satisfying", "closed"]
Verdict = Literal["fulfilled", "partial", "failed", "abandoned", "superseded", "expired", "unknown"]
Finding = Literal["passed", "failed", "unknown"]
Strength = Literal["asserted", "cited", "observed", "attested"]
WaitsFor = Literal["human", "schedule", "predicate", "commitment", "external"]

STRENGTHS: Final[tuple[Strength, ...]] = ("asserted", "cited", "observed", "attested")
"""From weak to strong: somebody says so; a source is named; a program saw it; a person or a receipt vouches."""


@dataclass(frozen=True)
class Criterion:
    """One condition of success, and how it stands.

    Attributes:
        id: Unique in its commitment.
        statement: What must be true.
        required: Whether fulfilment needs it.
        result: What the latest check found; a check that could not decide is unknown, not failed.
        strength: How strong the evidence of a pass is; only a pass earns any.
    """

    id: str
    statement: str
    required: bool = True
    result: Finding = "unknown"
    strength: Strength | None = None


@dataclass(frozen=True)
class Suspension:
    """What a commitment waits for; `question` is what a person is asked."""

    waits_for: WaitsFor
    question: str = ""


@dataclass(frozen=True)
class Closure:
    """How a commitment ended."""

    verdict: Verdict
    strength: Strength | None
    closed_at: float
    note: str = ""


@dataclass(frozen=True)
class Commitment:
    """One promise.

    Attributes:
        id: Its id.
        objective: What is to be reached.
        criteria: When it is reached.
        min_strength: The weakest evidence on which it may close as fulfilled.
        phase: Where it stands.
        opened_at: Seconds since the epoch.
        updated_at: Seconds since the epoch.
        session_id: Whose it is, "" for nobody's.
        suspension: What it waits for, while suspended.
        blocker: Why it cannot go on, while blocked.
        closure: How it ended, once closed.
        supersedes: The commitment that it replaced.
        superseded_by: The commitment that replaced it.
    """

    id: str
    objective: str
    criteria: tuple[Criterion, ...]
    min_strength: Strength = "observed"
    phase: Phase = "active"
    opened_at: float = 0.0
    updated_at: float = 0.0
    session_id: str = ""
    suspension: Suspension | None = None
    blocker: str = ""
    closure: Closure | None = None
    supersedes: str = ""
    superseded_by: str = ""

    @property
    def missing_evidence(self) -> tuple[str, ...]:
        """What keeps it from closing as fulfilled, a sentence a criterion."""
        return tuple(sentence for criterion in self.criteria if (sentence := self._lack(criterion)))

    @property
    def weakest_strength(self) -> Strength | None:
        """The weakest evidence among the required criteria; None while one of them has not passed."""
        required = [criterion for criterion in self.criteria if criterion.required]
        strengths = [STRENGTHS.index(c.strength) for c in required if c.result == "passed" and c.strength is not None]
        return STRENGTHS[min(strengths)] if required and len(strengths) == len(required) else None

    def _lack(self, criterion: Criterion) -> str:
        if not criterion.required:
            return ""
        if criterion.result != "passed" or criterion.strength is None:
            how = "failed" if criterion.result == "failed" else "not shown yet"
            return f"{criterion.id}: {how} ({criterion.statement})"
        if STRENGTHS.index(criterion.strength) < STRENGTHS.index(self.min_strength):
            return (
                f"{criterion.id}: passed as {criterion.strength}, {self.min_strength} is needed ({criterion.statement})"
            )
        return ""


class CommitmentStore(Protocol):
    """What the tool sees: the commitments as they stand. It has no verb that changes one."""

    async def commitments(self) -> Sequence[Commitment]:
        """All of them, the oldest first. Raises `ToolError` `io_error`."""
        ...
