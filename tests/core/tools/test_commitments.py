"""Commitments close on evidence, never on a model's word."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from toolkit_core import ToolError
from toolkit_core.host.sqlite import SQLiteCommitments
from toolkit_core.ports.commitments import STRENGTHS, Criterion
from toolkit_core.testing.commitments import InMemoryCommitments
from toolkit_core.tools._commitments import commitments_tool

Store = SQLiteCommitments | InMemoryCommitments


@pytest.fixture(params=["sqlite", "memory"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Store:
    """Both stores follow the same rules."""
    return SQLiteCommitments(tmp_path / "commitments.db") if request.param == "sqlite" else InMemoryCommitments()


CRITERIA = (Criterion("tests", "the tests pass"), Criterion("docs", "the docs say so", required=False))


async def test_the_view_groups_by_standing_and_names_what_is_missing(store: Store) -> None:
    tool = commitments_tool(store)
    assert (await tool()).text == "There are no commitments."
    a = await store.open("ship it", CRITERIA)
    b = await store.open("ask first", CRITERIA)
    c = await store.open("wait", CRITERIA)
    d = await store.open("done", CRITERIA)
    await store.suspend(b.id, "human", question="Blue or red?")
    await store.block(c.id, "no network")
    await store.record_evidence(d.id, "tests", result="passed", strength="observed")
    await store.close(d.id, "fulfilled", note="on main")

    result = await tool()
    data: Any = result.data
    assert [[row["id"] for row in data[group]] for group in ("open", "blocked", "waiting", "closed")] == [
        [a.id],
        [c.id],
        [b.id],
        [d.id],
    ]
    assert data["open"][0]["missing_evidence"] == ["tests: not shown yet (the tests pass)"]
    assert data["waiting"][0]["question"] == "Blue or red?"
    assert data["blocked"][0]["blocker"] == "no network"
    assert (data["closed"][0]["verdict"], data["closed"][0]["strength"]) == ("fulfilled", "observed")
    for part in (
        f"{a.id} (active): ship it - 0 of 2 criteria met",
        "Blue or red?",
        "no network",
        "closed as fulfilled",
    ):
        assert part in result.text


def test_the_tool_takes_nothing_and_has_no_verb(store: Store) -> None:
    tool = commitments_tool(store)
    assert tool.parameters["properties"] == {}
    assert tool.effects is not None
    assert tool.effects.risk == "inspect"
    assert asyncio.run(tool.call({"close": "x"})).is_error
    with pytest.raises(TypeError, match="needs a commitment store"):
        commitments_tool(None)  # pyright: ignore[reportArgumentType]  (the point of the test)


@pytest.mark.parametrize("strength", STRENGTHS)
async def test_fulfilled_needs_every_required_criterion_with_strong_enough_evidence(
    store: Store, strength: Any
) -> None:
    one = await store.open("x", CRITERIA, min_strength="observed")
    await store.record_evidence(one.id, "tests", result="passed", strength=strength)
    if STRENGTHS.index(strength) >= STRENGTHS.index("observed"):
        assert (await store.get(one.id)).phase == "satisfying"
        assert (await store.close(one.id, "fulfilled")).phase == "closed"
    else:
        with pytest.raises(ToolError, match="observed is needed"):
            await store.close(one.id, "fulfilled")
        assert (await store.get(one.id)).phase == "active"


async def test_only_a_pass_earns_strength_and_the_latest_finding_counts(store: Store) -> None:
    one = await store.open("x", (Criterion("a", "a", result="passed", strength="attested"),))
    assert one.criteria[0].result == "unknown"
    for finding in ("failed", "unknown"):
        await store.record_evidence(one.id, "a", result="passed", strength="attested")
        await store.record_evidence(one.id, "a", result=finding, strength="attested")
        standing = (await store.evaluate(one.id)).criteria[0]
        assert (standing.result, standing.strength) == (finding, None)
        with pytest.raises(ToolError):
            await store.close(one.id, "fulfilled")


async def test_other_verdicts_are_free_and_closed_is_for_good(store: Store) -> None:
    one = await store.open("x", CRITERIA)
    await store.close(one.id, "abandoned")
    for change in (
        store.close(one.id, "failed"),
        store.suspend(one.id, "human"),
        store.record_evidence(one.id, "tests", result="passed"),
        store.supersede(one.id, "y", CRITERIA),
    ):
        with pytest.raises(ToolError, match="for good"):
            await change
    with pytest.raises(ToolError) as caught:
        await store.get("nope")
    assert caught.value.code == "not_found"
    with pytest.raises(ToolError, match="no criterion 'zz'"):
        await store.record_evidence((await store.open("x", CRITERIA)).id, "zz", result="passed")
    with pytest.raises(ToolError, match="criteria with ids"):
        await store.open("x", ())


async def test_superseding_names_both(store: Store) -> None:
    old = await store.open("x", CRITERIA)
    new = await store.supersede(old.id, "y", CRITERIA)
    again = await store.get(old.id)
    assert (new.supersedes, again.superseded_by) == (old.id, new.id)
    assert again.closure is not None
    assert again.closure.verdict == "superseded"
    assert f"superseded by {new.id}" in (await commitments_tool(store)()).text


async def test_it_survives_another_process_reading_it(tmp_path: Path) -> None:
    store = SQLiteCommitments(tmp_path / "commitments.db")
    one = await store.open("x", CRITERIA)
    await store.resume((await store.suspend(one.id, "schedule")).id)
    await store.aclose()
    other = SQLiteCommitments(tmp_path / "commitments.db")
    assert [c.phase for c in await other.commitments()] == ["active"]


async def test_a_store_that_cannot_be_read_is_an_error_and_no_empty_list(tmp_path: Path) -> None:
    (tmp_path / "broken.db").write_bytes(b"x" * 4096)
    result = await commitments_tool(SQLiteCommitments(tmp_path / "broken.db"))()
    assert result.error is not None
    assert result.error.code == "io_error"


async def test_misspelt_words_are_refused_and_not_stored(store: Store) -> None:
    one = await store.open("x", CRITERIA)
    odd: Any = "Observed"
    for attempt in (
        store.open("x", CRITERIA, min_strength=odd),
        store.record_evidence(one.id, "tests", result=odd),
        store.record_evidence(one.id, "tests", result="passed", strength=odd),
        store.close(one.id, odd),
        store.suspend(one.id, odd),
    ):
        with pytest.raises(ToolError, match="'Observed' is none of"):
            await attempt
    assert len(await store.commitments()) == 1
    assert (await store.get(one.id)).criteria[0].result == "unknown"


@pytest.mark.parametrize("damage", ["{", "{}", '{"criteria": 5}', "null"])
async def test_a_damaged_commitment_is_an_error_and_no_missing_one(tmp_path: Path, damage: str) -> None:
    store = SQLiteCommitments(tmp_path / "c.db")
    await store.open("x", CRITERIA)
    with sqlite3.connect(tmp_path / "c.db") as connection:
        connection.execute("UPDATE commitments SET body = ?", (damage,))
    connection.close()
    result = await commitments_tool(store)()
    assert result.error is not None
    assert result.error.code == "io_error"


async def test_twenty_at_once_lose_no_finding(store: Store) -> None:
    criteria = [Criterion(f"c{n}", f"criterion {n}") for n in range(20)]
    one = await store.open("x", criteria)
    found = (store.record_evidence(one.id, c.id, result="passed", strength="observed") for c in criteria)
    await asyncio.gather(*found)
    assert (await store.get(one.id)).phase == "satisfying"
    assert (await store.close(one.id, "fulfilled")).closure is not None
