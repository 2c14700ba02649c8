"""What a page is and how it reads: charsets, kinds, Markdown, errors, paging."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.host.web_servers import Net, Respond, Server, answer, by_path, fixed
from toolkit_core import Progress, ToolContext, ToolResult
from toolkit_core.host.pages.charset import codec_of, decode
from toolkit_core.host.pages.markdown import to_markdown
from toolkit_core.host.pages.sniffing import kind_of
from toolkit_core.host.web import HostWeb
from toolkit_core.ports.documents import Page
from toolkit_core.tools import web_fetch_tool


async def fetch(
    respond: Respond | bytes, path: str = "/", *, context: ToolContext | None = None, **arguments: Any
) -> ToolResult:
    served = fixed(respond) if isinstance(respond, bytes) else respond
    async with Server(served).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()))
        return await tool.call({"url": f"http://pub.test{path}", **arguments}, context or ToolContext())


def code(result: ToolResult) -> str:
    assert result.error is not None, result.text[:300]
    return result.error.code


async def test_the_text_is_a_headline_an_empty_line_and_the_body() -> None:
    result = await fetch(answer(b'{"a":  1}', content_type="application/json; charset=utf-8"), "/data?x=1#part")
    assert result.text == 'http://pub.test/data?x=1 (200, application/json)\n\n{"a":  1}'
    assert result.data == {
        "url": "http://pub.test/data?x=1#part",
        "final_url": "http://pub.test/data?x=1",
        "status": 200,
        "content_type": "application/json",
        "title": None,
        "next_index": None,
    }


async def test_the_request_is_a_plain_get_for_the_path() -> None:
    async with Server(fixed(answer(b"ok"))).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress(), user_agent="tests/1"))
        await tool(url="http://pub.test/a b".replace(" ", "%20") + "/ü?q=é&r=%2F")
    lines = server.heads[0].split(b"\r\n")
    assert lines[0] == b"GET /a%20b/%C3%BC?q=%C3%A9&r=%2F HTTP/1.1"
    assert b"User-Agent: tests/1" in lines
    assert b"Host: pub.test" in lines


GOLDEN_PAGE = """<!doctype html><html lang=en><head><meta charset=utf-8><title>The &amp; title</title>
<style>p { color: red }</style><script>document.write('<p>never</p>')</script></head>
<body><nav><a href="/home">Home</a></nav>
<h1>Heading</h1>
<p>Some <b>bold</b>, <em>slanted</em> and <code>inline()</code> text &copy; 2026 &mdash; caf&eacute; &#8364;5.</p>
<!-- a comment --><template><p>template</p></template><noscript>no script</noscript>
<div hidden>hidden by attribute</div><div style="display:none">hidden by style</div>
<table><thead><tr><th>Name</th><th>Size</th></tr></thead><tbody>
<tr><td>a|b</td><td>1</td></tr><tr><td><a href="x.html">link</a></td><td>2</td></tr></tbody></table>
<ul><li>one<ul><li>inner <b>two</b></li><li>three</li></ul></li><li>four</li></ul>
<ol start="3"><li>third</li><li>fourth</li></ol>
<pre><code class="language-python">def f(x):
    return x &lt; 3
</code></pre>
<blockquote><p>quoted</p></blockquote>
<p><a href="https://other.test/p?q=1&amp;r=2" title="a > b">elsewhere</a> <img src="i.png" alt="picture"></p>
<svg><text>drawn</text></svg>
</body></html>"""

GOLDEN_MARKDOWN = """http://pub.test/d/page (200, text/html)

# The & title

[Home](http://pub.test/home)

# Heading

Some **bold**, *slanted* and `inline()` text © 2026 — café €5.

| Name | Size |
| --- | --- |
| a\\|b | 1 |
| [link](http://pub.test/d/x.html) | 2 |

- one
  * inner **two**
  * three
- four

3. third
4. fourth

```python
def f(x):
    return x < 3
```
> quoted

[elsewhere](https://other.test/p?q=1&r=2 "a > b")"""


async def test_golden_markdown_of_a_page() -> None:
    result = await fetch(answer(GOLDEN_PAGE.encode()), "/d/page")
    assert result.text == GOLDEN_MARKDOWN
    assert result.data is not None
    assert result.data["title"] == "The & title"


async def test_raw_gives_the_source_as_it_came() -> None:
    result = await fetch(answer(GOLDEN_PAGE.encode()), "/d/page", raw=True)
    assert result.text == f"http://pub.test/d/page (200, text/html)\n\n{GOLDEN_PAGE}"


async def test_scripts_styles_and_attributes_leave_no_debris() -> None:
    page = (
        "<html><head><title>Name</title><style>.x{y:z}</style><script>if(a<b){c='</p>'}</script ></head><body>"
        '<a title="2 > 1">anchor</a><noscript>off</noscript><p>True &copy; words</p></body></html>'
    )
    text = (await fetch(answer(page.encode()))).text
    assert text.endswith("# Name\n\nanchor\n\nTrue © words")


async def test_entities_are_decoded_once_and_give_no_nul_and_no_surrogate() -> None:
    page = b"<p>&amp;lt;i&amp;gt; &#8217; &#x27; &mdash; &nbsp;y &#0; &#xD800; &bogus; &amp;amp;"
    text = (await fetch(answer(page))).text
    assert "&lt;i&gt;" in text
    assert "\u2019 ' \u2014" in text
    assert "&bogus;" in text
    assert "&amp;" in text
    assert "\0" not in text
    text.encode("utf-8")


JAPANESE = "日本語のページ、設計と実装"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/plain; charset=Shift_JIS", JAPANESE.encode("cp932")),
        ('text/plain; charset="EUC-JP"', JAPANESE.encode("euc_jp")),
        ("text/plain;CHARSET='iso-2022-jp'", JAPANESE.encode("iso2022_jp")),
        ("text/plain; boundary=x; charset=UTF-8; q=1", JAPANESE.encode()),
        ("text/plain; charset=iso-8859-1", b"\xef\xbb\xbf" + JAPANESE.encode()),
        ("text/plain", b"\xff\xfe" + JAPANESE.encode("utf-16-le")),
        ("text/plain; charset=utf-8", b"\xfe\xff" + JAPANESE.encode("utf-16-be")),
        ("text/plain; charset=utf-16le", JAPANESE.encode("utf-16-le")),
        ("text/plain; charset=no-such", JAPANESE.encode()),
        ("text/plain", JAPANESE.encode()),
        ("text/html", b"<meta charset=shift_jis><p>" + JAPANESE.encode("cp932")),
        (
            "text/html",
            b"<META http-equiv=content-type content='text/html; charset=EUC-JP'><p>" + JAPANESE.encode("euc_jp"),
        ),
        ("text/html; charset=nonsense", b'<meta charset="x-sjis"><p>' + JAPANESE.encode("cp932")),
        ("text/html; charset=utf-8", b"<meta charset=shift_jis><p>" + JAPANESE.encode()),
        ("text/html", b"<meta charset=utf-16><p>" + JAPANESE.encode()),
        ("text/html", b"<!--" + b"x" * 3000 + b"--><meta charset=euc-jp><p>" + JAPANESE.encode("euc_jp")),
        ("application/xml", b"<?xml version='1.0' encoding='EUC-JP'?><a>" + JAPANESE.encode("euc_jp") + b"</a>"),
        (None, JAPANESE.encode()),
    ],
)
async def test_the_charset_is_mark_then_header_then_meta_then_utf8(content_type: str | None, body: bytes) -> None:
    text = (await fetch(answer(body, content_type=content_type))).text
    assert JAPANESE in text
    assert "\ufffd" not in text


async def test_a_charset_that_nothing_names_is_detected() -> None:
    body = ("Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20).encode("cp1251")
    assert "французских" in (await fetch(answer(body, content_type="text/plain"))).text


async def test_gbk_quoted_and_a_label_that_does_not_exist() -> None:
    assert "中文" in (await fetch(answer("中文".encode("gbk"), content_type='text/plain; charset="GBK"'))).text
    assert not (await fetch(answer("中文".encode("gbk"), content_type="text/plain; charset=no-such"))).is_error


@given(st.binary(max_size=300), st.text(max_size=40), st.booleans(), st.booleans())
def test_decoding_never_raises(data: bytes, label: str, markup: bool, cut: bool) -> None:
    text, _ = decode(data, content_type=f"text/html; charset={label}", markup=markup, cut=cut)
    text.encode("utf-8", "surrogatepass" if "\ud800" <= max(text, default="") <= "\udfff" else "strict")


@given(st.text(max_size=40))
def test_any_label_is_a_text_codec_or_none(label: str) -> None:
    codec = codec_of(label)
    assert codec is None or isinstance(b"a".decode(codec, "replace"), str)


def test_a_character_cut_at_the_cap_is_dropped_and_not_garbled() -> None:
    whole = ("é" * 100).encode()
    assert decode(whole[:-1], cut=True)[0] == "é" * 99
    assert decode(whole[:-1])[0] != "é" * 99


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("application/pdf", b"%PDF-1.7\n\xe2\xe3", "pdf"),
        ("text/plain", b"%PDF-1.7\n\xe2\xe3", "pdf"),
        ("text/html", b"\x89PNG\r\n\x1a\n....", "binary"),
        ("", b"just text", "text"),
        ("", b"<!DOCTYPE html><p>x", "html"),
        ("", b"  <!-- c --><html>", "html"),
        ("", b"\x00\x01", "binary"),
        ("text/plain", b"a\x00b", "binary"),
        ("text/html", b"PK\x03\x04", "binary"),
        ("image/svg+xml", b"<svg/>", "text"),
        ("image/png", b"text really", "binary"),
        ("application/octet-stream", b"# readme\ntext", "text"),
        ("application/octet-stream", b"\x7fELF\x02", "binary"),
        ("application/octet-stream", b"\x01\x02\x03", "binary"),
        ("application/vnd.api+json", b"{}", "text"),
        ("application/x-ndjson", b"{}", "text"),
        ("text/html", b"\xff\xfe<\0p\0>\0", "html"),
        ("application/zip", b"", "binary"),
        ("video/mp4", b"\0\0\0\x18ftypmp42", "binary"),
        ("TEXT/HTML; charset=x", b"<p>", "html"),
        ("text/markdown", b"BZh is how bzip2 starts", "text"),
        ("nonsense", b"hello", "binary"),
    ],
)
def test_the_kind_is_declared_and_checked_against_the_bytes(content_type: str, body: bytes, kind: str) -> None:
    assert kind_of(content_type, body)[0] == kind


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/pdf", b"%PDF-1.7\n\xe2\xe3"),
        ("text/plain", b"%PDF-1.7\n\xe2\xe3"),
        (None, b"\x00\x01"),
        ("image/png", b"\x89PNG\r\n\x1a\n"),
        ("application/zip", b"PK\x03\x04"),
    ],
)
async def test_what_is_not_text_is_unsupported_with_its_type_and_size(content_type: str | None, body: bytes) -> None:
    result = await fetch(answer(body, content_type=content_type))
    assert code(result) == "unsupported"
    assert f"{len(body)} bytes" in result.text


class OnePage:
    async def pages(self, data: bytes, mime_type: str) -> tuple[Page, ...]:
        assert mime_type == "application/pdf"
        return (Page(1, f"{len(data)} bytes"), Page(2, "the end "))


async def test_a_pdf_is_text_by_page_where_documents_are_read() -> None:
    async with Server(fixed(answer(b"%PDF-1.7 x", content_type="text/html"))).running() as server:
        net = Net(server.port)
        tool = web_fetch_tool(HostWeb(egress=net.egress()), documents=OnePage())
        result = await tool(url="http://pub.test/")
        cut = await web_fetch_tool(HostWeb(egress=net.egress()), documents=OnePage(), max_bytes=8)(
            url="http://pub.test/"
        )
    assert result.text.endswith("(200, application/pdf)\n\n--- page 1 ---\n10 bytes\n\n--- page 2 ---\nthe end")
    assert code(cut) == "too_large"


@pytest.mark.parametrize(
    ("status", "expected", "retryable"),
    [
        ("404 Not Found", "http_error", False),
        ("403 Forbidden", "http_error", False),
        ("410 Gone", "http_error", False),
        ("500 Internal Server Error", "http_error", True),
        ("503 Service Unavailable", "http_error", True),
        ("429 Too Many Requests", "rate_limited", True),
        ("304 Not Modified", "http_error", False),
        ("302 Found", "http_error", False),
        ("299 Odd", "", False),
        ("599 Odd", "http_error", True),
    ],
)
async def test_a_status_that_is_no_success_is_an_error_with_the_body(
    status: str, expected: str, retryable: bool
) -> None:
    body = b"" if status.startswith("304") else b"<title>Oops</title><p>the reason</p>"
    result = await fetch(answer(body, status=status))
    if not expected:
        assert not result.is_error
        return
    assert code(result) == expected
    assert result.error is not None
    assert result.error.retryable is retryable
    assert result.text.startswith(f"Error ({expected}): HTTP {status.split()[0]}")
    assert "the reason" in result.text or not body
    assert result.data is not None
    assert result.data["status"] == int(status.split()[0])


async def test_an_error_body_is_cut_at_2000_characters_and_retry_after_is_said() -> None:
    body = b"y" * 2000 + b"z" * 500
    result = await fetch(answer(body, status="429 Slow Down", content_type="text/plain", headers=["Retry-After: 120"]))
    assert code(result) == "rate_limited"
    assert "120 s" in result.text
    assert "y" * 2000 in result.text
    assert "z" not in result.text.replace("Retry", "").partition("yyy")[2]
    assert "2000 of 2500" in result.text


async def test_an_error_whose_body_cannot_be_read_is_still_that_error() -> None:
    result = await fetch(answer(b"\x00\x01", status="404 Not Found", headers=["Content-Encoding: br"]))
    assert code(result) == "http_error"
    image = await fetch(answer(b"\x89PNG\r\n\x1a\n", status="500 No", content_type="image/png"))
    assert code(image) == "http_error"


async def test_paging_gives_every_character_once_and_an_index_past_the_end_says_the_length() -> None:
    whole = "".join(f"line {n} of the text, with é and 中\n" for n in range(9_000))
    async with Server(fixed(answer(whole.encode(), content_type="text/plain"))).running() as server:
        tool = web_fetch_tool(HostWeb(egress=Net(server.port).egress()), page_chars=50_000)
        index: int | None = 0
        joined = ""
        while index is not None:
            result = await tool(url="http://pub.test/", start_index=index)
            assert result.data is not None
            following = result.data["next_index"]
            end = len(whole) if following is None else following
            part = result.text.split("\n\n", 1)[1][: end - index]
            assert f"characters {index} to {end} of {len(whole)}" in result.text
            assert (f"start_index={end}" in result.text) is (following is not None)
            joined += part
            index = following
        assert joined == whole
        past = await tool(url="http://pub.test/", start_index=len(whole))
    assert code(past) == "invalid_arguments"
    assert str(len(whole)) in past.text


async def test_an_answer_fits_the_output_window() -> None:
    result = await fetch(answer(b"word " * 20_000, content_type="text/plain"))
    assert len(result.text) < 30_000
    assert result.data is not None
    assert result.data["next_index"] is not None


async def test_an_empty_body_says_so() -> None:
    for raw in (answer(b"", content_type="text/plain"), b"HTTP/1.1 204 No Content\r\n\r\n"):
        result = await fetch(raw)
        assert not result.is_error
        assert "(no text)" in result.text


@pytest.mark.parametrize(
    "tag",
    [
        b"<meta http-equiv=refresh content='5; url=/next?a=1'>",
        b'<META CONTENT="5;URL=\'/next?a=1\'" HTTP-EQUIV="Refresh">',
        b"<meta http-equiv='refresh' content='5 , /next?a=1'>",
    ],
)
async def test_a_meta_refresh_is_reported_with_its_target_and_not_followed(tag: bytes) -> None:
    async with Server(by_path({"/d/": answer(tag + b"<p>wait")})).running() as server:
        result = await web_fetch_tool(HostWeb(egress=Net(server.port).egress()))(url="http://pub.test/d/")
    assert "[after 5 s the page asks to go on to http://pub.test/next?a=1, not followed]" in result.text
    assert server.paths == ["/d/"]


async def test_progress_counts_bytes() -> None:
    heard: list[Progress] = []
    body = b"x" * 300_000
    await fetch(answer(body, content_type="text/plain"), context=ToolContext(progress=heard.append))
    assert heard
    assert {progress.kind for progress in heard} == {"bytes"}
    assert heard[-1].done == heard[-1].total == len(body)


async def test_the_subject_is_the_url_as_asked() -> None:
    tool = web_fetch_tool(HostWeb())
    assert await tool.subject({"url": "http://PUB.test:80/../x"}) == "http://PUB.test:80/../x"
    assert tool.effects is not None
    assert tool.effects.network
    assert tool.effects.risk == "inspect"
    assert await tool.writes({"url": "http://a.test/"}) == ()
    assert not (await tool.claims({"url": "http://a.test/"})).exclusive


async def test_a_bad_url_makes_no_request_and_bad_arguments_are_told_together() -> None:
    async with Server(fixed(answer(b"x"))).running() as server:
        net = Net(server.port)
        tool = web_fetch_tool(HostWeb(egress=net.egress()))
        assert code(await tool(url="not a url")) == "refused_url"
        result = await tool(start_index=-1, raw="perhaps")
    assert code(result) == "invalid_arguments"
    for word in ("url", "start_index", "raw"):
        assert word in result.text
    assert net.looked_up == []


def test_a_factory_without_its_port_raises() -> None:
    with pytest.raises(TypeError, match="HostWeb"):
        web_fetch_tool(None)  # pyright: ignore[reportArgumentType]  (the mistake under test)


async def test_the_converter_is_missed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without(name: str) -> object:
        return None if name == "html_to_markdown" else real(name)

    monkeypatch.setattr("toolkit_core.host.pages.markdown.find_spec", without)
    result = await fetch(answer(b"<p>x"))
    assert code(result) == "unavailable"
    assert "html-to-markdown" in result.text
    assert not (await fetch(answer(b"<p>x"), raw=True)).is_error


async def test_a_large_page_is_converted_in_a_process_with_the_same_result() -> None:
    small = "<title>T</title><p>one <a href='x'>two</a> é</p>"
    large = small + "<!--" + "x" * 200_000 + "-->"
    a = await to_markdown(small, "http://pub.test/")
    b = await to_markdown(large, "http://pub.test/")
    assert a == b
    assert a.text == "# T\n\none [two](http://pub.test/x) é"


async def test_a_cancelled_conversion_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[asyncio.subprocess.Process] = []
    real = asyncio.create_subprocess_exec

    async def spy(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await real(*args, **options)
        started.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", spy)
    page = "<table><tr>" + "<td>x" * 300_000 + "<tr><td>y" * 100_000
    call = asyncio.ensure_future(to_markdown(page, "http://pub.test/"))
    while not started:
        await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert started[0].returncode is not None


async def test_nothing_is_logged_about_a_page(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await fetch(answer(b"<p>x", headers=["X-Secret: hush"]))
    assert "hush" not in caplog.text
