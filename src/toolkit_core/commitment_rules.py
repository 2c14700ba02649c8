"""How commitments come to be, stand and end: the rules that every store follows. Nothing here is stored."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, get_args
from uuid import uuid4

from toolkit_core.errors import ToolError
from toolkit_core.ports.commitments import (
    Closure,
    Commitment,
    Criterion,
    Finding,
    Strength,
    Suspension,
    Verdict,
    WaitsFor,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Latest = tuple[Finding, Strength | None]
"""What the latest check of a criterion found, and the strength that it earned."""


def opened(
    objective: str, criteria: Iterable[Criterion], *, min_strength: Strength = "observed", session_id: str = ""
) -> Commitment:
    """A new commitment. Its criteria start unknown, whatever they say.

    Raises:
        ToolError: `invalid_arguments`: no objective, no criterion, two criteria of one id, or no such strength.
    """
    _require_one_of(min_strength, get_args(Strength))
    unknown = tuple(replace(criterion, result="unknown", strength=None) for criterion in criteria)
    ids = [criterion.id for criterion in unknown]
    if not objective.strip() or not ids or len(set(ids)) < len(ids):
        raise ToolError("a commitment needs an objective and criteria with ids of their own", code="invalid_arguments")
    now = time.time()
    return Commitment(
        f"c{uuid4().hex[:8]}", objective, unknown, min_strength, opened_at=now, updated_at=now, session_id=session_id
    )


def require_open(commitment: Commitment) -> Commitment:
    """The commitment, unless it is closed. Raises `ToolError` `denied`."""
    if commitment.closure is not None:
        raise ToolError(f"{commitment.id} is closed as {commitment.closure.verdict}, for good", code="denied")
    return commitment


def require_criterion(commitment: Commitment, criterion_id: str) -> None:
    """Raises `ToolError` `not_found` where the commitment has no such criterion."""
    known = [criterion.id for criterion in commitment.criteria]
    if criterion_id not in known:
        raise ToolError(
            f"{commitment.id} has no criterion {criterion_id!r}; it has {', '.join(known)}", code="not_found"
        )


def earned(result: Finding, strength: Strength) -> Strength | None:
    """Only a pass earns strength. Raises `ToolError` `invalid_arguments` for a word that is none of its kind."""
    _require_one_of(result, get_args(Finding))
    _require_one_of(strength, get_args(Strength))
    return strength if result == "passed" else None


def evaluated(commitment: Commitment, latest: Mapping[str, Latest]) -> Commitment:
    """The criteria as the latest findings say; `satisfying` means that it may close as fulfilled."""
    criteria = tuple(
        replace(criterion, result=latest[criterion.id][0], strength=latest[criterion.id][1])
        if criterion.id in latest
        else criterion
        for criterion in commitment.criteria
    )
    commitment = replace(commitment, criteria=criteria)
    if commitment.phase in ("proposed", "active", "satisfying"):
        commitment = replace(commitment, phase="satisfying" if _is_shown(commitment) else "active")
    return commitment


def closed(commitment: Commitment, verdict: Verdict, *, note: str = "") -> Commitment:
    """Closed by the rule: `fulfilled` needs every required criterion passed, with strong enough evidence.

    Raises:
        ToolError: `denied`, with what is missing; `invalid_arguments` (no such verdict).
    """
    _require_one_of(verdict, get_args(Verdict))
    if verdict == "fulfilled" and not _is_shown(commitment):
        lacks = "; ".join(commitment.missing_evidence) or "it has no required criterion"
        raise ToolError(
            f"{commitment.id} cannot close as fulfilled: {lacks}",
            code="denied",
            hint="Record the evidence that is missing, or close with the verdict that is true.",
        )
    closure = Closure(verdict, commitment.weakest_strength, time.time(), note)
    return replace(commitment, phase="closed", closure=closure, suspension=None, blocker="")


def suspended(commitment: Commitment, waits_for: WaitsFor, *, question: str = "") -> Commitment:
    """Put aside until somebody or something answers. Raises `ToolError` `invalid_arguments`."""
    _require_one_of(waits_for, get_args(WaitsFor))
    return replace(commitment, phase="suspended", suspension=Suspension(waits_for, question), blocker="")


def blocked(commitment: Commitment, blocker: str) -> Commitment:
    """Kept from going on, and by what."""
    return replace(commitment, phase="blocked", blocker=blocker, suspension=None)


def resumed(commitment: Commitment) -> Commitment:
    """Going on."""
    return replace(commitment, phase="active", suspension=None, blocker="")


def superseded(old: Commitment, objective: str, criteria: Iterable[Criterion]) -> tuple[Commitment, Commitment]:
    """The old one, closed, and the new one in its place; both name each other."""
    new = opened(objective, criteria, min_strength=old.min_strength, session_id=old.session_id)
    return replace(closed(old, "superseded"), superseded_by=new.id), replace(new, supersedes=old.id)


def _require_one_of(word: str, words: tuple[str, ...]) -> None:
    """A misspelt word would be stored, and count as nothing for ever."""
    if word not in words:
        raise ToolError(f"{word!r} is none of {', '.join(words)}", code="invalid_arguments")


def _is_shown(commitment: Commitment) -> bool:
    return not commitment.missing_evidence and commitment.weakest_strength is not None
