"""The edit engine against str.replace, on every kind of text."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.fuzz.making import refused_as
from toolkit_core.errors import ToolError
from toolkit_core.tools._codec import Codec  # pyright: ignore[reportPrivateUsage]  (the engine under test is private)
from toolkit_core.tools._edit_engine import (  # pyright: ignore[reportPrivateUsage]  (the engine under test is private)
    Edit,
    apply_edits,
)
from toolkit_core.tools._scan import Encoding  # pyright: ignore[reportPrivateUsage]  (as above)

_TEXT = st.text(alphabet="ab \n\t\u00e9\u2019'\U0001f600", max_size=40) | st.text(alphabet="a\n", max_size=12)
_CR_TEXT = st.text(alphabet="ab\r\n", max_size=30)
_ENCODINGS = st.sampled_from(
    [Encoding("utf-8"), Encoding("utf-16-le", 2, wide=True), Encoding("utf-16-be", 2, wide=True)]
)
_PIECES = st.text(alphabet="ab \n\t\u00e9\u2019'", max_size=4)


@st.composite
def _sent(draw: st.DrawFn) -> tuple[str, list[Edit], Encoding]:
    """A text and edits most of whose old texts are in it."""
    text = draw(_TEXT | _CR_TEXT)
    part = st.tuples(st.integers(0, 40), st.integers(1, 8)).map(lambda cut: text[cut[0] : cut[0] + cut[1]])
    edit = st.builds(Edit, part | part | _PIECES, _TEXT | _PIECES, st.booleans())
    return text, draw(st.lists(edit, min_size=1, max_size=5)), draw(_ENCODINGS)


_CODES = ("invalid_arguments", "no_match", "ambiguous_match", "no_change", "too_large")
INPUTS = _sent()


def check(sent: Any) -> None:
    """The same bytes as by hand where no carriage return is involved; else an error of its kind."""
    text, edits, encoding = sent
    codec, bom = Codec.of(encoding), b"\xfe\xff" if encoding.name == "utf-16-be" else b"\xff\xfe"
    bom = bom[: encoding.bom_bytes]
    try:
        edited = apply_edits(bom + codec.encode(text), codec, edits)
    except ToolError as e:
        refused_as(e, *_CODES)
        made = None
    else:
        made = codec.decode(b"".join(edited.table.parts)[len(bom) :])
    if not any("\r" in part for part in (text, *(e.old_text + e.new_text for e in edits))):
        assert made == by_hand(text, edits)


def by_hand(text: str, edits: list[Edit]) -> str | None:
    """What the contract says, with str; None where it refuses."""
    now = text
    if any(not e.old_text or e.old_text == e.new_text for e in edits):
        return None
    for edit in edits:
        at = now.find(edit.old_text)
        if at < 0 or (not edit.replace_all and now.find(edit.old_text, at + 1) >= 0):
            return None
        now = now.replace(edit.old_text, edit.new_text)
    return now if now != text else None
