"""Commitments in an SQLite file: the verbs that a runtime uses, and a model never gets."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from toolkit_core import commitment_rules as rules
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
        commitment = rules.opened(objective, criteria, min_strength=min_strength, session_id=session_id)
        await self._database.run(lambda connection: _insert(connection, commitment))
        return commitment

    async def record_evidence(
        self, commitment_id: str, criterion_id: str, *, result: Finding, strength: Strength = "asserted", note: str = ""
    ) -> Commitment:
        """Record what a check found; the latest finding counts, and only a pass earns strength."""

        def work(connection: sqlite3.Connection) -> Commitment:
            commitment = _open_one(connection, commitment_id)
            rules.require_criterion(commitment, criterion_id)
            connection.execute(
                "INSERT INTO evidence (commitment_id, criterion_id, result, strength, note, recorded_at) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (commitment_id, criterion_id, result, rules.earned(result, strength), note, time.time()),
            )
            return _store(connection, _evaluated(connection, commitment))

        return await self._database.run(work)

    async def evaluate(self, commitment_id: str) -> Commitment:
        """Bring the criteria up to the recorded evidence; `satisfying` means that it may close as fulfilled."""
        return await self._database.run(
            lambda connection: _store(connection, _evaluated(connection, _open_one(connection, commitment_id)))
        )

    async def close(self, commitment_id: str, verdict: Verdict, *, note: str = "") -> Commitment:
        """Close by the rule: `fulfilled` needs every required criterion passed, with strong enough evidence."""

        def work(connection: sqlite3.Connection) -> Commitment:
            commitment = _evaluated(connection, _open_one(connection, commitment_id))
            return _store(connection, rules.closed(commitment, verdict, note=note))

        return await self._database.run(work)

    async def suspend(self, commitment_id: str, waits_for: WaitsFor, *, question: str = "") -> Commitment:
        """Put it aside until somebody or something answers."""
        return await self._change(commitment_id, partial(rules.suspended, waits_for=waits_for, question=question))

    async def block(self, commitment_id: str, blocker: str) -> Commitment:
        """Say why it cannot go on."""
        return await self._change(commitment_id, partial(rules.blocked, blocker=blocker))

    async def resume(self, commitment_id: str) -> Commitment:
        """Go on with a suspended or blocked one."""
        return await self._change(commitment_id, rules.resumed)

    async def supersede(self, commitment_id: str, objective: str, criteria: Iterable[Criterion]) -> Commitment:
        """Replace it by a new one, which is returned; both name each other."""
        new_criteria = tuple(criteria)

        def work(connection: sqlite3.Connection) -> Commitment:
            old, new = rules.superseded(_open_one(connection, commitment_id), objective, new_criteria)
            _insert(connection, new)
            _store(connection, old)
            return new

        return await self._database.run(work)

    async def aclose(self) -> None:
        """Close the file."""
        self._database.close()

    async def _change(self, commitment_id: str, change: Callable[[Commitment], Commitment]) -> Commitment:
        return await self._database.run(
            lambda connection: _store(connection, change(_open_one(connection, commitment_id)))
        )


def _insert(connection: sqlite3.Connection, commitment: Commitment) -> None:
    connection.execute("INSERT INTO commitments (id, body) VALUES (?, ?)", (commitment.id, _body(commitment)))


def _store(connection: sqlite3.Connection, commitment: Commitment) -> Commitment:
    commitment = replace(commitment, updated_at=time.time())
    connection.execute("UPDATE commitments SET body = ? WHERE id = ?", (_body(commitment), commitment.id))
    return commitment


def _evaluated(connection: sqlite3.Connection, commitment: Commitment) -> Commitment:
    findings = connection.execute(
        "SELECT criterion_id, result, strength FROM evidence WHERE commitment_id = ? ORDER BY number", (commitment.id,)
    )
    return rules.evaluated(commitment, {found[0]: (found[1], found[2]) for found in findings})


def _all(connection: sqlite3.Connection) -> list[Commitment]:
    return [_commitment(body) for (body,) in connection.execute("SELECT body FROM commitments ORDER BY number")]


def _read(connection: sqlite3.Connection, commitment_id: str) -> Commitment:
    row = connection.execute("SELECT body FROM commitments WHERE id = ?", (commitment_id,)).fetchone()
    if row is None:
        raise ToolError(f"there is no commitment {commitment_id!r}", code="not_found")
    return _commitment(row[0])


def _open_one(connection: sqlite3.Connection, commitment_id: str) -> Commitment:
    return rules.require_open(_read(connection, commitment_id))


def _body(commitment: Commitment) -> str:
    return json.dumps(asdict(commitment), ensure_ascii=False)


def _commitment(body: str) -> Commitment:
    try:
        fields: dict[str, Any] = json.loads(body)
        fields["criteria"] = tuple(Criterion(**criterion) for criterion in fields["criteria"])
        fields["suspension"] = Suspension(**fields["suspension"]) if fields["suspension"] else None
        fields["closure"] = Closure(**fields["closure"]) if fields["closure"] else None
        return Commitment(**fields)
    except (ValueError, TypeError, KeyError, RecursionError) as e:
        raise sqlite3.DatabaseError(f"a commitment is damaged ({type(e).__name__})") from e
