"""The report: no call, however made, gets out of the element that holds it as JSON."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from hypothesis import strategies as st

from tests.fuzz.making import ANY_TEXT, JSON, joined, mostly
from toolkit_core.report.page import render

_HOSTILE = st.sampled_from(["</script>", "<!--", "<script>", "]]>", "&lt;", "\u2028", "<img onerror=x>"])
_TEXT = ANY_TEXT | joined(_HOSTILE, ANY_TEXT)
_TEXTS = ("entry_id", "parent_id", "session_id", "call_id", "tool", "outcome", "code", "risk", "traceparent", "shown")
_CALL = st.fixed_dictionaries(
    {
        **{name: mostly(_TEXT) for name in _TEXTS},
        "arguments": mostly(st.dictionaries(_TEXT, _TEXT | JSON, max_size=3)),
        "started_at": mostly(st.floats(0, 2e9)),
        "duration_seconds": mostly(st.floats(0, 100)),
        "size_bytes": mostly(st.integers(0, 1000)),
        "dropped": mostly(st.booleans()),
        "result": mostly(
            st.fixed_dictionaries(
                {
                    "content": mostly(
                        st.lists(
                            st.fixed_dictionaries(
                                {"type": st.sampled_from(["text", "image"]), "text": mostly(_TEXT), "data": _TEXT}
                            ),
                            max_size=2,
                        )
                    )
                },
                optional={"data": JSON, "error": mostly(st.fixed_dictionaries({"code": _TEXT, "message": _TEXT}))},
            )
        ),
    }
)
INPUTS = st.tuples(st.lists(_CALL, max_size=3), _TEXT)


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.blocks: list[str] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count it."""
        self.tags.append(tag)
        self._open = tag == "script" and ("type", "application/json") in attrs

    def handle_data(self, data: str) -> None:
        """Keep what a JSON block holds."""
        if self._open:
            self.blocks.append(data)
            self._open = False


def check(sent: Any) -> None:
    """As many elements as without hostile text, and each block parses."""
    calls, source = sent
    page = "".join(render(calls, source=source))
    page.encode("utf-8")
    found, empty = _Elements(), _Elements()
    found.feed(page)
    empty.feed("".join(render([])))
    assert sorted(found.tags) == sorted([*empty.tags, *["script"] * len(calls)])
    assert len(found.blocks) == len(calls) + 1
    for block in found.blocks:
        json.loads(block)
