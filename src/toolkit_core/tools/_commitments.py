"""commitments: a read-only view of what was promised and what is still missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NotRequired

from typing_extensions import TypedDict

from toolkit_core.effects import Effects
from toolkit_core.factories import Arguments, port_tool
from toolkit_core.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

    from toolkit_core.context import ToolContext
    from toolkit_core.ports.commitments import Commitment, CommitmentStore
    from toolkit_core.tool import Siblings, Tool


class NoArguments(Arguments):
    """commitments takes nothing."""


class Standing(TypedDict):
    """One commitment; what applies to it is there."""

    id: str
    objective: str
    phase: str
    missing_evidence: list[str]
    criteria_met: int
    criteria: int
    waits_for: NotRequired[str]
    question: NotRequired[str]
    blocker: NotRequired[str]
    verdict: NotRequired[str]
    strength: NotRequired[str]
    note: NotRequired[str]
    superseded_by: NotRequired[str]


class CommitmentsData(TypedDict):
    """All commitments, by where they stand."""

    open: list[Standing]
    blocked: list[Standing]
    waiting: list[Standing]
    closed: list[Standing]


def commitments_tool(
    store: CommitmentStore,
    *,
    name: str = "commitments",
    description: str | None = None,
    siblings: Collection[str] | None = None,
) -> Tool[CommitmentsData]:
    """What is open, blocked or waiting, the evidence still missing, and how closed ones closed."""
    if store is None:  # pyright: ignore[reportUnnecessaryComparison]  (callers without types)
        raise TypeError("commitments needs a commitment store")

    async def run(arguments: NoArguments, context: ToolContext) -> ToolResult[CommitmentsData]:
        data: CommitmentsData = {"open": [], "blocked": [], "waiting": [], "closed": []}
        for commitment in await store.commitments():
            _place(data, commitment).append(_standing(commitment))
        return ToolResult.ok(_text(data), data)

    return port_tool(
        NoArguments,
        run,
        kind="commitments",
        describe=_describe,
        payload=CommitmentsData,
        effects=Effects(reads=True),
        subject=_subject,
        name=name,
        description=description,
        siblings=siblings,
    )


def _describe(siblings: Siblings) -> str:
    return (
        "Show the commitments: which are open, which are blocked or wait for somebody and why, what evidence each "
        "still lacks, and how closed ones closed. It changes nothing: commitments close on recorded evidence, not by "
        "being said to be done."
    )


async def _subject(arguments: NoArguments) -> str:
    return ""


def _place(data: CommitmentsData, commitment: Commitment) -> list[Standing]:
    if commitment.phase == "closed":
        return data["closed"]
    if commitment.phase == "blocked":
        return data["blocked"]
    return data["waiting"] if commitment.phase == "suspended" else data["open"]


def _standing(commitment: Commitment) -> Standing:
    standing: Standing = {
        "id": commitment.id,
        "objective": commitment.objective,
        "phase": commitment.phase,
        "missing_evidence": [] if commitment.closure else list(commitment.missing_evidence),
        "criteria_met": sum(criterion.result == "passed" for criterion in commitment.criteria),
        "criteria": len(commitment.criteria),
    }
    if commitment.suspension is not None:
        standing["waits_for"] = commitment.suspension.waits_for
        standing["question"] = commitment.suspension.question
    if commitment.blocker:
        standing["blocker"] = commitment.blocker
    if commitment.superseded_by:
        standing["superseded_by"] = commitment.superseded_by
    if commitment.closure is not None:
        standing["verdict"] = commitment.closure.verdict
        standing["strength"] = commitment.closure.strength or "none"
        standing["note"] = commitment.closure.note
    return standing


def _text(data: CommitmentsData) -> str:
    groups = (
        ("Open", data["open"]),
        ("Blocked", data["blocked"]),
        ("Waiting", data["waiting"]),
        ("Closed", data["closed"]),
    )
    parts = [f"{title}:\n" + "\n".join(map(_line, rows)) for title, rows in groups if rows]
    return "\n\n".join(parts) if parts else "There are no commitments."


def _line(row: Standing) -> str:
    head = f"{row['id']} ({row['phase']}): {row['objective']} - {row['criteria_met']} of {row['criteria']} criteria met"
    details = [f"  lacks {lack}" for lack in row["missing_evidence"]]
    if question := row.get("question"):
        details.append(f"  waits for an answer: {question}")
    elif "waits_for" in row:
        details.append(f"  waits for: {row['waits_for']}")
    if "blocker" in row:
        details.append(f"  blocked: {row['blocker']}")
    if "verdict" in row:
        note = f": {said}" if (said := row.get("note", "")) else ""
        by = f" by {row['superseded_by']}" if "superseded_by" in row else ""
        details.append(f"  closed as {row['verdict']}{by}, evidence {row.get('strength')}{note}")
    return "\n".join([head, *details])
