"""The output window: bounded, verbatim where it fits, and every recall it names can be had."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.making import ANY_TEXT, refused_as
from toolkit_core.errors import ToolError
from toolkit_core.output_window import Window, slice_chars, slice_lines

_SIZES = st.builds(
    Window,
    limit_chars=st.integers(1, 200),
    head_chars=st.integers(1, 100),
    tail_chars=st.integers(1, 100),
    line_chars=st.integers(1, 80),
)
_LONG = st.lists(ANY_TEXT, min_size=1, max_size=3).map(lambda parts: "".join(parts) * (30 // len(parts)))
INPUTS = st.tuples(_LONG, _SIZES, st.none() | st.just("e-1"), st.integers(0, 70), st.none() | st.integers(1, 70))
_NOTES_MAX_CHARS = 2_000


def check(sent: Any) -> None:
    """Whatever the sizes."""
    text, window, recall_id, first, last = sent
    shown = window.apply(text, recall_id=recall_id)
    if len(text) <= window.limit_chars:
        assert shown == text
    assert len(shown) <= max(window.limit_chars, window.head_chars + window.tail_chars) + _NOTES_MAX_CHARS
    for cut in (slice_chars, slice_lines):
        try:
            piece = cut(text, first, last or 1) if cut is slice_chars else slice_lines(text, first + 1, last)
        except ToolError as e:
            refused_as(e, "invalid_arguments")
        else:
            assert piece.text in text or "more" in piece.text
