"""The page in Chromium: found, opened and read by keyboard, with nothing running that a call brought."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from tests.core.report.browsing import Chromium, Page, chromium
from tests.core.report.test_page import call
from toolkit_core import window
from toolkit_core.report import render

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n same\n-old line\n+new line\n"
MARKUP = (
    "</script><script>document.title='pwned';alert(1)</script><img src='http://127.0.0.1:9/x' onerror=alert(2)>"
    "<style>*{display:none}</style><iframe src=javascript:alert(3)></iframe><!-- --!><svg onload=alert(4)>"
)


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def browser() -> AsyncGenerator[Chromium]:
    async with chromium() as running:
        yield running


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Chromium) -> AsyncGenerator[Page]:
    async with browser.page() as opened:
        yield opened
        assert opened.complaints == []
        assert opened.dialogs == []


async def load(page: Page, folder: Path, *calls: dict[str, Any], fragment: str = "") -> None:
    path = folder / "report.html"
    with path.open("w", encoding="utf-8") as out:
        out.writelines(render(calls, source="run.ledger"))
    await page.open(path, fragment=fragment)


def result(text: str = "", data: Any = None, *, error: Any = None, images: tuple[Any, ...] = ()) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}, *images], "data": data, "error": error}


def five() -> list[dict[str, Any]]:
    image = {"type": "image", "mime_type": "image/png", "size_bytes": 70, "base64": PIXEL}
    shell = {"exit_code": 3, "signal": None, "stdout": "out here", "stderr": "err here", "timed_out": False}
    rows = [{"path": "a.py", "line": 4, "text": "needle", "context": False}]
    missing = {"code": "not_found", "message": "There is nothing at b.", "hint": "Look again."}
    return [
        call(
            "e1", tool="grep", started_at=1.0, arguments={"pattern": "needle"}, result=result("a.py:4", {"rows": rows})
        ),
        call("e2", tool="edit_file", started_at=2.0, result=result("edited", {"diff": DIFF})),
        call("e3", tool="shell", started_at=3.0, arguments={"command": "make"}, result=result("exit", shell)),
        call(
            "e4", tool="read_file", started_at=4.0, outcome="error", code="not_found", result=result("x", error=missing)
        ),
        call("e5", tool="read_file", started_at=5.0, session_id="other", result=result("photo", images=(image,))),
    ]


async def names(page: Page) -> list[str]:
    await page.settled()
    return await page.value("[...document.querySelectorAll('.row .tool')].map((one) => one.textContent)")


async def shown(page: Page) -> str:
    await page.settled()
    return await page.value("document.getElementById('detail').innerText")


async def test_entries_are_opened_and_left_by_keyboard(page: Page, tmp_path: Path) -> None:
    await load(page, tmp_path, *five())
    assert await names(page) == ["grep", "edit_file", "shell", "read_file", "read_file"]
    assert await page.value("document.activeElement.id") == "list"

    await page.press("ArrowDown", "ArrowDown", "Enter")
    assert "exit code 3" in await shown(page)
    assert await page.value("document.activeElement.id") == "detail-title"
    assert await page.value("location.hash") == "#e3"
    await page.press("Escape")
    assert await page.value("document.activeElement.id") == "list"
    assert await page.value("document.getElementById('detail').hidden")
    assert await page.value("document.getElementById('list').getAttribute('aria-activedescendant')") == "row-2"
    await page.press("End", "Enter")
    assert await page.value("document.querySelector('#detail img').naturalWidth") == 1
    await page.press("Escape", "Home", "Enter")
    assert "needle" in await shown(page)


async def test_results_are_drawn_as_people_read_them(page: Page, tmp_path: Path) -> None:
    await load(page, tmp_path, *five(), fragment="#e2")
    assert await page.value("document.querySelector('.diff .removed').textContent") == "-old line\n"
    colours = "getComputedStyle(document.querySelector('.diff .{}')).backgroundColor"
    assert await page.value(colours.format("added")) != await page.value(colours.format("removed"))
    await load(page, tmp_path, *five(), fragment="#e3")
    assert await page.value("document.querySelector('.stdout pre').textContent") == "out here"
    assert await page.value("document.querySelector('.stderr pre').textContent") == "err here"
    await load(page, tmp_path, *five(), fragment="#e4")
    assert "There is nothing at b." in await page.value("document.querySelector('.failure').textContent")
    await load(page, tmp_path, *five(), fragment="#e1")
    cells = "[...document.querySelectorAll('.matches td, .matches tbody th')].map((one) => one.textContent)"
    assert await page.value(cells) == ["a.py", "4", "needle"]


async def choose(page: Page, name: str, text: str) -> None:
    chosen = f"[...s.options].find((o) => o.textContent.startsWith({json.dumps(text)})).index"
    await page.value(
        f"{{ const s = document.getElementById('{name}'); s.selectedIndex = {chosen};"
        " s.dispatchEvent(new Event('change')); }"
    )


async def test_calls_are_found_by_tool_outcome_session_and_text(page: Page, tmp_path: Path) -> None:
    await load(page, tmp_path, *five())
    await choose(page, "tool", "read_file")
    assert await names(page) == ["read_file", "read_file"]
    await choose(page, "outcome", "error: not_found")
    assert await names(page) == ["read_file"]
    assert "1 of 5 calls" in await page.value("document.getElementById('status').textContent")
    await choose(page, "tool", "all")
    await choose(page, "outcome", "all")
    await choose(page, "session", "other")
    assert await names(page) == ["read_file"]
    await choose(page, "session", "all")

    await page.press("/")
    await page.type("NEW line")
    await page.until("document.getElementById('status').textContent.startsWith('1 of 5')")
    assert await names(page) == ["edit_file"]
    await page.press("Escape")
    assert len(await names(page)) == 5
    await page.type("no such text")
    await page.until("!document.getElementById('empty').hidden")
    assert await names(page) == []


@pytest.mark.parametrize(
    "typed", ['"quoted"', "back\\slash", "<b>&amp;", "two\\nlines", "caf\u00e9 \U0001f600", "u003c"]
)
async def test_a_search_finds_what_json_would_spell_otherwise(page: Page, tmp_path: Path, typed: str) -> None:
    await load(
        page, tmp_path, call("e1", tool="has", text=f"before {typed} after"), call("e2", tool="lacks", text="<\n&")
    )
    await page.press("/")
    await page.type(typed)
    await page.until("document.getElementById('status').textContent.startsWith('1 of 2')")
    assert await names(page) == ["has"]


async def test_the_exact_text_the_model_read_stands_beside_the_whole(page: Page, tmp_path: Path) -> None:
    long = "".join(f"line {i}\n" for i in range(4_000))
    await load(page, tmp_path, call("e1", text=long, shown=window(long, recall_id="e1")), fragment="#e1")
    read, whole = await page.value("[...document.querySelectorAll('.beside pre')].map((one) => one.textContent)")
    assert read == window(long, recall_id="e1")
    assert whole == long
    assert await page.value("document.querySelector('.beside mark').textContent.includes('omitted')")


async def test_markup_stays_text_and_nothing_runs_or_leaves(page: Page, tmp_path: Path) -> None:
    evil = call(
        MARKUP,
        tool=MARKUP,
        session_id=MARKUP,
        call_id=MARKUP,
        arguments={MARKUP: MARKUP, "__proto__": {"polluted": 1}},
        outcome="error",
        code=MARKUP,
        shown=MARKUP,
        result=result(
            MARKUP,
            {"diff": MARKUP, "stdout": MARKUP, "results": [{"url": MARKUP}], "constructor": MARKUP},
            error={"code": MARKUP, "message": MARKUP, "hint": MARKUP},
        ),
    )
    await load(page, tmp_path, evil, call("e2", session_id="b"))
    await page.press("Enter")
    text = await shown(page)
    assert text.count("alert(1)") > 8
    assert await page.value("document.title") == "run.ledger - tool calls"
    assert (
        await page.value("document.querySelectorAll('#detail script, #detail iframe, #detail svg, #detail a').length")
        == 0
    )
    assert await page.value("({}).polluted === undefined")
    assert all(url.startswith(("file:", "about:")) for url in page.requests)


async def test_control_without_the_policy_and_the_escapes_the_same_text_would_run(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "naive.html"
    path.write_text(f"<title>x</title><body class=ready><pre>{MARKUP}</pre>")
    await page.open(path, until="document.title === 'pwned'")
    assert page.dialogs
    page.dialogs.clear()
    page.complaints.clear()


async def test_what_would_be_invisible_or_steer_its_neighbours_is_spelled_out(page: Page, tmp_path: Path) -> None:
    text = "\x1b[31mred\x1b[0m a\0\0\0b \u202egnp.exe\u2069 x\u200by \ud800z r\rs\r\nt \x9b Z" + "\u0301" * 500
    await load(page, tmp_path, call("e1", text=text), fragment="#e1")
    seen = await page.value("[...document.querySelectorAll('pre')].at(-1).textContent")
    assert seen == (
        "\\x1b[31mred\\x1b[0m a\\x00\u00d73b \\u202egnp.exe\\u2069 x\\u200by \\ud800z r\\x0ds\r\nt \\x9b "
        "Z[500 combining marks]"
    )


async def test_ten_megabytes_open_at_once_and_say_what_is_missing(page: Page, tmp_path: Path) -> None:
    heavy = "x" * 10_000_000
    hidden = "\0\x1b\u202e" * 3_000_000
    marks = "Z" + "\u0301" * 50_000
    calls = [call(f"e{i}", text=text, data={"stdout": text}) for i, text in enumerate((heavy, hidden, marks))]
    await load(page, tmp_path, *calls)
    for _ in calls:
        start = time.perf_counter()
        await page.press("Enter")
        text = await shown(page)
        assert time.perf_counter() - start < 20
        await page.press("Escape", "ArrowDown")
        if "not on this page" in text:
            assert "toolkit ledger run.ledger e" in text
    await page.press("Home", "Enter")
    assert "9,940,000 characters not on this page" in await shown(page)


async def test_ten_thousand_calls_load_scroll_and_filter_without_freezing(page: Page, tmp_path: Path) -> None:
    text = "".join(f"src/module_{i}.py:{i}:value\n" for i in range(60))
    calls = [
        call(
            f"e{i}", tool=f"tool_{i % 7}", started_at=1.8e9 + i * 0.3, text=f"{text}number {i}", session_id=f"s{i % 3}"
        )
        for i in range(10_000)
    ]
    start = time.perf_counter()
    await load(page, tmp_path, *calls)
    assert time.perf_counter() - start < 30
    assert await page.value("document.querySelectorAll('.row').length") < 100

    await page.value(
        "window.longest = 0; window.last = performance.now(); (function tick(now) {"
        " window.longest = Math.max(window.longest, now - window.last); window.last = now;"
        " requestAnimationFrame(tick); })(performance.now()); 1"
    )
    for part in (0.25, 0.5, 0.99, 0.1):
        await page.value(f"{{ const l = document.getElementById('list'); l.scrollTop = l.scrollHeight * {part}; }}")
        await page.settled()
    assert (await names(page))[0].startswith("tool_")
    await page.press("/")
    await page.type("number 9876")
    await page.until("document.getElementById('status').textContent.startsWith('1 of 10,000')")
    assert await page.value("window.longest") < 3_000  # milliseconds between two frames
    await page.press("Enter", "Enter")
    assert "number 9876" in await shown(page)
    await choose(page, "tool", "tool_3")
    await page.press("Escape")


async def test_both_colour_schemes_are_legible(page: Page, tmp_path: Path) -> None:
    await load(page, tmp_path, *five(), fragment="#e2")
    contrast = """(() => {
      const light = (name) => {
        const made = document.createElement('canvas').getContext('2d');
        made.fillStyle = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
        made.fillRect(0, 0, 1, 1);
        const part = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = [...made.getImageData(0, 0, 1, 1).data].map(part);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const pairs = [['text', 'back'], ['text', 'code'], ['text', 'active'], ['text', 'added'], ['text', 'removed'],
        ['text', 'hunk'], ['text', 'mark'], ['faint', 'back'], ['faint', 'panel'], ['faint', 'removed'], ['ok', 'back'],
        ['ok', 'active'], ['error', 'back'], ['error', 'active'], ['cancelled', 'back'], ['suspended', 'back'],
        ['hidden', 'code'], ['focus', 'back']];
      return pairs.map(([a, b]) => [a, b, ratio(light(a), light(b))]).filter((pair) => pair[2] < 4.5);
    })()"""
    for dark in (False, True):
        await page.look(width=1200, height=800, dark=dark)
        assert await page.value(contrast) == []  # WCAG 2.1, 1.4.3


async def test_nested_and_parallel_calls_are_walked_by_keyboard(page: Page, tmp_path: Path) -> None:
    calls = [
        call("outer", tool="review", started_at=1.0, duration_seconds=3.0),
        *(call(f"c{i}", tool=f"child_{i}", parent_id="outer", started_at=1.5, duration_seconds=1.0) for i in range(3)),
    ]
    await load(page, tmp_path, *calls)
    await page.press("ArrowRight", "Enter")
    assert "child_0" in await page.value("document.getElementById('detail-title').textContent")
    assert "review" in await shown(page)
    await page.press("Escape", "ArrowLeft", "Enter")
    assert "child_2" in await shown(page)


async def test_an_empty_ledger_and_broken_calls_are_drawn(page: Page, tmp_path: Path) -> None:
    await load(page, tmp_path)
    assert "0 calls" in await page.value("document.body.innerText")
    await page.press("ArrowDown", "Enter", "End", "ArrowLeft")
    await load(page, tmp_path, {}, {"result": {"content": [None], "data": [[["x"]]]}}, {"result": 5, "dropped": True})
    for _ in range(3):
        await page.press("Enter", "Escape", "ArrowDown")


async def test_clocks_that_went_wrong_freeze_nothing(page: Page, tmp_path: Path) -> None:
    moments = [(0.0, 0.0), (1e300, 0.0), (-1e18, 5.0), (1.8e9, 1e300), (1.8e9, 0.0), (1.8e9 + 1e-7, 1e-12)]
    calls = [call(f"e{n}", started_at=began, duration_seconds=took) for n, (began, took) in enumerate(moments)]
    await load(page, tmp_path, *calls)
    for button in ("zoom-in", "zoom-in", "zoom-out", "zoom-all"):
        await page.value(f"document.getElementById('{button}').click()")
        await page.settled()
    assert len(await names(page)) == len(moments)


async def test_five_thousand_sessions_and_tools_of_five_thousand_names_are_drawn(page: Page, tmp_path: Path) -> None:
    calls = [call(f"e{i}", tool=f"t{i}", session_id=f"s{i}", started_at=1.8e9 + i * 100) for i in range(5_000)]
    start = time.perf_counter()
    await load(page, tmp_path, *calls)
    await page.press("End", "Enter")
    assert "t4999" in await shown(page)
    assert time.perf_counter() - start < 30


async def test_a_ring_and_a_chain_of_parents_are_walked(page: Page, tmp_path: Path) -> None:
    ring = [call("a", parent_id="b"), call("b", parent_id="a"), call("c", parent_id="c"), call("a", parent_id="a")]
    chain = [call(f"n{i}", parent_id=f"n{i - 1}", started_at=2e9 + i) for i in range(3_000)]
    await load(page, tmp_path, *ring, *chain)
    assert "3,004 calls" in await page.value("document.getElementById('about').textContent")
    await page.press("Enter", "Escape", "End", "Enter", "Escape", "ArrowLeft", "Enter")
    assert "n2998" in await shown(page)
