"""Strategies that several groups share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolkit_core.errors import ToolError

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=60)
"""Text of any code points, lone surrogates too."""

SCALARS: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | ANY_TEXT
    | st.sampled_from(["7", "[1]", '{"a": 1}', "null"])
)

JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4), max_leaves=12
)


def joined(first: st.SearchStrategy[str], second: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """One text after the other."""
    return st.tuples(first, second).map("".join)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What is usual, at times anything."""
    return usual | usual | usual | JSON


def refused_as(error: ToolError, *codes: str) -> None:
    """A refusal is of a kind that its contract names, in words that can be sent on."""
    error.message.encode("utf-8")
    error.hint.encode("utf-8")
    if error.code not in codes:
        raise AssertionError(f"{error.code}: {error.message}") from error
