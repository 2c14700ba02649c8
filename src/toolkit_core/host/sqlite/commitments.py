"""Commitments in an SQLite file: the verbs that a runtime uses, and a model never gets."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from toolkit_core.errors import ToolError
from toolkit_core.host.sqlite.database import Database
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
    import os
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

_APPLICATION_ID: Final = 0x746B434D  # "tkCM"

_MIGRATIONS: Final = (
    """
    CREATE TABLE commitments (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        body TEXT NOT NULL
    );
    CREATE TABLE evidence (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        commitment_id TEXT NOT NULL REFERENCES commitments (id),
        criterion_id TEXT NOT NULL,
        result TEXT NOT NULL,
        strength TEXT,
        note TEXT NOT NULL,
        recorded_at REAL NOT NULL
    );
    CREATE INDEX evidence_of ON evidence (commitment_id, criterion_id, number)
    """,
)


class SQLiteCommitments:
    """Implements `CommitmentStore`, and the verbs of the runtime: each one a transaction.

    Every verb raises `ToolError`: `not_found` (no such commitment or criterion), `denied` (the rule or the phase
    forbids it), `io_error`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._database = Database(path, _MIGRATIONS, application_id=_APPLICATION_ID)

    async def commitments(self) -> Sequence[Commitment]:
        """All commitments, the oldest first."""
        return await self._database.run(_all)

    async def get(self, commitment_id: str) -> Commitment:
        """One commitment."""
        return await self._database.run(lambda connection: _read(connection, commitment_id))

    async def open(
        self,
        objective: str,
        criteria: Iterable[Criterion],
        *,
        min_strength: Strength = "observed",
        session_id: str = "",
    ) -> Commitment:
        """Open a commitment. Its criteria start unknown, whatever they say."""
        commitment = _opened(objective, criteria, min_strength, session_id)
        await self._database.run(lambda connection: _insert(connection, commitment))
        return commitment

    async def record_evidence(
        self, commitment_id: str, criterion_id: str, *, result: Finding, strength: Strength = "asserted", note: str = ""
    ) -> Commitment:
        """Record what a check found; the latest finding counts, and only a pass earns strength."""

        def work(connection: sqlite3.Connection) -> Commitment:
            commitment = _open_one(connection, commitment_id)
            if criterion_id not in {criterion.id for criterion in commitment.criteria}:
                known = ", ".join(criterion.id for criterion in commitment.criteria)
                raise ToolError(f"{commitment_id} has no criterion {criterion_id!r}; it has {known}", code="not_found")
            earned = strength if result == "passed" else None
            connection.execute(
                "INSERT INTO evidence (commitment_id, criterion_id, result, strength, note, recorded_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (commitment_id, criterion_id, result, earned, note, time.time()),
            )
            return _evaluated(connection, commitment)

        return await self._database.run(work)

    async def evaluate(self, commitment_id: str) -> Commitment:
        """Bring the criteria up to the recorded evidence; `satisfying` means that it may close as fulfilled."""
        return await self._database.run(lambda connection: _evaluated(connection, _open_one(connection, commitment_id)))

    async def close(self, commitment_id: str, verdict: Verdict, *, note: str = "") -> Commitment:
        """Close by the rule: `fulfilled` needs every required criterion passed, with strong enough evidence."""

        def work(connection: sqlite3.Connection) -> Commitment:
            commitment = _evaluated(connection, _open_one(connection, commitment_id))
            lacks = commitment.missing_evidence
            if verdict == "fulfilled" and (lacks or commitment.weakest_strength is None):
                raise ToolError(
                    f"{commitment_id} cannot close as fulfilled: {'; '.join(lacks) or 'it has no required criterion'}",
                    code="denied",
                    hint="Record the evidence that is missing, or close with the verdict that is true.",
                )
            closure = Closure(verdict, commitment.weakest_strength, time.time(), note)
            return _store(connection, replace(commitment, phase="closed", closure=closure, suspension=None, blocker=""))

        return await self._database.run(work)

    async def suspend(self, commitment_id: str, waits_for: WaitsFor, *, question: str = "") -> Commitment:
        """Put it aside until somebody or something answers."""
        return await self._change(
            commitment_id,
            lambda c: replace(c, phase="suspended", suspension=Suspension(waits_for, question), blocker=""),
        )

    async def block(self, commitment_id: str, blocker: str) -> Commitment:
        """Say why it cannot go on."""
        return await self._change(
            commitment_id, lambda c: replace(c, phase="blocked", blocker=blocker, suspension=None)
        )

    async def resume(self, commitment_id: str) -> Commitment:
        """Go on with a suspended or blocked one."""
        return await self._change(commitment_id, lambda c: replace(c, phase="active", suspension=None, blocker=""))

    async def supersede(self, commitment_id: str, objective: str, criteria: Iterable[Criterion]) -> Commitment:
        """Replace it by a new one, which is returned; both name each other."""
        new_criteria = tuple(criteria)

        def work(connection: sqlite3.Connection) -> Commitment:
            old = _open_one(connection, commitment_id)
            new = replace(_opened(objective, new_criteria, old.min_strength, old.session_id), supersedes=old.id)
            _insert(connection, new)
            closure = Closure("superseded", old.weakest_strength, time.time())
            _store(connection, replace(old, phase="closed", closure=closure, superseded_by=new.id))
            return new

        return await self._database.run(work)

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()

    async def _change(self, commitment_id: str, change: Callable[[Commitment], Commitment]) -> Commitment:
        return await self._database.run(
            lambda connection: _store(connection, change(_open_one(connection, commitment_id)))
        )


def _opened(objective: str, criteria: Iterable[Criterion], min_strength: Strength, session_id: str) -> Commitment:
    unknown = tuple(replace(criterion, result="unknown", strength=None) for criterion in criteria)
    ids = [criterion.id for criterion in unknown]
    if not objective.strip() or not ids or len(set(ids)) < len(ids):
        raise ToolError("a commitment needs an objective and criteria with ids of their own", code="invalid_arguments")
    now = time.time()
    return Commitment(
        f"c{uuid4().hex[:8]}", objective, unknown, min_strength, opened_at=now, updated_at=now, session_id=session_id
    )


def _insert(connection: sqlite3.Connection, commitment: Commitment) -> None:
    connection.execute("INSERT INTO commitments (id, body) VALUES (?, ?)", (commitment.id, _body(commitment)))


def _store(connection: sqlite3.Connection, commitment: Commitment) -> Commitment:
    commitment = replace(commitment, updated_at=time.time())
    connection.execute("UPDATE commitments SET body = ? WHERE id = ?", (_body(commitment), commitment.id))
    return commitment


def _evaluated(connection: sqlite3.Connection, commitment: Commitment) -> Commitment:
    latest: dict[str, tuple[Finding, Strength | None]] = {
        criterion_id: (result, strength)
        for criterion_id, result, strength in connection.execute(
            "SELECT criterion_id, result, strength FROM evidence WHERE commitment_id = ? ORDER BY number",
            (commitment.id,),
        )
    }
    criteria = tuple(
        replace(criterion, result=latest[criterion.id][0], strength=latest[criterion.id][1])
        if criterion.id in latest
        else criterion
        for criterion in commitment.criteria
    )
    commitment = replace(commitment, criteria=criteria)
    if commitment.phase in ("proposed", "active", "satisfying"):
        done = not commitment.missing_evidence and commitment.weakest_strength is not None
        commitment = replace(commitment, phase="satisfying" if done else "active")
    return _store(connection, commitment)


def _all(connection: sqlite3.Connection) -> list[Commitment]:
    return [_commitment(body) for (body,) in connection.execute("SELECT body FROM commitments ORDER BY number")]


def _read(connection: sqlite3.Connection, commitment_id: str) -> Commitment:
    row = connection.execute("SELECT body FROM commitments WHERE id = ?", (commitment_id,)).fetchone()
    if row is None:
        raise ToolError(f"there is no commitment {commitment_id!r}", code="not_found")
    return _commitment(row[0])


def _open_one(connection: sqlite3.Connection, commitment_id: str) -> Commitment:
    commitment = _read(connection, commitment_id)
    if commitment.closure is not None:
        raise ToolError(f"{commitment_id} is closed as {commitment.closure.verdict}, for good", code="denied")
    return commitment


def _body(commitment: Commitment) -> str:
    return json.dumps(asdict(commitment), ensure_ascii=False)


def _commitment(body: str) -> Commitment:
    fields: dict[str, Any] = json.loads(body)
    fields["criteria"] = tuple(Criterion(**criterion) for criterion in fields["criteria"])
    fields["suspension"] = Suspension(**fields["suspension"]) if fields["suspension"] else None
    fields["closure"] = Closure(**fields["closure"]) if fields["closure"] else None
    return Commitment(**fields)
