"""Arguments of a call: whatever a model sends, the body gets the declared types or is not run."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Literal

from hypothesis import strategies as st
from pydantic import BaseModel

from tests.fuzz.making import ANY_TEXT, JSON, mostly
from toolkit_core import function_tool


class Place(BaseModel):
    """A nested argument."""

    line: int
    note: str | None = None


@function_tool
async def taken(
    count: int,
    name: str,
    flags: list[bool] | None = None,
    ratio: float = 1.0,
    places: list[Place] | None = None,
    mode: Literal["a", "b"] = "a",
    either: int | str = 0,
    table: dict[str, int] | None = None,
) -> str:
    """Takes one argument of each kind."""
    assert isinstance(count, int)
    assert not isinstance(count, bool)
    assert isinstance(name, str)
    assert flags is None or all(isinstance(flag, bool) for flag in flags)
    assert isinstance(ratio, float)
    assert places is None or all(isinstance(place, Place) for place in places)
    assert mode in ("a", "b")
    assert isinstance(either, int | str)
    assert table is None or all(isinstance(k, str) and isinstance(v, int) for k, v in table.items())
    return "ran"


_USUAL = st.fixed_dictionaries(
    {"count": mostly(st.integers()), "name": mostly(ANY_TEXT)},
    optional={
        "flags": mostly(st.lists(st.booleans(), max_size=3)),
        "ratio": mostly(st.floats() | st.integers()),
        "places": mostly(st.lists(st.fixed_dictionaries({"line": mostly(st.integers())}), max_size=3)),
        "mode": mostly(st.sampled_from("abc")),
        "either": mostly(st.integers() | ANY_TEXT),
        "table": mostly(st.dictionaries(ANY_TEXT, st.integers(), max_size=3)),
        "absent": JSON,
    },
)
INPUTS = _USUAL | _USUAL.map(lambda value: json.dumps(value)) | JSON


def check(sent: Any) -> None:
    """Ran, or `invalid_arguments` in words that can be sent on."""
    result = asyncio.run(taken.call(sent))
    result.text.encode("utf-8")
    json.dumps(result.to_dict(), allow_nan=False).encode("utf-8")
    if result.error is None:
        assert result.text == "ran"
    else:
        assert result.error.code == "invalid_arguments", result
        assert len(result.text) < 10_000
