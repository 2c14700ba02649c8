"""What a tool returns may be anything: in each display path it is inert and bounded, and nothing raises."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.core.test_display import ALLOWED, result, tags
from toolkit_core import ToolResult, schema_tool
from toolkit_core.display import Bundle, progress_bundle, result_bundle, set_bundle, tool_bundle

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(1)> [a](javascript:alert(1)) ![i](http://x/y.png) `|` ```"
ESCAPES = "\x1b[2J\x1b]8;;http://x\x07link\x1b[31m\x00\x08\x7f\x9b31m\r"
OVERRIDES = "user\u202etxt.exe \u2066a\u2069 \u200fb\u2028c\ufeff"
SURROGATE = "\ud800"
ALL = f"{MARKUP}{ESCAPES}{OVERRIDES}{SURROGATE}\n--- {MARKUP}\n+{ESCAPES}"
LIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
BUNDLE_MAX_CHARS = 3_000_000


def row(text: Any) -> dict[str, Any]:
    return {"path": text, "line": text, "text": text, "count": text, "title": text, "url": text, "snippet": text}


def every_bundle(text: Any) -> Iterator[Bundle]:
    """The text in each place that is shown."""
    payloads: list[Mapping[str, Any]] = [
        {"diff": text, "path": text},
        {"rows": [row(text), row(text)], "truncated": True, "skipped": 3},
        {"counts": [row(text)]},
        {"paths": [text], "truncated": True, "ignored_count": 2},
        {"files": [text]},
        {"results": [row(text)], "answer": text},
        {"answers": [{"question": text, "values": [text], "text": text}, {"question": text, "cancelled": True}]},
        {"loaded": [{"name": text, "description": text}]},
        {
            s: [{"id": text, "objective": text, "missing_evidence": [text]}]
            for s in ("open", "blocked", "waiting", "closed")
        },
        {"exit_code": 1, "stdout": text, "stderr": text, "stdout_cut": 5, "survivors_killed": 1},
        {"process_id": text, "running": False, "exit_code": 0, "output": text},
        {"final_url": text, "status": 200, "content_type": text, "title": text},
        {"path": text, "kind": "text", "size_bytes": 3},
    ]
    for data in payloads:
        yield result_bundle(result(str(text), data))
    yield result_bundle(result(str(text)))
    yield result_bundle(result(str(text), code="failed"))
    said = f"Error (failed): {text}\n{text}\n\n{text}"
    error = {"code": "failed", "message": text, "hint": text}
    yield result_bundle({"content": [{"type": "text", "text": said}], "data": None, "error": error})
    yield result_bundle(result("x", images=({"type": "image", "mime_type": text, "base64": text, "size_bytes": text},)))
    properties = {str(text): {"type": text, "description": text, "enum": [text]}}
    parameters: dict[str, Any] = {"properties": properties, "required": []}
    tool: dict[str, Any] = {"name": text, "description": text, "parameters": parameters, "risk": text}
    yield tool_bundle(tool)
    yield set_bundle([tool, tool])
    yield progress_bundle(str(text), str(text), done=1, total=2)


def test_control_the_text_is_alive() -> None:
    assert "script" in tags(f"<div>{MARKUP.partition('<img')[0]}</div>").seen
    assert LIVE.search(ALL)
    assert "<script>" in MarkdownIt().render(MARKUP)


@pytest.mark.parametrize("bundle", [*every_bundle(ALL)])
def test_hostile_text_is_inert_in_html_markdown_and_plain_text(bundle: Bundle) -> None:
    found = tags(bundle["text/html"])
    markdown = tags(MarkdownIt("commonmark").enable("table").render(bundle["text/markdown"]).replace("<hr />", ""))

    assert found.seen <= ALLOWED
    assert found.attributes <= {"style", "src", "alt"}
    assert not markdown.seen & {"script", "img", "a", "iframe"}
    for text in bundle.values():
        assert not LIVE.search(text)
        text.encode("utf-8")


@pytest.mark.parametrize("text", ["x" * 10_000_000, "line\n" * 2_000_000, "\x00" * 10_000_000, "&<>'" * 2_500_000])
def test_ten_megabytes_are_bounded_in_each_path_and_quick(text: str) -> None:
    started = time.monotonic()
    bundles = [*every_bundle(text)]

    assert max(len(part) for bundle in bundles for part in bundle.values()) < BUNDLE_MAX_CHARS
    assert time.monotonic() - started < 60


def test_a_hundred_thousand_wide_rows_are_bounded() -> None:
    wide = ["y" * 5_000] * 100_000

    for data in ({"paths": wide}, {"files": wide}, {"rows": [row("z" * 3_000)] * 100_000}):
        bundle = result_bundle(result("x", data))
        assert max(map(len, bundle.values())) < BUNDLE_MAX_CHARS
        assert "more rows" in bundle["text/html"]
    assert len(set_bundle([{"name": "n", "description": "d" * 1_000}] * 10_000)["text/plain"]) < BUNDLE_MAX_CHARS


def test_the_number_of_images_is_bounded() -> None:
    png = {"type": "image", "mime_type": "image/png", "base64": "AAAA", "size_bytes": 3}
    html = result_bundle(result("x", images=(png,) * 50))["text/html"]

    assert html.count("<img") == 8
    assert "42 more images" in html


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = "diff rows paths files counts results answers loaded open blocked stdout stderr exit_code output process_id path"
payload_keys = st.sampled_from([*KEYS.split(), "final_url", "status", "title", "kind", "size_bytes", "truncated"])


@given(st.dictionaries(payload_keys, json_values), st.text())
def test_a_custom_tool_that_returns_the_fields_of_ours_with_other_values_is_shown(data: Any, text: str) -> None:
    for shown in (result(text, data), result(json.dumps(data, default=str), [data, data])):
        bundle = result_bundle(shown)
        assert tags(bundle["text/html"]).seen <= ALLOWED


@given(json_values, json_values, json_values)
def test_a_mapping_that_is_no_result_at_all_is_shown_too(content: Any, data: Any, error: Any) -> None:
    tags(result_bundle({"content": content, "data": data, "error": error})["text/html"])


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e300])
def test_odd_numbers_of_progress_stay_within_the_bar(number: float) -> None:
    for done, total in ((number, 10.0), (5.0, number), (number, number)):
        html = progress_bundle("bytes", done=done, total=total)["text/html"]
        widths = [float(width) for width in re.findall(r"width:([\d.]+)%", html)]
        assert all(0 <= width <= 100 for width in widths)


def test_a_tool_s_own_text_is_inert_in_a_prompt_too() -> None:
    def nothing(_: object) -> None: ...

    tool = schema_tool(nothing, name="t", description=f"{ESCAPES}{OVERRIDES}", parameters={"type": "object"})

    assert not LIVE.search(repr(tool))
    assert len(repr(tool)) < 1_000


def test_a_real_result_with_hostile_content_is_inert_as_ipython_asks_for_it() -> None:
    bundle = ToolResult.ok(ALL, {"rows": [row(ALL)]})._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]  (IPython's protocol)

    assert tags(bundle["text/html"]).seen <= ALLOWED
    assert not any(LIVE.search(text) for text in bundle.values())
