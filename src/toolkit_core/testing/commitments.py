"""An in-memory `CommitmentStore` with the runtime's verbs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from toolkit_core import commitment_rules as rules
from toolkit_core.errors import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit_core.ports.commitments import Commitment, Criterion, Finding, Strength, Verdict, WaitsFor


class InMemoryCommitments:
    """Commitments that are kept while the program runs; verbs, rules and errors as in `SQLiteCommitments`."""

    def __init__(self) -> None:
        self._kept: dict[str, Commitment] = {}
        self._latest: dict[str, dict[str, rules.Latest]] = {}

    async def commitments(self) -> Sequence[Commitment]:
        """All commitments, the oldest first."""
        return list(self._kept.values())

    async def get(self, commitment_id: str) -> Commitment:
        """One commitment. Raises `ToolError` `not_found`."""
        if commitment_id not in self._kept:
            raise ToolError(f"there is no commitment {commitment_id!r}", code="not_found")
        return self._kept[commitment_id]

    async def open(
        self,
        objective: str,
        criteria: Iterable[Criterion],
        *,
        min_strength: Strength = "observed",
        session_id: str = "",
    ) -> Commitment:
        """Open a commitment. Its criteria start unknown, whatever they say."""
        made = rules.opened(objective, criteria, min_strength=min_strength, session_id=session_id)
        self._kept[made.id] = made
        return made

    async def record_evidence(
        self, commitment_id: str, criterion_id: str, *, result: Finding, strength: Strength = "asserted", note: str = ""
    ) -> Commitment:
        """Record what a check found; the latest finding counts, and only a pass earns strength."""
        commitment = rules.require_open(await self.get(commitment_id))
        rules.require_criterion(commitment, criterion_id)
        found = self._latest.setdefault(commitment_id, {})
        found[criterion_id] = (result, rules.earned(result, strength))
        return self._store(rules.evaluated(commitment, found))

    async def evaluate(self, commitment_id: str) -> Commitment:
        """Bring the criteria up to the recorded evidence."""
        return self._store(await self._standing(commitment_id))

    async def close(self, commitment_id: str, verdict: Verdict, *, note: str = "") -> Commitment:
        """Close by the rule."""
        return self._store(rules.closed(await self._standing(commitment_id), verdict, note=note))

    async def suspend(self, commitment_id: str, waits_for: WaitsFor, *, question: str = "") -> Commitment:
        """Put it aside until somebody or something answers."""
        return self._store(rules.suspended(await self._standing(commitment_id), waits_for, question=question))

    async def block(self, commitment_id: str, blocker: str) -> Commitment:
        """Say why it cannot go on."""
        return self._store(rules.blocked(await self._standing(commitment_id), blocker))

    async def resume(self, commitment_id: str) -> Commitment:
        """Go on with a suspended or blocked one."""
        return self._store(rules.resumed(await self._standing(commitment_id)))

    async def supersede(self, commitment_id: str, objective: str, criteria: Iterable[Criterion]) -> Commitment:
        """Replace it by a new one, which is returned."""
        old, new = rules.superseded(await self._standing(commitment_id), objective, criteria)
        self._store(old)
        self._kept[new.id] = new
        return new

    async def aclose(self) -> None:
        """Nothing to close."""

    async def _standing(self, commitment_id: str) -> Commitment:
        commitment = rules.require_open(await self.get(commitment_id))
        return rules.evaluated(commitment, self._latest.get(commitment_id, {}))

    def _store(self, commitment: Commitment) -> Commitment:
        self._kept[commitment.id] = replace(commitment, updated_at=time.time())
        return self._kept[commitment.id]
