from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core.display import progress_bundle, result_bundle, set_bundle, tool_bundle
from toolkit_core.limits import DISPLAY_IMAGE_BASE64_CHARS, DISPLAY_ROWS, DISPLAY_TEXT_CHARS

VOID = {"img", "br"}
ALLOWED = {"div", "pre", "table", "tr", "th", "td", "b", "span", "img"}


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(html: str) -> _Tags:
    """The page's tags; fails where they are not closed in order."""
    parser = _Tags()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    return parser


def result(text: str, data: Any = None, *, code: str = "", images: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    error = {"code": code, "message": text} if code else None
    return {"content": [{"type": "text", "text": text}, *images], "data": data, "error": error}


EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>'\" & </pre></div>"


def test_control_unescaped_text_would_be_markup() -> None:
    assert "script" in tags("<div><script>alert(1)</script></div>").seen


@pytest.mark.parametrize(
    "shown",
    [
        result(EVIL),
        result(EVIL, code="failed"),
        result("x", {"diff": f"+{EVIL}\n-{EVIL}\n {EVIL}"}),
        result("x", {"rows": [{"path": EVIL, "line": 1, "text": EVIL}]}),
        result("x", {"paths": [EVIL]}),
        result("x", {"counts": [{"path": EVIL, "count": 2}]}),
        result("x", {"results": [{"title": EVIL, "url": EVIL, "snippet": EVIL}]}),
        result("x", images=({"type": "image", "mime_type": EVIL, "base64": EVIL, "size_bytes": 1},)),
        result("x", images=({"type": "image", "mime_type": "image/png", "base64": EVIL, "size_bytes": EVIL},)),
    ],
)
def test_nothing_that_a_result_holds_becomes_markup(shown: dict[str, Any]) -> None:
    found = tags(result_bundle(shown)["text/html"])

    assert found.seen <= ALLOWED
    assert found.attributes <= {"style", "src", "alt"}


def test_nothing_of_a_tool_or_a_set_becomes_markup() -> None:
    parameters: dict[str, Any] = {
        "properties": {EVIL: {"type": EVIL, "description": EVIL, "default": EVIL}},
        "required": [],
    }
    tool = {"name": EVIL, "description": EVIL, "parameters": parameters, "risk": EVIL}

    for bundle in (tool_bundle(tool), set_bundle([tool, tool])):
        found = tags(bundle["text/html"])
        assert found.seen <= ALLOWED
        assert found.attributes <= {"style"}


@given(st.text(), st.text(), st.booleans())
def test_any_text_gives_whole_html(text: str, diff: str, is_error: bool) -> None:
    tags(result_bundle(result(text, {"diff": diff}, code="failed" if is_error else ""))["text/html"])


def test_no_script_no_style_sheet_and_no_remote_source() -> None:
    png = base64.b64encode(b"\x89PNG").decode()
    html = result_bundle(result("x", images=({"type": "image", "mime_type": "image/png", "base64": png},)))["text/html"]

    assert f"src='data:image/png;base64,{png}'" in html
    assert not re.search(r"<style|<script|https?:", html)


def test_colours_are_translucent_so_that_they_read_on_dark_themes() -> None:
    shown = [result("x", {"diff": "+a\n-b\n@@ 1 @@"}), result("x", code="failed"), result("x", {"paths": ["a"]})]

    for each in shown:
        html = result_bundle(each)["text/html"]
        assert not re.search(
            r"#[0-9a-fA-F]{3,6}\b|(?<![-\w])color:|white;|black;",
            html.replace("color:inherit", "").replace("white-space", ""),
        )


def test_a_diff_is_coloured_and_its_headers_are_not() -> None:
    html = result_bundle(result("x", {"diff": "--- a\n+++ b\n-old\n+new"}))["text/html"]

    assert "<div>--- a</div><div>+++ b</div>" in html
    assert re.search(r"<div style='background:rgba\([^']*'>-old</div>", html)
    assert re.search(r"<div style='background:rgba\([^']*'>\+new</div>", html)


def test_an_error_has_a_red_edge_and_shows_its_text() -> None:
    bundle = result_bundle(result("Error (not_found): no", {"diff": "+a"}, code="not_found"))

    assert bundle["text/html"].startswith("<div style='border-left:3px solid rgba(248,81,73")
    assert "Error (not_found): no" in bundle["text/html"]
    assert bundle["text/plain"] == "Error (not_found): no"


def test_long_tables_and_lines_are_cut_and_the_cut_is_said() -> None:
    rows = [{"path": "a", "line": n, "text": "x"} for n in range(DISPLAY_ROWS + 7)]
    html = result_bundle(result("x", {"rows": rows}))["text/html"]
    line = result_bundle(result("y" * (DISPLAY_TEXT_CHARS * 2)))

    assert html.count("<tr>") == DISPLAY_ROWS + 1
    assert "7 more rows" in html
    assert f"{DISPLAY_TEXT_CHARS * 2:,} characters" in line["text/html"]
    assert len(line["text/plain"]) < DISPLAY_TEXT_CHARS + 50


def test_an_image_that_is_too_large_or_of_another_type_is_named_only() -> None:
    large = {"type": "image", "mime_type": "image/png", "base64": "A" * (DISPLAY_IMAGE_BASE64_CHARS + 1)}
    drawing = {"type": "image", "mime_type": "image/svg+xml", "base64": "AAAA", "size_bytes": 3}

    html = result_bundle(result("x", images=(large, drawing)))["text/html"]

    assert "<img" not in html
    assert "[image image/svg+xml, 3 bytes]" in html


def test_a_tool_shows_its_exact_description_and_parameters() -> None:
    parameters = {
        "properties": {
            "path": {"type": "string", "description": "where"},
            "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
            "edits": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["path"],
    }
    bundle = tool_bundle({"name": "t", "description": "One.\nTwo.", "parameters": parameters, "risk": "inspect"})

    assert bundle["text/plain"] == "t (inspect)\nOne.\nTwo."
    assert all(text in bundle["text/html"] for text in ("where", "&quot;a&quot; | &quot;b&quot;", "array of object"))


def test_a_set_is_a_row_a_tool() -> None:
    bundle = set_bundle([{"name": "a", "description": "First.", "risk": "inspect"}, {"name": "bb", "description": "2"}])

    assert bundle["text/plain"].splitlines() == ["a   inspect       First.", "bb  unclassified  2"]
    assert bundle["text/html"].count("<tr>") == 3


def test_a_command_shows_how_it_ended_and_both_streams() -> None:
    data = {"exit_code": 1, "signal": None, "stdout": "2 passed\n", "stderr": "warning\n", "survivors_killed": 2}
    bundle = result_bundle(result("exit code: 1\n2 passed", data))

    assert "<b>exit code 1</b>" in bundle["text/html"]
    assert "2 passed" in bundle["text/html"]
    assert ">stderr</div>" in bundle["text/html"]
    assert "background survivors killed: 2" in bundle["text/html"]
    assert bundle["text/markdown"].startswith("**exit code 1**\n\n```text\n2 passed\n```")


def test_a_listing_that_is_cut_says_so() -> None:
    html = result_bundle(result("x", {"paths": ["a"], "truncated": True, "ignored_count": 4}))["text/html"]

    assert "there is more than is listed; 4 ignored" in html


def test_matches_name_their_file_once() -> None:
    rows = [{"path": "a.py", "line": n, "text": "x"} for n in (1, 2)]

    assert result_bundle(result("x", {"rows": rows}))["text/html"].count("a.py") == 1


def test_rows_of_equal_fields_from_a_custom_tool_are_a_table_and_other_data_is_indented_json() -> None:
    people = [{"name": "Ada", "age": 36}, {"name": "Alan", "age": 41}]
    assert result_bundle(result('[{"name": ...', people))["text/html"].count("<tr>") == 3
    assert '  "a": {' in result_bundle(result('{"a": {}}', {"a": {"b": 1}}))["text/markdown"]


def test_an_error_shows_code_message_hint_and_detail() -> None:
    error = {"code": "is_a_directory", "message": "src is a folder.", "hint": "Name a file."}
    text = "Error (is_a_directory): src is a folder.\nName a file.\n\na.py\nb.py"
    bundle = result_bundle({"content": [{"type": "text", "text": text}], "data": None, "error": error})

    assert "<b>Error (is_a_directory)</b>" in bundle["text/html"]
    assert "a.py\nb.py</pre>" in bundle["text/html"]
    assert bundle["text/markdown"].startswith("> **Error \\(is\\_a\\_directory\\)** src is a folder\\.")
    assert bundle["text/plain"] == text


def test_markdown_colours_a_diff_and_its_fence_is_longer_than_any_inside() -> None:
    markdown = result_bundle(result("x", {"diff": "-```\n+````"}))["text/markdown"]

    assert markdown == "`````diff\n-```\n+````\n`````"


def test_a_changed_line_that_looks_like_a_file_header_is_coloured() -> None:
    html = result_bundle(result("x", {"diff": "--- a\n+++ b\n@@ -1 +1 @@\n---x\n+++x"}))["text/html"]

    assert re.search(r"rgba\([^']*'>---x</div>", html)
    assert re.search(r"rgba\([^']*'>\+\+\+x</div>", html)


def test_progress_is_a_bar_and_the_end_of_the_output() -> None:
    bundle = progress_bundle("stdout", "".join(f"line {n}\n" for n in range(50)) + "10%\r99%", done=1, total=4)

    assert "width:25.0%" in bundle["text/html"]
    assert "line 49" in bundle["text/html"]
    assert "line 30" not in bundle["text/html"]
    assert "99%" in bundle["text/plain"]
    assert "10%" not in bundle["text/plain"]
