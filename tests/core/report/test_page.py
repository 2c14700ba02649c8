"""The page as text: whole, bounded, and nothing in it is markup that a call brought."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit_core import limits, window
from toolkit_core.report import page as page_module
from toolkit_core.report import render
from toolkit_core.report.bounding import Bounds
from toolkit_core.report.embedding import inert_json
from toolkit_core.report.ordering import in_order

EVIL = "</script><script>alert(1)</script><!--<script><img src=x onerror=alert(1)>]]>&lt;\u2028\u0000\ud800"


def call(entry_id: str = "e1", **fields: Any) -> dict[str, Any]:
    text = fields.pop("text", "fine")
    result = {"content": [{"type": "text", "text": text}], "data": fields.pop("data", None), "error": None}
    return {
        "entry_id": entry_id,
        "parent_id": "",
        "session_id": "s",
        "call_id": "c",
        "tool": "read_file",
        "arguments": {"path": "a.txt"},
        "outcome": "ok",
        "code": "",
        "risk": "inspect",
        "traceparent": "",
        "started_at": 1.8e9,
        "duration_seconds": 0.5,
        "size_bytes": 10,
        "dropped": False,
        "result": result,
        "shown": None,
        **fields,
    }


class Parsed(HTMLParser):
    """The page as a browser's parser sees it: elements, and what the script elements hold."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.json: dict[str, Any] = {}
        self.code: dict[str, str] = {}
        self._into: str | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes.update(name for name, _ in attrs)
        self._into = dict(attrs).get("id") or tag if tag in {"script", "style"} else None

    def handle_data(self, data: str) -> None:
        if self._into in {"script", "style"}:
            self.code[self._into] = self.code.get(self._into, "") + data
        elif self._into:
            self.json[self._into] = json.loads(data)

    def handle_endtag(self, tag: str) -> None:
        self._into = None


def parsed(*calls: dict[str, Any], source: str = "") -> Parsed:
    return Parsed("".join(render(calls, source=source)))


def rows(page: Parsed) -> list[dict[str, Any]]:
    index = page.json["index"]
    return [dict(zip(index["fields"], row, strict=True)) for row in index["rows"]]


def test_control_plain_json_in_a_script_element_ends_it() -> None:
    page = f"<script type='application/json'>{json.dumps({'text': EVIL})}</script>"
    with pytest.raises(json.JSONDecodeError):
        Parsed(page.replace("<script type", "<script id='c0' type"))


def test_whatever_a_call_holds_stays_json_and_comes_back_whole() -> None:
    evil = call(EVIL, tool=EVIL, arguments={EVIL: EVIL}, text=EVIL, data={"stdout": EVIL}, session_id=EVIL, code=EVIL)
    page = parsed(evil, source=EVIL)
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert not any(name.startswith("on") for name in page.attributes)
    content = page.json["c0"]
    assert content["arguments"] == {EVIL: EVIL}
    assert (content["text"], content["data"]) == (EVIL, {"stdout": EVIL})
    assert rows(page)[0]["tool"] == EVIL
    "".join(render([evil], source="x")).encode("utf-8")


def test_only_the_pages_own_script_and_style_may_run() -> None:
    html = "".join(render([call()], source="run.ledger"))
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', html)
    assert policy is not None
    for kind in ("script", "style"):
        digest = hashlib.sha256(Parsed(html).code[kind].encode()).digest()
        assert f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert "unsafe" not in policy[1]
    assert "http" not in re.sub(r'http-equiv="', "", html)
    assert html == "".join(render([call()], source="run.ledger"))


def test_calls_stand_in_the_order_in_which_they_began_below_the_call_that_made_them() -> None:
    page = parsed(
        call("child", parent_id="outer", started_at=2.0),
        call("late", started_at=9.0),
        call("outer", started_at=1.0),
        call("grandchild", parent_id="child", started_at=2.5),
        call("orphan", parent_id="gone", started_at=0.5),
    )
    assert [(row["entry_id"], row["depth"]) for row in rows(page)] == [
        ("orphan", 0),
        ("outer", 0),
        ("child", 1),
        ("grandchild", 2),
        ("late", 0),
    ]
    assert page.json[f"c{rows(page)[2]['number']}"]["text"] == "fine"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["", *"abcdef"]), st.floats(0, 9)), max_size=12))
def test_every_call_is_listed_once_whatever_the_parents_say(calls: list[tuple[str, str, float]]) -> None:
    assert sorted(index for index, _ in in_order(calls)) == list(range(len(calls)))


def test_a_chain_of_ten_thousand_nested_calls_is_no_recursion() -> None:
    calls = [(str(i), str(i - 1) if i else "", float(i)) for i in range(10_000)]
    assert in_order(calls)[-1] == (9_999, 9_999)


def test_what_the_model_read_is_exact_and_assumed_only_where_nothing_was_kept() -> None:
    long = "".join(f"line {i}\n" for i in range(20_000))
    kept = parsed(call(text=long, shown="just this")).json["c0"]
    assert (kept["shown"], kept["shown_kept"], kept["shown_chars"]) == ("just this", True, 9)
    assumed = parsed(call("e9", text=long)).json["c0"]
    assert (assumed["shown"], assumed["shown_kept"]) == (window(long, recall_id="e9"), False)
    short = parsed(call(text="short")).json["c0"]
    assert (short["shown"], short["shown_chars"]) == (None, 5)


def test_a_large_text_keeps_its_ends_and_says_how_much_is_missing() -> None:
    text = "start " + "x" * 10_000_000 + " end"
    html = "".join(render([call(text=text, data={"stdout": text}, arguments={"a": text})]))
    assert len(html) < 1_000_000
    content = Parsed(html).json["c0"]
    head, tail = content["text"]
    assert head.startswith("start ")
    assert tail.endswith(" end")
    cuts = {tuple(path): (left, is_text) for path, left, is_text in content["cuts"]}
    left, is_text = cuts[("text",)]
    assert is_text
    assert len(head) + left + len(tail) == len(text) == content["text_chars"]
    assert {("data", "stdout"), ("arguments", "a")} <= set(cuts)


def test_a_full_page_still_lists_every_call_with_a_little_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "REPORT_PAGE_CHARS", 2_000_000)
    calls = [call(f"e{i}", text="y" * 30_000) for i in range(1_000)]
    html = "".join(render(calls))
    assert len(html) < 5_000_000
    page = Parsed(html)
    assert len(rows(page)) == 1_000
    content = page.json["c999"]
    assert content["arguments"] == {"path": "a.txt"}
    assert content["cuts"]


def test_calls_beyond_what_a_page_holds_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_module, "REPORT_CALLS", 3)
    page = parsed(*(call(f"e{i}") for i in range(10)), source="it's.ledger")
    assert len(rows(page)) == 3
    assert page.json["index"]["left_calls"] == 7
    assert page.json["index"]["command"] == """toolkit ledger 'it'"'"'s.ledger'"""


def test_only_images_that_browsers_draw_safely_carry_their_bytes() -> None:
    def image(mime_type: str, encoded: Any) -> dict[str, Any]:
        return {"type": "image", "mime_type": mime_type, "size_bytes": 3, "base64": encoded}

    blocks = [
        image("image/png", "iVBORw0="),
        image("image/svg+xml", "PHN2Zz4="),
        image("image/png", '"><script>'),
        image("text/html", "PGI+"),
        image("image/jpeg", "A" * (limits.DISPLAY_IMAGE_BASE64_CHARS + 1)),
        image("image/gif", None),
    ]
    page = parsed(call(result={"content": blocks, "data": None, "error": None}))
    images = page.json["c0"]["images"]
    assert ["base64" in one for one in images] == [True, False, False, False, False, False]
    assert images[4]["left_out"]


BROKEN: list[dict[str, Any]] = [
    {},
    {"entry_id": None, "arguments": 5, "result": "text", "started_at": "noon", "duration_seconds": None},
    {"result": {"content": "text"}, "arguments": [1, {"a": []}]},
    {"result": {"content": [None, 5, {"type": "text"}, {"type": "image"}], "data": math.nan, "error": []}},
    {"started_at": math.inf, "duration_seconds": -5, "size_bytes": 10**400},
    {"arguments": {"n": 10**5000, "f": math.inf, "o": object(), 5: b"x", "t": (1, 2)}},
]


@pytest.mark.parametrize("broken", BROKEN)
def test_a_call_that_is_not_as_it_should_be_is_still_drawn(broken: dict[str, Any]) -> None:
    page = parsed(broken, call())
    assert len(rows(page)) == 2


def test_an_empty_ledger_is_a_page_too() -> None:
    assert rows(parsed()) == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(JSON)
def test_what_fits_is_left_as_it_is(value: Any) -> None:
    bounds = Bounds(100_000)
    assert bounds.value(value) == value
    assert bounds.cuts == []
    assert json.loads(inert_json(value)) == value


@given(JSON, st.integers(0, 30))
def test_what_does_not_fit_is_cut_and_every_cut_is_said(value: Any, chars: int) -> None:
    bounds = Bounds(chars)
    kept = bounds.value(value, "root")
    if not bounds.cuts:
        assert kept == value
    for path, left, is_text in bounds.cuts:
        assert left > 0
        found: Any = {"root": kept}
        for key in path:
            found = found[key]
        assert isinstance(found, list) or not is_text


def test_nested_without_end_is_cut_by_depth() -> None:
    value: Any = []
    for _ in range(150):
        value = [value]
    assert "nested deeper" in json.dumps(Bounds(10_000).value(value))
